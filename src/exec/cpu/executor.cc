// Runs a graph node by node on the processor. Weights are read where the model file is mapped.
#include "exec/executor.h"

#include <algorithm>
#include <utility>

#include "base/thread_pool.h"
#include "exec/cpu/attention.h"
#include "exec/cpu/buffers.h"
#include "exec/cpu/experts.h"
#include "exec/cpu/kv_cache.h"
#include "exec/cpu/linear.h"
#include "exec/cpu/ops.h"
#include "exec/cpu/simd.h"
#include "exec/pass_check.h"

namespace doppler {
namespace {

using cpu::CpuKvCache;
using cpu::LinearWeight;
using cpu::Rows;
using graph::Graph;
using graph::Node;
using graph::Op;
using graph::View;

class CpuExecutor final : public Executor {
 public:
  CpuExecutor(Graph graph, const CpuOptions& options)
      : graph_(std::move(graph)),
        options_(options),
        pool_(options.threads),
        simd_(cpu::choose_simd()),
        buffers_(cpu::plan_buffers(graph_)) {}

  Result<void> load(const graph::WeightSource& weights);

  std::string device_name() const override {
    return fmt::format("CPU, {} threads, {}", pool_.size(), simd_.name);
  }
  uint64_t device_bytes() const override { return buffers_.size_bytes(); }
  uint32_t max_chunk() const override { return options_.max_chunk; }
  void set_tap(TapFn tap) override { tap_ = std::move(tap); }
  Result<std::unique_ptr<KvCache>> make_kv(uint32_t capacity, KvType type) override;
  Result<void> forward(KvCache& kv, std::span<const int32_t> ids, LogitRows rows,
                       std::span<float> logits) override;

 private:
  // One forward pass.
  struct Pass {
    CpuKvCache& kv;
    std::span<const int32_t> ids;
    LogitRows rows;
    std::span<float> logits;
    uint32_t position;  // of ids[0]
    uint32_t selected;  // rows whose logits are asked for
  };

  Rows rows_of(const View& view, const Pass& pass) const;
  LinearWeight weight(graph::WeightId id) const { return {&graph_.weights[id], &weights_[id]}; }
  void run(const Node& node, const Pass& pass);
  void linear(const Node& node, const Rows& in, const Rows& out);
  void expert_linear(const Node& node, const Rows& in, const Rows& routes, const Rows& out);
  void attention(const Node& node, const Rows& in, const Rows& out, const Pass& pass);
  void add_rows(const Node& node, const Rows& in, const Rows& out, const Pass& pass);
  std::span<const float> small(graph::WeightId id) const {
    return id == graph::kNone ? std::span<const float>() : std::span<const float>(small_[id]);
  }
  bool int8() const { return options_.precision == Precision::kFast; }
  void embed(const Node& node, const Rows& out, const Pass& pass);
  void tell(const Node& node, const Rows& out) const;

