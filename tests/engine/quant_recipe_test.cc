#include "engine/quant_recipe.h"

#include <doctest/doctest.h>

#include <string>

using namespace doppler;
using namespace doppler::convert_detail;

TEST_CASE("quant names: plain types, and mixes where there are any") {
  CHECK(quant_from_name("q4_k")->dtype == DType::kQ4_K);
  CHECK_FALSE(quant_from_name("q4_k")->mixed);
  CHECK(quant_from_name("Q4_K_M")->dtype == DType::kQ4_K);
  CHECK(quant_from_name("Q4_K_M")->mixed);
  CHECK(quant_from_name("bf16")->dtype == DType::kBF16);
  CHECK_FALSE(quant_from_name("q6_k_m"));
  CHECK_FALSE(quant_from_name("mxfp4"));  // read, not written
  CHECK_FALSE(quant_from_name("q9_x"));
}

TEST_CASE("q4_k_m gives more bits to the layers that llama.cpp's files give them to") {
  const Quant mixed = *quant_from_name("q4_k_m");
  const auto type = [&](const char* name, uint32_t layer, uint32_t layers) {
    return recipe_dtype(mixed, {name, false, layer, layers});
  };
  // 18 layers (Gemma 3 270M): 2 first, 3 last, and every third from the second on.
  std::string more;
  for (uint32_t layer = 0; layer < 18; ++layer)
    more += type("mlp.down_proj.weight", layer, 18) == DType::kQ6_K ? '6' : '4';
  CHECK(more == "664464464464464666");
  CHECK(type("self_attn.v_proj.weight", 0, 18) == DType::kQ6_K);
  CHECK(type("self_attn.v_proj.weight", 2, 18) == DType::kQ4_K);
  CHECK(type("self_attn.q_proj.weight", 0, 18) == DType::kQ4_K);
  CHECK(type("mlp.up_proj.weight", 17, 18) == DType::kQ4_K);
  CHECK(type("self_attn.qkv_proj.weight", 3, 18) == DType::kQ5_K);
  CHECK(recipe_dtype(mixed, {"lm_head.weight", true, 0, 18}) == DType::kQ6_K);
  CHECK(recipe_dtype({DType::kQ4_K, false}, {"mlp.down_proj.weight", false, 0, 18}) == DType::kQ4_K);
  CHECK(recipe_dtype({DType::kQ8_0, false}, {"lm_head.weight", true, 0, 18}) == DType::kQ8_0);
}

TEST_CASE("rows that would be padded take the smaller of the two") {
  CHECK(without_padding(DType::kQ4_K, 512) == DType::kQ4_K);
  CHECK(without_padding(DType::kQ4_K, 576) == DType::kQ5_0);  // 396 bytes, padded 432
  CHECK(without_padding(DType::kQ6_K, 576) == DType::kQ8_0);  // 612 and 630
  CHECK(without_padding(DType::kQ4_K, 960) == DType::kQ4_K);  // 660 and 576
  CHECK(without_padding(DType::kQ8_0, 576) == DType::kQ8_0);
}
