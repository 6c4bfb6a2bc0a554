#include "engine/convert.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/quants.h"
#include "formats/gguf/gguf.h"
#include "formats/rdrr/rdrr.h"
#include "formats/rdrr/rdrr_files.h"
#include "formats/rdrr/verify.h"
#include "model/config_rdrr.h"
#include "model/families.h"
#include "model/names.h"
#include "pipelines/text/text_files.h"

using namespace doppler;
using namespace doppler::test;

namespace {

constexpr const char* kModels[] = {"SmolLM2-135M-Instruct.Q4_1.gguf", "gemma-3-270m-q4_k_m.gguf"};

std::string model_path(const std::string& file) {
  std::string directory;
  if (const char* given = std::getenv("DOPPLER_MODELS"))
    directory = given;
  else if (const char* cache = std::getenv("XDG_CACHE_HOME"))
    directory = std::string(cache) + "/doppler/models";
  else
    directory = std::string(std::getenv("HOME") ? std::getenv("HOME") : ".") + "/.cache/doppler/models";
  const std::string path = directory + "/" + file;
  REQUIRE_MESSAGE(std::filesystem::exists(path),
                  path << " is missing: run `make models` or set DOPPLER_MODELS");
  return path;
}

/// Row `row` of a Hugging Face q or k projection in GGUF's order for LLaMA.
uint64_t gguf_row(uint64_t row, uint64_t head_dim) {
  const uint64_t head = row / head_dim, r = row % head_dim, half = head_dim / 2;
  return head * head_dim + (r < half ? 2 * r : 2 * (r - half) + 1);
}

using model::Role;
constexpr Role kLayerRoles[] = {Role::kAttnNorm,   Role::kQ,     Role::kK,       Role::kV,
                                Role::kQNorm,      Role::kKNorm, Role::kAttnOut, Role::kPostAttnNorm,
                                Role::kFfnNorm,    Role::kGate,  Role::kUp,      Role::kDown,
                                Role::kPostFfnNorm};

/// Every tensor of the GGUF is in the RDRR, bit for bit (q and k rows of LLaMA in their other order).
void check_same_weights(const gguf::GgufFile& from, const model::ModelConfig& gguf_config,
                        const rdrr::RdrrModel& to, const model::ModelConfig& rdrr_config) {
  size_t compared = 0;
  const auto compare = [&](Role role, uint32_t layer) {
    const TensorInfo* a = from.find(model::weight_name(gguf_config, role, layer));
    if (!a) return;
    const TensorInfo* b = to.find(model::weight_name(rdrr_config, role, layer));
    REQUIRE(b);
    CAPTURE(b->name);
    REQUIRE(a->dtype == b->dtype);
    REQUIRE(a->shape == b->shape);
    const auto x = from.bytes(*a), y = to.bytes(*b);
    REQUIRE(x);
    REQUIRE(y);
    REQUIRE(x->data.size() == y->data.size());
    const bool permuted = gguf_config.rope_interleaved && (role == Role::kQ || role == Role::kK);
    const uint64_t stride = row_bytes(a->dtype, a->columns());
    bool same = true;
    for (uint64_t r = 0; r < a->rows(); ++r) {
      const uint64_t other = permuted ? gguf_row(r, gguf_config.head_dim) : r;
      same = same && std::memcmp(x->data.data() + other * stride, y->data.data() + r * stride, stride) == 0;
    }
    CHECK(same);
    ++compared;
    from.release(*a);
    to.release(*b);
  };
  compare(Role::kEmbedding, 0);
  compare(Role::kFinalNorm, 0);
  compare(Role::kHead, 0);
  for (uint32_t layer = 0; layer < gguf_config.layers; ++layer)
    for (const Role role : kLayerRoles)
      if (gguf_config.sandwich_norms || (role != Role::kPostAttnNorm && role != Role::kPostFfnNorm))
        compare(role, layer);
  CHECK(compared == from.tensors().size());
  CHECK(compared == to.tensors().size());
}

void check_same_config(const model::ModelConfig& a, const model::ModelConfig& b) {
  CHECK(a.family == b.family);
  CHECK(a.layers == b.layers);
  CHECK(a.hidden == b.hidden);
  CHECK(a.ffn == b.ffn);
  CHECK(a.heads == b.heads);
  CHECK(a.kv_heads == b.kv_heads);
  CHECK(a.head_dim == b.head_dim);
  CHECK(a.vocab == b.vocab);
  CHECK(a.max_context == b.max_context);
  CHECK(a.rms_eps == b.rms_eps);
  CHECK(a.norm_weight_offset == b.norm_weight_offset);
  CHECK(a.sandwich_norms == b.sandwich_norms);
  CHECK(a.qk_norm == b.qk_norm);
  CHECK(a.tied_head == b.tied_head);
  CHECK(a.embedding_scale == b.embedding_scale);
  CHECK(a.activation == b.activation);
  CHECK(a.attention_scale == b.attention_scale);
  CHECK(a.rope_base == b.rope_base);
  CHECK(a.rope_base_local == b.rope_base_local);
  CHECK(a.rotary_dim == b.rotary_dim);
  CHECK(a.window == b.window);
  CHECK(a.sliding == b.sliding);
  CHECK(a.end_ids == b.end_ids);
}

}  // namespace

