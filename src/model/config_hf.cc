#include "model/config_hf.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/text.h"
#include "model/hf_keys.h"
#include "model/hf_pooling.h"
#include "model/hf_rope.h"
#include "model/limits.h"
#include "model/names.h"

namespace doppler::model {
namespace {

namespace fs = std::filesystem;

// A model type and what transformers takes where its config.json is silent.
struct ModelType {
  const char* name;
  Family family;
  bool tied = false;
  uint32_t head_dim = 0;  // 0: hidden / heads
  float eps = 1e-6f;
  float rope_base = 10000.0f;
};
constexpr ModelType kModelTypes[] = {
    {"llama", Family::kLlama},
    {"mistral", Family::kMistral},
    {"mixtral", Family::kMixtral, false, 0, 1e-5f, 1e6f},
    {"gpt2", Family::kGpt2, true, 0, 1e-5f},
    {"qwen2", Family::kQwen2},
    {"qwen3", Family::kQwen3, false, 128},
    {"qwen3_moe", Family::kQwen3Moe, false, 128},
    {"gemma", Family::kGemma, true, 256},
    {"gemma2", Family::kGemma2, true, 256},
    {"gemma3_text", Family::kGemma3, true, 256, 1e-6f, 1e6f},
    {"gemma3", Family::kGemma3, true, 256, 1e-6f, 1e6f},  // with images: its text part
    {"gpt_oss", Family::kGptOss, false, 64, 1e-5f, 150000.0f},
    {"phi3", Family::kPhi3, false, 0, 1e-5f},
    {"bert", Family::kBert, true, 0, 1e-12f},
};

struct NamedActivation {
  const char* name;
  graph::Activation activation;
};
constexpr NamedActivation kActivations[] = {
    {"silu", graph::Activation::kSilu},
    {"swish", graph::Activation::kSilu},
    {"gelu", graph::Activation::kGeluErf},
    {"gelu_new", graph::Activation::kGeluTanh},
    {"gelu_fast", graph::Activation::kGeluTanh},
    {"gelu_pytorch_tanh", graph::Activation::kGeluTanh},
    {"quick_gelu", graph::Activation::kGeluQuick},
    {"relu", graph::Activation::kRelu},
};

class Reader {
 public:
  Reader(const std::string& directory, const TensorSource& source, const HfKeys& root)
      : directory_(directory), source_(source), root_(root), keys_(root) {}

  Result<ModelConfig> read() {
    DOPPLER_CHECK_OK(read_type());
    if (c_.family == Family::kGpt2)
      DOPPLER_CHECK_OK(read_gpt2_sizes());
    else
      DOPPLER_CHECK_OK(read_sizes());
    apply_family(c_);
    DOPPLER_CHECK_OK(read_layers());
    DOPPLER_CHECK_OK(read_activation());
    DOPPLER_CHECK_OK(read_attention());
    if (!c_.learned_positions) DOPPLER_CHECK_OK(read_hf_rope(keys_, type_->rope_base, c_));
    DOPPLER_CHECK_OK(read_windows());
    DOPPLER_CHECK_OK(read_experts());
    DOPPLER_CHECK_OK(read_end_ids());
    DOPPLER_CHECK_OK(read_hf_pooling(directory_, c_));
    return std::move(c_);
  }

 private:
  template <class... Args>
  tl::unexpected<Error> bad(fmt::format_string<Args...> format, Args&&... args) const {
    return fail(ErrorCode::kBadFile, "[model] {}: {}", root_.path(),
                fmt::format(format, std::forward<Args>(args)...));
  }
  template <class... Args>
  tl::unexpected<Error> unsupported(fmt::format_string<Args...> format, Args&&... args) const {
    return fail(ErrorCode::kUnsupported, "[model] {}: {}", root_.path(),
                fmt::format(format, std::forward<Args>(args)...));
  }

