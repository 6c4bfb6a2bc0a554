#include "cli/json.h"

#include <nlohmann/json.hpp>

namespace doppler::cli {

using Json = nlohmann::ordered_json;

std::string dump(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

std::string dump_error(std::string_view message) { return dump(Json{{"error", message}}); }

std::string_view finish_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kCancelled:
      return "cancelled";
    case FinishReason::kError:
      return "error";
  }
  return "error";
}

Json generation_json(const Generation& generation, std::string_view model, std::string_view device) {
  Json logprobs = Json::array();
  for (const StepLogprobs& step : generation.logprobs) {
    Json top = Json::array();
    for (const TokenLogprob& token : step.top) top.push_back({{"id", token.id}, {"logprob", token.logprob}});
    logprobs.push_back({{"id", step.chosen.id}, {"logprob", step.chosen.logprob}, {"top", std::move(top)}});
  }
  const Timings& t = generation.timings;
  Json out = {
      {"model", model},        {"device", device},        {"prompt_ids", generation.prompt_ids},
      {"ids", generation.ids}, {"text", generation.text}, {"finish_reason", finish_name(generation.finish)}};
  if (generation.finish == FinishReason::kError) out["error"] = generation.error;
  out["logprobs"] = std::move(logprobs);
  out["seed"] = generation.seed;
  out["timings"] = {{"load_ms", t.load_ms},       {"prompt_tokens", t.prompt_tokens},
                    {"prompt_ms", t.prompt_ms},   {"first_token_ms", t.first_token_ms},
                    {"gen_tokens", t.gen_tokens}, {"gen_ms", t.gen_ms}};
  return out;
}

}  // namespace doppler::cli
