#include "exec/gpu/plan.h"

#include <optional>
#include <utility>

#include "exec/gpu/plan_experts.h"
#include "exec/gpu/plan_simple.h"
#include "kernels/add_rows/plan.h"
#include "kernels/attention/plan.h"
#include "kernels/gather/plan.h"
#include "kernels/linear/plan.h"
#include "kernels/quantize_act/plan.h"
#include "kernels/rms_norm/plan.h"

namespace doppler::gpu_exec {
namespace {

using graph::Graph;
using graph::kNone;
using graph::Node;
using graph::Op;
using graph::View;

bool same(const View& a, const View& b) {
  return a.value == b.value && a.offset == b.offset && a.width == b.width;
}

// Builds the list for given shapes.
class Planner {
 public:
  Planner(const Graph& graph, const StaticPlan& fixed, uint32_t rows, uint32_t selected,
          const gpu::Caps& caps, const GpuOptions& options, uint32_t position)
      : graph_(graph), fixed_(fixed), caps_(caps), options_(options), position_(position) {
    plan_.rows = rows;
    plan_.selected = selected;
  }

  Plan run() {
    for (uint32_t i = 0; i < graph_.nodes.size(); ++i) {
      if (begins_head(graph_.nodes[i].op)) in_head_ = true;
      if (in_head_ && plan_.selected == 0) break;
      if (fuses_with_next(i)) {
        add_norm(i);
        ++i;
      } else {
        add(i);
      }
    }
    return std::move(plan_);
  }

 private:
  uint32_t rows_of(const View& view) const {
    return graph_.values[view.value].selected ? plan_.selected : plan_.rows;
  }

  bool aligned(const View& view) const { return is_aligned(graph_, view); }

  // A residual add whose sum the next node normalises as a whole.
  bool fuses_with_next(uint32_t i) const {
    if (i + 1 >= graph_.nodes.size()) return false;
    const Node &sum = graph_.nodes[i], &norm = graph_.nodes[i + 1];
    return sum.op == Op::kAdd && norm.op == Op::kRmsNorm && same(sum.out, norm.in) &&
           norm.group == norm.in.width && norm.out.value != norm.in.value;
  }

  Step& push(StepKind kind, uint32_t node, std::string kernel, std::string shape, std::string reason) {
    Step step;
    step.kind = kind;
    step.node = node;
    step.kernel = std::move(kernel);
    step.shape = std::move(shape);
    step.reason = std::move(reason);
    step.expert_layer = expert_layer_of(fixed_.expert_layers, node);
    std::vector<Step>& list = in_head_ ? plan_.head : plan_.body;
    list.push_back(std::move(step));
    return list.back();
  }

  static std::string_view vec(bool vec4) { return vec4 ? "vec4" : "scalar"; }

  void add_norm(uint32_t i) {
    const Node& norm = graph_.nodes[i + 1];
    const uint32_t rows = rows_of(norm.in);
    const auto plan = kernels::plan_rms_norm(rows, 1, norm.group, aligned(norm.in), caps_);
    push(StepKind::kAddRmsNorm, i, fmt::format("add_rms_norm/{}/wg{}", vec(plan.vec4), plan.workgroup),
         fmt::format("{} x {}", rows, norm.group), plan.reason)
        .norm_node = i + 1;
    overwritten(graph_.nodes[i].out);
    overwritten(norm.out);
  }

  void add(uint32_t i) {
    const Node& node = graph_.nodes[i];
    switch (node.op) {
      case Op::kLinear:
        return linear(i);
      case Op::kEmbed:
      case Op::kAddPosition:
      case Op::kAddVector:
        return table(i);
      case Op::kAttention:
        attention(i, rows_of(node.out));
        break;
      case Op::kRoute:
      case Op::kExpertLinear:
      case Op::kExpertSum:
        return experts(i);
      default: {
        const uint32_t rows = rows_of(node.out.value != kNone ? node.out : node.in);
        Step step = plan_simple(graph_, node, rows, caps_);
        push(step.kind, i, std::move(step.kernel), std::move(step.shape), std::move(step.reason));
      }
    }
    overwritten(node.out);
  }

  void experts(uint32_t i) {
    const Node& node = graph_.nodes[i];
    std::vector<Step>& list = in_head_ ? plan_.head : plan_.body;
    for (Step& step : expert_steps(graph_, fixed_, i, rows_of(node.out), caps_, options_))
      list.push_back(std::move(step));
    if (node.op == Op::kExpertLinear) quantized_.reset();  // they use the same buffer
    overwritten(node.out);
  }

