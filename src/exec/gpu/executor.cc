#include <algorithm>
#include <map>
#include <utility>

#include "exec/gpu/expert_pools.h"
#include "exec/gpu/experts_on_demand.h"
#include "exec/gpu/gpu_executor.h"
#include "exec/gpu/kv_cache.h"
#include "exec/gpu/plan.h"
#include "exec/gpu/recorder.h"
#include "exec/gpu/step_time.h"
#include "exec/gpu/weights.h"
#include "exec/pass_check.h"
#include "kernels/limits/limits.h"
#include "kernels/rope/rope.h"

namespace doppler {
namespace {

using gpu_exec::ExpertPools;
using gpu_exec::ExpertsOnDemand;
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
              gpu_exec::StaticPlan fixed, GpuWeights weights, ExpertPools experts, Workspace work)
      : device_(std::move(device)),
        graph_(std::move(graph)),
        options_(options),
        caps_(gpu_exec::planning_caps(device_->caps(), options)),
        fixed_(std::move(fixed)),
        weights_(std::move(weights)),
        experts_(std::move(experts)),
        work_(std::move(work)),
        recorder_(*device_, graph_, fixed_, weights_, experts_, work_) {}

  /// `source` must outlive the executor.
  void load_experts_on_demand(const graph::WeightSource& source) {
    on_demand_ =
        std::make_unique<ExpertsOnDemand>(*device_, graph_, fixed_, recorder_, work_, experts_, source);
  }

  std::string device_name() const override { return caps_.adapter; }
  uint64_t device_bytes() const override {
    return weights_.size_bytes() + experts_.size_bytes() + work_.size_bytes();
  }
  std::optional<ExpertStats> expert_stats() const override {
    return on_demand_ ? std::optional(on_demand_->stats()) : std::nullopt;
  }
  uint32_t max_chunk() const override { return options_.max_chunk; }
  void set_tap(TapFn tap) override {
    tap_ = std::move(tap);
    options_.fuse = !tap_;
    plans_.clear();
    next_.reset();
  }

  Result<std::unique_ptr<KvCache>> make_kv(uint32_t capacity, KvType type) override {
    if (capacity == 0) return fail(ErrorCode::kBadInput, "[gpu] a context of at least 1 was wanted, got 0");
    next_.reset();  // it would keep the buffers of a cache that may be gone
    return std::make_unique<GpuKvCache>(this, device_, graph_.kv_layers, capacity, type);
  }

  Result<void> forward(KvCache& cache, std::span<const int32_t> ids, LogitRows rows,
                       std::span<float> logits) override;
  Result<std::vector<StepTime>> profile(KvCache& cache, std::span<const int32_t> ids) override;
  Result<DeviceRates> measure_rates() override {
    DOPPLER_TRY(const kernels::DeviceLimits limits, kernels::measure_limits(*device_));
    return DeviceRates{limits.read_gb_s, limits.int8_tops};
  }

 private:
  Result<GpuKvCache*> own(KvCache& cache) const;
  Result<void> write_inputs(const GpuKvCache& kv, std::span<const int32_t> ids);
  const Plan& plan_for(uint32_t rows, uint32_t selected);
  Result<void> run(const std::vector<Step>& steps, const Pass& pass, std::string_view label);
  Result<gpu::Prepared> prepare_token(const GpuKvCache& kv, uint32_t position);
  Result<void> run_token(const GpuKvCache& kv, uint32_t position);
  Result<void> run_tapped(const std::vector<Step>& steps, const Pass& pass);
  Result<void> tell(const Step& step, const Pass& pass);
  Result<void> tell(const graph::Node& node, const Pass& pass);

  std::shared_ptr<gpu::Device> device_;
  graph::Graph graph_;
  GpuOptions options_;
  gpu::Caps caps_;
  gpu_exec::StaticPlan fixed_;
  GpuWeights weights_;
  ExpertPools experts_;
  Workspace work_;
  gpu_exec::Recorder recorder_;
  std::unique_ptr<ExpertsOnDemand> on_demand_;           // null: all experts are there
  std::map<std::pair<uint32_t, uint32_t>, Plan> plans_;  // by rows and selected
  TapFn tap_;

