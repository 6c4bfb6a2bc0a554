#include <fmt/format.h>

#include "tokenizer/base64.h"
#include "tokenizer/json_score.h"
#include "tokenizer/vocab.h"

namespace doppler {
namespace {

constexpr std::string_view kMetaspaceJson = "\"\xe2\x96\x81\"";
constexpr std::string_view kMetaspace = "\xe2\x96\x81";

void put_string(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    constexpr std::string_view kEscaped = "\"\\\n\t\r", kLetters = "\"\\ntr";
    const auto byte = static_cast<unsigned char>(c);
    if (const size_t which = kEscaped.find(c); which != std::string_view::npos) {
      out += '\\';
      out += kLetters[which];
    } else if (byte < 0x20) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", byte);
    } else {
      out += c;
    }
  }
  out += '"';
}

const char* json_bool(bool value) { return value ? "true" : "false"; }

void put_added_tokens(std::string& out, const VocabData& vocab) {
  out += "  \"added_tokens\": [";
  const char* separator = "\n";
  for (const AddedToken& token : vocab.added) {
    const auto id = static_cast<size_t>(token.id);
    if (vocab.tokens[id].empty()) continue;
    fmt::format_to(std::back_inserter(out), "{}    {{\"id\": {}, \"content\": ", separator, token.id);
    put_string(out, vocab.tokens[id]);
    fmt::format_to(
        std::back_inserter(out),
        ", \"single_word\": {}, \"lstrip\": {}, \"rstrip\": {}, \"normalized\": {}, \"special\": {}}}",
        json_bool(token.single_word), json_bool(token.lstrip), json_bool(token.rstrip),
        json_bool(token.normalized), json_bool(vocab.types[id] != TokenType::kUserDefined));
    separator = ",\n";
  }
  out += "\n  ],\n";
}

// One step stands alone, several become a Sequence, none is null.
template <class Steps, class Put>
void put_steps(std::string& out, std::string_view key, std::string_view list_key, const Steps& steps,
               Put&& put) {
  fmt::format_to(std::back_inserter(out), "  \"{}\": ", key);
  if (steps.empty()) {
    out += "null";
  } else if (steps.size() == 1) {
    put(steps[0]);
  } else {
    fmt::format_to(std::back_inserter(out), "{{\"type\": \"Sequence\", \"{}\": [", list_key);
    for (size_t i = 0; i < steps.size(); ++i) {
      if (i > 0) out += ", ";
      put(steps[i]);
    }
    out += "]}";
  }
  out += ",\n";
}

void put_replace(std::string& out, std::string_view kind, std::string_view pattern,
                 std::string_view content) {
  fmt::format_to(std::back_inserter(out), "{{\"type\": \"Replace\", \"pattern\": {{\"{}\": ", kind);
  put_string(out, pattern);
  out += "}, \"content\": ";
  put_string(out, content);
  out += '}';
}

void put_normalizer_step(std::string& out, const NormalizerStep& step) {
  using Op = NormalizerStep::Op;
  switch (step.op) {
    case Op::kReplace:
      return put_replace(out, "String", step.pattern, step.content);
    case Op::kReplaceRegex:
      return put_replace(out, "Regex", step.pattern, step.content);
    case Op::kPrepend:
      out += "{\"type\": \"Prepend\", \"prepend\": ";
      put_string(out, step.content);
      out += '}';
      return;
    case Op::kNfc:
      out += "{\"type\": \"NFC\"}";
      return;
    case Op::kNfd:
      out += "{\"type\": \"NFD\"}";
      return;
    case Op::kNfkc:
      out += "{\"type\": \"NFKC\"}";
      return;
    case Op::kNfkd:
      out += "{\"type\": \"NFKD\"}";
      return;
    case Op::kLowercase:
      out += "{\"type\": \"Lowercase\"}";
      return;
    case Op::kStrip:
      fmt::format_to(std::back_inserter(out),
                     "{{\"type\": \"Strip\", \"strip_left\": {}, \"strip_right\": {}}}", json_bool(step.left),
                     json_bool(step.right));
      return;
    case Op::kStripAccents:
      out += "{\"type\": \"StripAccents\"}";
      return;
    case Op::kNmt:
      out += "{\"type\": \"Nmt\"}";
      return;
    case Op::kBert:
      fmt::format_to(std::back_inserter(out),
                     "{{\"type\": \"BertNormalizer\", \"clean_text\": {}, \"handle_chinese_chars\": {}, "
                     "\"strip_accents\": {}, \"lowercase\": {}}}",
                     json_bool(step.clean_text), json_bool(step.chinese_chars), json_bool(step.strip_accents),
                     json_bool(step.lowercase));
      return;
    case Op::kPrecompiled:
    case Op::kSentencePiece:  // its white space rules are steps of their own by now
      out += "{\"type\": \"Precompiled\", \"precompiled_charsmap\": \"";
      out += base64::encode(step.pattern);
      out += "\"}";
      return;
  }
}

