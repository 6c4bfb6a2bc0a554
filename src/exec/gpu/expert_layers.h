#pragma once
// The mixtures of experts of a graph, and how their experts' weights are kept on a device.
#include <cstdint>
#include <vector>

#include "base/dtype.h"
#include "base/result.h"
#include "gpu/device.h"
#include "graph/graph.h"

namespace doppler::gpu_exec {

/// One weight of one of a mixture's kExpertLinear nodes.
struct ExpertMatrix {
  uint32_t node = 0;
  graph::WeightId weight = graph::kNone, bias = graph::kNone;
  uint32_t column = 0;  // its first column within a slot's columns of the node's out
};

/// From a kRoute to the last kExpertLinear that follows it.
struct ExpertLayer {
  uint32_t route = 0, last = 0;  // nodes
  uint32_t experts = 0, top_k = 0;
  std::vector<ExpertMatrix> matrices;
  uint32_t pool = 0;  // where its experts are kept
};

/// Slots [first, first + count) in a buffer of their own.
struct SlotRange {
  uint32_t first = 0, count = 0;
};

/// Room for `slots` experts, each of all its matrices and biases.
struct ExpertPool {
  struct Matrix {
    DType dtype = DType::kF32;
    uint32_t rows = 0, columns = 0;  // of one expert
    bool bias = false;
    std::vector<SlotRange> parts;  // whole experts, as many as a binding holds
  };
  std::vector<Matrix> matrices;
  uint32_t slots = 0;
  uint64_t slot_bytes = 0;
  uint64_t experts = 0;  // of all its layers
  uint32_t top_k = 0;    // slots that it needs at least
};

/// The mixtures in the order they run. Errors: kUnsupported for more experts, or more a token, than the
/// kernels take.
Result<std::vector<ExpertLayer>> find_expert_layers(const graph::Graph& graph);

/// Gives every layer a pool. memory_bytes 0: one of its own, with all its experts, expert e in slot e. Else
/// layers whose experts are stored alike share a pool, and the pools hold at most that many bytes of experts.
/// Errors: kBadInput where memory_bytes does not hold the experts of one token and layer, kUnsupported where
/// an expert's matrix exceeds a binding.
Result<std::vector<ExpertPool>> plan_expert_pools(const graph::Graph& graph, std::vector<ExpertLayer>& layers,
                                                  uint64_t memory_bytes, const gpu::Caps& caps);

/// Number of the layer that node lies in, after its kRoute; kNone if in none.
uint32_t expert_layer_of(const std::vector<ExpertLayer>& layers, uint32_t node);

}  // namespace doppler::gpu_exec
