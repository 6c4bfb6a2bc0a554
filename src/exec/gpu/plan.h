#pragma once
// Graph, shapes and capabilities in; dispatches out. A pure function: tested and printed without a GPU.
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "exec/gpu/expert_layers.h"
#include "exec/gpu/gpu_executor.h"
#include "graph/graph.h"

namespace doppler::gpu_exec {

enum class StepKind : uint8_t {
  kGather,
  kAddRows,  // kAddPosition, kAddVector: one part of the table
  kRmsNorm,
  kAddRmsNorm,  // a residual add, the norm that follows it and, with first_node, the one before it
  kLayerNorm,
  kQuantizeAct,
  kLinear,  // one part of one weight
  kRope,
  kKvWrite,
  kRopeKv,  // a HeadsRun (plan_heads.h): `node` is its kKvWrite
  kAttention,
  kGatedAct,
  kAct,
  kAdd,
  kMul,
  kSelectRows,  // kFirstRow too
  kMeanRows,
  kL2Norm,
  kSoftcap,
  kRoute,
  kExpertGroup,     // the routes sorted by expert
  kExpertQuantize,  // kQuantizeAct, a part a slot where each has its own
  kExpertLinear,    // one weight, the experts of one part
  kExpertSum,
};

/// One record_x() call.
struct Step {
  StepKind kind{};
  uint32_t node = 0;                   // its number in the graph
  uint32_t norm_node = graph::kNone;   // kAddRmsNorm: the norm's
  uint32_t first_node = graph::kNone;  // kRopeKv: where the run begins; kAddRmsNorm: a norm of what is added
  graph::WeightId weight = graph::kNone;  // kGather, kAddRows, kLinear
  graph::WeightId bias = graph::kNone;    // kLinear
  uint32_t part = 0;                      // of the weight
  uint32_t column = 0;                    // kLinear: first column of the node's out that this part fills
  bool int8 = false;                      // kLinear, kExpertLinear: reads the quantised activations
  bool quantizes = false;                 // kRmsNorm, kAddRmsNorm, kGatedAct, kAttention: writes them too
  uint32_t int8_buffer = 0;               // which of Workspace::quantized those activations are in
  uint32_t expert_layer =
      graph::kNone;            // kRoute, and steps of the nodes from there to the last kExpertLinear
  uint32_t expert_matrix = 0;  // kExpertLinear: of the layer
  bool completes = true;       // the node's result is whole after this step
  std::string kernel;          // for people: "linear/matvec/q5_0/int8"
  std::string shape;
  std::string reason;
};

/// Rows [first, first + rows) of a weight, in a buffer of their own.
struct WeightPart {
  uint32_t first = 0, rows = 0;
};

struct Plan {
  uint32_t rows = 0;             // tokens of the pass
  uint32_t selected = 0;         // rows whose logits one run of `head` computes
  std::vector<Step> body, head;  // head: from begins_head() on; empty if no logits are asked for
};

/// Where values live: few buffers, each used again once its value is no longer read.
struct SlotPlan {
  std::vector<uint32_t> slot_of;     // per value
  std::vector<uint64_t> slot_bytes;  // per slot
};

/// What stays the same for every pass of a graph on a device.
struct StaticPlan {
  std::vector<std::vector<WeightPart>> parts;  // per weight; none for one that lies below another
  /// Per weight: those whose rows lie below its own in the same buffer, so that one product computes them
  /// all. Its only part then has the rows of all.
  std::vector<std::vector<graph::WeightId>> stacked;
  SlotPlan slots;
  uint32_t logit_rows = 1;  // most rows whose logits are computed at once
  /// Int8 activations; 0: none. The second are of what experts' later products read, so that the first stay
  /// for the next wave of experts.
  std::array<uint64_t, 2> quantized_bytes{};
  uint64_t scratch_bytes = 0;  // attention over few rows
  std::vector<ExpertLayer> expert_layers;
  std::vector<ExpertPool> expert_pools;
  bool experts_on_demand = false;    // pools are caches; else every expert is where its number says
  uint64_t expert_groups_bytes = 0;  // 0: no experts
};

/// True for the ops after which values have the asked rows alone.
bool begins_head(graph::Op op);

/// Errors: kUnsupported for what no kernel runs: an op, a head size, a tensor whose single row exceeds the
/// limit of a binding.
Result<StaticPlan> plan_static(const graph::Graph& graph, const gpu::Caps& caps, const GpuOptions& options);

/// The dispatches of a pass over `rows` tokens that start at `position` (only the printed form depends on
/// it).
Plan plan_graph(const graph::Graph& graph, const StaticPlan& fixed, uint32_t rows, uint32_t selected,
                const gpu::Caps& caps, const GpuOptions& options, uint32_t position = 0);

/// One line a dispatch and a summary, as `doppler plan` shows them.
std::string plan_text(const graph::Graph& graph, const Plan& plan);

/// The caps a plan is made with: the device's, with the options' own limit on bindings.
gpu::Caps planning_caps(gpu::Caps caps, const GpuOptions& options);

std::string_view step_name(StepKind kind);

}  // namespace doppler::gpu_exec