  // One token's pass with its logits, encoded while the device ran the one before.
  struct NextToken {
    uint64_t buffers_id;  // of the cache
    uint32_t position;
    gpu::Prepared commands;
  };
  std::optional<NextToken> next_;
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
  if (on_demand_) {
    ExpertsOnDemand::AfterStep after;
    if (tap_) after = [&](const Step& step) { return tell(step, pass); };
    return on_demand_->run(steps, pass, label, after);
  }
  if (tap_) return run_tapped(steps, pass);
  gpu::Commands commands = device_->begin(label);
  for (const Step& step : steps) DOPPLER_CHECK_OK(recorder_.record(commands, step, pass));
  return device_->submit(std::move(commands));
}

Result<gpu::Prepared> GpuExecutor::prepare_token(const GpuKvCache& kv, uint32_t position) {
  const Pass pass{kv, position, 1, 0, 1};
  const Plan& plan = plan_for(1, 1);
  gpu::Commands commands = device_->begin("token");
  for (const std::vector<Step>* steps : {&plan.body, &plan.head})
    for (const Step& step : *steps) DOPPLER_CHECK_OK(recorder_.record(commands, step, pass));
  return device_->prepare(std::move(commands));
}

// Runs the pass, and while the device is at it encodes the next one. What that needs is known but for the id.
Result<void> GpuExecutor::run_token(const GpuKvCache& kv, uint32_t position) {
  std::optional<NextToken> ready = std::exchange(next_, std::nullopt);
  if (!ready || ready->buffers_id != kv.buffers_id() || ready->position != position) {
    DOPPLER_TRY(gpu::Prepared commands, prepare_token(kv, position));
    ready = NextToken{kv.buffers_id(), position, std::move(commands)};
  }
  DOPPLER_CHECK_OK(device_->submit(std::move(ready->commands)));
  if (position + 1 >= kv.capacity() || !kv.holds(position + 2)) return {};
  // What goes wrong here goes wrong again, and is reported, when that token is asked for.
  if (auto commands = prepare_token(kv, position + 1))
    next_ = NextToken{kv.buffers_id(), position + 1, std::move(*commands)};
  return {};
}

Result<void> GpuExecutor::run_tapped(const std::vector<Step>& steps, const Pass& pass) {
  for (const Step& step : steps) {
    gpu::Commands commands = device_->begin("tapped");
    DOPPLER_CHECK_OK(recorder_.record(commands, step, pass));
    DOPPLER_CHECK_OK(device_->submit(std::move(commands)));
    DOPPLER_CHECK_OK(tell(step, pass));
  }
  return {};
}

