#include "exec/gpu/expert_slots.h"

#include <doctest/doctest.h>

#include "exec/gpu/expert_prefetch.h"
#include "exec/gpu/tiny_experts.h"

namespace doppler::gpu_exec {
namespace {

TEST_CASE("slots: free ones first, then the one unused for longest, never a pinned one") {
  ExpertSlots slots(3);
  for (uint32_t e = 0; e < 3; ++e) {
    const uint32_t slot = slots.take();
    CHECK(slot == e);
    slots.put(slot, {0, e});
  }
  slots.touch(slots.find({0, 0}));
  CHECK(slots.take() == 1);
  CHECK(slots.find({0, 1}) == graph::kNone);
  slots.put(1, {1, 0});
  CHECK(slots.find({1, 0}) == 1);
  CHECK(slots.find({0, 0}) == 0);
  slots.pin(2);
  slots.pin(0);
  CHECK(slots.take() == 1);
  slots.pin(1);
  CHECK(slots.take() == graph::kNone);
  slots.unpin_all();
  CHECK(slots.take() == 1);  // it is empty
  CHECK(slots.find({1, 0}) == graph::kNone);
}

TEST_CASE("prefetch: what was begun is handed out once, what was dropped or fails is not") {
  const testing::ExpertModel model = testing::expert_model({.experts = 4, .layers = 1, .bias = true});
  const auto layers = find_expert_layers(model.graph);
  REQUIRE(layers);
  ExpertPrefetch prefetch(model.graph, *layers, *model.weights);
  const auto wait_for_reads = [&](int count) {
    while (model.weights->experts_read < count) std::this_thread::yield();
  };
  CHECK_FALSE(prefetch.take({0, 1}));
  prefetch.want({{0, 1}, {0, 2}});
  wait_for_reads(4);  // three matrices of the first, and the next has begun
  const auto got = prefetch.take({0, 1});
  REQUIRE(got);
  CHECK_FALSE(prefetch.take({0, 1}));
  const auto direct = pack_expert(model.graph, (*layers)[0], 1, *model.weights);
  REQUIRE(direct);
  REQUIRE(got->size() == direct->size());
  for (size_t m = 0; m < got->size(); ++m) {
    CHECK((*got)[m].bias == (*direct)[m].bias);
    for (size_t plane = 0; plane < 4; ++plane)
      CHECK((*got)[m].planes[plane].words == (*direct)[m].planes[plane].words);
  }
  prefetch.want({});
  CHECK_FALSE(prefetch.take({0, 2}));
  model.weights->failing_expert = 3;
  prefetch.want({{0, 3}});
  CHECK_FALSE(prefetch.take({0, 3}));
}

}  // namespace
}  // namespace doppler::gpu_exec
