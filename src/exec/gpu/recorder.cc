#include "exec/gpu/recorder.h"

#include "exec/gpu/plan_heads.h"
#include "kernels/act/act.h"
#include "kernels/add/add.h"
#include "kernels/add_rows/add_rows.h"
#include "kernels/attention/attention.h"
#include "kernels/gated_act/gated_act.h"
#include "kernels/gather/gather.h"
#include "kernels/kv_write/kv_write.h"
#include "kernels/l2_norm/l2_norm.h"
#include "kernels/layer_norm/layer_norm.h"
#include "kernels/linear/linear.h"
#include "kernels/mean_rows/mean_rows.h"
#include "kernels/mul/mul.h"
#include "kernels/quantize_act/quantize_act.h"
#include "kernels/rms_norm/rms_norm.h"
#include "kernels/rope/rope.h"
#include "kernels/rope_kv/rope_kv.h"
#include "kernels/select_rows/select_rows.h"
#include "kernels/softcap/softcap.h"

namespace doppler::gpu_exec {

using graph::Node;

kernels::Matrix Recorder::matrix(const graph::View& view, const Pass& pass) const {
  const graph::Value& value = graph_.values[view.value];
  const gpu::Buffer& buffer = work_.slots[fixed_.slots.slot_of[view.value]];
  return {&buffer, view.offset, value.selected ? pass.selected : pass.rows, view.width, value.width};
}

std::optional<kernels::QuantizedAct> Recorder::quantized_along(const Step& step,
                                                               const kernels::Matrix& out) const {
  if (!step.quantizes) return std::nullopt;
  return kernels::quantized_act(work_.quantized[step.int8_buffer], out.rows, out.width);
}

Result<void> Recorder::record_norm(gpu::Commands& commands, const Step& step, const Pass& pass) const {
  const bool fused = step.kind == StepKind::kAddRmsNorm;
  const Node& norm = graph_.nodes[fused ? step.norm_node : step.node];
  const uint32_t base = weights_.vector_base(norm.weights[0]);
  if (fused) {
    const Node& sum = graph_.nodes[step.node];
    kernels::AddRmsNormArgs args;
    args.a = matrix(sum.in, pass);
    args.b = matrix(sum.in2, pass);
    if (step.first_node != graph::kNone) {
      const Node& before = graph_.nodes[step.first_node];
      args.b = matrix(before.in, pass);
      args.b_weight_base = weights_.vector_base(before.weights[0]);
    }
    args.sum = matrix(sum.out, pass);
    args.weight = &weights_.vectors();
    args.weight_base = base;
    args.weight_offset = norm.weight_offset;
    args.eps = norm.eps;
    args.out = matrix(norm.out, pass);
    args.quantized = quantized_along(step, args.out);
    return kernels::record_add_rms_norm(device_, commands, args);
  }
  kernels::RmsNormArgs args;
  args.x = matrix(norm.in, pass);
  args.group = norm.group;
  args.weight = &weights_.vectors();
  args.weight_base = base;
  args.weight_offset = norm.weight_offset;
  args.eps = norm.eps;
  args.out = matrix(norm.out, pass);
  args.quantized = quantized_along(step, args.out);
  return kernels::record_rms_norm(device_, commands, args);
}

Result<void> Recorder::record_layer_norm(gpu::Commands& commands, const Node& node, const Pass& pass) const {
  kernels::LayerNormArgs args;
  args.x = matrix(node.in, pass);
  args.weight = args.bias = &weights_.vectors();
  args.weight_base = weights_.vector_base(node.weights[0]);
  args.bias_base = weights_.vector_base(node.biases[0]);
  args.eps = node.eps;
  args.out = matrix(node.out, pass);
  return kernels::record_layer_norm(device_, commands, args);
}

Result<void> Recorder::record_gated_act(gpu::Commands& commands, const Step& step, const Pass& pass) const {
  const Node& node = graph_.nodes[step.node];
  kernels::GatedActArgs args;
  args.in = matrix(node.in, pass);
  args.out = matrix(node.out, pass);
  args.activation = node.activation;
  args.group = node.group;
  args.interleaved = node.interleaved;
  args.limit = node.limit;
  args.alpha = node.alpha;
  args.quantized = quantized_along(step, args.out);
  return kernels::record_gated_act(device_, commands, args);
}

Result<void> Recorder::record_linear(gpu::Commands& commands, const Step& step, const Pass& pass) const {
  const Node& node = graph_.nodes[step.node];
  kernels::LinearArgs args;
  args.w = weights_.part(step.weight, step.part);
  args.out = kernels::columns(matrix(node.out, pass), step.column, args.w.layout.rows);
  if (step.bias != graph::kNone) {
    args.bias = &weights_.vectors();
    args.bias_offset = weights_.vector_base(step.bias) + args.w.first_row;
  }
  if (step.int8)
    args.quantized = kernels::quantized_act(work_.quantized[step.int8_buffer], args.out.rows, node.in.width);
  else
    args.x = matrix(node.in, pass);
  return kernels::record_linear(device_, commands, args);
}

Result<void> Recorder::record_rope_kv(gpu::Commands& commands, const Step& step, const Pass& pass) const {
  const auto run = heads_run(graph_, step.first_node);
  if (!run) return fail(ErrorCode::kGpu, "[gpu] heads of a layer wanted at node {}", step.first_node);
  const Node &q = graph_.nodes[run->q_rope], &write = graph_.nodes[run->write];
  const graph::KvLayer& layer = graph_.kv_layers[write.kv_layer];
  kernels::RopeKvArgs args;
  args.x = matrix({q.in.value, q.in.offset, q.in.width + 2 * write.in.width}, pass);
  args.q_heads = q.in.width / layer.head_dim;
  args.kv_heads = layer.kv_heads;
  args.head_dim = layer.head_dim;
  if (run->q_norm != graph::kNone) {
    const Node &q_norm = graph_.nodes[run->q_norm], &k_norm = graph_.nodes[run->k_norm];
    args.norms = {&weights_.vectors(), weights_.vector_base(q_norm.weights[0]),
                  weights_.vector_base(k_norm.weights[0]), q_norm.eps, q_norm.weight_offset};
  }
  args.table = &work_.rope_tables[q.rope_table];
  args.rotary_dim = 2 * static_cast<uint32_t>(graph_.rope_tables[q.rope_table].inv_freq.size());
  args.interleaved = q.rope_interleaved;
  args.cache = pass.kv.layer(write.kv_layer);
  args.position = pass.position;
  return kernels::record_rope_kv(device_, commands, args);
}

Result<void> Recorder::record_attention(gpu::Commands& commands, const Step& step, const Pass& pass) const {
  const Node& node = graph_.nodes[step.node];
  const graph::KvLayer& layer = graph_.kv_layers[node.kv_layer];
  kernels::AttentionArgs args;
  args.q = matrix(node.in, pass);
  args.cache = pass.kv.layer(node.kv_layer);
  args.out = matrix(node.out, pass);
  args.heads = node.in.width / node.group;
  args.kv_heads = layer.kv_heads;
  args.head_dim = layer.head_dim;
  args.position = pass.position;
  args.window = layer.window;
  args.scale = node.scale;
  args.softcap = node.softcap;
  args.causal = node.causal;
  if (!node.weights.empty()) {
    args.sinks = &weights_.vectors();
    args.sink_base = weights_.vector_base(node.weights[0]);
  }
  if (work_.scratch) args.scratch = &work_.scratch;
  args.quantized = quantized_along(step, args.out);
  return kernels::record_attention(device_, commands, args);
}

Result<void> Recorder::record(gpu::Commands& commands, const Step& step, const Pass& pass) const {
  const Node& node = graph_.nodes[step.node];
  switch (step.kind) {
    case StepKind::kGather:
      return kernels::record_gather(
          device_, commands,
          {&work_.ids, 0, weights_.part(step.weight, step.part), matrix(node.out, pass), node.scale});
    case StepKind::kAddRows: {
      const bool positions = node.op == graph::Op::kAddPosition;
      return kernels::record_add_rows(
          device_, commands,
          {matrix(node.in, pass), weights_.part(step.weight, step.part), matrix(node.out, pass),
           positions ? pass.position : 0, positions ? 1u : 0u});
    }
    case StepKind::kRmsNorm:
    case StepKind::kAddRmsNorm:
      return record_norm(commands, step, pass);
    case StepKind::kLayerNorm:
      return record_layer_norm(commands, node, pass);
    case StepKind::kQuantizeAct: {
      const kernels::Matrix x = matrix(node.in, pass);
      return kernels::record_quantize_act(
          device_, commands, {x, kernels::quantized_act(work_.quantized[step.int8_buffer], x.rows, x.width)});
    }
    case StepKind::kLinear:
      return record_linear(commands, step, pass);
    case StepKind::kRope: {
      const auto pairs = static_cast<uint32_t>(graph_.rope_tables[node.rope_table].inv_freq.size());
      return kernels::record_rope(device_, commands,
                                  {matrix(node.out, pass), node.group, 2 * pairs, node.rope_interleaved,
                                   &work_.rope_tables[node.rope_table], 0});
    }
    case StepKind::kKvWrite:
      return kernels::record_kv_write(
          device_, commands,
          {matrix(node.in, pass), matrix(node.in2, pass), pass.kv.layer(node.kv_layer), pass.position});
    case StepKind::kRopeKv:
      return record_rope_kv(commands, step, pass);
    case StepKind::kAttention:
      return record_attention(commands, step, pass);
    case StepKind::kGatedAct:
      return record_gated_act(commands, step, pass);
    case StepKind::kAct:
      return kernels::record_act(device_, commands,
                                 {matrix(node.in, pass), matrix(node.out, pass), node.activation});
    case StepKind::kAdd:
      return kernels::record_add(device_, commands,
                                 {matrix(node.in, pass), matrix(node.in2, pass), matrix(node.out, pass)});
    case StepKind::kMul:
      return kernels::record_mul(device_, commands,
                                 {matrix(node.in, pass), matrix(node.in2, pass), matrix(node.out, pass)});
    case StepKind::kSelectRows: {
      const uint32_t first = node.op == graph::Op::kFirstRow ? 0 : pass.first_selected;
      return kernels::record_select_rows(device_, commands,
                                         {matrix(node.in, pass), matrix(node.out, pass), first, nullptr});
    }
    case StepKind::kMeanRows:
      return kernels::record_mean_rows(device_, commands,
                                       {matrix(node.in, pass), matrix(node.out, pass), std::nullopt});
    case StepKind::kL2Norm:
      return kernels::record_l2_norm(device_, commands,
                                     {matrix(node.in, pass), matrix(node.out, pass), node.eps});
    case StepKind::kSoftcap:
      return kernels::record_softcap(device_, commands, {matrix(node.out, pass), node.softcap});
    case StepKind::kRoute:
    case StepKind::kExpertGroup:
    case StepKind::kExpertQuantize:
    case StepKind::kExpertLinear:
    case StepKind::kExpertSum:
      return record_experts(commands, step, pass);
  }
  return {};
}

}  // namespace doppler::gpu_exec
