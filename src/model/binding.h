#pragma once
// A graph's weights straight out of a model file's mapping.
#include "formats/tensor_source.h"
#include "graph/weights.h"

namespace doppler::model {

/// Hands out views of `source`, which must outlive it. Nothing is copied, except where the file stores a
/// tensor in pieces (RDRR spans across shards that cannot be mapped side by side), transposed or split
/// (graph::Storage): those copies belong to the caller.
class TensorWeights final : public graph::WeightSource {
 public:
  explicit TensorWeights(const TensorSource& source) : source_(source) {}
  Result<graph::WeightData> load(const graph::Weight& weight) const override;
  Result<graph::WeightData> load_expert(const graph::Weight& weight, uint32_t expert) const override;
  void release(const graph::Weight& weight) const override;
  void release_expert(const graph::Weight& weight, uint32_t expert) const override;

 private:
  const TensorSource& source_;
};

}  // namespace doppler::model
