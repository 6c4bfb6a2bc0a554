#include "engine/profile_model.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <tuple>

#include "storage/pull.h"

namespace doppler {
namespace {

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

ProfilePass gather(const std::vector<std::vector<StepTime>>& runs, double wall_us) {
  ProfilePass pass;
  pass.wall_us = wall_us;
  std::map<std::pair<std::string, std::string>, ProfileLine> lines;
  for (size_t i = 0; i < runs[0].size(); ++i) {
    const StepTime& step = runs[0][i];
    std::vector<double> times;
    for (const std::vector<StepTime>& run : runs) times.push_back(run[i].microseconds);
    ProfileLine& line = lines[{step.kernel, step.shape}];
    line.kernel = step.kernel;
    line.shape = step.shape;
    ++line.count;
    line.dispatches += step.dispatches;
    line.microseconds += median(times);
    line.bytes += step.bytes;
    line.operations += step.operations;
  }
  for (auto& [key, line] : lines) {
    pass.step_us += line.microseconds;
    pass.dispatches += line.dispatches;
    pass.lines.push_back(std::move(line));
  }
  std::sort(pass.lines.begin(), pass.lines.end(), [](const ProfileLine& a, const ProfileLine& b) {
    return std::tie(b.microseconds, a.kernel, a.shape) < std::tie(a.microseconds, b.kernel, b.shape);
  });
  return pass;
}

/// The pass over `ids` from `position` on, as it is and taken apart, by turns.
Result<ProfilePass> profile_pass(Executor& executor, KvCache& kv, uint32_t position,
                                 std::span<const int32_t> ids, std::span<float> logits, uint32_t runs) {
  std::vector<std::vector<StepTime>> steps;
  std::vector<double> walls;
  for (uint32_t run = 0; run <= runs; ++run) {  // the first warms up
    kv.truncate(position);
    const auto begin = std::chrono::steady_clock::now();
    DOPPLER_CHECK_OK(executor.forward(kv, ids, LogitRows::kLast, logits));
    const double wall =
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
    kv.truncate(position);
    DOPPLER_TRY(auto times, executor.profile(kv, ids));
    if (run == 0) continue;
    walls.push_back(wall);
    steps.push_back(std::move(times));
  }
  return gather(steps, median(walls));
}

}  // namespace

Result<ProfileReport> profile_model(const ProfileRequest& request) {
  if (request.prompt_tokens == 0 || request.runs == 0)
    return fail(ErrorCode::kBadInput, "[profile] at least one prompt token and one run wanted");
  DOPPLER_TRY(const std::string path, storage::resolve_or_pull(request.model, request.backend.progress));
  DOPPLER_TRY(const model::LoadedModel model, model::open_model(path));
  if (model.graph.embedder)
    return fail(ErrorCode::kUnsupported, "[profile] a model that generates text wanted, {} embeds", path);
  DOPPLER_TRY(const Backend backend, make_backend(model, request.backend));
  Executor& executor = *backend.executor;
  ProfileReport report;
  report.device = executor.device_name();
  report.gpu = backend.on_gpu;
  report.prompt_tokens = std::min(request.prompt_tokens, executor.max_chunk());
  const KvType kv_type =
      request.kv.value_or(request.backend.precision == Precision::kExact ? KvType::kF32 : KvType::kF16);
  DOPPLER_TRY(const auto kv, executor.make_kv(report.prompt_tokens + 1, kv_type));
  const uint32_t vocab = model.graph.vocabulary();
  std::vector<int32_t> ids(report.prompt_tokens);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>((i * 7919 + 13) % vocab);
  std::vector<float> logits(model.graph.logits.width);
  DOPPLER_TRY(report.rates, executor.measure_rates());
  DOPPLER_TRY(report.prefill, profile_pass(executor, *kv, 0, ids, logits, request.runs));
  DOPPLER_TRY(report.decode, profile_pass(executor, *kv, report.prompt_tokens, std::span(ids).first(1),
                                          logits, request.runs));
  return report;
}

}  // namespace doppler
