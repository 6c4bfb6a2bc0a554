#include "engine/plan_model.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "engine/device_choice.h"
#include "exec/cpu/simd.h"
#include "exec/gpu/plan.h"
#include "storage/pull.h"

namespace doppler {
namespace {

using Json = nlohmann::ordered_json;

void append_steps(const graph::Graph& graph, const std::vector<gpu_exec::Step>& steps,
                  std::vector<PlanLine>& lines) {
  for (const gpu_exec::Step& step : steps)
    lines.push_back({graph.nodes[step.node].layer, std::string(gpu_exec::step_name(step.kind)), step.kernel,
                     step.shape, step.reason,
                     step.weight == graph::kNone ? "" : graph.weights[step.weight].name});
}

std::string join(const std::string& a, const std::string& b) { return a.empty() ? b : a + " " + b; }

/// The CPU runs node by node; a product's form follows from the weight's type and the precision.
std::vector<PlanLine> cpu_lines(const graph::Graph& graph, uint32_t rows, Precision precision) {
  std::vector<PlanLine> lines;
  bool selected = false;
  for (const graph::Node& node : graph.nodes) {
    PlanLine line{node.layer, std::string(graph::op_name(node.op)), "", "", "", ""};
    bool int8 = false, packed = false;
    for (const graph::WeightId id : node.weights) {
      const graph::Weight& weight = graph.weights[id];
      line.weight = join(line.weight, weight.name);
      line.kernel = join(line.kernel, std::string(dtype_name(weight.dtype)));
      packed = packed || cpu::opens_to_int8(weight.dtype);
    }
    if (node.op == graph::Op::kSelectRows) selected = true;
    if (node.op == graph::Op::kLinear) {
      int8 = packed && precision == Precision::kFast;
      line.reason = int8     ? "fast precision: 8-bit activations"
                    : packed ? "exact precision: f32 activations"
                             : "weights are not packed: f32";
    }
    line.kernel = line.op + (line.kernel.empty() ? "" : "/" + line.kernel) +
                  (node.op == graph::Op::kLinear ? (int8 ? "/int8" : "/f32") : "");
    line.shape = fmt::format("{} x {}", selected ? 1 : rows,
                             node.op == graph::Op::kKvWrite ? node.in.width : node.out.width);
    lines.push_back(std::move(line));
  }
  return lines;
}

Json lines_json(const std::vector<PlanLine>& lines) {
  Json out = Json::array();
  for (const PlanLine& line : lines) {
    Json item = {{"layer", line.layer}, {"op", line.op},         {"kernel", line.kernel},
                 {"shape", line.shape}, {"reason", line.reason}, {"weight", line.weight}};
    if (line.layer < 0) item["layer"] = nullptr;
    out.push_back(std::move(item));
  }
  return out;
}

std::string lines_text(const std::vector<PlanLine>& lines) {
  std::string out;
  for (const PlanLine& line : lines) {
    const std::string where = line.layer >= 0 ? fmt::format("layer {}", line.layer) : std::string("model");
    std::string tail = join(line.reason, line.weight.empty() ? "" : "[" + line.weight + "]");
    out += fmt::format("  {:<9} {:<36} {:<26} {}\n", where, line.kernel, line.shape, tail);
  }
  return out;
}

}  // namespace

Result<PlanReport> plan_model(const std::string& name, const BackendOptions& options,
                              uint32_t prompt_tokens) {
  DOPPLER_TRY(const std::string path, storage::resolve_or_pull(name, options.progress));
  DOPPLER_TRY(const model::LoadedModel model, model::open_model(path));
  DOPPLER_TRY(const DeviceChoice choice, choose_device(options.device));
  PlanReport report;
  report.device_reason = choice.reason;
  report.gpu = choice.gpu;
  report.prompt_tokens = std::min(prompt_tokens, options.max_chunk);
  if (!choice.gpu) {
    report.device = "CPU";
    report.prefill = cpu_lines(model.graph, report.prompt_tokens, options.precision);
    report.decode = cpu_lines(model.graph, 1, options.precision);
    return report;
  }
  DOPPLER_TRY(const auto device, gpu::Device::create({.name = choice.adapter}));
  report.device = device->caps().adapter;
  const GpuOptions gpu_options{.precision = options.precision,
                               .max_chunk = options.max_chunk,
                               .expert_memory_bytes = options.expert_memory_bytes};
  const gpu::Caps caps = gpu_exec::planning_caps(device->caps(), gpu_options);
  DOPPLER_TRY(const auto fixed, gpu_exec::plan_static(model.graph, caps, gpu_options));
  const auto prefill =
      gpu_exec::plan_graph(model.graph, fixed, report.prompt_tokens, 1, caps, gpu_options, 0);
  const auto decode = gpu_exec::plan_graph(model.graph, fixed, 1, 1, caps, gpu_options, report.prompt_tokens);
  for (const auto& [plan, lines] :
       {std::pair{&prefill, &report.prefill}, std::pair{&decode, &report.decode}}) {
    append_steps(model.graph, plan->body, *lines);
    append_steps(model.graph, plan->head, *lines);
  }
  return report;
}

std::string to_json(const PlanReport& report) {
  const Json out = {{"device", report.device},
                    {"device_reason", report.device_reason},
                    {"gpu", report.gpu},
                    {"prompt_tokens", report.prompt_tokens},
                    {"prefill", lines_json(report.prefill)},
                    {"decode", lines_json(report.decode)}};
  return out.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string to_text(const PlanReport& report) {
  const std::string_view what = report.gpu ? "dispatches" : "nodes";
  return fmt::format("{} ({})\nprefill of {} tokens: {} {}\n{}decode of one token: {} {}\n{}", report.device,
                     report.device_reason, report.prompt_tokens, report.prefill.size(), what,
                     lines_text(report.prefill), report.decode.size(), what, lines_text(report.decode));
}

}  // namespace doppler