  Graph graph_;
  CpuOptions options_;
  ThreadPool pool_;
  const cpu::Simd& simd_;
  cpu::Buffers buffers_;
  cpu::LinearScratch scratch_;
  cpu::ExpertScratch expert_scratch_;
  std::vector<graph::WeightData> weights_;               // empty for stacks of experts
  std::vector<std::vector<graph::WeightData>> experts_;  // of each stack, one an expert; else empty
  std::vector<std::vector<float>> small_;                // norm weights, biases and sinks as f32; else empty
  std::vector<std::vector<float>> angles_;               // of each rope table, for this pass's positions
  TapFn tap_;
};

Result<void> check_data(const graph::Weight& weight, const graph::WeightData& data) {
  if (is_runnable(weight.dtype) && data.row_bytes >= row_bytes(weight.dtype, weight.columns) &&
      data.bytes.size() >= data.row_bytes * weight.rows)
    return {};
  return fail(ErrorCode::kBadFile, "[cpu] {} of {} rows of {} bytes of {} wanted, got {} bytes", weight.name,
              weight.rows, row_bytes(weight.dtype, weight.columns), dtype_name(weight.dtype),
              data.bytes.size());
}

Result<void> CpuExecutor::load(const graph::WeightSource& weights) {
  weights_.resize(graph_.weights.size());
  experts_.resize(graph_.weights.size());
  small_.resize(graph_.weights.size());
  for (graph::WeightId id = 0; id < graph_.weights.size(); ++id) {
    const graph::Weight& weight = graph_.weights[id];
    if (weight.experts == 0) {
      DOPPLER_TRY(weights_[id], weights.load(weight));
      DOPPLER_CHECK_OK(check_data(weight, weights_[id]));
    }
    for (uint32_t expert = 0; expert < weight.experts; ++expert) {
      DOPPLER_TRY(graph::WeightData data, weights.load_expert(weight, expert));
      DOPPLER_CHECK_OK(check_data(weight, data));
      experts_[id].push_back(std::move(data));
    }
  }
  const auto expand = [this](graph::WeightId id) {
    if (id == graph::kNone || !small_[id].empty()) return;
    const graph::Weight& w = graph_.weights[id];
    small_[id].resize(static_cast<size_t>(w.rows) * w.columns);
    for (uint32_t row = 0; row < w.rows; ++row)
      cpu::read_row(simd_, weight(id), row, small_[id].data() + static_cast<size_t>(row) * w.columns);
  };
  for (const Node& node : graph_.nodes) {
    for (const graph::WeightId id : node.biases) expand(id);
    if (node.op == Op::kRmsNorm || node.op == Op::kLayerNorm || node.op == Op::kAttention)
      for (const graph::WeightId id : node.weights) expand(id);
  }
  return {};
}

Result<std::unique_ptr<KvCache>> CpuExecutor::make_kv(uint32_t capacity, KvType type) {
  if (capacity == 0) return fail(ErrorCode::kBadInput, "[cpu] a context of at least 1 wanted, got 0");
  return std::make_unique<CpuKvCache>(this, graph_.kv_layers, capacity, type);
}

Result<void> CpuExecutor::forward(KvCache& cache, std::span<const int32_t> ids, LogitRows rows,
                                  std::span<float> logits) {
  auto* const own = dynamic_cast<CpuKvCache*>(&cache);
  if (!own || own->owner() != this)
    return fail(ErrorCode::kBadInput, "[cpu] a cache made by this executor wanted, got another's");
  CpuKvCache& kv = *own;
  DOPPLER_CHECK_OK(check_pass("cpu", graph_, options_.max_chunk, kv, ids, rows, logits));
  const auto count = static_cast<uint32_t>(ids.size());
  const uint32_t selected = rows == LogitRows::kNone ? 0 : rows == LogitRows::kLast ? 1 : count;
  DOPPLER_CHECK_OK(buffers_.reserve(count));
  DOPPLER_CHECK_OK(kv.reserve(kv.length() + count));

  const Pass pass{kv, ids, rows, logits, kv.length(), selected};
  angles_.resize(graph_.rope_tables.size());
  for (size_t i = 0; i < angles_.size(); ++i) {
    const graph::RopeTable& table = graph_.rope_tables[i];
    const bool is_long = !table.long_inv_freq.empty() && kv.capacity() > table.long_above;
    angles_[i].resize(2 * table.inv_freq.size() * count);
    cpu::rope_angles(is_long ? table.long_inv_freq : table.inv_freq, table.magnitude, pass.position, count,
                     angles_[i]);
  }
  for (const Node& node : graph_.nodes) {
    if (node.op == Op::kSelectRows && selected == 0) break;
    run(node, pass);
  }
  kv.set_length(kv.length() + count);
  return {};
}

Rows CpuExecutor::rows_of(const View& view, const Pass& pass) const {
  if (view.value == graph::kNone) return {};
  const graph::Value& value = graph_.values[view.value];
  const uint32_t rows = value.selected ? pass.selected : static_cast<uint32_t>(pass.ids.size());
  float* data = view.value == graph_.logits.value ? pass.logits.data() : buffers_.data(view.value);
  return {data + view.offset, value.width, rows, view.width};
}

void CpuExecutor::run(const Node& node, const Pass& pass) {
  const Rows in = rows_of(node.in, pass), in2 = rows_of(node.in2, pass), out = rows_of(node.out, pass);
  switch (node.op) {
    case Op::kEmbed:
      embed(node, out, pass);
      break;
    case Op::kRmsNorm:
      cpu::rms_norm(pool_, in, small(node.weights[0]), node.weight_offset, node.eps, out);
      break;
    case Op::kLayerNorm:
      cpu::layer_norm(pool_, in, small(node.weights[0]), small(node.biases[0]), node.eps, out);
      break;
    case Op::kAddPosition:
    case Op::kAddVector:
      add_rows(node, in, out, pass);
      break;
    case Op::kLinear:
      linear(node, in, out);
      break;
    case Op::kRoute:
      cpu::route(pool_, in, node.top_k, node.routing, out);
      break;
    case Op::kExpertLinear:
      expert_linear(node, in, in2, out);
      break;
    case Op::kExpertSum:
      cpu::expert_sum(pool_, in, in2, node.top_k, out);
      break;
    case Op::kRope:
      cpu::rope(pool_, in, angles_[node.rope_table],
                static_cast<uint32_t>(graph_.rope_tables[node.rope_table].inv_freq.size()), node.group,
                node.rope_interleaved, out);
      break;
    case Op::kKvWrite:
      for (uint32_t r = 0; r < in.rows; ++r)
        pass.kv.write(node.kv_layer, pass.position + r, in.row(r), in2.row(r));
      break;
    case Op::kAttention:
      attention(node, in, out, pass);
      break;
    case Op::kGatedAct:
      cpu::gated_act(pool_, in, node, out);
      break;
    case Op::kAct:
      cpu::act(pool_, in, node.activation, out);
      break;
    case Op::kMul:
      cpu::mul(pool_, in, in2, out);
      break;
    case Op::kAdd:
      cpu::add(pool_, in, in2, out);
      break;
    case Op::kSelectRows:
      for (uint32_t r = 0; r < out.rows; ++r)
        std::copy_n(in.row(in.rows - out.rows + r), in.width, out.row(r));
      break;
    case Op::kMeanRows:
      cpu::mean_rows(in, out);
      break;
    case Op::kFirstRow:
      std::copy_n(in.row(0), in.width, out.row(0));
      break;
    case Op::kL2Norm:
      cpu::l2_norm(in, node.eps, out);
      break;
    case Op::kSoftcap:
      cpu::softcap(pool_, in, node.softcap, out);
      break;
  }
  if (tap_ && !node.tap.empty()) tell(node, out);
}

void CpuExecutor::linear(const Node& node, const Rows& in, const Rows& out) {
  std::vector<LinearWeight> stack;
  for (const graph::WeightId id : node.weights) stack.push_back(weight(id));
  cpu::linear(pool_, simd_, in, stack, int8(), scratch_, out);
  uint32_t column = 0;
  for (size_t i = 0; i < node.biases.size(); ++i) {
    const uint32_t rows = graph_.weights[node.weights[i]].rows;
    if (node.biases[i] != graph::kNone)
      cpu::add_bias(pool_, small(node.biases[i]), {out.data + column, out.stride, out.rows, rows});
    column += rows;
  }
}

void CpuExecutor::expert_linear(const Node& node, const Rows& in, const Rows& routes, const Rows& out) {
  std::vector<cpu::ExpertWeight> stack;
  for (size_t i = 0; i < node.weights.size(); ++i)
    stack.push_back({&graph_.weights[node.weights[i]], experts_[node.weights[i]],
                     node.biases.empty() ? std::span<const float>() : small(node.biases[i])});
  cpu::expert_linear(pool_, simd_, in, routes, node.top_k, stack, int8(), expert_scratch_, out);
}

void CpuExecutor::attention(const Node& node, const Rows& in, const Rows& out, const Pass& pass) {
  const graph::KvLayer& layer = graph_.kv_layers[node.kv_layer];
  cpu::AttentionParams params{node.kv_layer, layer.kv_heads, layer.head_dim,
                              layer.window,  node.scale,     node.softcap};
  params.causal = node.causal;
  if (!node.weights.empty()) params.sinks = small(node.weights[0]);
  cpu::attention(pool_, simd_, in, pass.kv, pass.position, params, out);
}

void CpuExecutor::add_rows(const Node& node, const Rows& in, const Rows& out, const Pass& pass) {
  std::vector<float> row(in.width);
  for (uint32_t r = 0; r < out.rows; ++r) {
    cpu::read_row(simd_, weight(node.weights[0]), node.op == Op::kAddPosition ? pass.position + r : 0,
                  row.data());
    for (uint32_t i = 0; i < out.width; ++i) out.row(r)[i] = in.row(r)[i] + row[i];
  }
}

void CpuExecutor::embed(const Node& node, const Rows& out, const Pass& pass) {
  const LinearWeight table = weight(node.weights[0]);
  for (uint32_t r = 0; r < out.rows; ++r) {
    cpu::read_row(simd_, table, static_cast<uint32_t>(pass.ids[r]), out.row(r));
    for (uint32_t i = 0; i < out.width; ++i) out.row(r)[i] *= node.scale;
  }
}

void CpuExecutor::tell(const Node& node, const Rows& out) const {
  std::vector<float> packed(static_cast<size_t>(out.rows) * out.width);
  for (uint32_t r = 0; r < out.rows; ++r)
    std::copy_n(out.row(r), out.width, packed.data() + static_cast<size_t>(r) * out.width);
  tap_({node.tap, node.layer, out.rows, out.width, packed});
}

}  // namespace

Result<std::unique_ptr<Executor>> make_cpu_executor(Graph graph, const graph::WeightSource& weights,
                                                    const CpuOptions& options) {
  if (options.max_chunk == 0) return fail(ErrorCode::kBadInput, "[cpu] a chunk of at least 1 wanted, got 0");
  auto executor = std::make_unique<CpuExecutor>(std::move(graph), options);
  DOPPLER_CHECK_OK(executor->load(weights));
  return executor;
}

}  // namespace doppler
