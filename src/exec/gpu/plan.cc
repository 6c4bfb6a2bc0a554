#include "exec/gpu/plan.h"

#include <algorithm>
#include <optional>

#include "exec/gpu/plan_experts.h"
#include "exec/gpu/slots.h"
#include "kernels/add/plan.h"
#include "kernels/attention/attention.h"
#include "kernels/gated_act/plan.h"
#include "kernels/gather/plan.h"
#include "kernels/kv_write/plan.h"
#include "kernels/linear/plan.h"
#include "kernels/quantize_act/quantize_act.h"
#include "kernels/rms_norm/plan.h"
#include "kernels/rope/plan.h"
#include "kernels/select_rows/plan.h"
#include "kernels/softcap/plan.h"
#include "kernels/weights/packed.h"

namespace doppler::gpu_exec {
namespace {

using graph::Graph;
using graph::kNone;
using graph::Node;
using graph::Op;
using graph::View;

// Logits of at most this many bytes are computed at once: 64 rows of Gemma's 262,144.
constexpr uint64_t kMaxLogitBytes = 64ull << 20;

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
      if (graph_.nodes[i].op == Op::kSelectRows) in_head_ = true;
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

  bool aligned(const View& view) const {
    return view.offset % 4 == 0 && view.width % 4 == 0 && graph_.values[view.value].width % 4 == 0;
  }

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