TEST_CASE("real models convert bit-exact, verify and read back with the same configuration and token ids") {
  for (const char* file : kModels) {
    for (const uint64_t shard_bytes :
         {uint64_t{64} << 20, file == kModels[0] ? uint64_t{1000003} : uint64_t{10000019}}) {
      CAPTURE(file);
      CAPTURE(shard_bytes);
      TemporaryDirectory temporary;
      const std::string source = model_path(file), directory = temporary / "out";
      ConvertOptions options;
      options.shard_size_bytes = shard_bytes;
      uint64_t last = 0, total = 0;
      options.progress = [&](std::string_view, uint64_t done, uint64_t all) {
        CHECK(done >= last);
        last = done;
        total = all;
        return true;
      };
      const auto report = convert(source, directory, options);
      REQUIRE_MESSAGE(report, (report ? "" : report.error().message));
      CHECK(last == total);
      CHECK(to_text(*report).find("cannot use every tensor") != std::string::npos);

      const auto verified = rdrr::verify(directory, nullptr);
      REQUIRE(verified);
      CHECK_MESSAGE(verified->ok(), verified->summary());
      CHECK(verified->shards == (report->bytes + shard_bytes - 1) / shard_bytes);

      const auto gguf = gguf::GgufFile::open(source);
      const auto rdrr = rdrr::RdrrModel::open(directory);
      REQUIRE(gguf);
      REQUIRE_MESSAGE(rdrr, (rdrr ? "" : rdrr.error().message));
      const auto a = model::config_from_gguf(**gguf), b = model::config_from_rdrr(**rdrr);
      REQUIRE(a);
      REQUIRE_MESSAGE(b, (b ? "" : b.error().message));
      check_same_config(*a, *b);
      CHECK_FALSE(b->rope_interleaved);
      CHECK(model::build_graph(*b, **rdrr));
      check_same_weights(**gguf, *a, **rdrr, *b);

      const auto before = tokenizer_from_gguf(**gguf), after = tokenizer_from_directory(directory);
      REQUIRE(before);
      REQUIRE_MESSAGE(after, (after ? "" : after.error().message));
      const EncodeOptions encoding{BosRule::kModel, true};
      for (const char* text : {"Hello, world!  Two spaces\n\n\tand tabs", "naïve café 12345 日本語 🙂",
                               "<|im_start|>user\nhi<|im_end|>", "<start_of_turn>model"})
        CHECK((*before)->encode(text, encoding) == (*after)->encode(text, encoding));
      CHECK((*before)->vocab().add_bos == (*after)->vocab().add_bos);
      CHECK((*before)->bos() == (*after)->bos());
      CHECK((*before)->eos() == (*after)->eos());
    }
  }
}

TEST_CASE("converting can stop, and leaves nothing behind") {
  TemporaryDirectory temporary;
  ConvertOptions options;
  int calls = 0;
  options.progress = [&](std::string_view, uint64_t, uint64_t) { return ++calls < 5; };
  const auto report = convert(model_path(kModels[0]), temporary / "out", options);
  REQUIRE_FALSE(report);
  CHECK(report.error().code == ErrorCode::kCancelled);
  CHECK(std::filesystem::is_empty(temporary.path()));
}

TEST_CASE("--compat writes only what the original reads") {
  for (const char* file : kModels) {
    for (const char* quant : {"keep", "q4_k_m"}) {
      CAPTURE(file);
      CAPTURE(quant);
      TemporaryDirectory temporary;
      ConvertOptions options;
      options.compat = true;
      options.quant = quant;
      const auto report = convert(model_path(file), temporary / "out", options);
      REQUIRE_MESSAGE(report, (report ? "" : report.error().message));
      for (const TypeChange& change : report->types)
        CHECK_MESSAGE(
            (change.to == "F32" || change.to == "F16" || change.to == "Q4_K" || change.to == "Q6_K"),
            change.to);
      const auto model = rdrr::RdrrModel::open(temporary / "out");
      REQUIRE(model);
      CHECK(rdrr::verify(temporary / "out", nullptr)->ok());
      const auto config = model::config_from_rdrr(**model);
      REQUIRE(config);
      CHECK(model::build_graph(*config, **model));
      const rdrr::Manifest& manifest = (*model)->manifest();
      CHECK_FALSE(manifest.inference.schema);
      CHECK(manifest.tokenizer.type == "bundled");
      CHECK_FALSE(manifest.eos_ids.empty());
    }
  }
}

