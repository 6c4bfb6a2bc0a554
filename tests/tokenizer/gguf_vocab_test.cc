#include <limits>

#include "tokenizer/support.h"

using namespace doppler;

namespace {

void check_refused(const GgufVocabView& view, ErrorCode code, const std::string& part) {
  const auto result = vocab_from_gguf(view);
  REQUIRE_FALSE(result);
  CHECK(result.error().code == code);
  CHECK_MESSAGE(result.error().message.find(part) != std::string::npos, result.error().message);
}

struct ByteLevelVocab {
  std::vector<std::string_view> tokens = {"<|endoftext|>",
                                          "a",
                                          "b",
                                          "ab",
                                          "\xc4\xa0",
                                          "\xc4\xa0"
                                          "a"};
  std::vector<std::string_view> merges = {"a b", "\xc4\xa0 a"};
  std::vector<int64_t> types = {3, 1, 1, 1, 1, 1};
  GgufVocabView view;
  ByteLevelVocab() {
    view.model = "gpt2";
    view.pre = "gpt-2";
    view.tokens = tokens;
    view.merges = merges;
    view.types = types;
    view.eos = 0;
  }
};

}  // namespace

TEST_CASE("gguf vocabulary: a good one, and the tokens that end a text") {
  const ByteLevelVocab v;
  const auto tokenizer = test::tokenizer_of(vocab_from_gguf(v.view));
  CHECK(tokenizer->encode("ab a") == std::vector<int32_t>{3, 5});
  CHECK(tokenizer->decode(std::vector<int32_t>{3, 5, 0}) == "ab a<|endoftext|>");
  CHECK(tokenizer->decode(std::vector<int32_t>{3, 5, 0}, {.skip_special = true}) == "ab a");
  CHECK(std::vector<int32_t>(tokenizer->end_ids().begin(), tokenizer->end_ids().end()) ==
        std::vector<int32_t>{0});
  CHECK(tokenizer->is_control(0));
  CHECK_FALSE(tokenizer->is_control(1));
}

TEST_CASE("gguf vocabulary: every fault is an error that names it") {
  const auto bad = ErrorCode::kBadFile;
  {
    ByteLevelVocab v;
    v.view.tokens = {};
    check_refused(v.view, bad, "no vocabulary");
  }
  {
    ByteLevelVocab v;
    v.view.model = "";
    check_refused(v.view, bad, "no vocabulary");
    v.view.model = "t5";
    check_refused(v.view, ErrorCode::kUnsupported, "t5");
  }
  {
    ByteLevelVocab v;
    v.view.pre = "mystery";
    check_refused(v.view, ErrorCode::kUnsupported, "mystery");
  }
  {
    ByteLevelVocab v;
    v.tokens[2] = "\xff\xfe";
    check_refused(v.view, bad, "UTF-8");
    v.tokens[2] = "a";
    check_refused(v.view, bad, "1 and 2");
  }
  {
    ByteLevelVocab v;
    v.view.eos = 6;
    check_refused(v.view, bad, "eos_token_id");
    v.view.eos = std::numeric_limits<uint64_t>::max();
    check_refused(v.view, bad, "eos_token_id");
  }
  {
    ByteLevelVocab v;
    v.types.pop_back();
    v.view.types = v.types;
    check_refused(v.view, bad, "5 token types");
  }
  {
    ByteLevelVocab v;
    v.types[1] = 7;
    check_refused(v.view, bad, "type");
  }
  {
    ByteLevelVocab v;
    v.merges[0] = "ab";
    check_refused(v.view, bad, "merge 0");
    v.merges[0] = "a c";
    check_refused(v.view, bad, "merge 0");
    v.view.merges = {};
    check_refused(v.view, bad, "merges");
  }
  {
    test::ScoredVocab s({"a"});
    s.scores.pop_back();
    s.view.scores = s.scores;
    check_refused(s.view, bad, "scores");
    s.view.scores = {};
    check_refused(s.view, bad, "scores");
  }
  {
    test::ScoredVocab s({"a"});
    s.scores[5] = std::numeric_limits<float>::quiet_NaN();
    check_refused(s.view, bad, "finite");
  }
}

TEST_CASE("gguf vocabulary: a merge whose result is no token is refused") {
  ByteLevelVocab v;
  v.merges[0] = "b a";
  const auto result = make_tokenizer(test::value_of(vocab_from_gguf(v.view)));
  REQUIRE_FALSE(result);
  CHECK(result.error().message.find("'ba'") != std::string::npos);
}

TEST_CASE("byte-level: bytes without a letter vanish, bytes UTF-8 never holds show as U+FFFD") {
  ByteLevelVocab v;
  v.tokens = {"<|endoftext|>", "a", "\xc3\xaf", "\xc2\xbf", "\xc2\xbd", "\xc4\xa0"};  // EF BF BD, space
  v.tokens.push_back("aa");
  v.types.push_back(1);
  v.merges = {"a a"};
  v.view.tokens = v.tokens;
  v.view.types = v.types;
  v.view.merges = v.merges;
  const auto tokenizer = test::tokenizer_of(vocab_from_gguf(v.view));
  CHECK(tokenizer->decode(tokenizer->encode("a\x01"
                                            "a")) == "aa");
  CHECK(tokenizer->decode(tokenizer->encode("a\xff"
                                            "a")) ==
        "a\xef\xbf\xbd"
        "a");
}
