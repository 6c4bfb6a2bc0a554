// The normalizer and the pre-tokenizer of a tokenizer.json.
#include <nlohmann/json.hpp>

#include "tokenizer/base64.h"
#include "tokenizer/json_components.h"
#include "tokenizer/json_util.h"

namespace doppler::tokenizer_json {
namespace {

using nlohmann::json;

Result<SplitBehavior> read_behavior(const json& component) {
  const std::string name = string_or(component, "behavior", "");
  if (name == "Removed") return SplitBehavior::kRemoved;
  if (name == "Isolated") return SplitBehavior::kIsolated;
  if (name == "MergedWithPrevious") return SplitBehavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return SplitBehavior::kMergedWithNext;
  if (name == "Contiguous") return SplitBehavior::kContiguous;
  return fail(ErrorCode::kUnsupported, "[tokenizer.json] the split behavior '{}' is not known", shown(name));
}

NormalizerStep read_bert(const json& component) {
  NormalizerStep step{NormalizerStep::Op::kBert};
  step.clean_text = bool_or(component, "clean_text", true);
  step.chinese_chars = bool_or(component, "handle_chinese_chars", true);
  step.lowercase = bool_or(component, "lowercase", true);
  // null means as `lowercase` says
  step.strip_accents = bool_or(component, "strip_accents", step.lowercase);
  return step;
}

Result<NormalizerStep> read_precompiled(const json& component) {
  NormalizerStep step{NormalizerStep::Op::kPrecompiled};
  auto map = base64::decode(string_or(component, "precompiled_charsmap", ""));
  if (!map)
    return fail(ErrorCode::kBadFile, "[tokenizer.json] precompiled_charsmap wanted in base64, it is not");
  step.pattern = std::move(*map);
  return step;
}

}  // namespace

Result<std::vector<NormalizerStep>> read_normalizer(std::string_view text) {
  using Op = NormalizerStep::Op;
  DOPPLER_TRY(const json root, parse(text, "normalizer"));
  std::vector<NormalizerStep> steps;
  DOPPLER_CHECK_OK(walk(root, "normalizer", "normalizers", [&](const json& c) -> Result<void> {
    const std::string type = string_or(c, "type", "");
    if (type == "Replace") {
      DOPPLER_TRY(Pattern pattern, read_pattern(c, "Replace"));
      steps.push_back({pattern.regex ? Op::kReplaceRegex : Op::kReplace, std::move(pattern.text),
                       string_or(c, "content", "")});
    } else if (type == "Prepend") {
      steps.push_back({Op::kPrepend, {}, string_or(c, "prepend", "")});
    } else if (type == "NFC") {
      steps.push_back({Op::kNfc});
    } else if (type == "NFD") {
      steps.push_back({Op::kNfd});
    } else if (type == "NFKC") {
      steps.push_back({Op::kNfkc});
    } else if (type == "NFKD") {
      steps.push_back({Op::kNfkd});
    } else if (type == "Lowercase") {
      steps.push_back({Op::kLowercase});
    } else if (type == "StripAccents") {
      steps.push_back({Op::kStripAccents});
    } else if (type == "Nmt") {
      steps.push_back({Op::kNmt});
    } else if (type == "Strip") {
      NormalizerStep step{Op::kStrip};
      step.left = bool_or(c, "strip_left", true);
      step.right = bool_or(c, "strip_right", true);
      steps.push_back(std::move(step));
    } else if (type == "BertNormalizer") {
      steps.push_back(read_bert(c));
    } else if (type == "Precompiled") {
      DOPPLER_TRY(NormalizerStep step, read_precompiled(c));
      steps.push_back(std::move(step));
    } else {
      return fail(ErrorCode::kUnsupported, "[tokenizer.json] the normalizer '{}' is not supported",
                  shown(type));
    }
    return {};
  }));
  return steps;
}

Result<std::vector<PreTokenizerStep>> read_pre_tokenizer(std::string_view text) {
  using Op = PreTokenizerStep::Op;
  DOPPLER_TRY(const json root, parse(text, "pre_tokenizer"));
  std::vector<PreTokenizerStep> steps;
  DOPPLER_CHECK_OK(walk(root, "pre_tokenizer", "pretokenizers", [&](const json& c) -> Result<void> {
    const std::string type = string_or(c, "type", "");
    PreTokenizerStep step;
    if (type == "Split") {
      DOPPLER_TRY(Pattern pattern, read_pattern(c, "Split"));
      step.op = pattern.regex ? Op::kSplitRegex : Op::kSplitLiteral;
      step.pattern = std::move(pattern.text);
      DOPPLER_TRY(step.behavior, read_behavior(c));
      step.invert = bool_or(c, "invert", false);
    } else if (type == "Digits") {
      step.op = Op::kDigits;
      step.individual = bool_or(c, "individual_digits", false);
    } else if (type == "ByteLevel") {
      step.op = Op::kByteLevel;
      step.add_prefix_space = bool_or(c, "add_prefix_space", true);
      step.use_regex = bool_or(c, "use_regex", true);
    } else if (type == "Metaspace") {
      step.op = Op::kMetaspace;
      // Old files spell the mark str_rep.
      step.pattern = string_or(c, "replacement", string_or(c, "str_rep", "\xe2\x96\x81"));
      step.split = bool_or(c, "split", true);
      DOPPLER_TRY(step.prepend, read_prepend(c));
    } else if (type == "Whitespace") {
      step.op = Op::kWords;
    } else if (type == "WhitespaceSplit") {
      step.op = Op::kSpaces;
    } else if (type == "Punctuation") {
      step.op = Op::kPunctuation;
      if (member(c, "behavior") != nullptr) {
        DOPPLER_TRY(step.behavior, read_behavior(c));
      }
    } else if (type == "BertPreTokenizer") {
      step.op = Op::kSpaces;
      steps.push_back(step);
      step.op = Op::kPunctuation;
    } else if (type == "CharDelimiterSplit") {
      step.op = Op::kSplitLiteral;
      step.pattern = string_or(c, "delimiter", "");
      step.behavior = SplitBehavior::kRemoved;
    } else {
      return fail(ErrorCode::kUnsupported, "[tokenizer.json] the pre-tokenizer '{}' is not supported",
                  shown(type));
    }
    steps.push_back(std::move(step));
    return {};
  }));
  return steps;
}

}  // namespace doppler::tokenizer_json
