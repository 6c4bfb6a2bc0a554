#include <algorithm>
#include <cstdlib>
#include <set>

#include "base/byte_source.h"
#include "formats/rdrr/json.h"
#include "formats/rdrr/manifest.h"
#include "formats/rdrr/manifest_check.h"

namespace doppler::rdrr {
namespace {

constexpr uint64_t kMaxWhole = uint64_t{1} << 53;
constexpr uint64_t kMaxId = 0x7fffffff;
constexpr uint64_t kMaxShards = 100000;  // five digits in a file name
constexpr size_t kMaxRank = 8;

void parse_version(Fields& fields, Manifest& manifest) {
  const Json value = fields.any("version");
  std::optional<double> version = value.as_number();
  if (const std::optional<std::string> text = value.as_string())
    version = std::strtod(text->c_str(), nullptr);
  if (!version || !(*version >= 1))
    fields.fail("\"version\": 1 wanted, got {}", value.type_name());
  else
    manifest.version = *version;
}

void parse_eos(Fields& fields, Manifest& manifest) {
  const Json value = fields.any("eos_token_id");
  if (!value || value.is_null()) return;
  const std::vector<Json> items = value.is_array() ? value.items() : std::vector<Json>{value};
  for (const Json item : items) {
    const std::optional<uint64_t> id = item.as_uint();
    if (!id || *id > kMaxId) return fields.fail("\"eos_token_id\": a token id or a list of them wanted");
    manifest.eos_ids.push_back(*id);
  }
  if (manifest.eos_ids.empty()) fields.fail("\"eos_token_id\": at least one id wanted, got an empty list");
}

/// The digest of a shard lies under "hash" or "blake3"; for BLAKE3 manifests the latter wins.
std::string shard_hash(Fields& fields, HashKind kind) {
  const std::optional<std::string> hash = fields.optional_string("hash"),
                                   blake3 = fields.optional_string("blake3");
  if (kind == HashKind::kBlake3 && blake3) return *blake3;
  return hash ? *hash : blake3.value_or("");
}

void parse_shards(Fields& fields, Manifest& manifest, Result<void>& status) {
  const std::vector<Json> items = fields.array("shards").items();
  if (items.empty() || items.size() > kMaxShards)
    return fields.fail("\"shards\": a list of 1 to {} shards wanted, got {}", kMaxShards, items.size());
  uint64_t offset = 0;
  std::set<std::string> names;
  for (size_t i = 0; i < items.size() && status; ++i) {
    Fields entry(items[i], fmt::format("{}, shard {}", fields.where(), i), status);
    Shard shard;
    const std::optional<uint64_t> index = entry.optional_uint("index", 0, kMaxShards);
    if (index && *index != i) entry.fail("\"index\": {} wanted (its place in the list), got {}", i, *index);
    const std::optional<std::string> alias = entry.optional_string("fileName"),
                                     name = entry.optional_string("filename");
    shard.filename = name && !name->empty() ? *name : alias.value_or("");
    if (!is_safe_filename(shard.filename))
      entry.fail("a plain file name wanted, got \"{}\"; a path may not leave the model's directory",
                 shard.filename);
    if (!names.insert(shard.filename).second) entry.fail("file \"{}\" is named twice", shard.filename);
    shard.size = entry.uint("size", 1, kMaxWhole);
    shard.hash = shard_hash(entry, manifest.hash);
    if (!is_hex_digest(shard.hash))
      entry.fail("64 lower-case hex digits wanted as hash, got {} characters", shard.hash.size());
    shard.offset = entry.optional_uint("offset", 0, kMaxWhole).value_or(offset);
    if (shard.offset != offset)
      entry.fail("\"offset\": {} wanted (the sizes before it), got {}", offset, shard.offset);
    offset += shard.size;
    if (offset > kMaxWhole) entry.fail("sizes up to here add up to {} bytes", offset);
    manifest.shards.push_back(std::move(shard));
  }
  manifest.total_size = fields.uint("totalSize", 1, kMaxWhole);
  if (status && manifest.total_size != offset)
    fields.fail("\"totalSize\": {} wanted (the sum of the shards), got {}", offset, manifest.total_size);
}

Span parse_span(Fields& entry) {
  const std::optional<uint64_t> shard = entry.optional_uint("shardIndex", 0, kMaxShards);
  const std::optional<uint64_t> alias = entry.optional_uint("shard", 0, kMaxShards);
  if (!shard && !alias) entry.fail("the shard it lies in is missing");
  Span span;
  span.shard = static_cast<uint32_t>(shard ? *shard : alias.value_or(0));
  span.offset = entry.uint("offset", 0, kMaxWhole);
  span.size = entry.uint("size", 1, kMaxWhole);
  return span;
}

/// A storage descriptor's shard spans win over the other ways to say where a tensor lies.
void parse_storage_spans(Json storage, const std::string& where, Tensor& tensor, Result<void>& status) {
  for (const Json item : storage.get("shardSpans").items()) {
    Fields entry(item, where + ", storage span", status);
    Span span;
    span.shard = static_cast<uint32_t>(entry.uint("shardIndex", 0, kMaxShards));
    span.offset = entry.uint("byteStart", 0, kMaxWhole);
    const uint64_t end = entry.uint("byteEnd", 0, kMaxWhole);
    if (end <= span.offset)
      entry.fail("byteEnd {} lies before byteStart {}", end, span.offset);
    else
      span.size = end - span.offset;
    tensor.spans.push_back(span);
  }
}

Tensor parse_tensor(const std::string& name, Json value, std::string_view where, Result<void>& status) {
  Tensor tensor;
  tensor.name = name;
  Fields entry(value, fmt::format("{}, tensor \"{}\"", where, name), status);
  tensor.dtype = entry.string("dtype");
  if (tensor.dtype.starts_with("functional"))
    entry.fail("its weights are generated from a descriptor, which this engine cannot do");
  tensor.role = entry.string("role");
  tensor.group = entry.optional_string("group").value_or("");
  tensor.layout = entry.optional_string("layout").value_or("");
  if (!tensor.layout.empty() && tensor.layout != "row" && tensor.layout != "column")
    entry.fail("\"layout\": row or column wanted, got \"{}\"", tensor.layout);
  tensor.shape = entry.uints("shape", kMaxWhole);
  tensor.original_shape = entry.uints("originalShape", kMaxWhole);
  if (tensor.shape.size() > kMaxRank)
    entry.fail("\"shape\": at most {} dimensions wanted, got {}", kMaxRank, tensor.shape.size());
  tensor.size = entry.uint("size", 1, kMaxWhole);

  parse_storage_spans(value.get("storage"), entry.where(), tensor, status);
  const std::vector<Json> spans = entry.array("spans").items();
  if (tensor.spans.empty()) {
    for (const Json item : spans) {
      Fields span(item, entry.where() + ", span", status);
      tensor.spans.push_back(parse_span(span));
    }
  }
  if (tensor.spans.empty())
    tensor.spans.push_back(parse_span(entry));
  else
    entry.any("shard"), entry.any("shardIndex"), entry.any("offset");
  tensor.extra = entry.rest();
  return tensor;
}

void parse_tensors(Json map, Manifest& manifest, std::string_view where, Result<void>& status) {
  for (const auto& [name, value] : map.members()) {
    if (!status) return;
    if (name.empty()) {
      status = doppler::fail(ErrorCode::kBadFile, "[{}] a tensor without a name", where);
      return;
    }
    manifest.tensors.push_back(parse_tensor(name, value, where, status));
  }
  std::sort(manifest.tensors.begin(), manifest.tensors.end(),
            [](const Tensor& a, const Tensor& b) { return a.name < b.name; });
}

void parse_groups(Json map, Manifest& manifest, const std::string& where, Result<void>& status) {
  for (const auto& [id, value] : map.members()) {
    Fields entry(value, fmt::format("{}, group \"{}\"", where, id), status);
    Group group;
    group.id = id;
    group.type = entry.string("type");
    group.version = entry.string("version");
    for (const uint64_t shard : entry.uints("shards", kMaxShards))
      group.shards.push_back(static_cast<uint32_t>(shard));
    group.tensors = entry.strings("tensors");
    group.hash = entry.string("hash");
    group.layer_index = entry.optional_uint("layerIndex", 0, kMaxId);
    group.expert_index = entry.optional_uint("expertIndex", 0, kMaxId);
    group.extra = entry.rest();
    manifest.groups.push_back(std::move(group));
  }
}

void parse_architecture(Json value, Manifest& manifest, const std::string& where, Result<void>& status) {
  if (!value.is_object()) return;  // early manifests may hold a name here
  Fields fields(value, where + ", architecture", status);
  Architecture a;
  a.layers = fields.uint("numLayers", 1, kMaxId);
  a.hidden = fields.uint("hiddenSize", 1, kMaxId);
  a.intermediate = fields.uint("intermediateSize", 1, kMaxId);
  a.heads = fields.uint("numAttentionHeads", 1, kMaxId);
  a.kv_heads = fields.uint("numKeyValueHeads", 1, kMaxId);
  a.head_dim = fields.uint("headDim", 1, kMaxId);
  a.vocab = fields.uint("vocabSize", 1, kMaxId);
  a.max_seq_len = fields.uint("maxSeqLen", 1, kMaxId);
  a.extra = fields.rest();
  manifest.architecture = std::move(a);
}

void parse_moe(Json value, Manifest& manifest, const std::string& where, Result<void>& status) {
  if (!value) return;
  Fields fields(value, where + ", moeConfig", status);
  MoeConfig moe;
  moe.experts = fields.uint("numExperts", 1, kMaxId);
  moe.experts_per_token = fields.uint("numExpertsPerToken", 1, moe.experts);
  moe.expert_format = fields.string("expertFormat");
  moe.extra = fields.rest();
  manifest.moe = std::move(moe);
}

void parse_tokenizer(Json value, Manifest& manifest, const std::string& where, Result<void>& status) {
  if (!value) return;
  Fields fields(value, where + ", tokenizer", status);
  TokenizerRef& t = manifest.tokenizer;
  t.type = fields.optional_string("type").value_or("");
  const std::optional<std::string> file = fields.optional_string("file"),
                                   model = fields.optional_string("sentencepieceModel");
  t.file = file ? *file : model.value_or("");
  if (!t.file.empty() && !is_safe_filename(t.file))
    fields.fail("a plain file name wanted, got \"{}\"", t.file);
  t.vocab_size = fields.optional_uint("vocabSize", 0, kMaxId);
  t.bos_id = fields.optional_uint("bosTokenId", 0, kMaxId);
  t.eos_id = fields.optional_uint("eosTokenId", 0, kMaxId);
  t.pad_id = fields.optional_uint("padTokenId", 0, kMaxId);
  t.unk_id = fields.optional_uint("unkTokenId", 0, kMaxId);
  t.add_bos = fields.optional_bool("addBosToken");
  t.add_eos = fields.optional_bool("addEosToken");
  t.extra = fields.rest();
}

void parse_side_files(Json list, Manifest& manifest, const std::string& where, Result<void>& status) {
  for (const Json item : list.items()) {
    Fields entry(item, where + ", sideFiles", status);
    SideFile file;
    file.filename = entry.string("filename");
    if (!is_safe_filename(file.filename)) entry.fail("a plain file name wanted, got \"{}\"", file.filename);
    file.size = entry.uint("size", 0, kMaxWhole);
    file.hash = entry.string("hash");
    if (!is_hex_digest(file.hash)) entry.fail("64 lower-case hex digits wanted as hash");
    manifest.side_files.push_back(std::move(file));
  }
}

/// integrityExtensions of contract version 1; what else it may hold ("lowerings") is not kept.
void parse_integrity(Json value, Manifest& manifest, const std::string& where, Result<void>& status) {
  const Json tree = value.get("blockMerkle");
  if (!tree) return;
  Fields fields(tree, where + ", integrityExtensions.blockMerkle", status);
  BlockMerkle merkle;
  merkle.block_size = fields.uint("blockSize", 1, kMaxWhole);
  for (const auto& [name, root] : fields.object("roots").members()) {
    const std::string text = root.as_string().value_or("");
    if (!text.starts_with("sha256:") || !is_hex_digest(std::string_view(text).substr(7)))
      fields.fail("root of \"{}\": sha256: and 64 hex digits wanted", name);
    merkle.roots.emplace_back(name, text);
  }
  manifest.merkle = std::move(merkle);
}

}  // namespace

Result<Manifest> parse_manifest(std::string_view json, std::string_view where) {
  DOPPLER_TRY(const JsonDocument document, JsonDocument::parse(json, where));
  Result<void> status;
  Manifest manifest;
  const std::string place(where);
  Fields fields(document.root(), place, status);
  if (!status) return forward_error(status);

  parse_version(fields, manifest);
  manifest.model_id = fields.string("modelId");
  manifest.model_type = fields.string("modelType");
  manifest.quantization = fields.string("quantization");
  const std::string hash = fields.string("hashAlgorithm");
  if (const std::optional<HashKind> kind = hash_kind_from_name(hash))
    manifest.hash = *kind;
  else
    fields.fail("\"hashAlgorithm\": sha256 or blake3 wanted, got \"{}\"", hash);
  parse_eos(fields, manifest);
  parse_shards(fields, manifest, status);
  parse_architecture(fields.any("architecture"), manifest, place, status);
  parse_moe(fields.object("moeConfig"), manifest, place, status);
  const Json inference = fields.object("inference");
  if (!inference) fields.fail("\"inference\": an object wanted, got nothing");
  parse_inference(inference, manifest.inference, place, status);
  parse_tokenizer(fields.object("tokenizer"), manifest, place, status);
  parse_side_files(fields.array("sideFiles"), manifest, place, status);
  parse_integrity(fields.object("integrityExtensions"), manifest, place, status);
  parse_groups(fields.object("groups"), manifest, place, status);

  const Json tensors = fields.object("tensors");
  manifest.tensors_file = fields.optional_string("tensorsFile").value_or("");
  if (!tensors && manifest.tensors_file.empty())
    fields.fail("\"tensors\" or \"tensorsFile\" wanted, got neither");
  if (!manifest.tensors_file.empty() && !is_safe_filename(manifest.tensors_file))
    fields.fail("\"tensorsFile\": a plain file name wanted, got \"{}\"", manifest.tensors_file);
  if (tensors) {
    manifest.tensors_file.clear();
    parse_tensors(tensors, manifest, where, status);
  }
  fields.any("tensorCount");
  manifest.extra = fields.rest();
  DOPPLER_CHECK_OK(status);
  if (tensors) DOPPLER_CHECK_OK(check_tensors(manifest, where));
  return manifest;
}

Result<void> parse_tensors_file(Manifest& manifest, std::string_view json, std::string_view where) {
  DOPPLER_TRY(const JsonDocument document, JsonDocument::parse(json, where));
  Result<void> status;
  Fields fields(document.root(), std::string(where), status);
  parse_tensors(document.root(), manifest, where, status);
  DOPPLER_CHECK_OK(status);
  return check_tensors(manifest, where);
}

Result<Manifest> read_manifest(const std::string& directory) {
  const std::string path = fmt::format("{}/{}", directory, kManifestFile);
  DOPPLER_TRY(const std::string text, read_text_file(path, kMaxManifestBytes));
  DOPPLER_TRY(Manifest manifest, parse_manifest(text, path));
  if (!manifest.tensors_file.empty()) {
    const std::string map_path = fmt::format("{}/{}", directory, manifest.tensors_file);
    DOPPLER_TRY(const std::string map, read_text_file(map_path, kMaxManifestBytes));
    DOPPLER_CHECK_OK(parse_tensors_file(manifest, map, map_path));
  }
  return manifest;
}

const Tensor* Manifest::find(std::string_view name) const {
  const auto at =
      std::lower_bound(tensors.begin(), tensors.end(), name,
                       [](const Tensor& tensor, std::string_view key) { return tensor.name < key; });
  return at != tensors.end() && at->name == name ? &*at : nullptr;
}

}  // namespace doppler::rdrr
