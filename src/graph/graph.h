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

/// How a file stores a weight; what a WeightSource hands out is always row-major [rows, columns] in `dtype`.
enum class Storage : uint8_t {
  kRows,        // as it is used
  kTransposed,  // [columns, rows] of F32, F16 or BF16 (GPT-2's Conv1D, gpt-oss's experts): turned when loaded
  kSplitMxfp4,  // name + "_blocks" [rows, columns / 32, 16] and name + "_scales" [rows, columns / 32], both
                // U8; handed out as MXFP4 blocks of 17 bytes
};

/// A weight by its name in the source. `rows` x `columns`; 1-D weights have rows 1.
/// `experts` > 0: a stack of as many matrices of rows x columns, one an expert. It is one tensor whose first
/// dimension counts the experts, or, where the name holds "{}", one tensor an expert, its number in that
/// place.
struct Weight {
  std::string name;
  DType dtype = DType::kF32;
  uint32_t rows = 1, columns = 0;
  uint32_t experts = 0;
  Storage storage = Storage::kRows;
};

/// RoPE angles: pair i of position p turns by p * inv_freq[i]; the result is scaled by `magnitude` (YaRN,
/// LongRoPE). Where `long_inv_freq` is not empty (LongRoPE), a cache with room for more than `long_above`
/// positions uses it instead, so that one sequence never mixes the two.
struct RopeTable {
  std::vector<float> inv_freq;  // rotary_dim / 2 entries
  float magnitude = 1.0f;
  std::vector<float> long_inv_freq = {};
  uint32_t long_above = 0;
};

/// One attention layer's cache: K and V are [positions, kv_heads * head_dim].
struct KvLayer {
  uint32_t kv_heads = 0, head_dim = 0;
  uint32_t window = 0;  // 0: all positions; else position j is seen from i when i - j < window
};

enum class Op : uint8_t {
  kEmbed,        // out = weights[0][id] * scale
  kAddPosition,  // out = in + weights[0][position of the row]: learned positions
  kAddVector,    // out = in + weights[0][0]: the first row, to every row
  kRmsNorm,      // per group of `group` columns: out = in * rsqrt(mean(in^2) + eps) * (weights[0] +
                 // weight_offset)
  kLayerNorm,    // over the whole row: out = (in - mean) * rsqrt(variance + eps) * weights[0] + biases[0]
  kLinear,  // out = [in * weights[0]^T + biases[0] | in * weights[1]^T + biases[1] | ...]: weights stacked by
            // rows
  kRope,    // rotates each group of `group` columns (a head), in place when out == in
  kKvWrite,    // in = k, in2 = v: appended to cache layer `kv_layer` at the rows' positions
  kAttention,  // in = q: softmax(scale * q k^T, causal, window, soft cap) v over cache layer `kv_layer`.
               // weights[0], if given: [heads] sinks; exp(sink) joins the head's softmax sum and brings no
               // value. causal false: every row sees all rows of the pass, which starts at position 0.
  kGatedAct,   // in = [gate | up]: out = act(gate) * up; per group of `group` columns of in (0: the whole
               // row). interleaved: gate in even columns, up in odd ones. kSwigluClamped has its own formula,
               // below.
  kAct,        // out = act(in)
  kAdd,        // out = in + in2
  kMul,        // out = in * in2; where in2 has width 1, its value times the whole row
  kRoute,      // in = [experts] router logits; out = [2 * top_k]: the numbers of the top_k experts with the
           // largest logits (whole floats, largest first, of equals the lower number), then their weights as
           // `routing` says
  kExpertLinear,  // like kLinear for the experts that in2, a kRoute's out, names: weights (and biases,
                  // [experts, rows]) are stacks. Slot s of a row yields columns [s * W, (s + 1) * W) of out,
                  // W the stacked rows; it reads the whole of `in` if in.width is the weights' columns, else
                  // its own part of [top_k * columns]
  kExpertSum,     // in = [top_k * out.width], in2 = a kRoute's out: out = sum over slots of weight * part
  kSelectRows,    // out = the rows whose logits are asked for (the last one, or all)
  kMeanRows,      // out = one row, the mean of all rows of the pass: the pooling of an embedder
  kFirstRow,      // out = one row, the first of the pass
  kL2Norm,        // out = in / max(|in|, eps), over the row
  kSoftcap,       // out = cap * tanh(in / cap)
};

enum class Activation : uint8_t {
  kSilu,
  kGeluTanh,   // 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
  kGeluErf,    // 0.5 x (1 + erf(x / sqrt(2)))
  kGeluQuick,  // x sigmoid(1.702 x)
  kRelu,
  kSigmoid,
  kSwigluClamped,  // kGatedAct only (gpt-oss): g = min(gate, limit), u = clamp(up, -limit, limit);
                   // out = g sigmoid(alpha g) (u + 1)
};

/// Weights of the chosen experts.
enum class Routing : uint8_t {
  kSoftmaxOfChosen,  // softmax over the chosen logits (Mixtral, gpt-oss; Qwen3 with norm_topk_prob)
  kSoftmaxOverAll,   // their part of the softmax over all logits, not scaled up again
};

struct Node {
  Op op;
  View in, in2, out;
  std::vector<WeightId> weights;
  std::vector<WeightId> biases;   // empty, or as many as weights; kNone where there is none
  int32_t layer = -1;             // for taps, labels and errors; -1 outside the layers
  std::string tap;                // name of the step, e.g. "attn_norm"
  float eps = 0;                  // kRmsNorm, kLayerNorm, kL2Norm
  float weight_offset = 0;        // kRmsNorm: 1 where the file stores w and the model means w + 1
  float scale = 1;                // kEmbed, kAttention
  float softcap = 0;              // kAttention (0: none), kSoftcap
  uint32_t group = 0;             // kRmsNorm, kRope, kGatedAct: columns a group; kAttention: head_dim
  uint32_t rope_table = 0;        // kRope
  bool rope_interleaved = false;  // kRope: pairs (2i, 2i+1) instead of (i, i + rotary_dim / 2)
  uint32_t kv_layer = 0;          // kKvWrite, kAttention
  bool causal = true;             // kAttention
  Activation activation = Activation::kSilu;    // kGatedAct, kAct
  bool interleaved = false;                     // kGatedAct
  float limit = 0, alpha = 1;                   // kGatedAct: kSwigluClamped
  uint32_t top_k = 0;                           // kRoute, kExpertLinear, kExpertSum
  Routing routing = Routing::kSoftmaxOfChosen;  // kRoute
};

struct Graph {
  std::vector<Value> values;
  std::vector<Weight> weights;
  std::vector<RopeTable> rope_tables;
  std::vector<KvLayer> kv_layers;
  std::vector<Node> nodes;
  View logits;               // [selected rows, vocab]; of an embedder: [1, width], the text's embedding
  uint32_t max_context = 0;  // positions the model was made for
  uint32_t vocab = 0;        // token ids are below this; 0: logits.width
  bool embedder =
      false;  // the whole text goes through in one pass into an empty cache, with LogitRows::kLast

  uint32_t vocabulary() const { return vocab != 0 ? vocab : logits.width; }
};

std::string_view op_name(Op op);

}  // namespace doppler::graph
