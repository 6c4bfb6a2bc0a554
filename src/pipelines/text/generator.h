#pragma once
// The generation loop over one executor and one cache: prefill in chunks, then a token a step.
#include <atomic>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "doppler/generate.h"
#include "exec/executor.h"
#include "tokenizer/tokenizer.h"

namespace doppler {

/// What the loop needs to know of the model.
struct GeneratorModel {
  uint32_t vocab = 0;
  std::span<const int32_t> end_ids;
  const Tokenizer* tokenizer = nullptr;  // null: ids only, no text and no stop strings
};

/// Continues `prompt_ids` in `kv`, whose contents are forgotten first. `cancel` may be null; set from any
/// thread it stops the loop before its next chunk or step. What goes wrong before the first token is an
/// error; later, the generation is returned with kError and what there is so far. Errors: kBadInput for no
/// prompt, ids outside the vocabulary, a prompt longer than the cache, bad options.
Result<Generation> generate(Executor& executor, KvCache& kv, const GeneratorModel& model,
                            std::span<const int32_t> prompt_ids, const GenerateOptions& options,
                            const GenerateCallbacks& callbacks, const std::atomic<bool>* cancel);

}  // namespace doppler
