#include "model/hf_rope.h"

#include <cmath>

#include "model/limits.h"

namespace doppler::model {
namespace {

// What `rope_parameters`, or an older `rope_scaling`, says.
Result<void> read_scaling(const HfKeys& rope, const HfKeys& keys, ModelConfig& c) {
  RopeScaling& s = c.rope_scaling;
  DOPPLER_TRY(s.type, rope.text("rope_type"));
  if (s.type.empty()) {
    DOPPLER_TRY(s.type, rope.text("type"));
  }
  if (s.type == "default") s.type.clear();
  if (s.type == "su") s.type = "longrope";  // Phi-3's first files
  DOPPLER_TRY(const std::optional<float> factor, rope.find_number("factor", 1e-3, 1e6));
  DOPPLER_TRY(const std::optional<float> low, rope.find_number("low_freq_factor", 1e-6, 1e6));
  DOPPLER_TRY(const std::optional<float> high, rope.find_number("high_freq_factor", 1e-6, 1e6));
  DOPPLER_TRY(const std::optional<float> fast, rope.find_number("beta_fast", 1e-6, 1e6));
  DOPPLER_TRY(const std::optional<float> slow, rope.find_number("beta_slow", 1e-6, 1e6));
  DOPPLER_TRY(s.attention_factor, rope.find_number("attention_factor", 1e-6, 1e6));
  DOPPLER_TRY(const std::optional<float> mscale, rope.find_number("mscale", 0, 1e6));
  DOPPLER_TRY(const std::optional<float> mscale_all, rope.find_number("mscale_all_dim", 0, 1e6));
  DOPPLER_TRY(s.truncate, rope.flag("truncate", s.truncate));
  DOPPLER_TRY(s.short_factors, rope.numbers("short_factor"));
  DOPPLER_TRY(s.long_factors, rope.numbers("long_factor"));
  s.low_freq_factor = low.value_or(1);
  s.high_freq_factor = high.value_or(4);
  s.beta_fast = fast.value_or(32);
  s.beta_slow = slow.value_or(1);
  s.mscale = mscale.value_or(0);
  s.mscale_all_dim = mscale_all.value_or(0);

  DOPPLER_TRY(std::optional<uint32_t> original,
              rope.find_count("original_max_position_embeddings", 1, kMaxContext));
  if (!original) {
    DOPPLER_TRY(original, keys.find_count("original_max_position_embeddings", 1, kMaxContext));
  }
  s.original_context = original.value_or(c.max_context);
  const float ratio = static_cast<float>(c.max_context) / static_cast<float>(s.original_context);
  s.factor = factor.value_or(s.type == "yarn" || s.type == "longrope" ? ratio : 1.0f);
  if (s.type != "longrope") return {};
  for (const std::vector<float>* list : {&s.short_factors, &s.long_factors})
    for (const float value : *list)
      if (!(value > 0))
        return fail(ErrorCode::kBadFile, "[model] {}: LongRoPE factors above 0 wanted, got {}", keys.path(),
                    value);
  // Phi-3 states no factor: it is how far the context was stretched.
  if (!s.attention_factor && s.original_context > 1) {
    const float stretch = original ? ratio : s.factor;
    s.attention_factor =
        stretch <= 1 ? 1.0f
                     : std::sqrt(1 + std::log(stretch) / std::log(static_cast<float>(s.original_context)));
  }
  return {};
}

}  // namespace

Result<void> read_hf_rope(const HfKeys& keys, float default_base, ModelConfig& c) {
  std::optional<HfKeys> rope = keys.child("rope_parameters");
  if (!rope) rope = keys.child("rope_scaling");
  std::optional<HfKeys> local;
  if (rope && rope->child("full_attention")) {  // one set a kind of layer
    local = rope->child("sliding_attention");
    rope = rope->child("full_attention");
  }
  DOPPLER_TRY(std::optional<float> base, keys.find_number("rope_theta", 1, 1e12));
  DOPPLER_TRY(std::optional<float> local_base, keys.find_number("rope_local_base_freq", 1, 1e12));
  DOPPLER_TRY(std::optional<float> part, keys.find_number("partial_rotary_factor", 0, 1));
  if (rope) {
    DOPPLER_TRY(const std::optional<float> own, rope->find_number("rope_theta", 1, 1e12));
    DOPPLER_TRY(const std::optional<float> own_part, rope->find_number("partial_rotary_factor", 0, 1));
    if (own) base = own;
    if (own_part) part = own_part;
    DOPPLER_CHECK_OK(read_scaling(*rope, keys, c));
  }
  if (local) {
    DOPPLER_TRY(const std::optional<float> own, local->find_number("rope_theta", 1, 1e12));
    if (own) local_base = own;
  }
  c.rope_base = base.value_or(default_base);
  c.rope_base_local = local_base.value_or(c.local_rope ? 10000.0f : c.rope_base);
  c.rotary_dim = static_cast<uint32_t>(part.value_or(1.0f) * static_cast<float>(c.head_dim));
  if (c.rotary_dim < 2 || c.rotary_dim % 2 != 0)
    return fail(ErrorCode::kUnsupported, "[model] {}: an even number of rotated dimensions wanted, got {}",
                keys.path(), c.rotary_dim);
  return {};
}

}  // namespace doppler::model
