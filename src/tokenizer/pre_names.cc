#include "tokenizer/pre_names.h"

#include <algorithm>
#include <initializer_list>

#include "tokenizer/pre_tokenizer.h"

namespace doppler {
namespace {

using Op = PreTokenizerStep::Op;

// The patterns are those of the models' own tokenizer.json files.
constexpr std::string_view kLlama3Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kTekkenPattern =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kGpt4oPattern =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

PreTokenizerStep byte_level(bool use_regex) {
  PreTokenizerStep step;
  step.op = Op::kByteLevel;
  step.use_regex = use_regex;
  return step;
}

PreTokenizerStep regex(std::string_view pattern) {
  PreTokenizerStep step;
  step.op = Op::kSplitRegex;
  step.pattern = pattern;
  return step;
}

PreTokenizerStep digits(bool individual) {
  PreTokenizerStep step;
  step.op = Op::kDigits;
  step.individual = individual;
  return step;
}

bool any_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::optional<PreTokenizerRecipe> pre_tokenizer_by_name(std::string_view name) {
  PreTokenizerRecipe recipe;
  if (any_of(name, {"gpt-2", "phi-2", "mpt", "olmo", "jais", "jina-es", "jina-de", "jina-v2-es", "jina-v2-de",
                    "jina-v2-code", "jina-v1-en", "roberta-bpe", "gigachat", "trillion"})) {
    recipe.steps = {byte_level(true)};
  } else if (any_of(name,
                    {"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b"})) {
    recipe.steps = {digits(true), byte_level(true)};
  } else if (any_of(name, {"llama3", "llama-v3", "llama-bpe", "falcon3", "pixtral-llama3"})) {
    recipe.steps = {regex(kLlama3Pattern), byte_level(false)};
    recipe.ignore_merges = true;
    recipe.add_bos = true;
  } else if (any_of(name, {"dbrx", "smaug-bpe", "chatglm-bpe", "glm4"})) {
    recipe.steps = {regex(kLlama3Pattern), byte_level(false)};
  } else if (any_of(name, {"qwen2", "deepseek-r1-qwen", "stablelm2", "hunyuan", "megrez"})) {
    recipe.steps = {regex(kQwen2Pattern), byte_level(false)};
  } else if (any_of(name, {"tekken"})) {
    recipe.steps = {regex(kTekkenPattern), byte_level(false)};
    recipe.ignore_merges = true;
    recipe.add_bos = true;
  } else if (any_of(name, {"gpt-4o", "llama4"})) {
    recipe.steps = {regex(kGpt4oPattern), byte_level(false)};
  } else if (any_of(name, {"falcon"})) {
    recipe.steps = {regex(R"([\p{P}\$\+<=>\^~\|`]+)"), regex(kGpt2Pattern), regex("[0-9][0-9][0-9]"),
                    byte_level(false)};
  } else if (any_of(name, {"", "default"})) {  // what is used where a file does not name its rule
    recipe.steps = {regex(R"([\p{P}\$\+<=>\^~\|]+)"), regex(kGpt2Pattern), digits(false),
                    regex("[0-9][0-9][0-9]"), byte_level(false)};
  } else {
    return std::nullopt;
  }
  return recipe;
}

}  // namespace doppler
