#pragma once
// Where a graph's values live while it runs: few buffers, each used again once its value is no longer read.
#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "graph/graph.h"

namespace doppler::cpu {

/// slot_of[value]: the buffer it lives in, graph::kNone for the logits (they go to the caller).
/// slot_width[slot]: floats a row needs.
struct BufferPlan {
  std::vector<uint32_t> slot_of;
  std::vector<uint32_t> slot_width;
};

/// Gives each value the free buffer that fits best, from the node that writes it to the last that reads it.
BufferPlan plan_buffers(const graph::Graph& graph);

/// The buffers of a plan, grown to the most rows asked for so far.
class Buffers {
 public:
  explicit Buffers(BufferPlan plan) : plan_(std::move(plan)), slots_(plan_.slot_width.size()) {}

  /// Room for `rows` rows in every buffer. Errors: out of memory.
  Result<void> reserve(uint32_t rows);
  float* data(graph::ValueId value) const { return slots_[plan_.slot_of[value]].get(); }
  uint64_t size_bytes() const;

 private:
  BufferPlan plan_;
  std::vector<std::unique_ptr<float[]>> slots_;
  uint32_t rows_ = 0;
};

}  // namespace doppler::cpu
