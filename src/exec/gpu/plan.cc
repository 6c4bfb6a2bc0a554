#include "exec/gpu/plan.h"

#include <array>
#include <optional>
#include <utility>

#include "exec/gpu/plan_experts.h"
#include "exec/gpu/plan_heads.h"
#include "exec/gpu/plan_simple.h"
#include "kernels/add_rows/plan.h"
#include "kernels/attention/plan.h"
#include "kernels/gather/plan.h"
#include "kernels/linear/plan.h"
#include "kernels/quantize_act/plan.h"
#include "kernels/rms_norm/plan.h"
#include "kernels/rope_kv/plan.h"

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
        add_norm(i, kNone);
        ++i;
      } else if (options_.fuse && adds_normed(i)) {
        add_norm(i + 1, i);
        i += 2;
      } else if (const auto heads = options_.fuse ? heads_run(graph_, i) : std::nullopt) {
        add_heads(i, *heads);
        i = heads->write;
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

  // A norm whose out is only added to the residual, where that add fuses with the norm after it.
  bool adds_normed(uint32_t i) const {
    const Node& norm = graph_.nodes[i];
    if (norm.op != Op::kRmsNorm || norm.group != norm.in.width || !fuses_with_next(i + 1)) return false;
    const Node &sum = graph_.nodes[i + 1], &after = graph_.nodes[i + 2];
    if (!same(sum.in2, norm.out) || sum.in.value == norm.out.value || norm.eps != after.eps ||
        norm.weight_offset != after.weight_offset || norm.in.value == sum.out.value)
      return false;
    for (uint32_t other = 0; other < graph_.nodes.size(); ++other)
      if (other != i + 1 &&
          (graph_.nodes[other].in.value == norm.out.value || graph_.nodes[other].in2.value == norm.out.value))
        return false;
    return true;
  }

  Step& push(StepKind kind, uint32_t node, std::string kernel, std::string shape, std::string reason) {
    Step step;
    step.kind = kind;
    step.node = node;
    step.kernel = std::move(kernel);
    step.shape = std::move(shape);
    step.reason = std::move(reason);
    step.expert_layer = expert_layer_of(fixed_.expert_layers, node);
    list().push_back(std::move(step));
    return list().back();
  }

  std::vector<Step>& list() { return in_head_ ? plan_.head : plan_.body; }

  static std::string_view vec(bool vec4) { return vec4 ? "vec4" : "scalar"; }

  // Node i adds, i + 1 normalises, `before` normalises what is added (kNone: nothing does).
  void add_norm(uint32_t i, uint32_t before) {
    const Node& norm = graph_.nodes[i + 1];
    const uint32_t rows = rows_of(norm.in);
    const auto plan = kernels::plan_rms_norm(rows, 1, norm.group, aligned(norm.in), caps_);
    Step& step = push(
        StepKind::kAddRmsNorm, i,
        fmt::format("{}add_rms_norm/{}/wg{}", before == kNone ? "" : "norm_", vec(plan.vec4), plan.workgroup),
        fmt::format("{} x {}", rows, norm.group), plan.reason);
    step.norm_node = i + 1;
    step.first_node = before;
    overwritten(graph_.nodes[i].out);
    overwritten(norm.out);
    quantize_along(i + 1);
  }

  void add_heads(uint32_t first, const HeadsRun& run) {
    const Node& write = graph_.nodes[run.write];
    const Node& q = graph_.nodes[run.q_rope];
    const uint32_t rows = rows_of(write.in), heads = (q.in.width + 2 * write.in.width) / q.group;
    const auto plan = kernels::plan_rope_kv(rows, heads, caps_);
    push(StepKind::kRopeKv, run.write,
         fmt::format("rope_kv{}/wg{}", run.q_norm == kNone ? "" : "/norms", plan.workgroup),
         fmt::format("{} x {} heads x {}", rows, heads, q.group), plan.reason)
        .first_node = first;
    overwritten(write.in);
  }

  // The buffer in which the next product that reads the node's out wants it as int8: the node's kernel, where
  // it is one that can, then writes that form too. kNone: none does.
  uint32_t wanted_as_int8(uint32_t i) const {
    const View& out = graph_.nodes[i].out;
    for (uint32_t next = i + 1; next < graph_.nodes.size() && next <= i + 3; ++next) {
      const Node& node = graph_.nodes[next];
      const bool experts = node.op == Op::kExpertLinear;
      if ((node.op == Op::kLinear || experts) && same(node.in, out))
        for (const graph::WeightId id : node.weights)
          if (takes_int8(graph_.weights[id]) && (!experts || graph_.weights[id].columns % 32 == 0))
            return int8_buffer_of(fixed_, next);
      if (node.out.value == out.value) break;
    }
    return kNone;
  }

  // Lets the step just added write its out as int8 too.
  void quantize_along(uint32_t i) {
    const Node& node = graph_.nodes[i];
    const uint32_t buffer = wanted_as_int8(i);
    if (buffer == kNone || !aligned(node.in) || !aligned(node.out) || node.out.width % 32 != 0) return;
    Step& step = list().back();
    step.quantizes = true;
    step.int8_buffer = buffer;
    step.kernel += "/int8";
    quantized_[buffer] = node.out;
  }

  bool takes_int8(const graph::Weight& weight) const {
    return options_.precision == Precision::kFast && kernels::linear_takes_int8(weight.dtype);
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
        overwritten(node.out);
        if (fixed_.scratch_bytes > 0 && plan_.rows <= kernels::attention_split_rows() && node.group % 32 == 0)
          quantize_along(i);
        return;
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
    if ((node.op == Op::kRmsNorm && node.group == node.in.width) ||
        (node.op == Op::kGatedAct && (node.group == 0 || node.group % 8 == 0)))
      quantize_along(i);
  }

  void experts(uint32_t i) {
    const Node& node = graph_.nodes[i];
    std::optional<View>& quantized = quantized_[int8_buffer_of(fixed_, i)];
    const bool there = quantized && same(*quantized, node.in);
    for (Step& step : expert_steps(graph_, fixed_, i, rows_of(node.out), caps_, options_)) {
      if (step.kind == StepKind::kExpertQuantize) {
        if (there) continue;
        quantized.reset();  // its rows may be cut in another way
      }
      list().push_back(std::move(step));
    }
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
      if (parts.empty()) continue;  // a part of the one before
      const graph::WeightId bias = node.biases.empty() ? kNone : node.biases[w];
      const bool int8 = takes_int8(weight);
      if (int8 && !(quantized_[0] && same(*quantized_[0], node.in))) {
        const auto p = kernels::plan_quantize_act(rows, node.in.width, aligned(node.in), caps_);
        push(StepKind::kQuantizeAct, i, fmt::format("quantize_act/{}/wg{}", vec(p.vec4), p.workgroup),
             fmt::format("{} x {}", rows, node.in.width), p.reason)
            .completes = false;
        quantized_[0] = node.in;
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
        step.completes = false;
        column += parts[part].rows;
      }
    }
    list().back().completes = true;
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
    for (std::optional<View>& quantized : quantized_)
      if (quantized && quantized->value == view.value) quantized.reset();
  }

  const Graph& graph_;
  const StaticPlan& fixed_;
  const gpu::Caps& caps_;
  const GpuOptions& options_;
  uint32_t position_;
  Plan plan_;
  bool in_head_ = false;
  std::array<std::optional<View>, 2> quantized_;  // what the int8 buffers hold
};

}  // namespace

Plan plan_graph(const Graph& graph, const StaticPlan& fixed, uint32_t rows, uint32_t selected,
                const gpu::Caps& caps, const GpuOptions& options, uint32_t position) {
  return Planner(graph, fixed, rows, selected, caps, options, position).run();
}

}  // namespace doppler::gpu_exec