Result<void> GpuExecutor::tell(const Step& step, const Pass& pass) {
  if (!step.completes) return {};
  DOPPLER_CHECK_OK(tell(graph_.nodes[step.node], pass));
  return step.norm_node == graph::kNone ? Result<void>() : tell(graph_.nodes[step.norm_node], pass);
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

Result<GpuKvCache*> GpuExecutor::own(KvCache& cache) const {
  auto* const kv = dynamic_cast<GpuKvCache*>(&cache);
  if (kv == nullptr || kv->owner() != this)
    return fail(ErrorCode::kBadInput, "[gpu] a cache made by this executor was wanted, got another's");
  return kv;
}

Result<void> GpuExecutor::forward(KvCache& cache, std::span<const int32_t> ids, LogitRows rows,
                                  std::span<float> logits) {
  DOPPLER_TRY(GpuKvCache* const kv, own(cache));
  DOPPLER_CHECK_OK(check_pass("gpu", graph_, options_.max_chunk, *kv, ids, rows, logits));
  const auto count = static_cast<uint32_t>(ids.size());
  const uint32_t position = kv->length();
  DOPPLER_CHECK_OK(kv->reserve(position + count));
  DOPPLER_CHECK_OK(write_inputs(*kv, ids));

  const uint32_t wanted = rows == LogitRows::kNone ? 0 : rows == LogitRows::kLast ? 1 : count;
  Pass pass{*kv, position, count};
  if (count == 1 && rows == LogitRows::kLast && !tap_ && !on_demand_) {
    DOPPLER_CHECK_OK(run_token(*kv, position));
    pass.selected = 1;
    DOPPLER_CHECK_OK(
        device_->read(*recorder_.matrix(graph_.logits, pass).buffer, 0, std::as_writable_bytes(logits)));
    kv->set_length(position + 1);
    return {};
  }
  next_.reset();
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

Result<std::vector<StepTime>> GpuExecutor::profile(KvCache& cache, std::span<const int32_t> ids) {
  DOPPLER_TRY(GpuKvCache* const kv, own(cache));
  if (on_demand_)
    return fail(ErrorCode::kUnsupported,
                "[gpu] a profile of resident experts was wanted; leave --expert-memory out");
  std::vector<float> logits(graph_.logits.width);  // for the check alone
  DOPPLER_CHECK_OK(check_pass("gpu", graph_, options_.max_chunk, *kv, ids, LogitRows::kLast, logits));
  const auto count = static_cast<uint32_t>(ids.size());
  const uint32_t position = kv->length();
  DOPPLER_CHECK_OK(kv->reserve(position + count));
  DOPPLER_CHECK_OK(write_inputs(*kv, ids));
  const Pass pass{*kv, position, count, count - 1, 1};
  const Plan plan = gpu_exec::plan_graph(graph_, fixed_, count, 1, caps_, options_, position);
  gpu::Commands commands = device_->begin("profile");
  std::vector<StepTime> times;
  for (const std::vector<Step>* steps : {&plan.body, &plan.head})
    for (const Step& step : *steps) {
      const uint32_t before = commands.dispatch_count();
      DOPPLER_CHECK_OK(recorder_.record(commands, step, pass));
      StepTime time = gpu_exec::untimed(graph_, fixed_, step, pass);
      time.dispatches = commands.dispatch_count() - before;
      times.push_back(std::move(time));
    }
  DOPPLER_TRY(const std::vector<gpu::DispatchTime> measured, device_->submit_timed(std::move(commands)));
  size_t next = 0;
  for (StepTime& time : times)
    for (uint32_t i = 0; i < time.dispatches; ++i) time.microseconds += measured[next++].microseconds;
  kv->set_length(position + count);
  return times;
}

uint64_t expert_bytes(const gpu_exec::StaticPlan& fixed) {
  uint64_t bytes = 0;
  if (!fixed.experts_on_demand)
    for (const gpu_exec::ExpertPool& pool : fixed.expert_pools) bytes += pool.slots * pool.slot_bytes;
  return bytes;
}

/// Expert e of each layer into slot e. `done` of `total` bytes are loaded before.
Result<void> load_all_experts(gpu::Device& device, const graph::Graph& graph,
                              const gpu_exec::StaticPlan& fixed, const graph::WeightSource& source,
                              const Progress& progress, uint64_t done, uint64_t total, ExpertPools& pools) {
  for (const gpu_exec::ExpertLayer& layer : fixed.expert_layers) {
    const std::string& name = graph.weights[layer.matrices[0].weight].name;
    for (uint32_t expert = 0; expert < layer.experts; ++expert) {
      DOPPLER_CHECK_OK(pools.load(device, graph, layer, expert, expert, source));
      done += fixed.expert_pools[layer.pool].slot_bytes;
      if (progress && !progress(name, done, total))
        return fail(ErrorCode::kCancelled, "[gpu] loading was stopped at {}", name);
    }
  }
  return device.wait();
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
  const uint64_t of_experts = expert_bytes(fixed);
  uint64_t of_others = 0;
  Progress with_experts;
  if (progress)
    with_experts = [&](std::string_view what, uint64_t done, uint64_t total) {
      of_others = total;
      return progress(what, done, total + of_experts);
    };
  DOPPLER_TRY(GpuWeights uploaded, GpuWeights::upload(*device, graph, fixed, weights, with_experts));
  auto experts = ExpertPools::make(*device, fixed);
  if (!experts && experts.error().code == ErrorCode::kOutOfMemory && !fixed.experts_on_demand)
    return fail(ErrorCode::kOutOfMemory, "{}; --expert-memory keeps only some experts there",
                experts.error().message);
  if (!experts) return forward_error(experts);
  if (!fixed.experts_on_demand)
    DOPPLER_CHECK_OK(load_all_experts(*device, graph, fixed, weights, progress, of_others,
                                      of_others + of_experts, *experts));
  const bool on_demand = fixed.experts_on_demand;
  auto executor =
      std::make_unique<GpuExecutor>(std::move(device), std::move(graph), options, std::move(fixed),
                                    std::move(uploaded), std::move(*experts), std::move(work));
  if (on_demand) executor->load_experts_on_demand(weights);
  return executor;
}

}  // namespace doppler
