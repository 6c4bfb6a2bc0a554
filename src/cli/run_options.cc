#include "cli/run_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "cli/values.h"

namespace doppler::cli {
namespace {

using Json = nlohmann::json;

CLI::Validator in_range(NumberRange range, bool whole, const std::string& description) {
  return CLI::Validator([=](std::string& text) { return check_number(text, range, whole); }, description);
}

// Setters of --stdin-jsonl: check the type, then the range, then assign.

template <class T>
Result<void> set_number(const Json& value, std::string_view key, NumberRange range, T& target) {
  const bool whole = std::is_integral_v<T>;
  if (!value.is_number() || (whole && !value.is_number_integer()))
    return fail(ErrorCode::kBadInput, "[jsonl] \"{}\" must be a {}number, got {}", key, whole ? "whole " : "",
                value.type_name());
  const double number = value.get<double>();
  if (!(number >= range.low && number <= range.high))
    return fail(ErrorCode::kBadInput, "[jsonl] \"{}\" must be from {} to {}, got {}", key, range.low,
                range.high, number);
  target = value.get<T>();
  return {};
}

Result<void> set_string(const Json& value, std::string_view key, std::string& target) {
  if (!value.is_string())
    return fail(ErrorCode::kBadInput, "[jsonl] \"{}\" must be a string, got {}", key, value.type_name());
  target = value.get<std::string>();
  return {};
}

Result<void> set_optional(const Json& value, std::string_view key, std::optional<std::string>& target) {
  return set_string(value, key, target.emplace());
}

Result<void> set_choice(const Json& value, std::string_view key, std::vector<std::string_view> choices,
                        std::string& target) {
  DOPPLER_CHECK_OK(set_string(value, key, target));
  if (std::find(choices.begin(), choices.end(), target) == choices.end())
    return fail(ErrorCode::kBadInput, "[jsonl] \"{}\" must be one of {}, got \"{}\"", key,
                fmt::join(choices, ", "), target);
  return {};
}

Result<void> set_bool(const Json& value, std::string_view key, bool& target) {
  if (!value.is_boolean())
    return fail(ErrorCode::kBadInput, "[jsonl] \"{}\" must be true or false, got {}", key, value.type_name());
  target = value.get<bool>();
  return {};
}

Result<void> set_ids(const Json& value, std::string_view key, std::vector<int32_t>& target) {
  if (!value.is_array())
    return fail(ErrorCode::kBadInput, "[jsonl] \"{}\" must be a list of token ids, got {}", key,
                value.type_name());
  target.clear();
  for (const Json& item : value) {
    if (!item.is_number_integer() || item.get<double>() < 0 || item.get<double>() > 2147483647.0)
      return fail(ErrorCode::kBadInput, "[jsonl] \"{}\" must hold token ids, got {}", key,
                  item.dump(-1, ' ', false, Json::error_handler_t::replace));
    target.push_back(item.get<int32_t>());
  }
  return {};
}

Result<void> set_texts(const Json& value, std::string_view key, std::vector<std::string>& target) {
  target.clear();
  if (value.is_string()) {
    target.push_back(value.get<std::string>());
    return {};
  }
  if (!value.is_array())
    return fail(ErrorCode::kBadInput, "[jsonl] \"{}\" must be a string or a list of strings, got {}", key,
                value.type_name());
  for (const Json& item : value) DOPPLER_CHECK_OK(set_string(item, key, target.emplace_back()));
  return {};
}

Result<void> set_seed(const Json& value, std::optional<uint64_t>& target) {
  if (!value.is_number_integer() || (!value.is_number_unsigned() && value.get<int64_t>() < 0))
    return fail(ErrorCode::kBadInput, "[jsonl] \"seed\" must be a whole number from 0 to 2^64 - 1");
  target = value.get<uint64_t>();
  return {};
}

Result<void> set_size(const Json& value, std::string_view key, uint64_t& target) {
  std::string text = value.is_number_unsigned() ? std::to_string(value.get<uint64_t>()) : std::string();
  if (value.is_string()) text = value.get<std::string>();
  const std::optional<uint64_t> size = parse_size(text);
  if (!size || *size == 0)
    return fail(ErrorCode::kBadInput, "[jsonl] \"{}\" must be a size such as 4096 or \"4GiB\", got {}", key,
                value.dump(-1, ' ', false, Json::error_handler_t::replace));
  target = *size;
  return {};
}

Result<void> set_option(std::string_view key, const Json& v, RunOptions& o) {
  SamplerOptions& s = o.generate.sampling;
  if (key == "prompt") return set_optional(v, key, o.prompt);
  if (key == "prompt_file") return set_optional(v, key, o.prompt_file);
  if (key == "prompt_ids") return set_ids(v, key, o.prompt_ids.emplace());
  if (key == "chat") return set_bool(v, key, o.chat);
  if (key == "system") return set_optional(v, key, o.system);
  if (key == "special") return set_bool(v, key, o.generate.parse_special);
  if (key == "max_tokens") return set_number(v, key, kTokenCount, o.generate.max_tokens);
  if (key == "context") return set_number(v, key, kContext, o.context);
  if (key == "temperature") return set_number(v, key, kFinite, s.temperature);
  if (key == "top_k") return set_number(v, key, kTopK, s.top_k);
  if (key == "top_p") return set_number(v, key, kFinite, s.top_p);
  if (key == "min_p") return set_number(v, key, kFinite, s.min_p);
  if (key == "repetition_penalty") return set_number(v, key, kPenalty, s.repetition_penalty);
  if (key == "repetition_window") return set_number(v, key, kTokenCount, s.repetition_window);
  if (key == "seed") return set_seed(v, s.seed);
  if (key == "stop") return set_texts(v, key, o.generate.stop);
  if (key == "logprobs") return set_number(v, key, kLogprobs, o.generate.logprobs.emplace());
  if (key == "device") return set_string(v, key, o.device);
  if (key == "precision") return set_choice(v, key, {"fast", "exact"}, o.precision);
  if (key == "kv") return set_choice(v, key, {"f16", "f32", "q8", "q4"}, o.kv.emplace());
  if (key == "threads") return set_number(v, key, kThreads, o.threads);
  if (key == "expert_memory") return set_size(v, key, o.expert_memory_bytes);
  if (key == "chunk") return set_number(v, key, kChunk, o.generate.chunk);
  return fail(ErrorCode::kBadInput, "[jsonl] an option of `doppler run` by its long name wanted, got \"{}\"",
              key);
}

}  // namespace

void add_device_options(CLI::App& command, RunOptions& o) {
  command.add_option("--device", o.device,
                     "auto, cpu, gpu, lavapipe, swiftshader, or an adapter's index or part of its name");
  command.add_option("--precision", o.precision, "fast (8-bit activations) or exact (f32)")
      ->check(CLI::IsMember({"fast", "exact"}));
  command.add_option("--threads", o.threads, "CPU threads; 0: the cores this process may use")
      ->check(in_range(kThreads, true, "N"));
  command
      .add_option_function<std::string>(
          "--expert-memory", [&o](const std::string& text) { o.expert_memory_bytes = *parse_size(text); },
          "keep at most this many bytes of a mixture's experts on the GPU, e.g. 4GiB; default: all")
      ->check(CLI::Validator([](std::string& text) { return check_size(text); }, "SIZE"));
}

void add_session_options(CLI::App& command, RunOptions& o) {
  command.add_option("--context", o.context, "most tokens of prompt and answer; default: the model's own")
      ->check(in_range(kContext, true, "N"));
  command.add_option("--kv", o.kv, "type of the key/value cache; default f16, f32 with --precision exact")
      ->check(CLI::IsMember({"f16", "f32", "q8", "q4"}));
  command.add_option("--chunk", o.generate.chunk, "prompt tokens a forward pass; default 512")
      ->check(in_range(kChunk, true, "N"));
}

void add_generate_options(CLI::App& command, RunOptions& o) {
  SamplerOptions& s = o.generate.sampling;
  command.add_option("--max-tokens", o.generate.max_tokens, "most tokens to generate, default 512")
      ->check(in_range(kTokenCount, true, "N"));
  command.add_option("--temperature", s.temperature, "0 takes the likeliest token, default 0.8")
      ->check(in_range(kFinite, false, "T"));
  command.add_option("--top-k", s.top_k, "draw from the K likeliest, 0: all, default 40")
      ->check(in_range(kTopK, true, "K"));
  command.add_option("--top-p", s.top_p, "draw from the likeliest that reach P together, default 0.95")
      ->check(in_range(kFinite, false, "P"));
  command
      .add_option("--min-p", s.min_p, "drop what is less than P times as likely as the likeliest, default 0")
      ->check(in_range(kFinite, false, "P"));
  command
      .add_option("--repetition-penalty", s.repetition_penalty,
                  "lowers recent tokens' logits, default 1: off")
      ->check(in_range(kPenalty, false, "R"));
  command.add_option("--repetition-window", s.repetition_window, "how many tokens are recent, default 64")
      ->check(in_range(kTokenCount, true, "N"));
  command.add_option("--seed", s.seed, "same seed, same tokens; default: random")
      ->check(CLI::Validator([](std::string& text) { return check_seed(text); }, "N"));
  command.add_option("--stop", o.generate.stop, "text that ends the answer; may be repeated")
      ->allow_extra_args(false)
      ->take_all()
      ->check(CLI::Validator(
          [](std::string& text) { return std::string(text.empty() ? "must not be empty" : ""); }, ""));
  command
      .add_option("--logprobs", o.generate.logprobs, "give each token's log-probability and the N likeliest")
      ->check(in_range(kLogprobs, true, "N"));
}

Result<void> apply_json(const Json& line, RunOptions& options) {
  if (!line.is_object())
    return fail(ErrorCode::kBadInput, "[jsonl] a JSON object a line wanted, got {}", line.type_name());
  for (const auto& [key, value] : line.items()) DOPPLER_CHECK_OK(set_option(key, value, options));
  for (const std::string& stop : options.generate.stop)
    if (stop.empty()) return fail(ErrorCode::kBadInput, "[jsonl] \"stop\" must not hold an empty text");
  return {};
}

LoadOptions load_options(const RunOptions& options) {
  LoadOptions out;
  out.device = options.device;
  out.precision = options.precision == "exact" ? Precision::kExact : Precision::kFast;
  out.threads = options.threads;
  out.max_chunk = std::max(512u, options.generate.chunk);
  out.expert_memory_bytes = options.expert_memory_bytes;
  return out;
}

Result<SessionOptions> session_options(const RunOptions& options) {
  SessionOptions out;
  out.context = options.context;
  if (!options.kv) return out;
  if (*options.kv != "f16" && *options.kv != "f32")
    return fail(ErrorCode::kUnsupported, "[run] a cache of {} is not supported yet; use --kv f16 or f32",
                *options.kv);
  out.kv = *options.kv == "f32" ? KvType::kF32 : KvType::kF16;
  return out;
}

}  // namespace doppler::cli
