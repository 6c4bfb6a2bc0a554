#pragma once
// out = softmax(scale * q k^T) v over a layer's cache, causal or not, with an optional window, soft cap and
// sinks; online softmax.
#include <cstdint>
#include <optional>

#include "kernels/attention/plan.h"
#include "kernels/common/matrix.h"
#include "kernels/kv_write/kv_write.h"

namespace doppler::kernels {

struct AttentionArgs {
  Matrix q;                          // [rows, heads * head_dim]
  KvBuffers cache;                   // positions [0, position + rows) are filled
  Matrix out;                        // as q; another buffer
  uint32_t heads = 0, kv_heads = 0;  // head h reads KV head h / (heads / kv_heads)
  uint32_t head_dim = 0;             // a multiple of 8, at most kMaxHeadDim
  uint32_t position = 0;             // of the first row: row r sees positions j <= position + r
  uint32_t window = 0;               // 0: all; else only those with position + r - j < window
  float scale = 1.0f;
  float softcap = 0;                     // 0: none; else scores become cap * tanh(score / cap)
  bool causal = true;                    // false: every row sees [0, position + rows); window must be 0
  const gpu::Buffer* sinks = nullptr;    // f32 [heads]: exp(sink) joins a head's softmax sum; nullptr: none
  uint32_t sink_base = 0;                // in floats, where the sinks begin in their buffer
  const gpu::Buffer* scratch = nullptr;  // attention_scratch_bytes(); nullptr: keys are not split
  std::optional<AttentionPlan> plan;     // pins the plan; nullopt: plan_attention()
};

/// Enough scratch for every call with these heads (the split form is used for few rows only).
uint64_t attention_scratch_bytes(uint32_t heads, uint32_t head_dim, const gpu::Caps& caps);

Result<void> record_attention(gpu::Device& device, gpu::Commands& commands, const AttentionArgs& args);
Result<void> run_attention(gpu::Device& device, const AttentionArgs& args);

}  // namespace doppler::kernels
