#pragma once
// manifest.json of an RDRR directory as plain data. Both generations are read: the early one (0.1.0) and the
// current one (0.5.1); what only one of them has is filled with the value that means "off" (docs/rdrr.md).
// Members this engine has no use for are kept as text, so that reading and writing loses nothing.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/hash.h"
#include "base/result.h"
#include "formats/rdrr/json.h"

namespace doppler::rdrr {

inline constexpr std::string_view kManifestFile = "manifest.json";
inline constexpr uint64_t kMaxManifestBytes = 32u << 20;

/// One shard file: raw tensor bytes, no header.
struct Shard {
  std::string filename;
  uint64_t size = 0;
  uint64_t offset = 0;  // in the concatenation of all shards
  std::string hash;     // 64 lower-case hex digits of the whole file
};

/// A run of bytes inside one shard.
struct Span {
  uint32_t shard = 0;
  uint64_t offset = 0;
  uint64_t size = 0;
};

struct Tensor {
  std::string name;
  std::string dtype;                     // as written: "F16", "Q4_K_M", …
  std::vector<uint64_t> shape;           // row-major, output dimension first
  std::vector<uint64_t> original_shape;  // before the transposition of a column layout
  std::string role;                      // embedding, lm_head, norm, matmul, expert, router, conv, other
  std::string group;                     // "" if none
  std::string layout;                    // "row", "column", or "" (row)
  uint64_t size = 0;
  std::vector<Span> spans;  // at least one, in order; sizes add up to `size`
  RawMembers extra;
};

struct Group {
  std::string id;    // embed, layer.N, head, layer.N.expert.E, …
  std::string type;  // embed, layer, head, expert, shared, …
  std::string version;
  std::vector<uint32_t> shards;  // ascending
  std::vector<std::string> tensors;
  std::string hash;  // of the tensors' bytes in this order
  std::optional<uint64_t> layer_index, expert_index;
  RawMembers extra;
};

struct Architecture {
  uint64_t layers = 0, hidden = 0, intermediate = 0, heads = 0, kv_heads = 0, head_dim = 0, vocab = 0,
           max_seq_len = 0;
  RawMembers extra;
};

struct MoeConfig {
  uint64_t experts = 0, experts_per_token = 0;
  std::string expert_format;  // mixtral, gpt-oss, gemma4
  RawMembers extra;
};

struct Attention {
  std::optional<double> query_pre_attn_scalar, logit_softcapping;
  std::optional<uint64_t> sliding_window;
  bool query_key_norm = false, causal = true, bias = false, output_gate = false, value_norm = false;
  RawMembers extra;
};

struct Normalization {
  std::optional<double> rms_eps;
  std::optional<bool> weight_offset;  // the model multiplies by w + 1
  bool post_attention = false, pre_feedforward = false, post_feedforward = false;
  RawMembers extra;
};

struct FeedForward {
  std::string activation;  // silu, gelu, geglu, swiglu, relu
  bool gated = true, double_wide = false;
  std::optional<double> swiglu_limit;
  std::string branch_mode = "auto";
  RawMembers extra;
};

struct Rope {
  std::optional<double> theta, local_theta, partial_rotary_factor;
  std::optional<std::string> scaling_type;
  double scaling_factor = 1;
  bool interleaved = false, mrope_interleaved = false;
  RawMembers extra;
};

struct Output {
  bool tied = false, scale_embeddings = false, embedding_transpose = false;
  std::optional<double> final_softcapping, embedding_scale;
  double logit_input_scale = 1;
  std::optional<uint64_t> embedding_vocab;
  RawMembers extra;
};

/// Which layers see everything: "every_n": layer % period == offset; "alternating": odd or even ones;
/// "custom": by name; "uniform": all alike.
struct LayerPattern {
  std::string type = "uniform";
  std::optional<std::string> global_pattern;
  std::optional<uint64_t> period, offset;
  std::vector<std::string> layer_types;
  double residual_branch_scale = 1;
  RawMembers extra;
};

struct ChatTemplate {
  std::optional<std::string> type;  // chatml, gemma, llama3, …
  bool enabled = false;
  RawMembers extra;
};

struct Inference {
  std::optional<std::string> schema;
  Attention attention;
  Normalization normalization;
  FeedForward ffn;
  Rope rope;
  Output output;
  LayerPattern layer_pattern;
  ChatTemplate chat_template;
  RawMembers extra;  // session, execution, presetId, …
};

struct TokenizerRef {
  std::string type;  // bundled, sentencepiece, huggingface; "" if the manifest names none
  std::string file;  // tokenizer.json or tokenizer.model
  std::optional<uint64_t> vocab_size, bos_id, eos_id, pad_id, unk_id;
  std::optional<bool> add_bos, add_eos;
  RawMembers extra;
};

/// A small file beside the shards whose digest this project's writer records (other readers ignore it).
struct SideFile {
  std::string filename;
  uint64_t size = 0;
  std::string hash;
};

/// Per tensor: root of the tree of SHA-256 digests over its blocks.
struct BlockMerkle {
  uint64_t block_size = 0;
  std::vector<std::pair<std::string, std::string>> roots;  // tensor name, "sha256:" + hex
};

struct Manifest {
  double version = 1;
  std::string model_id, model_type, quantization;
  HashKind hash = HashKind::kSha256;
  uint64_t total_size = 0;
  std::vector<uint64_t> eos_ids;
  std::optional<Architecture> architecture;
  std::optional<MoeConfig> moe;
  Inference inference;
  TokenizerRef tokenizer;
  std::vector<Shard> shards;
  std::string tensors_file;  // "" if the tensors are in the manifest itself
  std::vector<Tensor> tensors;
  std::vector<Group> groups;
  std::optional<BlockMerkle> merkle;
  std::vector<SideFile> side_files;
  RawMembers extra;

  const Tensor* find(std::string_view name) const;  // tensors are sorted by name
};

/// Parses and checks a manifest: types, ranges, digests, shard offsets and sums, file names (no path may
/// leave the directory), spans that cover a tensor exactly and lie in their shards, tensors that do not
/// overlap, sizes that follow from shape and dtype, groups. `where` names the file in messages. If the
/// manifest names a tensors file, the tensors come with parse_tensors_file() instead and the manifest's own
/// list stays empty.
Result<Manifest> parse_manifest(std::string_view json, std::string_view where);

/// Reads the external tensor map of a manifest and runs the same checks.
Result<void> parse_tensors_file(Manifest& manifest, std::string_view json, std::string_view where);

/// Writes a manifest that both generations of readers accept; keys come in a fixed order.
std::string to_json(const Manifest& manifest);

/// Reads DIRECTORY/manifest.json and, where it is named, the external tensor map.
Result<Manifest> read_manifest(const std::string& directory);

/// The storage type of a tensor; nullopt for one this build does not know.
std::optional<DType> tensor_dtype(const Tensor& tensor);

/// True for a name that stays inside its directory: one path component, printable, not "." or "..".
bool is_safe_filename(std::string_view name);

}  // namespace doppler::rdrr
