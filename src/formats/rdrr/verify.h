#pragma once
// Checks everything an RDRR directory promises about itself.
#include <cstdint>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/result.h"

namespace doppler::rdrr {

/// One fault: the file it is in (a shard, tokenizer.json) or the group or tensor whose digest is wrong.
struct Problem {
  std::string where;
  std::string message;
};

struct VerifyReport {
  uint64_t shards = 0, tensors = 0, groups = 0, roots = 0;  // how many were checked
  uint64_t bytes = 0;                                       // hashed
  std::string hash;                                         // sha256 or blake3
  std::vector<Problem> problems;                            // in the order found: shards first, ascending

  bool ok() const { return problems.empty(); }
  /// "" if all is well, else one line for the first problem that also tells how many there are.
  std::string summary() const;
};

/// Reads the manifest (its faults are the error result: types, bounds, overlaps, sums), then every shard
/// (size, digest), the side files, the digests of groups and of tensors' block trees. Faults of files do not
/// stop it. Other errors: kCancelled when `progress` says so.
Result<VerifyReport> verify(const std::string& directory, const Progress& progress);

}  // namespace doppler::rdrr