TEST_CASE("requantised weights stay close, also from one RDRR directory to another") {
  const auto original = rdrr::RdrrModel::open(golden_rdrr("gemma3-f16"));
  REQUIRE(original);
  struct Case {
    const char* quant;
    double worst;  // relative RMS error
  };
  for (const Case one : {Case{"f32", 0},
                         {"bf16", 3e-3},
                         {"q8_0", 8e-3},
                         {"q5_0", 0.06},
                         {"q4_0", 0.12},
                         {"q4_k_m", 0.12},
                         {"q6_k", 0.03}}) {
    CAPTURE(one.quant);
    TemporaryDirectory temporary;
    ConvertOptions options;
    options.quant = one.quant;
    options.hash = HashKind::kBlake3;
    const auto report = convert(golden_rdrr("gemma3-f16"), temporary / "out", options);
    REQUIRE_MESSAGE(report, (report ? "" : report.error().message));
    const auto model = rdrr::RdrrModel::open(temporary / "out");
    REQUIRE_MESSAGE(model, (model ? "" : model.error().message));
    CHECK(rdrr::verify(temporary / "out", nullptr)->ok());
    CHECK(model::config_from_rdrr(**model));
    const std::string name = "model.layers.2.mlp.down_proj.weight";
    const TensorInfo *a = (*original)->find(name), *b = (*model)->find(name);
    REQUIRE(b);
    const auto x = (*original)->bytes(*a), y = (*model)->bytes(*b);
    double error = 0, power = 0;
    for (uint64_t r = 0; r < a->rows(); ++r) {
      std::vector<float> u(256), v(256);
      dequantize(a->dtype, x->data.data() + r * row_bytes(a->dtype, 96), 96, u.data());
      const uint32_t block = dtype_info(b->dtype).block_elems;
      dequantize(b->dtype, y->data.data() + r * row_bytes(b->dtype, 96), (96 + block - 1) / block * block,
                 v.data());
      for (size_t c = 0; c < 96; ++c) {
        error += (u[c] - v[c]) * (u[c] - v[c]);
        power += u[c] * u[c];
      }
    }
    CHECK(std::sqrt(error / power) <= one.worst);
    // Norms are never touched.
    const TensorInfo* norm = (*model)->find("model.norm.weight");
    REQUIRE(norm);
    CHECK(norm->dtype == DType::kF16);
  }
}

TEST_CASE("directories of the original copy bit-exact and keep their configuration") {
  for (const char* name : {"gemma3-f16", "gemma3-q4k", "gemma3-early", "llama-f16"}) {
    CAPTURE(name);
    TemporaryDirectory temporary;
    const auto report = convert(golden_rdrr(name), temporary / "out", {});
    REQUIRE_MESSAGE(report, (report ? "" : report.error().message));
    const auto before = rdrr::RdrrModel::open(golden_rdrr(name)),
               after = rdrr::RdrrModel::open(temporary / "out");
    REQUIRE(after);
    const auto a = model::config_from_rdrr(**before), b = model::config_from_rdrr(**after);
    REQUIRE(a);
    REQUIRE(b);
    check_same_config(*a, *b);
    for (const TensorInfo& tensor : (*before)->tensors()) {
      const TensorInfo* copy = (*after)->find(tensor.name);
      REQUIRE(copy);
      const auto x = (*before)->bytes(tensor), y = (*after)->bytes(*copy);
      REQUIRE(x->data.size() == y->data.size());
      CHECK(std::memcmp(x->data.data(), y->data.data(), x->data.size()) == 0);
    }
  }
}

TEST_CASE("what cannot be converted is one clear error") {
  TemporaryDirectory temporary;
  const auto refused = [&](const std::string& source, const ConvertOptions& options, ErrorCode code,
                           const char* says) {
    const auto report = convert(source, temporary / "out", options);
    REQUIRE_FALSE(report);
    CHECK(report.error().code == code);
    CHECK_MESSAGE(report.error().message.find(says) != std::string::npos, report.error().message);
    CHECK(std::filesystem::is_empty(temporary.path()));
  };
  refused(temporary / "absent.gguf", {}, ErrorCode::kNotFound, "absent.gguf");
  refused(std::string(DOPPLER_GOLDEN_DIR), {}, ErrorCode::kBadInput, "manifest.json");
  ConvertOptions options;
  options.quant = "q9_x";
  refused(golden_rdrr("llama-f16"), options, ErrorCode::kBadInput, "q9_x");
  options.quant = "q8_0";
  options.compat = true;
  refused(golden_rdrr("llama-f16"), options, ErrorCode::kBadInput, "--compat");
}
