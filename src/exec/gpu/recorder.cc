#include "exec/gpu/recorder.h"

#include <algorithm>

#include "kernels/add/add.h"
#include "kernels/attention/attention.h"
#include "kernels/gated_act/gated_act.h"
#include "kernels/gather/gather.h"
#include "kernels/kv_write/kv_write.h"
#include "kernels/linear/linear.h"
#include "kernels/quantize_act/quantize_act.h"
#include "kernels/rms_norm/rms_norm.h"
#include "kernels/rope/rope.h"
#include "kernels/select_rows/select_rows.h"
#include "kernels/softcap/softcap.h"

namespace doppler::gpu_exec {
namespace {

kernels::Matrix row_a_group(kernels::Matrix x, uint32_t group) {
  if (group == 0) return x;
  x.rows *= x.width / group;
  x.width = x.stride = group;
  return x;
}

}  // namespace

using graph::Node;

Result<Workspace> Workspace::make(gpu::Device& device, const graph::Graph& graph, const StaticPlan& fixed,
                                  const GpuOptions& options) {
  Workspace work;
  for (const uint64_t bytes : fixed.slots.slot_bytes) {
    DOPPLER_TRY(gpu::Buffer slot, device.create_buffer(bytes, "activations"));
    work.slots.push_back(std::move(slot));
  }
  DOPPLER_TRY(work.ids, device.create_buffer(uint64_t{options.max_chunk} * 4, "ids"));
  if (fixed.quantized_bytes > 0) {
    DOPPLER_TRY(work.quantized, device.create_buffer(fixed.quantized_bytes, "quantized"));
  }
  if (fixed.scratch_bytes > 0) {
    DOPPLER_TRY(work.scratch, device.create_buffer(fixed.scratch_bytes, "scratch"));
  }
  if (!fixed.expert_layers.empty()) {
    uint64_t experts = 0;
    for (const ExpertLayer& layer : fixed.expert_layers) experts = std::max<uint64_t>(experts, layer.experts);
    DOPPLER_TRY(work.expert_groups, device.create_buffer(fixed.expert_groups_bytes, "expert groups"));
    DOPPLER_TRY(work.places, device.create_buffer(experts * 4, "expert places"));
  }
  for (const graph::RopeTable& table : graph.rope_tables) {
    DOPPLER_TRY(gpu::Buffer buffer,
                device.create_buffer(uint64_t{options.max_chunk} * table.inv_freq.size() * 8, "rope"));
    work.rope_tables.push_back(std::move(buffer));
  }
  return work;
}

uint64_t Workspace::size_bytes() const {
  uint64_t bytes = ids.bytes() + quantized.bytes() + scratch.bytes() + expert_groups.bytes() + places.bytes();
  for (const gpu::Buffer& slot : slots) bytes += slot.bytes();
  for (const gpu::Buffer& table : rope_tables) bytes += table.bytes();
  return bytes;
}

kernels::Matrix Recorder::matrix(const graph::View& view, const Pass& pass) const {
  const graph::Value& value = graph_.values[view.value];
  const gpu::Buffer& buffer = work_.slots[fixed_.slots.slot_of[view.value]];
  return {&buffer, view.offset, value.selected ? pass.selected : pass.rows, view.width, value.width};
}

Result<void> Recorder::record_norm(gpu::Commands& commands, const Step& step, const Pass& pass) const {
  const bool fused = step.kind == StepKind::kAddRmsNorm;
  const Node& norm = graph_.nodes[fused ? step.norm_node : step.node];
  const uint32_t base = weights_.norm_base(norm.weights[0]);
  if (fused) {
    const Node& sum = graph_.nodes[step.node];
    kernels::AddRmsNormArgs args;
    args.a = matrix(sum.in, pass);
    args.b = matrix(sum.in2, pass);
    args.sum = matrix(sum.out, pass);
    args.weight = &weights_.norms();
    args.weight_base = base;
    args.weight_offset = norm.weight_offset;
    args.eps = norm.eps;
    args.out = matrix(norm.out, pass);
    return kernels::record_add_rms_norm(device_, commands, args);
  }
  kernels::RmsNormArgs args;
  args.x = matrix(norm.in, pass);
  args.group = norm.group;
  args.weight = &weights_.norms();
  args.weight_base = base;
  args.weight_offset = norm.weight_offset;
  args.eps = norm.eps;
  args.out = matrix(norm.out, pass);
  return kernels::record_rms_norm(device_, commands, args);
}

Result<void> Recorder::record_linear(gpu::Commands& commands, const Step& step, const Pass& pass) const {
  const Node& node = graph_.nodes[step.node];
  kernels::LinearArgs args;
  args.w = weights_.part(step.weight, step.part);
  args.out = kernels::columns(matrix(node.out, pass), step.column, args.w.layout.rows);
  if (step.int8)
    args.quantized = kernels::quantized_act(work_.quantized, args.out.rows, node.in.width);
  else
    args.x = matrix(node.in, pass);
  return kernels::record_linear(device_, commands, args);
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
  if (work_.scratch) args.scratch = &work_.scratch;
  return kernels::record_attention(device_, commands, args);
}

Result<void> Recorder::record(gpu::Commands& commands, const Step& step, const Pass& pass) const {
  const Node& node = graph_.nodes[step.node];
  switch (step.kind) {
    case StepKind::kGather:
      return kernels::record_gather(
          device_, commands,
          {&work_.ids, 0, weights_.part(step.weight, step.part), matrix(node.out, pass), node.scale});
    case StepKind::kRmsNorm:
    case StepKind::kAddRmsNorm:
      return record_norm(commands, step, pass);
    case StepKind::kQuantizeAct: {
      const kernels::Matrix x = matrix(node.in, pass);
      return kernels::record_quantize_act(device_, commands,
                                          {x, kernels::quantized_act(work_.quantized, x.rows, x.width)});
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
    case StepKind::kAttention:
      return record_attention(commands, step, pass);
    case StepKind::kGatedAct:
      return kernels::record_gated_act(
          device_, commands,
          {row_a_group(matrix(node.in, pass), node.group),
           row_a_group(matrix(node.out, pass), node.group / 2),
           node.activation == graph::Activation::kSilu ? kernels::Gate::kSilu : kernels::Gate::kGeluTanh});
    case StepKind::kAdd:
      return kernels::record_add(device_, commands,
                                 {matrix(node.in, pass), matrix(node.in2, pass), matrix(node.out, pass)});
    case StepKind::kSelectRows:
      return kernels::record_select_rows(
          device_, commands, {matrix(node.in, pass), matrix(node.out, pass), pass.first_selected, nullptr});
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