// SentencePiece's normalizer in the terms of tokenizer.json. Precompiled reads the map by graphemes, so that
// rare sequences of marks differ.
std::vector<NormalizerStep> json_steps(const std::vector<NormalizerStep>& steps) {
  using Op = NormalizerStep::Op;
  std::vector<NormalizerStep> out;
  for (const NormalizerStep& step : steps) {
    if (step.op != Op::kSentencePiece) {
      out.push_back(step);
      continue;
    }
    if (!step.pattern.empty()) out.push_back({Op::kPrecompiled, step.pattern});
    if (step.remove_extra_spaces) {
      out.push_back({Op::kReplaceRegex, "^ +| +$", ""});
      out.push_back({Op::kReplaceRegex, " {2,}", " "});
    }
    const std::string mark(step.escape_spaces ? kMetaspace : " ");
    if (step.escape_spaces) out.push_back({Op::kReplace, " ", mark});
    // A space at the end of the text has no component of its own.
    if (step.dummy_prefix && !step.space_as_suffix) out.push_back({Op::kPrepend, {}, mark});
  }
  return out;
}

std::string_view behavior_name(SplitBehavior behavior) {
  switch (behavior) {
    case SplitBehavior::kRemoved:
      return "Removed";
    case SplitBehavior::kIsolated:
      return "Isolated";
    case SplitBehavior::kMergedWithPrevious:
      return "MergedWithPrevious";
    case SplitBehavior::kMergedWithNext:
      return "MergedWithNext";
    case SplitBehavior::kContiguous:
      return "Contiguous";
  }
  return "Isolated";
}

std::string_view prepend_name(PreTokenizerStep::Prepend prepend) {
  using Prepend = PreTokenizerStep::Prepend;
  return prepend == Prepend::kAlways ? "always" : prepend == Prepend::kFirst ? "first" : "never";
}

void put_pre_tokenizer_step(std::string& out, const PreTokenizerStep& step) {
  using Op = PreTokenizerStep::Op;
  switch (step.op) {
    case Op::kSplitLiteral:
    case Op::kSplitRegex:
      fmt::format_to(std::back_inserter(out), "{{\"type\": \"Split\", \"pattern\": {{\"{}\": ",
                     step.op == Op::kSplitRegex ? "Regex" : "String");
      put_string(out, step.pattern);
      fmt::format_to(std::back_inserter(out), "}}, \"behavior\": \"{}\", \"invert\": {}}}",
                     behavior_name(step.behavior), json_bool(step.invert));
      return;
    case Op::kDigits:
      fmt::format_to(std::back_inserter(out), "{{\"type\": \"Digits\", \"individual_digits\": {}}}",
                     json_bool(step.individual));
      return;
    case Op::kByteLevel:
      fmt::format_to(
          std::back_inserter(out),
          "{{\"type\": \"ByteLevel\", \"add_prefix_space\": {}, \"trim_offsets\": true, \"use_regex\": {}}}",
          json_bool(step.add_prefix_space), json_bool(step.use_regex));
      return;
    case Op::kMetaspace:
      out += "{\"type\": \"Metaspace\", \"replacement\": ";
      put_string(out, step.pattern);
      fmt::format_to(std::back_inserter(out), ", \"prepend_scheme\": \"{}\", \"split\": {}}}",
                     prepend_name(step.prepend), json_bool(step.split));
      return;
    case Op::kWords:
      out += "{\"type\": \"Whitespace\"}";
      return;
    case Op::kSpaces:
      out += "{\"type\": \"WhitespaceSplit\"}";
      return;
    case Op::kPunctuation:
      fmt::format_to(std::back_inserter(out), "{{\"type\": \"Punctuation\", \"behavior\": \"{}\"}}",
                     behavior_name(step.behavior));
      return;
  }
}

