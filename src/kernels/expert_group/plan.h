#pragma once
#include <cstdint>
#include <string>

#include "gpu/device.h"

namespace doppler::kernels {

/// Mirrors Params in expert_group.wgsl.
struct ExpertGroupParams {
  uint32_t uses, top_k, experts, tile;
  uint32_t tiles, routes_offset, routes_stride, pad = 0;
};
static_assert(sizeof(ExpertGroupParams) == 32);

inline constexpr uint32_t kSmallestExpertTile = 8;

struct ExpertGroupPlan {
  uint32_t workgroup = 256;
  uint32_t uses = 0;   // rows * top_k
  uint32_t tile = 64;  // most uses a tile
  uint32_t tiles = 0;  // that are enough however the uses fall on the experts
  std::string reason;
};

/// Tiles about as large as an expert's part of the uses is on average.
ExpertGroupPlan plan_expert_group(uint32_t rows, uint32_t top_k, uint32_t experts, const gpu::Caps& caps);

}  // namespace doppler::kernels
