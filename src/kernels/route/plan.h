#pragma once
#include <array>
#include <cstdint>
#include <string>

#include "gpu/device.h"

namespace doppler::kernels {

/// Mirrors Params in route.wgsl.
struct RouteParams {
  uint32_t rows, experts, top_k, grid_x;
  uint32_t in_offset, in_stride, out_offset, out_stride;
};
static_assert(sizeof(RouteParams) == 32);

/// What the kernels of a mixture of experts are made for.
inline constexpr uint32_t kMaxExperts = 512;
inline constexpr uint32_t kMaxTopK = 32;

struct RoutePlan {
  uint32_t workgroup = 64;
  std::array<uint32_t, 3> grid{};
  std::string reason;
};

RoutePlan plan_route(uint32_t rows, uint32_t experts, const gpu::Caps& caps);

}  // namespace doppler::kernels