void put_post_processor(std::string& out, const VocabData& vocab) {
  if (vocab.prefix.empty() && vocab.suffix.empty()) {
    out += "  \"post_processor\": null,\n";
    return;
  }
  const auto put_ids = [&](const std::vector<int32_t>& ids, int type_id, bool comma_before) {
    for (size_t i = 0; i < ids.size(); ++i) {
      if (comma_before || i > 0) out += ", ";
      out += "{\"SpecialToken\": {\"id\": ";
      put_string(out, vocab.tokens[static_cast<size_t>(ids[i])]);
      fmt::format_to(std::back_inserter(out), ", \"type_id\": {}}}}}", type_id);
    }
  };
  const auto put_sequence = [&](const char* name, int type_id) {
    put_ids(vocab.prefix, type_id, false);
    fmt::format_to(std::back_inserter(out), "{}{{\"Sequence\": {{\"id\": \"{}\", \"type_id\": {}}}}}",
                   vocab.prefix.empty() ? "" : ", ", name, type_id);
    put_ids(vocab.suffix, type_id, true);
  };
  out += "  \"post_processor\": {\"type\": \"TemplateProcessing\", \"single\": [";
  put_sequence("A", 0);
  out += "], \"pair\": [";
  put_sequence("A", 0);
  out += ", ";
  put_sequence("B", 1);
  out += "], \"special_tokens\": {";
  std::vector<int32_t> written;
  for (const auto* ids : {&vocab.prefix, &vocab.suffix}) {
    for (const int32_t id : *ids) {
      bool seen = false;
      for (const int32_t other : written) seen = seen || other == id;
      if (seen) continue;
      if (!written.empty()) out += ", ";
      written.push_back(id);
      const std::string& text = vocab.tokens[static_cast<size_t>(id)];
      put_string(out, text);
      out += ": {\"id\": ";
      put_string(out, text);
      fmt::format_to(std::back_inserter(out), ", \"ids\": [{}], \"tokens\": [", id);
      put_string(out, text);
      out += "]}";
    }
  }
  out += "}},\n";
}

void put_decoder(std::string& out, const VocabData& vocab) {
  out += "  \"decoder\": ";
  if (vocab.kind == VocabKind::kByteLevelBpe) {
    out +=
        "{\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"trim_offsets\": true, \"use_regex\": "
        "true},\n";
    return;
  }
  if (vocab.decoder.word_pieces) {
    out += "{\"type\": \"WordPiece\", \"prefix\": ";
    put_string(out, vocab.subword_prefix);
    fmt::format_to(std::back_inserter(out), ", \"cleanup\": {}}},\n", json_bool(vocab.decoder.cleanup));
    return;
  }
  out += "{\"type\": \"Sequence\", \"decoders\": [";
  if (!vocab.decoder.word_end.empty()) {
    out += "{\"type\": \"BPEDecoder\", \"suffix\": ";
    put_string(out, vocab.decoder.word_end);
    out += "}, ";
  }
  if (vocab.decoder.metaspace)
    fmt::format_to(std::back_inserter(out),
                   "{{\"type\": \"Replace\", \"pattern\": {{\"String\": {}}}, \"content\": \" \"}}, ",
                   kMetaspaceJson);
  if (vocab.decoder.byte_fallback) out += "{\"type\": \"ByteFallback\"}, ";
  out += "{\"type\": \"Fuse\"}";
  if (vocab.decoder.strip_start)
    out += ", {\"type\": \"Strip\", \"content\": \" \", \"start\": 1, \"stop\": 0}";
  out += "]},\n";
}

void put_optional(std::string& out, std::string_view key, std::string_view text) {
  fmt::format_to(std::back_inserter(out), "\"{}\": ", key);
  if (text.empty()) {
    out += "null";
  } else {
    put_string(out, text);
  }
  out += ", ";
}

