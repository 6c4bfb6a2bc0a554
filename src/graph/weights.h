#pragma once
// How an executor gets a graph's weights: packed bytes, one weight at a time, straight from the file's
// mapping.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "graph/graph.h"

namespace doppler::graph {

struct WeightData {
  std::span<const std::byte> bytes;  // rows * row_bytes
  uint64_t row_bytes = 0;            // blocks are padded to whole ones: may cover more than `columns` values
  std::shared_ptr<const void> keep;  // keeps `bytes` alive where they are not in a mapping
};

class WeightSource {
 public:
  virtual ~WeightSource() = default;
  virtual Result<WeightData> load(const Weight& weight) const = 0;

  /// One matrix of a stack: expert `expert` of weight.experts, rows * row_bytes.
  virtual Result<WeightData> load_expert(const Weight& weight, uint32_t expert) const {
    return fail(ErrorCode::kUnsupported, "[weights] expert {} of {} wanted, this source has no experts",
                expert, weight.name);
  }
  virtual void release(const Weight& weight) const = 0;  // the executor has its own copy: pages may go
  /// The same for one matrix of a stack. Safe while another thread reads it.
  virtual void release_expert(const Weight& weight, uint32_t /*expert*/) const { release(weight); }
};

}  // namespace doppler::graph
