// Runs a graph node by node on the processor. Weights are read where the model file is mapped.
#include "exec/executor.h"

#include <algorithm>
#include <utility>

#include "base/thread_pool.h"
#include "exec/cpu/attention.h"
#include "exec/cpu/buffers.h"
#include "exec/cpu/kv_cache.h"
#include "exec/cpu/linear.h"
#include "exec/cpu/ops.h"
#include "exec/cpu/simd.h"

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

  Result<void> check(const CpuKvCache& kv, std::span<const int32_t> ids, LogitRows rows,
                     std::span<float> logits) const;
  Rows rows_of(const View& view, const Pass& pass) const;
  LinearWeight weight(graph::WeightId id) const { return {&graph_.weights[id], &weights_[id]}; }
  void run(const Node& node, const Pass& pass);
  void embed(const Node& node, const Rows& out, const Pass& pass);
  void tell(const Node& node, const Rows& out) const;

  Graph graph_;
  CpuOptions options_;
  ThreadPool pool_;
  const cpu::Simd& simd_;
  cpu::Buffers buffers_;
  cpu::LinearScratch scratch_;
  std::vector<graph::WeightData> weights_;
  std::vector<std::vector<float>> norms_;   // of each norm weight, as f32; else empty
  std::vector<std::vector<float>> angles_;  // of each rope table, for this pass's positions
  TapFn tap_;
};

Result<void> CpuExecutor::load(const graph::WeightSource& weights) {
  for (const graph::Weight& weight : graph_.weights) {
    DOPPLER_TRY(graph::WeightData data, weights.load(weight));
    if (!is_runnable(weight.dtype) || data.row_bytes < row_bytes(weight.dtype, weight.columns) ||
        data.bytes.size() < data.row_bytes * weight.rows)
      return fail(ErrorCode::kBadFile, "[cpu] {} of {} rows of {} bytes of {} wanted, got {} bytes",
                  weight.name, weight.rows, row_bytes(weight.dtype, weight.columns), dtype_name(weight.dtype),
                  data.bytes.size());
    weights_.push_back(std::move(data));
  }
  norms_.resize(weights_.size());
  for (const Node& node : graph_.nodes) {
    if (node.op != Op::kRmsNorm) continue;
    const graph::WeightId id = node.weights[0];
    norms_[id].resize(graph_.weights[id].columns);
    cpu::read_row(simd_, weight(id), 0, norms_[id].data());
  }
  return {};
}

Result<std::unique_ptr<KvCache>> CpuExecutor::make_kv(uint32_t capacity, KvType type) {
  if (capacity == 0) return fail(ErrorCode::kBadInput, "[cpu] a context of at least 1 wanted, got 0");
  return std::make_unique<CpuKvCache>(this, graph_.kv_layers, capacity, type);
}

Result<void> CpuExecutor::check(const CpuKvCache& kv, std::span<const int32_t> ids, LogitRows rows,
                                std::span<float> logits) const {
  if (ids.empty() || ids.size() > options_.max_chunk)
    return fail(ErrorCode::kBadInput, "[cpu] 1 to {} tokens a pass wanted, got {}", options_.max_chunk,
                ids.size());
  if (ids.size() > kv.capacity() - kv.length())
    return fail(ErrorCode::kBadInput,
                "[cpu] room for {} tokens wanted, {} of the context's {} are used; raise --context",
                ids.size(), kv.length(), kv.capacity());
  const uint32_t vocab = graph_.logits.width;
  for (const int32_t id : ids)
    if (id < 0 || static_cast<uint32_t>(id) >= vocab)
      return fail(ErrorCode::kBadInput, "[cpu] token ids from 0 to {} wanted, got {}", vocab - 1, id);
  const size_t wanted = rows == LogitRows::kNone ? 0 : (rows == LogitRows::kLast ? 1 : ids.size()) * vocab;
  if (logits.size() != wanted)
    return fail(ErrorCode::kBadInput, "[cpu] room for {} logits wanted, got {}", wanted, logits.size());
  return {};
}

Result<void> CpuExecutor::forward(KvCache& cache, std::span<const int32_t> ids, LogitRows rows,
                                  std::span<float> logits) {
  auto* const own = dynamic_cast<CpuKvCache*>(&cache);
  if (!own || own->owner() != this)
    return fail(ErrorCode::kBadInput, "[cpu] a cache made by this executor wanted, got another's");
  CpuKvCache& kv = *own;
  DOPPLER_CHECK_OK(check(kv, ids, rows, logits));
  const auto count = static_cast<uint32_t>(ids.size());
  const uint32_t selected = rows == LogitRows::kNone ? 0 : rows == LogitRows::kLast ? 1 : count;
  DOPPLER_CHECK_OK(buffers_.reserve(count));
  DOPPLER_CHECK_OK(kv.reserve(kv.length() + count));

  const Pass pass{kv, ids, rows, logits, kv.length(), selected};
  angles_.resize(graph_.rope_tables.size());
  for (size_t i = 0; i < angles_.size(); ++i) {
    angles_[i].resize(2 * graph_.rope_tables[i].inv_freq.size() * count);
    cpu::rope_angles(graph_.rope_tables[i], pass.position, count, angles_[i]);
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
      cpu::rms_norm(pool_, in, norms_[node.weights[0]], node.weight_offset, node.eps, out);
      break;
    case Op::kLinear: {
      std::vector<LinearWeight> stack;
      for (const graph::WeightId id : node.weights) stack.push_back(weight(id));
      cpu::linear(pool_, simd_, in, stack, options_.precision == Precision::kFast, scratch_, out);
      break;
    }
    case Op::kRope:
      cpu::rope(pool_, in, angles_[node.rope_table],
                static_cast<uint32_t>(graph_.rope_tables[node.rope_table].inv_freq.size()), node.group,
                node.rope_interleaved, out);
      break;
    case Op::kKvWrite:
      for (uint32_t r = 0; r < in.rows; ++r)
        pass.kv.write(node.kv_layer, pass.position + r, in.row(r), in2.row(r));
      break;
    case Op::kAttention: {
      const graph::KvLayer& layer = graph_.kv_layers[node.kv_layer];
      cpu::attention(pool_, simd_, in, pass.kv, pass.position,
                     {node.kv_layer, layer.kv_heads, layer.head_dim, layer.window, node.scale, node.softcap},
                     out);
      break;
    }
    case Op::kGatedAct:
      cpu::gated_act(pool_, in, node.activation, out);
      break;
    case Op::kAdd:
      cpu::add(pool_, in, in2, out);
      break;
    case Op::kSelectRows:
      for (uint32_t r = 0; r < out.rows; ++r)
        std::copy_n(in.row(in.rows - out.rows + r), in.width, out.row(r));
      break;
    case Op::kSoftcap:
      cpu::softcap(pool_, in, node.softcap, out);
      break;
  }
  if (tap_ && !node.tap.empty()) tell(node, out);
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