  Result<void> read_type() {
    DOPPLER_TRY(std::string type, root_.text("model_type"));
    if (std::optional<HfKeys> text = root_.child("text_config")) {
      keys_ = *text;
      DOPPLER_TRY(const std::string inner, keys_.text("model_type"));
      if (!inner.empty()) type = inner;
    }
    const auto* found = std::find_if(std::begin(kModelTypes), std::end(kModelTypes),
                                     [&](const ModelType& t) { return type == t.name; });
    if (found == std::end(kModelTypes)) {
      std::string known;
      for (const ModelType& t : kModelTypes) known += (known.empty() ? "" : ", ") + std::string(t.name);
      return unsupported("model_type of {} wanted, got \"{}\"", known, printable(type));
    }
    type_ = found;
    c_.family = found->family;
    c_.names = NameStyle::kHuggingFace;
    DOPPLER_TRY(c_.name, root_.text("_name_or_path"));
    if (c_.name.empty()) c_.name = fs::path(directory_).lexically_normal().filename().string();
    if (c_.name.empty()) c_.name = found->name;
    if (!find_prefixes(c_, source_)) {
      c_.name_prefix.clear();
      c_.body = c_.family == Family::kGpt2 || c_.family == Family::kBert ? "" : "model.";
      return bad("tensor {} wanted, the folder has none; it is incomplete",
                 weight_name(c_, Role::kEmbedding));
    }
    return {};
  }

  Result<void> read_sizes() {
    DOPPLER_TRY(c_.layers, keys_.count("num_hidden_layers", 1, kMaxLayers));
    DOPPLER_TRY(c_.hidden, keys_.count("hidden_size", 1, kMaxWidth));
    DOPPLER_TRY(c_.ffn, keys_.count("intermediate_size", 1, kMaxWidth));
    DOPPLER_TRY(c_.heads, keys_.count("num_attention_heads", 1, kMaxHeads));
    DOPPLER_TRY(const std::optional<uint32_t> kv_heads,
                keys_.find_count("num_key_value_heads", 1, kMaxHeads));
    c_.kv_heads = kv_heads.value_or(c_.heads);
    DOPPLER_TRY(const std::optional<uint32_t> head_dim, keys_.find_count("head_dim", 1, kMaxHeadDim));
    c_.head_dim = head_dim.value_or(type_->head_dim);
    DOPPLER_TRY(c_.max_context, keys_.count("max_position_embeddings", 1, kMaxContext));
    DOPPLER_TRY(const std::optional<float> eps,
                keys_.find_number(c_.family == Family::kBert ? "layer_norm_eps" : "rms_norm_eps", 0, 1));
    c_.rms_eps = eps.value_or(type_->eps);
    return check_sizes("hidden_size");
  }

  Result<void> read_gpt2_sizes() {
    DOPPLER_TRY(c_.layers, keys_.count("n_layer", 1, kMaxLayers));
    DOPPLER_TRY(c_.hidden, keys_.count("n_embd", 1, kMaxWidth / 4));
    DOPPLER_TRY(c_.heads, keys_.count("n_head", 1, kMaxHeads));
    DOPPLER_TRY(c_.max_context, keys_.count("n_positions", 1, kMaxContext));
    DOPPLER_TRY(const std::optional<uint32_t> ffn, keys_.find_count("n_inner", 1, kMaxWidth));
    DOPPLER_TRY(const std::optional<float> eps, keys_.find_number("layer_norm_epsilon", 0, 1));
    DOPPLER_TRY(const bool scaled, keys_.flag("scale_attn_weights", true));
    DOPPLER_TRY(const bool by_layer, keys_.flag("scale_attn_by_inverse_layer_idx", false));
    if (!scaled || by_layer) return unsupported("attention scaled by 1 / sqrt(head size) alone wanted");
    c_.ffn = ffn.value_or(4 * c_.hidden);
    c_.kv_heads = c_.heads;
    c_.rms_eps = eps.value_or(type_->eps);
    return check_sizes("n_embd");
  }

  Result<void> check_sizes(std::string_view hidden_key) {
    if (c_.head_dim == 0 && c_.hidden % c_.heads != 0)
      return bad("{} a multiple of {} heads wanted, got {}", hidden_key, c_.heads, c_.hidden);
    if (c_.head_dim == 0) c_.head_dim = c_.hidden / c_.heads;
    if (c_.heads % c_.kv_heads != 0)
      return bad("num_key_value_heads that divides {} heads wanted, got {}", c_.heads, c_.kv_heads);
    if (c_.head_dim % 2 != 0) return unsupported("an even head size wanted, got {}", c_.head_dim);
    if (c_.family == Family::kBert && c_.head_dim * c_.heads != c_.hidden)
      return bad("{} heads of {} to fill {} wanted, got {}", c_.heads, c_.head_dim, hidden_key, c_.hidden);

    const TensorInfo* embedding = source_.find(weight_name(c_, Role::kEmbedding));
    if (embedding->shape.size() != 2 || embedding->rows() == 0 || embedding->rows() > kMaxVocab ||
        embedding->columns() != c_.hidden)
      return bad("{} of shape [vocabulary up to {}, {}] wanted, got {} x {}", embedding->name, kMaxVocab,
                 c_.hidden, embedding->rows(), embedding->columns());
    c_.vocab = static_cast<uint32_t>(embedding->rows());
    DOPPLER_TRY(const std::optional<uint32_t> stated, keys_.find_count("vocab_size", 1, kMaxVocab));
    if (stated && *stated != c_.vocab)
      return bad("vocab_size of {}, the rows of {}, wanted, got {}", c_.vocab, embedding->name, *stated);
    DOPPLER_TRY(const bool tied, keys_.flag("tie_word_embeddings", type_->tied));
    c_.tied_head = tied || !source_.find(weight_name(c_, Role::kHead));
    return {};
  }

