#pragma once
// The largest sizes a model file may state: beyond any published model by a wide margin. What bounds a
// hostile file's memory are its tensors' shapes, which must match these numbers.
#include <cstdint>

namespace doppler::model {

inline constexpr uint64_t kMaxLayers = 1024;
inline constexpr uint64_t kMaxWidth = 1u << 20;
inline constexpr uint64_t kMaxHeads = 4096;
inline constexpr uint64_t kMaxHeadDim = 8192;
inline constexpr uint64_t kMaxContext = 1u << 30;
inline constexpr uint64_t kMaxVocab = 1u << 24;
inline constexpr uint64_t kMaxExperts = 4096;

}  // namespace doppler::model
