#include <algorithm>
#include <map>
#include <utility>

#include "exec/gpu/gpu_executor.h"
#include "exec/gpu/kv_cache.h"
#include "exec/gpu/plan.h"
#include "exec/gpu/recorder.h"
#include "exec/gpu/weights.h"
#include "exec/pass_check.h"
#include "kernels/rope/rope.h"

namespace doppler {
namespace {

using gpu_exec::GpuKvCache;
using gpu_exec::GpuWeights;
using gpu_exec::Pass;
using gpu_exec::Plan;
using gpu_exec::Step;
using gpu_exec::Workspace;

constexpr size_t kMaxPlans = 64;  // one a row count; more are unusual

class GpuExecutor final : public Executor {
 public:
  GpuExecutor(std::shared_ptr<gpu::Device> device, graph::Graph graph, const GpuOptions& options,
              gpu_exec::StaticPlan fixed, GpuWeights weights, Workspace work)
      : device_(std::move(device)),
        graph_(std::move(graph)),
        options_(options),
        caps_(gpu_exec::planning_caps(device_->caps(), options)),
        fixed_(std::move(fixed)),
        weights_(std::move(weights)),
        work_(std::move(work)),
        recorder_(*device_, graph_, fixed_, weights_, work_) {}

  std::string device_name() const override { return caps_.adapter; }
  uint64_t device_bytes() const override { return weights_.size_bytes() + work_.size_bytes(); }
  uint32_t max_chunk() const override { return options_.max_chunk; }
  void set_tap(TapFn tap) override { tap_ = std::move(tap); }

  Result<std::unique_ptr<KvCache>> make_kv(uint32_t capacity, KvType type) override {
    if (capacity == 0) return fail(ErrorCode::kBadInput, "[gpu] a context of at least 1 was wanted, got 0");
    return std::make_unique<GpuKvCache>(this, device_, graph_.kv_layers, capacity, type);
  }

  Result<void> forward(KvCache& cache, std::span<const int32_t> ids, LogitRows rows,
                       std::span<float> logits) override;

 private:
  Result<void> write_inputs(const GpuKvCache& kv, std::span<const int32_t> ids);
  const Plan& plan_for(uint32_t rows, uint32_t selected);
  Result<void> run(const std::vector<Step>& steps, const Pass& pass, std::string_view label);
  Result<void> run_tapped(const std::vector<Step>& steps, const Pass& pass);
  Result<void> tell(const graph::Node& node, const Pass& pass);

