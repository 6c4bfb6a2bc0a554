#pragma once
// Keeps one model and one session loaded over the lines of --stdin-jsonl.
#include <optional>
#include <string>

#include "base/result.h"
#include "cli/run_options.h"
#include "doppler/doppler.h"

namespace doppler::cli {

class Runner {
 public:
  /// Loads what `options` ask for, unless it is there already: another device, precision or thread count
  /// loads the model anew, another context or cache type makes a new session. Without `text` the tokenizer
  /// waits until something needs it.
  Result<void> prepare(const RunOptions& options, bool text);

  /// Prepares, then generates from the prompt, file, ids or chat of `options`. A lost device is dropped, so
  /// that the next call makes another.
  Result<Generation> run(const RunOptions& options, const GenerateCallbacks& callbacks);

  const Model& model() const { return *model_; }

 private:
  Result<Generation> generate(const RunOptions& options, const GenerateCallbacks& callbacks);

  std::string model_key_, session_key_;
  std::optional<Model> model_;
  std::optional<Session> session_;
};

}  // namespace doppler::cli