  static std::string vec(bool vec4) { return vec4 ? "vec4" : "scalar"; }

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
    if (node.op == Op::kLinear) return linear(i);
    if (is_expert_op(node.op)) return experts(i);
    const uint32_t rows = node.out.value != kNone ? rows_of(node.out) : rows_of(node.in);
    const uint32_t width = node.out.value != kNone ? node.out.width : node.in.width;
    const std::string shape = fmt::format("{} x {}", rows, width);
    switch (node.op) {
      case Op::kEmbed:
        return gather(i, rows);
      case Op::kRmsNorm: {
        const uint32_t groups = node.in.width / node.group;
        const auto p = kernels::plan_rms_norm(rows, groups, node.group, aligned(node.in), caps_);
        push(StepKind::kRmsNorm, i, fmt::format("rms_norm/{}/wg{}", vec(p.vec4), p.workgroup),
             fmt::format("{} x {} x {}", rows, groups, node.group), p.reason);
        break;
      }
      case Op::kRope: {
        const auto pairs = static_cast<uint32_t>(graph_.rope_tables[node.rope_table].inv_freq.size());
        const auto p = kernels::plan_rope(rows, node.in.width / node.group, pairs, caps_);
        push(StepKind::kRope, i, fmt::format("rope/wg{}", p.workgroup), shape, p.reason);
        break;
      }
      case Op::kKvWrite: {
        const auto p = kernels::plan_kv_write(rows, width, caps_);
        push(StepKind::kKvWrite, i, fmt::format("kv_write/wg{}", p.workgroup), shape, p.reason);
        break;
      }
      case Op::kAttention:
        attention(i, rows);
        break;
      case Op::kGatedAct: {
        const auto p = kernels::plan_gated_act(rows, width, aligned(node.in) && aligned(node.out), caps_);
        push(StepKind::kGatedAct, i, fmt::format("gated_act/{}/wg{}", vec(p.vec4), p.workgroup), shape,
             p.reason);
        break;
      }
      case Op::kAdd: {
        const auto p = kernels::plan_add(rows, width, aligned(node.in) && aligned(node.in2), caps_);
        push(StepKind::kAdd, i, fmt::format("add/{}/wg{}", vec(p.vec4), p.workgroup), shape, p.reason);
        break;
      }
      case Op::kSelectRows: {
        const auto p = kernels::plan_select_rows(rows, width, caps_);
        push(StepKind::kSelectRows, i, fmt::format("select_rows/wg{}", p.workgroup), shape, p.reason);
        break;
      }
      case Op::kSoftcap: {
        const auto p = kernels::plan_softcap(rows, width, caps_);
        push(StepKind::kSoftcap, i, fmt::format("softcap/wg{}", p.workgroup), shape, p.reason);
        break;
      }
      default:  // kLinear went its own way; plan_static() refuses all else
        break;
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

  void gather(uint32_t i, uint32_t rows) {
    const Node& node = graph_.nodes[i];
    const graph::Weight& weight = graph_.weights[node.weights[0]];
    const std::vector<WeightPart>& parts = fixed_.parts[node.weights[0]];
    for (uint32_t part = 0; part < parts.size(); ++part) {
      const auto p = kernels::plan_gather(rows, weight.columns, caps_);
      Step& step =
          push(StepKind::kGather, i, fmt::format("gather/{}/wg{}", dtype_name(weight.dtype), p.workgroup),
               fmt::format("{} of {} x {}", rows, parts[part].rows, weight.columns),
               split_reason(parts, part, p.reason));
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
                                         parts[part].rows, int8, int8 || aligned(node.in)};
        const kernels::LinearPlan p = kernels::plan_linear(shape, caps_);
        Step& step = push(StepKind::kLinear, i,
                          fmt::format("linear/{}/{}/{}", linear_kernel_name(p.kernel),
                                      dtype_name(weight.dtype), int8 ? "int8" : "f32"),
                          fmt::format("{} x {} -> {}", rows, weight.columns, parts[part].rows),
                          split_reason(parts, part, p.reason));
        step.weight = node.weights[w];
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
         fmt::format("attention/q{}k{}{}", p.query_tile, p.key_tile,
                     p.splits > 1 ? fmt::format("/{} splits", p.splits) : ""),
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

gpu::Caps planning_caps(gpu::Caps caps, const GpuOptions& options) {
  if (options.max_binding_bytes > 0)
    caps.max_binding_bytes = std::min(caps.max_binding_bytes, options.max_binding_bytes);
  return caps;
}

Plan plan_graph(const Graph& graph, const StaticPlan& fixed, uint32_t rows, uint32_t selected,
                const gpu::Caps& caps, const GpuOptions& options, uint32_t position) {
  return Planner(graph, fixed, rows, selected, caps, options, position).run();
}

Result<StaticPlan> plan_static(const Graph& graph, const gpu::Caps& caps, const GpuOptions& options) {
  if (const std::string beyond = graph::beyond_plain_decoder(graph); !beyond.empty())
    return fail(ErrorCode::kUnsupported, "[gpu] a model without {} was wanted; use --device cpu", beyond);
  StaticPlan fixed;
  fixed.parts.resize(graph.weights.size());
  for (const Node& node : graph.nodes) {
    if (node.op == Op::kAttention)
      fixed.scratch_bytes = std::max(fixed.scratch_bytes, kernels::attention_scratch_bytes(
                                                              node.in.width / node.group,
                                                              graph.kv_layers[node.kv_layer].head_dim, caps));
    if (node.op == Op::kLinear)
      fixed.quantized_bytes =
          std::max(fixed.quantized_bytes, kernels::quantized_act_bytes(options.max_chunk, node.in.width));
    if (node.op != Op::kLinear && node.op != Op::kEmbed) continue;
    for (const graph::WeightId id : node.weights) {
      const graph::Weight& weight = graph.weights[id];
      if (!fixed.parts[id].empty()) continue;
      const uint32_t most =
          kernels::rows_per_part(weight.dtype, weight.rows, weight.columns, caps.max_binding_bytes);
      if (most == 0)
        return fail(ErrorCode::kUnsupported,
                    "[gpu] a row of {} values of {} exceeds the {} bytes {} can bind", weight.columns,
                    weight.name, caps.max_binding_bytes, caps.adapter);
      for (uint32_t first = 0; first < weight.rows; first += most)
        fixed.parts[id].push_back({first, std::min(most, weight.rows - first)});
    }
  }
  DOPPLER_CHECK_OK(plan_experts(graph, caps, options, fixed));
  if (options.precision == Precision::kExact) fixed.quantized_bytes = 0;
  const uint64_t logit_bytes = std::min(kMaxLogitBytes, caps.max_binding_bytes);
  const uint64_t row_bytes = std::max<uint64_t>(uint64_t{graph.logits.width} * 4, 4);
  fixed.logit_rows =
      static_cast<uint32_t>(std::clamp<uint64_t>(logit_bytes / row_bytes, 1, options.max_chunk));
  const Plan shape_of_all = plan_graph(graph, fixed, options.max_chunk, fixed.logit_rows, caps, options);
  fixed.slots = plan_slots(graph, shape_of_all, options.max_chunk, fixed.logit_rows, fixed.experts_on_demand);
  return fixed;
}

}  // namespace doppler::gpu_exec
