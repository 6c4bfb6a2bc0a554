#pragma once
// Model files to RDRR directories: GGUF files, Hugging Face folders, and RDRR directories whose weights are
// stored another way.
#include <cstdint>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/progress.h"
#include "base/result.h"

namespace doppler {

struct ConvertOptions {
  /// "keep": weights stay bit for bit what they are. Else the type matrices are stored in: f32, f16, bf16,
  /// q8_0, q6_k, q5_k, q5_k_m, q5_1, q5_0, q4_1, q4_0, q4_k, q4_k_m (engine/quant_recipe.h says which
  /// matrices get more bits). Norms are never touched. With `compat` the embedding and the head become F16.
  std::string quant = "keep";
  /// Packed weights may be packed anew, which loses twice. Without it that is an error; to F32, F16 and BF16
  /// they may go, and with `compat` also to the one packed type the original has.
  bool requantize = false;
  /// Only types that the original engine's readers can use are written; the others become F16.
  bool compat = false;
  uint64_t shard_size_bytes = 64u << 20;
  HashKind hash = HashKind::kSha256;
  std::string model_id;  // "": made from the model's name
  unsigned threads = 0;  // 0: the cores this process may use
  Progress progress;     // returning false stops; nothing is left behind
};

/// How many tensors went from one storage type to another (or stayed what they were).
struct TypeChange {
  std::string from, to;
  uint64_t tensors = 0;
  uint64_t bytes_before = 0, bytes_after = 0;
};

struct ConvertReport {
  std::string directory, model_id, quantization;
  uint64_t tensors = 0, shards = 0, bytes = 0;  // bytes: of the shards
  std::vector<TypeChange> types;
  std::vector<std::string> notes;  // what a user should know, one sentence each
};

/// Writes `directory`, which must not exist or be empty. It appears whole or not at all. Memory stays
/// constant. Errors: a source that is no model or does not run here, an unknown quant, a full disk,
/// kCancelled.
Result<ConvertReport> convert(const std::string& source, const std::string& directory,
                              const ConvertOptions& options);

std::string to_json(const ConvertReport& report);  // one JSON object
std::string to_text(const ConvertReport& report);  // a few lines for people

}  // namespace doppler
