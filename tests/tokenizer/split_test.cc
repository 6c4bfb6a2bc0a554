#include <algorithm>

#include "tokenizer/pre_names.h"
#include "tokenizer/pre_tokenizer.h"
#include "tokenizer/spans.h"
#include "tokenizer/support.h"
#include "tokenizer/unicode.h"

using namespace doppler;

namespace {

using Pieces = std::vector<std::string>;

Pieces run(const std::vector<PreTokenizerStep>& steps, std::string_view text) {
  const PreTokenizer pre = test::value_of(PreTokenizer::make(steps));
  Pieces pieces;
  pre.run(text, true, [&](std::string_view piece) { pieces.emplace_back(piece); });
  return pieces;
}

PreTokenizerStep literal(std::string pattern, SplitBehavior behavior, bool invert = false) {
  PreTokenizerStep step;
  step.op = PreTokenizerStep::Op::kSplitLiteral;
  step.pattern = std::move(pattern);
  step.behavior = behavior;
  step.invert = invert;
  return step;
}

const std::vector<std::string> kAlphabet = {"a",
                                            "b",
                                            "Z",
                                            "\xc3\xa9",
                                            "1",
                                            "\xc2\xbd",
                                            "\xd9\xa3",
                                            " ",
                                            " ",
                                            "  ",
                                            "\n",
                                            "\t",
                                            "\r\n",
                                            "\xc2\xa0",
                                            "\xe2\x80\xa8",
                                            "\xe3\x80\x80",
                                            "'",
                                            "'s",
                                            "'t",
                                            "'ll",
                                            "'re",
                                            "'ve",
                                            "'m",
                                            "'d",
                                            "!",
                                            ".",
                                            "\xe2\x82\xac",
                                            "\xcc\x81",
                                            "\xe6\x9d\xb1",
                                            "\xf0\x9f\x98\x8a",
                                            "_"};

}  // namespace

TEST_CASE("pre-tokenizer: the GPT-2 splitter agrees with its regular expression") {
  static const Regex kRegex = test::value_of(Regex::compile(kGpt2Pattern));
  Matcher oracle(kRegex);
  std::mt19937 random(11);
  for (int round = 0; round < 3000; ++round) {
    const std::string text = test::random_text(random, kAlphabet, random() % 24);
    Pieces expected, got;
    for_each_span(text, oracle, [&](std::string_view piece, bool) { expected.emplace_back(piece); });
    gpt2_split(text, [&](std::string_view piece) { got.emplace_back(piece); });
    if (expected != got) {
      CAPTURE(text);
      CHECK(expected == got);
    }
  }
}

TEST_CASE("pre-tokenizer: known cuts") {
  const auto gpt2 = pre_tokenizer_by_name("gpt-2")->steps;
  CHECK(run(gpt2, "I'm  here, 42x") == Pieces{"I", "'m", " ", " here", ",", " 42", "x"});
  CHECK(run(gpt2, "a \n b  ") == Pieces{"a", " \n", " b", "  "});
  const auto smollm = pre_tokenizer_by_name("smollm")->steps;
  CHECK(run(smollm, "in 2024!") == Pieces{"in", " ", "2", "0", "2", "4", "!"});
  const auto llama3 = pre_tokenizer_by_name("llama-bpe")->steps;
  CHECK(run(llama3, "It'S 12345 !\n\n x") == Pieces{"It", "'S", " ", "123", "45", " !\n\n", " x"});
  const auto qwen2 = pre_tokenizer_by_name("qwen2")->steps;
  CHECK(run(qwen2, "a(b 12") == Pieces{"a", "(b", " ", "1", "2"});
  CHECK_FALSE(pre_tokenizer_by_name("no-such-rule"));
}

TEST_CASE("pre-tokenizer: what a split does with its matches") {
  const std::string text = "a--b-";
  CHECK(run({literal("-", SplitBehavior::kIsolated)}, text) == Pieces{"a", "-", "-", "b", "-"});
  CHECK(run({literal("-", SplitBehavior::kRemoved)}, text) == Pieces{"a", "b"});
  CHECK(run({literal("-", SplitBehavior::kContiguous)}, text) == Pieces{"a", "--", "b", "-"});
  CHECK(run({literal("-", SplitBehavior::kMergedWithPrevious)}, text) == Pieces{"a-", "-", "b-"});
  CHECK(run({literal("-", SplitBehavior::kMergedWithNext)}, text) == Pieces{"a", "-", "-b", "-"});
  CHECK(run({literal("-", SplitBehavior::kRemoved, true)}, text) == Pieces{"-", "-", "-"});
}

TEST_CASE("pre-tokenizer: no piece loses a byte of ill-formed text") {
  const std::string text = "a\xff\xfe 1\xc3 b\xe2\x96'\x80s";
  for (const char* name :
       {"gpt-2", "smollm", "llama-bpe", "qwen2", "tekken", "gpt-4o", "falcon", "default"}) {
    CAPTURE(name);
    std::string joined;
    for (const std::string& piece : run(pre_tokenizer_by_name(name)->steps, text)) joined += piece;
    CHECK(joined == text);
  }
}

TEST_CASE("pre-tokenizer: white space is Unicode's, in splitter and expressions alike") {
  static const Regex kSpace = test::value_of(Regex::compile(R"(\s)")),
                     kInClass = test::value_of(Regex::compile(R"([\s])"));
  Matcher plain(kSpace), in_class(kInClass);
  for (uint32_t c = 0; c < 0x3100; ++c) {
    if (c >= 0xd800 && c < 0xe000) continue;
    std::string text;
    utf8::append(text, c);
    size_t begin = 0, end = 0;
    const bool expected = unicode::is_space(c);
    if (plain.find(text, 0, begin, end) != expected || in_class.find(text, 0, begin, end) != expected) {
      CAPTURE(c);
      CHECK(false);
    }
  }
}

TEST_CASE("pre-tokenizer: malformed patterns are errors") {
  CHECK_FALSE(Regex::compile("(a"));
  CHECK_FALSE(Regex::compile("[z-a]"));
  CHECK_FALSE(PreTokenizer::make({literal("", SplitBehavior::kIsolated)}));
}
