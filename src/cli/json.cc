#include "cli/json.h"

#include <nlohmann/json.hpp>

namespace doppler::cli {

using Json = nlohmann::ordered_json;

std::string dump(const Json& value) {
  const std::string json = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  // Some readers also end a line at U+0085, U+2028 and U+2029, which JSON leaves as they are.
  std::string line;
  line.reserve(json.size());
  for (size_t i = 0; i < json.size();) {
    const std::string_view rest = std::string_view(json).substr(i);
    if (rest.starts_with("\xC2\x85")) {
      line += "\\u0085";
      i += 2;
    } else if (rest.starts_with("\xE2\x80\xA8") || rest.starts_with("\xE2\x80\xA9")) {
      line += rest[2] == '\xA8' ? "\\u2028" : "\\u2029";
      i += 3;
    } else {
      line += json[i++];
    }
  }
  return line;
}

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

Json experts_json(const ExpertStats& stats) {
  return {{"hits", stats.hits},
          {"misses", stats.misses},
          {"prefetched", stats.prefetched},
          {"bytes_loaded", stats.bytes_loaded},
          {"slots", stats.slots},
          {"slots_wanted", stats.slots_wanted},
          {"slot_bytes", stats.slot_bytes}};
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
  if (t.experts) out["timings"]["experts"] = experts_json(*t.experts);
  return out;
}

}  // namespace doppler::cli
