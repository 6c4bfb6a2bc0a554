#include "model/builder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "model/limits.h"
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

std::string GraphBuilder::find_name(Role role) const {
  std::string name = weight_name(config_, role, layer_index());
  if (source_.find(name)) return name;
  for (std::string& other : other_names(config_, role, layer_index()))
    if (source_.find(other)) return std::move(other);
  return name;
}

bool GraphBuilder::has(Role role) const { return source_.find(find_name(role)) != nullptr; }

WeightId GraphBuilder::add_weight(graph::Weight weight) {
  graph_.weights.push_back(std::move(weight));
  return static_cast<WeightId>(graph_.weights.size() - 1);
}

bool GraphBuilder::bad_shape(const TensorInfo& info, const std::string& wanted) {
  set_error(ErrorCode::kBadFile, "[model] tensor {} of shape [{}] wanted, got [{}]", info.name, wanted,
            fmt::join(info.shape, ", "));
  return false;
}

bool GraphBuilder::check_type(const std::string& name, DType dtype) {
  if (is_runnable(dtype)) return true;
  set_error(ErrorCode::kUnsupported,
            "[model] tensor {} in a type that runs wanted (F32, F16, BF16 or a block type of GGUF), got {}; "
            "use a file "
            "in one of these",
            name, dtype_name(dtype));
  return false;
}

WeightId GraphBuilder::weight(Role role, uint32_t rows, uint32_t columns) {
  std::string name = find_name(role);
  const TensorInfo* info = source_.find(name);
  if (!info) {
    set_error(ErrorCode::kBadFile, "[model] tensor {} wanted, {} has none; the file is incomplete", name,
              source_.path());
    return 0;
  }
  const bool vector = rows == 0, turned = config_.transposed && !vector && layer_ >= 0;
  const uint32_t first = turned ? columns : rows, second = turned ? rows : columns;
  const bool shape_ok = vector
                            ? info->element_count() == columns && info->columns() == columns
                            : info->shape.size() == 2 && info->shape[0] == first && info->shape[1] == second;
  if (!shape_ok) bad_shape(*info, vector ? fmt::format("{}", columns) : fmt::format("{}, {}", first, second));
  if (!shape_ok || !check_type(name, info->dtype)) return 0;
  if (turned && dtype_info(info->dtype).block_elems != 1) {
    set_error(ErrorCode::kUnsupported,
              "[model] tensor {}, stored transposed, as F32, F16 or BF16 wanted, got {}", name,
              dtype_name(info->dtype));
    return 0;
  }
  graph::Weight added{std::move(name), info->dtype, vector ? 1 : rows, columns};
  if (turned) added.storage = graph::Storage::kTransposed;
  return add_weight(std::move(added));
}

WeightId GraphBuilder::bias(const std::string& weight, uint32_t rows) {
  const TensorInfo* info = source_.find(bias_name(weight));
  if (!info) return graph::kNone;
  if (info->element_count() != rows || info->columns() != rows) bad_shape(*info, fmt::format("{}", rows));
  check_type(info->name, info->dtype);
  return add_weight({info->name, info->dtype, 1, rows});
}

WeightId GraphBuilder::table(Role role, uint32_t columns) {
  const std::string name = find_name(role);
  const TensorInfo* info = source_.find(name);
  // BERT files hold as many rows as there are positions or types; more of either than a vocabulary is damage.
  const uint64_t rows = info ? info->rows() : 1;
  return weight(role, static_cast<uint32_t>(std::min<uint64_t>(std::max<uint64_t>(rows, 1), kMaxVocab)),
                columns);
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

View GraphBuilder::add_positions(View in) {
  const View out = new_value("positions", in.width);
  Node& added = node(Op::kAddPosition, in, out, "positions");
  added.weights = {table(Role::kPositions, in.width)};
  return out;
}

View GraphBuilder::add_token_type(View in) {
  const View out = new_value("token_type", in.width);
  Node& added = node(Op::kAddVector, in, out, "token_type");
  added.weights = {table(Role::kTokenTypes, in.width)};
  return out;
}

View GraphBuilder::norm(View in, Role role, std::string_view tap) {
  const View out = new_value(tap, in.width);
  Node& added = node(config_.layer_norm ? Op::kLayerNorm : Op::kRmsNorm, in, out, tap);
  added.weights = {weight(role, 0, in.width)};
  added.eps = config_.rms_eps;
  if (config_.layer_norm) {
    const std::string name = find_name(role);
    const WeightId shift = bias(name, in.width);
    if (shift == graph::kNone)
      set_error(ErrorCode::kBadFile, "[model] tensor {} wanted, {} has none; the file is incomplete",
                bias_name(name), source_.path());
    added.biases = {shift};
    return out;
  }
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
  bool any = false;
  for (const Rows& part : weights) {
    added.weights.push_back(weight(part.role, part.rows, in.width));
    added.biases.push_back(bias(find_name(part.role), part.rows));
    any |= added.biases.back() != graph::kNone;
  }
  if (!any) added.biases.clear();
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
  added.causal = config_.causal;
  if (config_.sinks) added.weights = {weight(Role::kSinks, 0, config_.heads)};
  added.kv_layer = kv_layer;
  return out;
}

View GraphBuilder::gated_act(View gate_up, std::string_view tap) {
  const View out = new_value(tap, gate_up.width / 2);
  Node& added = node(Op::kGatedAct, gate_up, out, tap);
  added.activation = config_.activation;
  added.limit = config_.act_limit;
  added.alpha = config_.act_alpha;
  return out;
}

View GraphBuilder::act(View in, std::string_view tap) {
  const View out = new_value(tap, in.width);
  node(Op::kAct, in, out, tap).activation = config_.activation;
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

void GraphBuilder::pool(View in) {
  selected_ = true;
  const Op op = config_.pooling == Pooling::kMean    ? Op::kMeanRows
                : config_.pooling == Pooling::kFirst ? Op::kFirstRow
                                                     : Op::kSelectRows;
  View out = new_value("pooled", in.width);
  node(op, in, out, "pooled");
  if (config_.normalize) {
    const View unit = new_value("embedding", in.width);
    node(Op::kL2Norm, out, unit, "embedding").eps = 1e-12f;
    out = unit;
  }
  graph_.logits = out;
  graph_.vocab = config_.vocab;
  graph_.embedder = true;
}

Result<graph::Graph> GraphBuilder::finish() {
  if (error_) return tl::unexpected<Error>(std::move(*error_));
  return std::move(graph_);
}

}  // namespace doppler::model