  Result<void> read_layers() {
    const Role first = c_.family == Family::kBert ? Role::kPostAttnNorm : Role::kAttnNorm;
    uint32_t present = 0;
    while (present <= c_.layers && source_.find(weight_name(c_, first, present))) ++present;
    if (present == c_.layers) return {};
    return bad("{} layers wanted, the tensors hold {}{}", c_.layers, present > c_.layers ? "at least " : "",
               present);
  }

  Result<void> read_activation() {
    if (c_.family == Family::kGptOss) {
      DOPPLER_TRY(const std::optional<float> limit, keys_.find_number("swiglu_limit", 1e-3, 1e6));
      DOPPLER_TRY(const std::optional<float> alpha, keys_.find_number("swiglu_alpha", 1e-3, 1e6));
      c_.act_limit = limit.value_or(c_.act_limit);
      c_.act_alpha = alpha.value_or(c_.act_alpha);
      return {};
    }
    const bool gemma =
        c_.family == Family::kGemma || c_.family == Family::kGemma2 || c_.family == Family::kGemma3;
    DOPPLER_TRY(std::string name,
                keys_.text(c_.family == Family::kGpt2 ? "activation_function" : "hidden_act"));
    if (gemma) {
      DOPPLER_TRY(name,
                  keys_.text("hidden_activation"));  // "hidden_act" of early files says "gelu", never meant
    }
    if (name.empty()) return {};  // the family's own
    const auto* found = std::find_if(std::begin(kActivations), std::end(kActivations),
                                     [&](const NamedActivation& a) { return name == a.name; });
    if (found == std::end(kActivations))
      return unsupported("activation \"{}\" does not run", printable(name));
    c_.activation = found->activation;
    return {};
  }

  Result<void> read_attention() {
    const bool by_scalar = c_.family == Family::kGemma2 || c_.family == Family::kGemma3;
    DOPPLER_TRY(const std::optional<float> scalar, keys_.find_number("query_pre_attn_scalar", 1e-6, 1e9));
    const float divisor = by_scalar ? scalar.value_or(256.0f) : static_cast<float>(c_.head_dim);
    c_.attention_scale = 1.0f / std::sqrt(divisor);
    DOPPLER_TRY(const std::optional<float> attention_cap,
                keys_.find_number("attn_logit_softcapping", 0, 1e6));
    DOPPLER_TRY(const std::optional<float> final_cap, keys_.find_number("final_logit_softcapping", 0, 1e6));
    c_.attention_softcap = attention_cap.value_or(0);
    c_.final_softcap = final_cap.value_or(0);
    DOPPLER_TRY(const std::string positions, keys_.text("position_embedding_type"));
    if (!positions.empty() && positions != "absolute")
      return unsupported("position_embedding_type absolute wanted, got \"{}\"", printable(positions));
    // transformers 5 lets a Gemma 3 be an encoder.
    DOPPLER_TRY(const bool both_ways, keys_.flag("use_bidirectional_attention", false));
    if (both_ways) return unsupported("causal attention wanted, use_bidirectional_attention is set");
    return {};
  }