// The list of a Unigram model has no holes: where an id has no token there stands a text that no text
// contains.
void put_unigram(std::string& out, const VocabData& vocab) {
  out += "  \"model\": {\"type\": \"Unigram\", \"unk_id\": ";
  out += vocab.unk ? fmt::format("{}", *vocab.unk) : "null";
  fmt::format_to(std::back_inserter(out), ", \"byte_fallback\": {},\n  \"vocab\": [",
                 json_bool(vocab.byte_fallback));
  for (size_t id = 0; id < vocab.tokens.size(); ++id) {
    out += id == 0 ? "\n[" : ",\n[";
    put_string(out, vocab.tokens[id]);
    fmt::format_to(std::back_inserter(out), ", {}]", tokenizer_json::write_score(vocab.scores[id]));
  }
  out += "\n  ]}\n";
}

void put_model(std::string& out, const VocabData& vocab) {
  if (vocab.kind == VocabKind::kUnigram) return put_unigram(out, vocab);
  const bool word_piece = vocab.kind == VocabKind::kWordPiece;
  const bool unknown = vocab.unk && vocab.kind != VocabKind::kByteLevelBpe;
  fmt::format_to(std::back_inserter(out), "  \"model\": {{\"type\": \"{}\", ",
                 word_piece ? "WordPiece" : "BPE");
  put_optional(out, "unk_token", unknown ? vocab.tokens[static_cast<size_t>(*vocab.unk)] : std::string());
  if (word_piece) {
    out += "\"continuing_subword_prefix\": ";
    put_string(out, vocab.subword_prefix);
    fmt::format_to(std::back_inserter(out), ", \"max_input_chars_per_word\": {}", vocab.max_word_chars);
  } else {
    put_optional(out, "continuing_subword_prefix", vocab.subword_prefix);
    put_optional(out, "end_of_word_suffix", vocab.word_suffix);
    fmt::format_to(std::back_inserter(out),
                   "\"dropout\": null, \"fuse_unk\": {}, \"byte_fallback\": {}, \"ignore_merges\": {}",
                   json_bool(vocab.fuse_unknown), json_bool(vocab.byte_fallback),
                   json_bool(vocab.ignore_merges));
  }
  out += ",\n  \"vocab\": {";
  const char* separator = "\n";
  for (size_t id = 0; id < vocab.tokens.size(); ++id) {
    if (vocab.tokens[id].empty()) continue;
    out += separator;
    put_string(out, vocab.tokens[id]);
    fmt::format_to(std::back_inserter(out), ": {}", id);
    separator = ",\n";
  }
  if (word_piece) {
    out += "\n  }}\n";
    return;
  }
  out += "\n  },\n  \"merges\": [";
  separator = "\n";
  const auto put_merge = [&](const MergePair& merge) {
    out += separator;
    out += '[';
    put_string(out, vocab.tokens[static_cast<size_t>(merge.left)]);
    out += ", ";
    put_string(out, vocab.tokens[static_cast<size_t>(merge.right)]);
    out += ']';
    separator = ",\n";
  };
  if (vocab.kind == VocabKind::kScoreBpe) {
    for (const MergePair& merge : merges_from_scores(vocab)) put_merge(merge);
  } else {
    for (const MergePair& merge : vocab.merges) put_merge(merge);
  }
  out += "\n  ]}\n";
}

}  // namespace

std::string to_tokenizer_json(const VocabData& vocab) {
  std::string out = "{\n  \"version\": \"1.0\",\n  \"truncation\": null,\n  \"padding\": null,\n";
  out.reserve(vocab.tokens.size() * 96);
  put_added_tokens(out, vocab);
  put_steps(out, "normalizer", "normalizers", json_steps(vocab.normalizer),
            [&](const NormalizerStep& step) { put_normalizer_step(out, step); });
  put_steps(out, "pre_tokenizer", "pretokenizers", vocab.pre_tokenizer,
            [&](const PreTokenizerStep& step) { put_pre_tokenizer_step(out, step); });
  put_post_processor(out, vocab);
  put_decoder(out, vocab);
  put_model(out, vocab);
  out += "}\n";
  return out;
}

}  // namespace doppler
