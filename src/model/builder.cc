#include "model/builder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "model/rope_frequencies.h"

namespace doppler::model {

using graph::Node;
using graph::Op;
using graph::View;
using graph::WeightId;

GraphBuilder::GraphBuilder(const ModelConfig& config, const TensorSource& source)
    : config_(config), source_(source) {
  graph_.max_context = config.max_context;
}

View GraphBuilder::new_value(std::string_view name, uint32_t width) {
  graph::Value value;
  value.name = layer_ < 0 ? std::string(name) : fmt::format("l{}.{}", layer_, name);
  value.width = width;
  value.selected = selected_;
  graph_.values.push_back(std::move(value));
  return {static_cast<graph::ValueId>(graph_.values.size() - 1), 0, width};
}

View GraphBuilder::slice(View view, uint32_t offset, uint32_t width) {
  return {view.value, view.offset + offset, width};
}

WeightId GraphBuilder::weight(Role role, uint32_t rows, uint32_t columns) {
  std::string name = weight_name(config_, role, layer_ < 0 ? 0 : static_cast<uint32_t>(layer_));
  const TensorInfo* info = source_.find(name);
  if (!info) {
    set_error(ErrorCode::kBadFile, "[model] tensor {} wanted, {} has none; the file is incomplete", name,
              source_.path());
    return 0;
  }
  const bool vector = rows == 0;
  const bool shape_ok = vector
                            ? info->element_count() == columns && info->columns() == columns
                            : info->shape.size() == 2 && info->shape[0] == rows && info->shape[1] == columns;
  if (!shape_ok) {
    set_error(ErrorCode::kBadFile, "[model] tensor {} of shape [{}] wanted, got [{}]", name,
              vector ? fmt::format("{}", columns) : fmt::format("{}, {}", rows, columns),
              fmt::join(info->shape, ", "));
    return 0;
  }
  if (!is_runnable(info->dtype)) {
    set_error(
        ErrorCode::kUnsupported,
        "[model] tensor {} in a type that runs wanted (F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, "
        "Q5_K, Q6_K), got {}; use a file quantised to one of these",
        name, dtype_name(info->dtype));
    return 0;
  }
  if (!vector && source_.find(bias_name(name))) {
    set_error(ErrorCode::kUnsupported, "[model] a model without biases wanted, {} has {}", source_.path(),
              bias_name(name));
    return 0;
  }
  graph_.weights.push_back({std::move(name), info->dtype, vector ? 1 : rows, columns});
  return static_cast<WeightId>(graph_.weights.size() - 1);
}

Node& GraphBuilder::node(Op op, View in, View out, std::string_view tap) {
  Node& added = graph_.nodes.emplace_back();
  added.op = op;
  added.in = in;
  added.out = out;
  added.layer = layer_;
  added.tap = tap;
  return added;
}

uint32_t GraphBuilder::rope_table(float base, bool scaled) {
  Result<graph::RopeTable> table = make_rope_table(config_, source_, base, scaled);
  if (!table) {
    if (!error_) error_ = table.error();
    return 0;
  }
  graph_.rope_tables.push_back(std::move(*table));
  return static_cast<uint32_t>(graph_.rope_tables.size() - 1);
}

View GraphBuilder::embed() {
  embedding_ = weight(Role::kEmbedding, config_.vocab, config_.hidden);
  const View out = new_value("embed", config_.hidden);
  Node& added = node(Op::kEmbed, {}, out, "embed");
  added.weights = {*embedding_};
  added.scale = config_.embedding_scale;
  return out;
}

View GraphBuilder::rms_norm(View in, Role role, std::string_view tap) {
  const View out = new_value(tap, in.width);
  Node& added = node(Op::kRmsNorm, in, out, tap);
  added.weights = {weight(role, 0, in.width)};
  added.eps = config_.rms_eps;
  added.weight_offset = config_.norm_weight_offset;
  added.group = in.width;
  return out;
}

void GraphBuilder::head_norm(View heads, Role role, std::string_view tap) {
  Node& added = node(Op::kRmsNorm, heads, heads, tap);
  added.weights = {weight(role, 0, config_.head_dim)};
  added.eps = config_.rms_eps;
  added.weight_offset = config_.norm_weight_offset;
  added.group = config_.head_dim;
}

View GraphBuilder::linear(View in, std::initializer_list<Rows> weights, std::string_view tap) {
  uint32_t width = 0;
  for (const Rows& part : weights) width += part.rows;
  const View out = new_value(tap, width);
  Node& added = node(Op::kLinear, in, out, tap);
  for (const Rows& part : weights) added.weights.push_back(weight(part.role, part.rows, in.width));
  return out;
}

void GraphBuilder::rope(View heads, uint32_t table, std::string_view tap) {
  Node& added = node(Op::kRope, heads, heads, tap);
  added.group = config_.head_dim;
  added.rope_table = table;
  added.rope_interleaved = config_.rope_interleaved;
}

View GraphBuilder::attention(View q, View k, View v, uint32_t window, std::string_view tap) {
  graph_.kv_layers.push_back({config_.kv_heads, config_.head_dim, window});
  const auto kv_layer = static_cast<uint32_t>(graph_.kv_layers.size() - 1);
  Node& write = node(Op::kKvWrite, k, {}, "");
  write.in2 = v;
  write.kv_layer = kv_layer;
  const View out = new_value(tap, q.width);
  Node& added = node(Op::kAttention, q, out, tap);
  added.group = config_.head_dim;
  added.scale = config_.attention_scale;
  added.softcap = config_.attention_softcap;
  added.kv_layer = kv_layer;
  return out;
}

View GraphBuilder::gated_act(View gate_up, std::string_view tap) {
  const View out = new_value(tap, gate_up.width / 2);
  node(Op::kGatedAct, gate_up, out, tap).activation = config_.activation;
  return out;
}

View GraphBuilder::add(View a, View b, std::string_view tap) {
  const View out = new_value(tap, a.width);
  node(Op::kAdd, a, out, tap).in2 = b;
  return out;
}

View GraphBuilder::select_rows(View in) {
  selected_ = true;
  const View out = new_value("selected", in.width);
  node(Op::kSelectRows, in, out, "");
  return out;
}

void GraphBuilder::head(View in) {
  const View out = new_value("logits", config_.vocab);
  const bool capped = config_.final_softcap > 0;
  Node& added = node(Op::kLinear, in, out, capped ? "uncapped_logits" : "logits");
  added.weights = {config_.tied_head && embedding_ ? *embedding_
                                                   : weight(Role::kHead, config_.vocab, config_.hidden)};
  if (capped) node(Op::kSoftcap, out, out, "logits").softcap = config_.final_softcap;
  graph_.logits = out;
}

Result<graph::Graph> GraphBuilder::finish() {
  if (error_) return tl::unexpected<Error>(std::move(*error_));
  return std::move(graph_);
}

}  // namespace doppler::model
