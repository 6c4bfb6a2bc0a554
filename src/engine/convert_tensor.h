#pragma once
// Streams one tensor from its source into a writer, a few megabytes at a time.
#include "base/progress.h"
#include "base/result.h"
#include "base/thread_pool.h"
#include "engine/convert_plan.h"
#include "formats/rdrr/writer.h"

namespace doppler::convert_detail {

/// How far the whole conversion is, counted in bytes of the source.
struct ConvertProgress {
  const Progress& report;
  uint64_t done = 0, total = 0;

  Result<void> add(std::string_view what, uint64_t bytes);  // kCancelled when asked to stop
};

/// Copies the bytes, or unpacks and packs them again where the storage type changes. At most a matrix that is
/// stored transposed or in two halves is held in memory. Errors: values beyond what the new type holds, the
/// writer's, kCancelled.
Result<void> write_tensor(const model::LoadedModel& source, const PlannedTensor& tensor, rdrr::Writer& writer,
                          ThreadPool& pool, ConvertProgress& progress);

}  // namespace doppler::convert_detail