  // Rows of a table, one step a part of it.
  void table(uint32_t i) {
    const Node& node = graph_.nodes[i];
    const graph::Weight& weight = graph_.weights[node.weights[0]];
    const std::vector<WeightPart>& parts = fixed_.parts[node.weights[0]];
    const uint32_t rows = rows_of(node.out);
    const bool gather = node.op == Op::kEmbed;
    const auto numbers = [](const auto& plan) { return std::pair(plan.workgroup, plan.reason); };
    const auto [workgroup, reason] = gather ? numbers(kernels::plan_gather(rows, weight.columns, caps_))
                                            : numbers(kernels::plan_add_rows(rows, weight.columns, caps_));
    for (uint32_t part = 0; part < parts.size(); ++part) {
      Step& step =
          push(gather ? StepKind::kGather : StepKind::kAddRows, i,
               fmt::format("{}/{}/wg{}", gather ? "gather" : "add_rows", dtype_name(weight.dtype), workgroup),
               fmt::format("{} of {} x {}", rows, parts[part].rows, weight.columns),
               split_reason(parts, part, reason));
      step.weight = node.weights[0];
      step.part = part;
      step.completes = part + 1 == parts.size();
    }
    overwritten(node.out);
  }

  void linear(uint32_t i) {
    const Node& node = graph_.nodes[i];
    const uint32_t rows = rows_of(node.out);
    uint32_t column = 0;
    for (size_t w = 0; w < node.weights.size(); ++w) {
      const graph::Weight& weight = graph_.weights[node.weights[w]];
      const std::vector<WeightPart>& parts = fixed_.parts[node.weights[w]];
      const graph::WeightId bias = node.biases.empty() ? kNone : node.biases[w];
      const bool int8 = options_.precision == Precision::kFast && kernels::linear_takes_int8(weight.dtype);
      if (int8 && !(quantized_ && same(*quantized_, node.in))) {
        const auto p = kernels::plan_quantize_act(rows, node.in.width, aligned(node.in), caps_);
        push(StepKind::kQuantizeAct, i, fmt::format("quantize_act/{}/wg{}", vec(p.vec4), p.workgroup),
             fmt::format("{} x {}", rows, node.in.width), p.reason)
            .completes = false;
        quantized_ = node.in;
      }
      for (uint32_t part = 0; part < parts.size(); ++part) {
        const kernels::LinearShape shape{weight.dtype,     rows, weight.columns,
                                         parts[part].rows, int8, int8 || aligned(node.in),
                                         bias != kNone};
        const kernels::LinearPlan p = kernels::plan_linear(shape, caps_);
        Step& step =
            push(StepKind::kLinear, i,
                 fmt::format("linear/{}/{}/{}{}", linear_kernel_name(p.kernel), dtype_name(weight.dtype),
                             int8 ? "int8" : "f32", bias != kNone ? "/bias" : ""),
                 fmt::format("{} x {} -> {}", rows, weight.columns, parts[part].rows),
                 split_reason(parts, part, p.reason));
        step.weight = node.weights[w];
        step.bias = bias;
        step.part = part;
        step.column = column;
        step.int8 = int8;
        step.completes = part + 1 == parts.size() && w + 1 == node.weights.size();
        column += parts[part].rows;
      }
    }
    overwritten(node.out);
  }

  void attention(uint32_t i, uint32_t rows) {
    const Node& node = graph_.nodes[i];
    const graph::KvLayer& layer = graph_.kv_layers[node.kv_layer];
    const kernels::AttentionShape shape{
        rows, node.in.width / node.group, layer.kv_heads, layer.head_dim, position_, layer.window};
    const auto p = kernels::plan_attention(shape, fixed_.scratch_bytes > 0, caps_);
    push(StepKind::kAttention, i,
         fmt::format("attention/q{}k{}{}{}{}", p.query_tile, p.key_tile,
                     p.splits > 1 ? fmt::format("/{} splits", p.splits) : "", node.causal ? "" : "/all",
                     node.weights.empty() ? "" : "/sinks"),
         fmt::format("{} x {} heads x {}, {} keys{}", rows, shape.heads, layer.head_dim, position_ + rows,
                     layer.window > 0 ? fmt::format(" (window {})", layer.window) : ""),
         p.reason);
  }

  std::string split_reason(const std::vector<WeightPart>& parts, uint32_t part,
                           const std::string& reason) const {
    if (parts.size() == 1) return reason;
    return fmt::format("part {} of {}: bindings hold {} MiB; {}", part + 1, parts.size(),
                       caps_.max_binding_bytes >> 20, reason);
  }

  // The quantised form of a value is void once the value changes.
  void overwritten(const View& view) {
    if (quantized_ && quantized_->value == view.value) quantized_.reset();
  }

  const Graph& graph_;
  const StaticPlan& fixed_;
  const gpu::Caps& caps_;
  const GpuOptions& options_;
  uint32_t position_;
  Plan plan_;
  bool in_head_ = false;
  std::optional<View> quantized_;  // what the int8 buffer holds
};

}  // namespace

Plan plan_graph(const Graph& graph, const StaticPlan& fixed, uint32_t rows, uint32_t selected,
                const gpu::Caps& caps, const GpuOptions& options, uint32_t position) {
  return Planner(graph, fixed, rows, selected, caps, options, position).run();
}

}  // namespace doppler::gpu_exec
