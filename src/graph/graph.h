#pragma once
// A model's computation as plain data: nodes of named ops over activations and weights. A family builds it
// once (model/<family>.cc); the CPU executor runs it node by node, the GPU planner turns it into dispatches.
//
// Activations are f32 matrices [rows, width]. `rows` is not in the graph: it is the number of tokens of the
// forward pass (or of the rows that are asked for, after kSelectRows).
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"

namespace doppler::graph {

using ValueId = uint32_t;
using WeightId = uint32_t;
inline constexpr uint32_t kNone = UINT32_MAX;

/// A column slice of an activation: columns [offset, offset + width) of each row of `value`.
struct View {
  ValueId value = kNone;
  uint32_t offset = 0;
  uint32_t width = 0;
};

struct Value {
  std::string name;  // "l3.qkv": for labels and messages
  uint32_t width = 0;
  bool selected = false;  // true: has only the rows that kSelectRows kept
};

/// A weight by its name in the source. `rows` x `columns`; 1-D weights have rows 1.
struct Weight {
  std::string name;
  DType dtype = DType::kF32;
  uint32_t rows = 1, columns = 0;
};

/// RoPE angles: pair i of position p turns by p * inv_freq[i]; the result is scaled by `magnitude` (YaRN).
struct RopeTable {
  std::vector<float> inv_freq;  // rotary_dim / 2 entries
  float magnitude = 1.0f;
};

/// One attention layer's cache: K and V are [positions, kv_heads * head_dim].
struct KvLayer {
  uint32_t kv_heads = 0, head_dim = 0;
  uint32_t window = 0;  // 0: all positions; else position j is seen from i when i - j < window
};

enum class Op : uint8_t {
  kEmbed,    // out = weights[0][id] * scale
  kRmsNorm,  // per group of `group` columns: out = in * rsqrt(mean(in^2) + eps) * (weights[0] +
             // weight_offset)
  kLinear,   // out = [in * weights[0]^T | in * weights[1]^T | ...] (+ bias if given): weights stacked by rows
  kRope,     // rotates each group of `group` columns (a head), in place when out == in
  kKvWrite,  // in = k, in2 = v: appended to cache layer `kv_layer` at the rows' positions
  kAttention,   // in = q: softmax(scale * q k^T, causal, window, soft cap) v over cache layer `kv_layer`
  kGatedAct,    // in = [gate | up]: out = act(gate) * up
  kAdd,         // out = in + in2
  kSelectRows,  // out = the rows whose logits are asked for (the last one, or all)
  kSoftcap,     // out = cap * tanh(in / cap)
};

enum class Activation : uint8_t { kSilu, kGeluTanh };

struct Node {
  Op op;
  View in, in2, out;
  std::vector<WeightId> weights;
  int32_t layer = -1;                         // for taps, labels and errors; -1 outside the layers
  std::string tap;                            // name of the step, e.g. "attn_norm"
  float eps = 0;                              // kRmsNorm
  float weight_offset = 0;                    // kRmsNorm: 1 where the file stores w and the model means w + 1
  float scale = 1;                            // kEmbed, kAttention
  float softcap = 0;                          // kAttention (0: none), kSoftcap
  uint32_t group = 0;                         // kRmsNorm, kRope: columns a group; kAttention: head_dim
  uint32_t rope_table = 0;                    // kRope
  bool rope_interleaved = false;              // kRope: pairs (2i, 2i+1) instead of (i, i + rotary_dim / 2)
  uint32_t kv_layer = 0;                      // kKvWrite, kAttention
  Activation activation = Activation::kSilu;  // kGatedAct
};

struct Graph {
  std::vector<Value> values;
  std::vector<Weight> weights;
  std::vector<RopeTable> rope_tables;
  std::vector<KvLayer> kv_layers;
  std::vector<Node> nodes;
  View logits;               // [selected rows, vocab]
  uint32_t max_context = 0;  // positions the model was made for
};

std::string_view op_name(Op op);

}  // namespace doppler::graph
