#pragma once
// Runs a graph: tokens in, logits out, with a cache that belongs to the caller. Two kinds: CPU and GPU.
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "doppler/types.h"  // Precision, KvType, ExpertStats
#include "graph/graph.h"
#include "graph/weights.h"

namespace doppler {

/// Keys and values of one sequence. Belongs to the executor that made it.
class KvCache {
 public:
  virtual ~KvCache() = default;
  virtual uint32_t length() const = 0;    // positions filled
  virtual uint32_t capacity() const = 0;  // most positions it will take; memory grows as they are used
  virtual uint64_t size_bytes() const = 0;
  virtual void truncate(uint32_t length) = 0;  // forget positions from `length` on
};

enum class LogitRows { kNone, kLast, kAll };

/// One step's value, for comparison with a reference. data is [rows, width], row-major.
struct Tap {
  std::string_view name;
  int32_t layer;
  uint32_t rows, width;
  std::span<const float> data;
};
using TapFn = std::function<void(const Tap&)>;

class Executor {
 public:
  virtual ~Executor() = default;
  virtual std::string device_name() const = 0;
  virtual uint64_t device_bytes() const = 0;  // memory taken on the device: weights and activations
  /// nullopt unless experts are loaded on demand.
  virtual std::optional<ExpertStats> expert_stats() const { return std::nullopt; }
  virtual Result<std::unique_ptr<KvCache>> make_kv(uint32_t capacity, KvType type) = 0;

  /// Appends `ids` to `kv` (they take positions kv.length() ...) and computes the asked rows of logits into
  /// `logits` ([1 or ids.size(), vocab]; empty for kNone). Ids must be below the vocabulary, ids.size() at
  /// most max_chunk(), and kv must have room. On error the cache's length is as before.
  virtual Result<void> forward(KvCache& kv, std::span<const int32_t> ids, LogitRows rows,
                               std::span<float> logits) = 0;

  virtual uint32_t max_chunk() const = 0;
  virtual void set_tap(TapFn tap) = 0;  // nullptr: off
};

struct CpuOptions {
  Precision precision = Precision::kFast;
  unsigned threads = 0;      // 0: the cores this process may use
  uint32_t max_chunk = 512;  // most tokens a forward pass
};

/// Loads nothing up front: packed weights are read where they are mapped. `weights` must outlive the
/// executor.
Result<std::unique_ptr<Executor>> make_cpu_executor(graph::Graph graph, const graph::WeightSource& weights,
                                                    const CpuOptions& options);

}  // namespace doppler
