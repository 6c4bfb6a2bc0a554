#pragma once
// The uses of experts in a pass, sorted by expert and cut into tiles for the tiled form of expert_linear.
#include <cstdint>
#include <optional>

#include "kernels/common/matrix.h"
#include "kernels/expert_group/plan.h"

namespace doppler::kernels {

/// Where the tiles lie: u32 [tiles, 4] (expert, first, count, 0) and u32 [uses].
struct ExpertGroups {
  const gpu::Buffer* buffer = nullptr;
  uint32_t tile = 0, tiles = 0, uses = 0;
};

uint64_t expert_groups_bytes(const ExpertGroupPlan& plan);
/// Enough for any number of rows up to `rows`.
uint64_t most_expert_groups_bytes(uint32_t rows, uint32_t top_k, uint32_t experts);
ExpertGroups expert_groups(const gpu::Buffer& buffer, const ExpertGroupPlan& plan);

struct ExpertGroupArgs {
  Matrix routes;  // [rows, 2 * top_k], as record_route writes them
  uint32_t experts = 0;
  ExpertGroups out;
};

Result<void> record_expert_group(gpu::Device& device, gpu::Commands& commands, const ExpertGroupArgs& args);
Result<void> run_expert_group(gpu::Device& device, const ExpertGroupArgs& args);

}  // namespace doppler::kernels