  Result<void> read_windows() {
    DOPPLER_TRY(const std::optional<uint32_t> window, keys_.find_count("sliding_window", 0, kMaxContext));
    const bool qwen =
        c_.family == Family::kQwen2 || c_.family == Family::kQwen3 || c_.family == Family::kQwen3Moe;
    DOPPLER_TRY(const bool used, keys_.flag("use_sliding_window", !qwen));
    const bool slides = c_.family != Family::kLlama && c_.family != Family::kGemma;  // those ignore the key
    if (!window || *window == 0 || !used || !slides) return {};
    c_.window = *window;
    DOPPLER_TRY(const std::vector<std::string> types, keys_.texts("layer_types"));
    if (!types.empty()) {
      if (types.size() != c_.layers)
        return bad("layer_types with {} entries wanted, got {}", c_.layers, types.size());
      for (const std::string& type : types) {
        if (type != "full_attention" && type != "sliding_attention")
          return unsupported("a layer of type \"{}\" does not run", printable(type));
        c_.sliding.push_back(type == "sliding_attention");
      }
      return {};
    }
    DOPPLER_TRY(std::optional<uint32_t> period, keys_.find_count("sliding_window_pattern", 1, kMaxLayers));
    if (!period) {
      DOPPLER_TRY(period, keys_.find_count("_sliding_window_pattern", 1, kMaxLayers));
    }
    apply_window(c_, period.value_or(0));
    if (!qwen) return {};
    DOPPLER_TRY(const std::optional<uint32_t> full, keys_.find_count("max_window_layers", 0, UINT32_MAX));
    for (uint32_t i = 0; i < c_.layers; ++i) c_.sliding[i] = i >= full.value_or(28);
    return {};
  }

  Result<void> read_experts() {
    if (c_.family != Family::kMixtral && c_.family != Family::kQwen3Moe && c_.family != Family::kGptOss)
      return {};
    DOPPLER_TRY(std::optional<uint32_t> experts, keys_.find_count("num_local_experts", 1, kMaxExperts));
    if (!experts) {
      DOPPLER_TRY(experts, keys_.find_count("num_experts", 1, kMaxExperts));
    }
    if (!experts) return bad("num_local_experts or num_experts wanted, it has neither");
    c_.experts = *experts;
    DOPPLER_TRY(std::optional<uint32_t> chosen, keys_.find_count("num_experts_per_tok", 1, c_.experts));
    if (!chosen) {
      DOPPLER_TRY(chosen, keys_.find_count("experts_per_token", 1, c_.experts));  // gpt-oss's first files
    }
    if (!chosen) return bad("num_experts_per_tok wanted, it has none");
    c_.experts_per_token = *chosen;
    DOPPLER_TRY(const std::optional<uint32_t> width, keys_.find_count("moe_intermediate_size", 1, kMaxWidth));
    c_.expert_ffn = width.value_or(c_.ffn);
    if (c_.family != Family::kQwen3Moe) return {};

    DOPPLER_TRY(const bool normalised, keys_.flag("norm_topk_prob", false));
    c_.routing = normalised ? graph::Routing::kSoftmaxOfChosen : graph::Routing::kSoftmaxOverAll;
    DOPPLER_TRY(const std::optional<uint32_t> step, keys_.find_count("decoder_sparse_step", 1, kMaxLayers));
    DOPPLER_TRY(const std::vector<int64_t> dense, keys_.whole_numbers("mlp_only_layers"));
    c_.dense.resize(c_.layers);
    for (uint32_t i = 0; i < c_.layers; ++i)
      c_.dense[i] =
          (i + 1) % step.value_or(1) != 0 || std::find(dense.begin(), dense.end(), i) != dense.end();
    return {};
  }

  Result<void> read_end_ids() {
    DOPPLER_TRY(std::vector<int64_t> ids, root_.whole_numbers("eos_token_id"));
    if (ids.empty()) {
      DOPPLER_TRY(ids, keys_.whole_numbers("eos_token_id"));
    }
    const std::string generation = (fs::path(directory_) / "generation_config.json").string();
    if (std::error_code error; fs::exists(generation, error)) {
      DOPPLER_TRY(const HfKeys more, HfKeys::read(generation));
      DOPPLER_TRY(const std::vector<int64_t> others, more.whole_numbers("eos_token_id"));
      ids.insert(ids.end(), others.begin(), others.end());
    }
    for (const int64_t id : ids) {
      if (id < 0 || static_cast<uint64_t>(id) >= c_.vocab)
        return bad("eos_token_id from 0 to {} wanted, got {}", c_.vocab - 1, id);
      const auto value = static_cast<int32_t>(id);
      if (std::find(c_.end_ids.begin(), c_.end_ids.end(), value) == c_.end_ids.end())
        c_.end_ids.push_back(value);
    }
    return {};
  }

  const std::string& directory_;
  const TensorSource& source_;
  const HfKeys& root_;
  HfKeys keys_;  // the text part's
  const ModelType* type_ = nullptr;
  ModelConfig c_;
};

}  // namespace

Result<ModelConfig> config_from_hugging_face(const std::string& directory, const TensorSource& source) {
  DOPPLER_TRY(const HfKeys root, HfKeys::read((fs::path(directory) / "config.json").string()));
  return Reader(directory, source, root).read();
}

}  // namespace doppler::model