  std::shared_ptr<gpu::Device> device_;
  graph::Graph graph_;
  GpuOptions options_;
  gpu::Caps caps_;
  gpu_exec::StaticPlan fixed_;
  GpuWeights weights_;
  Workspace work_;
  gpu_exec::Recorder recorder_;
  std::map<std::pair<uint32_t, uint32_t>, Plan> plans_;  // by rows and selected
  TapFn tap_;
};

Result<void> GpuExecutor::write_inputs(const GpuKvCache& kv, std::span<const int32_t> ids) {
  DOPPLER_CHECK_OK(device_->write(work_.ids, 0, std::as_bytes(ids)));
  for (size_t i = 0; i < graph_.rope_tables.size(); ++i) {
    const graph::RopeTable& table = graph_.rope_tables[i];
    const bool is_long = !table.long_inv_freq.empty() && kv.capacity() > table.long_above;
    const std::vector<float> angles =
        kernels::rope_table(is_long ? table.long_inv_freq : table.inv_freq, table.magnitude, kv.length(),
                            static_cast<uint32_t>(ids.size()));
    DOPPLER_CHECK_OK(device_->write(work_.rope_tables[i], 0, std::as_bytes(std::span(angles))));
  }
  return {};
}

const Plan& GpuExecutor::plan_for(uint32_t rows, uint32_t selected) {
  const std::pair key(rows, selected);
  if (const auto it = plans_.find(key); it != plans_.end()) return it->second;
  if (plans_.size() >= kMaxPlans) plans_.clear();
  return plans_.emplace(key, gpu_exec::plan_graph(graph_, fixed_, rows, selected, caps_, options_))
      .first->second;
}

Result<void> GpuExecutor::run(const std::vector<Step>& steps, const Pass& pass, std::string_view label) {
  if (tap_) return run_tapped(steps, pass);
  gpu::Commands commands = device_->begin(label);
  for (const Step& step : steps) DOPPLER_CHECK_OK(recorder_.record(commands, step, pass));
  return device_->submit(std::move(commands));
}

Result<void> GpuExecutor::run_tapped(const std::vector<Step>& steps, const Pass& pass) {
  for (const Step& step : steps) {
    gpu::Commands commands = device_->begin("tapped");
    DOPPLER_CHECK_OK(recorder_.record(commands, step, pass));
    DOPPLER_CHECK_OK(device_->submit(std::move(commands)));
    if (!step.completes) continue;
    DOPPLER_CHECK_OK(tell(graph_.nodes[step.node], pass));
    if (step.norm_node != graph::kNone) DOPPLER_CHECK_OK(tell(graph_.nodes[step.norm_node], pass));
  }
  return {};
}

Result<void> GpuExecutor::tell(const graph::Node& node, const Pass& pass) {
  if (node.tap.empty() || node.out.value == graph::kNone) return {};
  const kernels::Matrix m = recorder_.matrix(node.out, pass);
  std::vector<float> whole(uint64_t{m.rows} * m.stride), data(uint64_t{m.rows} * m.width);
  DOPPLER_CHECK_OK(device_->read(*m.buffer, 0, std::as_writable_bytes(std::span(whole))));
  for (uint32_t r = 0; r < m.rows; ++r)
    std::copy_n(whole.data() + uint64_t{r} * m.stride + m.offset, m.width,
                data.data() + uint64_t{r} * m.width);
  tap_({node.tap, node.layer, m.rows, m.width, data});
  return {};
}

Result<void> GpuExecutor::forward(KvCache& cache, std::span<const int32_t> ids, LogitRows rows,
                                  std::span<float> logits) {
  auto* const kv = dynamic_cast<GpuKvCache*>(&cache);
  if (kv == nullptr || kv->owner() != this)
    return fail(ErrorCode::kBadInput, "[gpu] a cache made by this executor was wanted, got another's");
  DOPPLER_CHECK_OK(check_pass("gpu", graph_, options_.max_chunk, *kv, ids, rows, logits));
  const auto count = static_cast<uint32_t>(ids.size());
  const uint32_t position = kv->length();
  DOPPLER_CHECK_OK(kv->reserve(position + count));
  DOPPLER_CHECK_OK(write_inputs(*kv, ids));

  const uint32_t wanted = rows == LogitRows::kNone ? 0 : rows == LogitRows::kLast ? 1 : count;
  Pass pass{*kv, position, count};
  DOPPLER_CHECK_OK(run(plan_for(count, std::min(wanted, fixed_.logit_rows)).body, pass, "body"));
  for (uint32_t done = 0; done < wanted; done += pass.selected) {
    pass.selected = std::min(wanted - done, fixed_.logit_rows);
    pass.first_selected = count - wanted + done;
    DOPPLER_CHECK_OK(run(plan_for(count, pass.selected).head, pass, "head"));
    const kernels::Matrix m = recorder_.matrix(graph_.logits, pass);
    const std::span<float> part =
        logits.subspan(uint64_t{done} * graph_.logits.width, uint64_t{pass.selected} * graph_.logits.width);
    DOPPLER_CHECK_OK(device_->read(*m.buffer, 0, std::as_writable_bytes(part)));
  }
  kv->set_length(position + count);
  return {};
}

}  // namespace

Result<std::unique_ptr<Executor>> make_gpu_executor(std::shared_ptr<gpu::Device> device, graph::Graph graph,
                                                    const graph::WeightSource& weights,
                                                    const GpuOptions& options, const Progress& progress) {
  if (options.max_chunk == 0)
    return fail(ErrorCode::kBadInput, "[gpu] a chunk of at least 1 was wanted, got 0");
  const gpu::Caps caps = gpu_exec::planning_caps(device->caps(), options);
  DOPPLER_TRY(gpu_exec::StaticPlan fixed, gpu_exec::plan_static(graph, caps, options));
  DOPPLER_TRY(Workspace work, Workspace::make(*device, graph, fixed, options));
  DOPPLER_TRY(GpuWeights uploaded, GpuWeights::upload(*device, graph, fixed.parts, weights, progress));
  return std::make_unique<GpuExecutor>(std::move(device), std::move(graph), options, std::move(fixed),
                                       std::move(uploaded), std::move(work));
}

}  // namespace doppler
