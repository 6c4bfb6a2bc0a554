#pragma once
// What `doppler run` is asked for: from the command line, and again from each line of --stdin-jsonl.
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "doppler/doppler.h"

namespace CLI {
class App;
}

namespace doppler::cli {

struct RunOptions {
  std::string model;
  std::optional<std::string> prompt, prompt_file, system;
  std::optional<std::vector<int32_t>> prompt_ids;
  bool chat = false;
  uint32_t context = 0;  // 0: the model's own
  std::string device = "auto", precision = "fast";
  std::optional<std::string> kv;
  unsigned threads = 0;
  uint64_t expert_memory_bytes = 0;  // 0: all experts are on the device
  GenerateOptions generate;
};

/// --device, --precision, --threads, --expert-memory: of every command that runs a model.
void add_device_options(CLI::App& command, RunOptions& options);
/// --context, --kv, --chunk.
void add_session_options(CLI::App& command, RunOptions& options);
/// Sampling, stop texts, log-probabilities.
void add_generate_options(CLI::App& command, RunOptions& options);

/// Applies a JSON object whose keys are the options' long names with underscores, plus "prompt". Errors: not
/// an object, an unknown key, a value of the wrong type or out of range.
Result<void> apply_json(const nlohmann::json& line, RunOptions& options);

/// The options as the public interface takes them. Errors (kUnsupported): a cache type that does not run yet.
LoadOptions load_options(const RunOptions& options);
Result<SessionOptions> session_options(const RunOptions& options);

}  // namespace doppler::cli
