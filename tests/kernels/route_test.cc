// route, expert_group, expert_sum.
#include "kernels/route/route.h"

#include <algorithm>
#include <map>

#include "kernels/expert_group/expert_group.h"
#include "kernels/expert_sum/expert_sum.h"
#include "kernels/expert_sum/reference.h"
#include "kernels/route/reference.h"
#include "kernels/support.h"

namespace doppler::kernels {
namespace {

using graph::Routing;

/// [rows, 2 * top_k] with random experts, all different in a row, and weights.
std::vector<float> random_routes(uint32_t rows, uint32_t experts, uint32_t top_k, uint32_t seed) {
  const std::vector<float> logits = random_floats(seed, size_t{rows} * experts);
  const std::vector<double> routes = route_reference(logits, rows, experts, top_k, Routing::kSoftmaxOfChosen);
  return {routes.begin(), routes.end()};
}

void check_route(gpu::Device& device, uint32_t rows, uint32_t experts, uint32_t top_k,
                 std::vector<float> logits, uint32_t gap = 0) {
  CAPTURE(rows);
  CAPTURE(experts);
  CAPTURE(top_k);
  for (const Routing routing : {Routing::kSoftmaxOfChosen, Routing::kSoftmaxOverAll}) {
    const uint32_t in_stride = experts + gap, out_stride = 2 * top_k + gap;
    std::vector<float> rows_in(size_t{rows} * in_stride, 1e30f);  // reading beside the slice would show
    for (size_t r = 0; r < rows; ++r)
      std::copy_n(logits.begin() + static_cast<std::ptrdiff_t>(r * experts), experts,
                  rows_in.begin() + static_cast<std::ptrdiff_t>(r * in_stride + gap));
    const gpu::Buffer in = upload(device, rows_in);
    const gpu::Buffer out = filled(device, size_t{rows} * out_stride, 77.0f);
    must(run_route(device, {columns(matrix(in, rows, in_stride), gap, experts),
                            columns(matrix(out, rows, out_stride), gap, 2 * top_k), routing}));
    const std::vector<float> got = download(device, out);
    const std::vector<double> want = route_reference(logits, rows, experts, top_k, routing);
    std::vector<float> weights;
    std::vector<double> want_weights;
    size_t wrong = 0;
    for (size_t r = 0; r < rows; ++r)
      for (size_t i = 0; i < out_stride; ++i) {
        const float value = got[r * out_stride + i];
        if (i < gap) {
          wrong += value != 77.0f;
        } else if (i - gap < top_k) {
          wrong += value != static_cast<float>(want[r * 2 * top_k + i - gap]);
        } else {
          weights.push_back(value);
          want_weights.push_back(want[r * 2 * top_k + i - gap]);
        }
      }
    CHECK(wrong == 0);
    CHECK(nmse(weights, want_weights) < 1e-11);
  }
}

TEST_CASE("route: numbers of experts and of rows, slices") {
  gpu::Device& device = gpu::test_device();
  for (const uint32_t experts : {1u, 3u, 5u, 8u, 9u, 33u, 63u, 64u, 65u, 128u, 129u, 257u, 511u, 512u})
    for (const uint32_t top_k : {1u, 2u, 7u, 8u, 32u})
      if (top_k <= experts)
        check_route(device, 5, experts, top_k, random_floats(experts + top_k, size_t{5} * experts, 3.0f));
  check_route(device, 1, 128, 8, random_floats(1, 128));
  check_route(device, 700, 9, 2, random_floats(2, 700 * 9));
  check_route(device, 4, 33, 5, random_floats(3, 4 * 33), 3);
}

TEST_CASE("route: equal logits go by number, both zeros are equal, far and infinite logits") {
  gpu::Device& device = gpu::test_device();
  check_route(device, 1, 9, 4, std::vector<float>(9, 0.5f));
  check_route(device, 2, 6, 3, {-0.0f, 0.0f, -0.0f, -1, 0.0f, -2, 7, -0.0f, 0.0f, 7, 7, -7});
  check_route(device, 1, 5, 5, {-1e38f, 3e38f, 1e38f, -3e38f, 0});
  check_route(device, 3, 40, 8, random_floats(4, 3 * 40, 1e5f));
  const float far = std::numeric_limits<float>::infinity();
  check_route(device, 1, 4, 2, {-far, 1, 2, -far});
}

TEST_CASE("route: logits that are not numbers still give experts that exist") {
  gpu::Device& device = gpu::test_device();
  std::vector<float> logits = random_floats(5, 3 * 16);
  logits[4] = logits[20] = logits[21] = NAN;
  std::fill_n(logits.begin() + 32, 16, NAN);
  const gpu::Buffer in = upload(device, logits), out = filled(device, 3 * 8, -1.0f);
  must(run_route(device, {matrix(in, 3, 16), matrix(out, 3, 8), Routing::kSoftmaxOfChosen}));
  const std::vector<float> got = download(device, out);
  for (size_t r = 0; r < 3; ++r)
    for (size_t s = 0; s < 4; ++s) {
      const float expert = got[r * 8 + s];
      CHECK(expert >= 0);
      CHECK(expert < 16);
      for (size_t other = 0; other < s; ++other) CHECK(expert != got[r * 8 + other]);
    }
}

TEST_CASE("route: what does not fit is refused") {
  gpu::Device& device = gpu::test_device();
  const gpu::Buffer in = filled(device, 2048), out = filled(device, 2048);
  const auto code = [&](uint32_t experts, uint32_t top_k, const gpu::Buffer& to) {
    const auto result = run_route(device, {matrix(in, 1, experts), matrix(to, 1, 2 * top_k)});
    return result ? ErrorCode::kGpu : result.error().code;
  };
  CHECK(code(kMaxExperts + 1, 2, out) == ErrorCode::kUnsupported);
  CHECK(code(64, kMaxTopK + 1, out) == ErrorCode::kUnsupported);
  CHECK(code(3, 4, out) == ErrorCode::kBadInput);
  CHECK(code(8, 2, in) == ErrorCode::kBadInput);
}

void check_groups(gpu::Device& device, uint32_t rows, uint32_t experts, uint32_t top_k,
                  const std::vector<float>& routes) {
  CAPTURE(rows);
  CAPTURE(experts);
  CAPTURE(top_k);
  const ExpertGroupPlan plan = plan_expert_group(rows, top_k, experts, device.caps());
  CHECK(expert_groups_bytes(plan) <= most_expert_groups_bytes(rows, top_k, experts));
  const gpu::Buffer in = upload(device, routes);
  const gpu::Buffer out =
      filled(device, expert_groups_bytes(plan) / 4, NAN);  // a word that is not written shows
  must(run_expert_group(device, {matrix(in, rows, 2 * top_k), experts, expert_groups(out, plan)}));
  std::vector<uint32_t> got(out.bytes() / 4);
  must(device.read(out, 0, std::as_writable_bytes(std::span(got))));
  std::vector<bool> seen(plan.uses, false);
  uint32_t placed = 0, wrong = 0;
  std::map<uint32_t, uint32_t> short_tiles;  // of each expert
  for (uint32_t t = 0; t < plan.tiles; ++t) {
    const uint32_t expert = got[t * 4], first = got[t * 4 + 1], count = got[t * 4 + 2];
    if (count == 0) continue;
    REQUIRE(count <= plan.tile);
    REQUIRE(first + count <= plan.uses);
    if (count < plan.tile) ++short_tiles[expert];
    for (uint32_t i = first; i < first + count; ++i) {
      const uint32_t use = got[plan.tiles * 4 + i];
      REQUIRE(use < plan.uses);
      wrong += seen[use];
      wrong += routes[use / top_k * 2 * top_k + use % top_k] != static_cast<float>(expert);
      seen[use] = true;
      ++placed;
    }
  }
  CHECK(wrong == 0);
  CHECK(placed == plan.uses);
  for (const auto& [expert, count] : short_tiles) CHECK(count == 1);
}

TEST_CASE("expert_group: every use is in one tile of its expert") {
  gpu::Device& device = gpu::test_device();
  for (const uint32_t experts : {1u, 3u, 8u, 33u, 128u, 257u, 512u})
    for (const uint32_t top_k : {1u, 2u, 8u})
      for (const uint32_t rows : {1u, 5u, 31u, 32u, 33u, 257u, 600u})
        if (top_k <= experts)
          check_groups(device, rows, experts, top_k, random_routes(rows, experts, top_k, rows + experts));
  // All uses on the same experts: the other tiles stay empty.
  std::vector<float> same(600 * 4);
  for (size_t r = 0; r < 600; ++r) same[r * 4] = 511, same[r * 4 + 1] = 3;
  check_groups(device, 600, 512, 2, same);
}

TEST_CASE("expert_group: the tiles follow from the average") {
  const gpu::Caps caps;
  CHECK(plan_expert_group(512, 2, 8, caps).tile == 64);
  CHECK(plan_expert_group(512, 8, 128, caps).tile == 32);
  CHECK(plan_expert_group(17, 2, 8, caps).tile == 8);
  CHECK(plan_expert_group(5, 8, 512, caps).tile == kSmallestExpertTile);
}

TEST_CASE("expert_sum matches the reference") {
  gpu::Device& device = gpu::test_device();
  for (const uint32_t width : {1u, 3u, 4u, 5u, 64u, 65u, 2048u, 2049u})
    for (const uint32_t top_k : {1u, 2u, 8u, 32u})
      for (const float scale : {1.0f, 1e5f}) {
        CAPTURE(width);
        CAPTURE(top_k);
        CAPTURE(scale);
        const std::vector<float> x = random_floats(width, size_t{3} * width * top_k, scale);
        const std::vector<float> routes = random_routes(3, 40, top_k, width);
        const gpu::Buffer in = upload(device, x), routing = upload(device, routes);
        const gpu::Buffer out = filled(device, size_t{3} * (width + 2), 77.0f);
        must(run_expert_sum(device, {matrix(in, 3, width * top_k), matrix(routing, 3, 2 * top_k),
                                     columns(matrix(out, 3, width + 2), 1, width)}));
        std::vector<float> inside;
        size_t touched = 0;
        const std::vector<float> got = download(device, out);
        for (size_t i = 0; i < got.size(); ++i) {
          const size_t c = i % (width + 2);
          if (c >= 1 && c <= width)
            inside.push_back(got[i]);
          else
            touched += got[i] != 77.0f;
        }
        CHECK(touched == 0);
        CHECK(nmse(inside, expert_sum_reference(x, routes, 3, width, top_k)) < 1e-11);
        const gpu::Buffer whole = filled(device, size_t{3} * width);
        must(run_expert_sum(
            device, {matrix(in, 3, width * top_k), matrix(routing, 3, 2 * top_k), matrix(whole, 3, width)}));
        CHECK(nmse(download(device, whole), expert_sum_reference(x, routes, 3, width, top_k)) < 1e-11);
      }
}

}  // namespace
}  // namespace doppler::kernels
