#pragma once
// `doppler plan`: what runs for a prompt and for one more token, with the kernel chosen and why.
#include <string>
#include <vector>

#include "engine/backend.h"

namespace doppler {

struct PlanLine {
  int32_t layer = -1;  // -1: outside the layers
  std::string op, kernel, shape, reason, weight;
};

struct PlanReport {
  std::string device, device_reason;
  bool gpu = false;  // lines are dispatches; on the CPU they are the graph's nodes
  uint32_t prompt_tokens = 0;
  std::vector<PlanLine> prefill, decode;
};

/// Plans without reading weights. On a GPU only its capabilities are asked for. `prompt_tokens` is the
/// prefill's chunk; the decode step is the one after it.
Result<PlanReport> plan_model(const std::string& model, const BackendOptions& options,
                              uint32_t prompt_tokens);

std::string to_json(const PlanReport& report);  // one JSON object
std::string to_text(const PlanReport& report);

}  // namespace doppler
