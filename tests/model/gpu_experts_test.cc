// The tiny mixtures of experts on lavapipe: against transformers' numbers, and on demand against resident.
#include "exec/gpu/plan.h"
#include "families_check.h"

namespace doppler::test {
namespace {

std::shared_ptr<gpu::Device> lavapipe() {
  static const std::shared_ptr<gpu::Device> device = take(gpu::Device::create({.name = "lavapipe"}));
  return device;
}

std::vector<fs::path> mixtures_of(const std::string& seed) {
  std::vector<fs::path> folders;
  for (const fs::path& folder : families_of(seed))
    if (take(model::open_model(folder.string())).config.experts > 0) folders.push_back(folder);
  return folders;
}

TEST_CASE("lavapipe: tiny mixtures of experts give transformers' logits, hidden states and greedy ids") {
  size_t count = 0;
  for (const std::string seed : {"seed-9", "seed-25"})
    for (const fs::path& folder : mixtures_of(seed)) {
      check_family(folder, lavapipe());
      ++count;
    }
  CHECK(count >= 4);  // Mixtral, Qwen3-MoE, gpt-oss with BF16 and with MXFP4 experts
}

/// Greedy ids and the logits of every step, the prompt in chunks of 5, and what the experts' counters say.
struct Run {
  std::vector<int32_t> ids;
  std::vector<std::vector<float>> logits;
  std::optional<ExpertStats> stats;
  uint64_t asked = 0;  // by the routes: different experts of each layer and pass
};

Run run(const model::LoadedModel& model, std::span<const int32_t> prompt, Precision precision,
        uint64_t memory, bool count) {
  const GpuOptions options{.precision = precision, .max_chunk = 64, .expert_memory_bytes = memory};
  const auto executor = take(make_gpu_executor(lavapipe(), model.graph, *model.weights, options));
  Run out;
  if (count)
    executor->set_tap([&](const Tap& tap) {
      if (tap.name != "routes") return;
      std::set<float> experts;
      for (size_t r = 0; r < tap.rows; ++r)
        for (size_t s = 0; s < tap.width / 2; ++s) experts.insert(tap.data[r * tap.width + s]);
      out.asked += experts.size();
    });
  const auto kv = take(executor->make_kv(256, KvType::kF32));
  std::vector<float> logits(model.graph.logits.width);
  std::vector<int32_t> ids(prompt.begin(), prompt.end());
  for (size_t at = 0; out.ids.size() < 12;) {
    const size_t take_now = std::min<size_t>(5, ids.size() - at);
    const auto done = executor->forward(*kv, std::span(ids).subspan(at, take_now), LogitRows::kLast, logits);
    REQUIRE_MESSAGE(done.has_value(), (done ? "" : done.error().message));
    at += take_now;
    if (at < ids.size()) continue;
    out.logits.push_back(logits);
    out.ids.push_back(arg_max(logits));
    ids.push_back(out.ids.back());
  }
  out.stats = executor->expert_stats();
  return out;
}

TEST_CASE("lavapipe: experts on demand give the same ids and logits, bit for bit") {
  for (const fs::path& folder : mixtures_of("seed-9")) {
    CAPTURE(folder.string());
    const model::LoadedModel model = take(model::open_model(folder.string()));
    const auto prompt = expected_of(folder)["prompt_ids"].get<std::vector<int32_t>>();
    const auto fixed = take(gpu_exec::plan_static(model.graph, lavapipe()->caps(),
                                                  {.max_chunk = 64, .expert_memory_bytes = 1ull << 40}));
    REQUIRE(fixed.expert_pools.size() == 1);
    const gpu_exec::ExpertPool& pool = fixed.expert_pools[0];
    const uint64_t all = pool.experts * pool.slot_bytes, least = pool.top_k * pool.slot_bytes;
    for (const Precision precision : {Precision::kExact, Precision::kFast}) {
      // A tap takes fused dispatches apart, which may change last bits: it only counts.
      const uint64_t asked = run(model, prompt, precision, 0, true).asked;
      const Run resident = run(model, prompt, precision, 0, false);
      CHECK_FALSE(resident.stats);
      for (const uint64_t memory : {all, all / 2, least}) {
        CAPTURE(memory);
        const Run got = run(model, prompt, precision, memory, false);
        CHECK(got.ids == resident.ids);
        CHECK(got.logits == resident.logits);
        REQUIRE(got.stats);
        CHECK(got.stats->hits + got.stats->misses == asked);
        CHECK(got.stats->bytes_loaded == got.stats->misses * pool.slot_bytes);
        CHECK(got.stats->slots == memory / pool.slot_bytes);
      }
    }
    const auto refused = make_gpu_executor(lavapipe(), model.graph, *model.weights,
                                           {.max_chunk = 64, .expert_memory_bytes = least - 1});
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message.find(std::to_string(least)) != std::string::npos);
  }
}

}  // namespace
}  // namespace doppler::test
