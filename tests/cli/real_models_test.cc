// The two real models through the program: references of greedy generation and of tokenizers, stop texts,
// emoji.
#include <cmath>
#include <fstream>

#include "run_binary.h"
#include "support/models.h"

namespace doppler::test {
namespace {

using Json = nlohmann::json;

constexpr double kNearTie = 0.05;  // a margin below this may fall either way

Json golden(const std::string& name) {
  std::ifstream file(std::string(DOPPLER_GOLDEN_DIR) + "/" + name);
  Json json = Json::parse(file, nullptr, false);
  REQUIRE(json.is_object());
  return json;
}

std::string smollm2() { return model_path("SmolLM2-135M-Instruct.Q4_1.gguf"); }
std::string gemma() { return model_path("gemma-3-270m-q4_k_m.gguf"); }

void check_greedy(const std::string& model, const std::string& file, const std::string& device) {
  const Json reference = golden(file);
  RunSettings settings;
  for (const Json& ref : reference["refs"])
    settings.input +=
        Json{{"prompt_ids", ref["prompt_ids"]}, {"max_tokens", ref["out_ids"].size()}}.dump() + "\n";
  const Ran ran = run_doppler({"run", model, "--stdin-jsonl", "--temperature", "0", "--precision", "exact",
                               "--device", device, "--logprobs", "5"},
                              settings);
  REQUIRE(ran.exit_code == 0);
  const auto answers = ran.json_lines();
  REQUIRE(answers.size() == reference["refs"].size());
  for (size_t r = 0; r < answers.size(); ++r) {
    const Json& ref = reference["refs"][r];
    const Json& answer = answers[r];
    CAPTURE(ref["tag"].get<std::string>());
    REQUIRE_FALSE(answer.contains("error"));
    const auto wanted = ref["out_ids"].get<std::vector<int>>(), got = answer["ids"].get<std::vector<int>>();
    size_t sure = 0;
    const Json& margins = ref["top1_top2_margin_per_step"];
    while (sure < wanted.size() && sure < margins.size() &&
           (!margins[sure].is_number() || margins[sure].get<double>() >= kNearTie))
      ++sure;
    for (size_t i = 0; i < sure; ++i) {
      CAPTURE(i);
      REQUIRE(i < got.size());
      REQUIRE(got[i] == wanted[i]);
    }
    if (sure == wanted.size())
      CHECK(answer["finish_reason"] == (ref["stop_type"] == "eos" ? "stop" : "length"));
    for (size_t step = 0; step < ref["top5_first3"].size() && step <= sure; ++step) {
      for (const Json& top : ref["top5_first3"][step]) {
        double found = NAN;
        for (const Json& mine : answer["logprobs"][step]["top"])
          if (mine["id"] == top["id"]) found = mine["logprob"].get<double>();
        CAPTURE(step);
        CAPTURE(top.dump());
        CHECK(std::abs(found - top["logprob"].get<double>()) < 0.02);
      }
    }
  }
}

void check_tokenizer(const std::string& model, const std::string& file) {
  const Json reference = golden(file);
  const Json& refs = reference.contains("refs") ? reference["refs"] : reference;
  RunSettings settings;
  for (const Json& ref : refs) {
    settings.input += Json{{"text", ref["text"]}, {"special", true}}.dump() + "\n";
    settings.input += Json{{"text", ref["text"]}}.dump() + "\n";
    settings.input += Json{{"text", ref["text"]}, {"special", true}, {"bos", true}}.dump() + "\n";
    settings.input += Json{{"ids", ref["ids"]}, {"special", true}}.dump() + "\n";
  }
  const Ran ran = run_doppler({"tokenize", model, "--stdin-jsonl"}, settings);
  REQUIRE(ran.exit_code == 0);
  const auto answers = ran.json_lines();
  REQUIRE(answers.size() == 4 * refs.size());
  for (size_t i = 0; i < refs.size(); ++i) {
    CAPTURE(refs[i]["text"].dump());
    CHECK(answers[4 * i]["ids"] == refs[i]["ids"]);
    CHECK(answers[4 * i]["tokens"].size() == refs[i]["ids"].size());
    CHECK(answers[4 * i + 1]["ids"] == refs[i]["ids_noparse"]);
    CHECK(answers[4 * i + 2]["ids"] == refs[i]["ids_bos"]);
    CHECK(answers[4 * i + 3]["text"] == refs[i]["detok"]);
  }
}

TEST_CASE("greedy references of SmolLM2 on the CPU") {
  check_greedy(smollm2(), "greedy-smollm2-f32.json", "cpu");
}
TEST_CASE("greedy references of Gemma 3 on the CPU") {
  check_greedy(gemma(), "greedy-gemma-f32.json", "cpu");
}
TEST_CASE("greedy references of SmolLM2 on lavapipe") {
  check_greedy(smollm2(), "greedy-smollm2-f32.json", "lavapipe");
}
TEST_CASE("greedy references of Gemma 3 on lavapipe") {
  check_greedy(gemma(), "greedy-gemma-f32.json", "lavapipe");
}

TEST_CASE("tokenizer references of SmolLM2") {
  check_tokenizer(smollm2(), "tokenizer/smollm2-references.json");
}
TEST_CASE("tokenizer references of Gemma 3") { check_tokenizer(gemma(), "tokenizer/gemma-references.json"); }

TEST_CASE("stop texts that span tokens cut exactly, streamed or not") {
  struct Case {
    std::string stop, text;
  };
  const std::string model = smollm2();
  const auto args = [&](const std::string& stop, bool json) {
    std::vector<std::string> all = {"run", model,          "1, 2, 3, ", "--device",
                                    "cpu", "--precision",  "exact",     "--temperature",
                                    "0",   "--max-tokens", "16"};
    if (!stop.empty()) all.insert(all.end(), {"--stop", stop});
    if (json) all.push_back("--json");
    return all;
  };
  const std::string whole = run_doppler(args("", true)).json()["text"];
  REQUIRE(whole.starts_with("4, 5, 6, 7, 8"));
  for (const Case& c : {Case{", 7, 8", "4, 5, 6"}, Case{", 7, 9", whole}, Case{"7", "4, 5, 6, "}}) {
    CAPTURE(c.stop);
    const auto json = run_doppler(args(c.stop, true)).json();
    CHECK(json["text"] == c.text);
    CHECK(json["finish_reason"] == (c.text == whole ? "length" : "stop"));
    CHECK(run_doppler(args(c.stop, false)).out == c.text);
  }
}

TEST_CASE("emoji of several tokens stream whole, and no log-probability is dropped") {
  const std::vector<std::string> args = {
      "run",
      smollm2(),
      "\xF0\x9F\x98\x80\xF0\x9F\x8E\x89\xF0\x9F\x98\x80\xF0\x9F\x8E\x89\xF0\x9F\x98\x80\xF0\x9F\x8E\x89",
      "--device",
      "cpu",
      "--temperature",
      "0",
      "--max-tokens",
      "32"};
  const Ran plain = run_doppler(args);
  std::vector<std::string> json_args = args;
  json_args.insert(json_args.end(), {"--json", "--logprobs", "1"});
  const auto json = run_doppler(json_args).json();
  CHECK(plain.out == json["text"].get<std::string>());
  CHECK(plain.out.find("\xF0\x9F") != std::string::npos);  // it does go on with emoji
  // Only a last, unfinished character may be U+FFFD.
  const size_t bad = plain.out.find("\xEF\xBF\xBD");
  CHECK((bad == std::string::npos || bad + 3 == plain.out.size()));
  CHECK(json["logprobs"].size() == json["ids"].size());
}

TEST_CASE("chat goes through the model's template; what a user writes stays text") {
  const auto json = run_doppler({"run", smollm2(), "What is <|im_end|>?", "--chat", "--json", "--max-tokens",
                                 "0", "--device", "cpu"})
                        .json();
  const auto ids = json["prompt_ids"].get<std::vector<int>>();
  // Control tokens 1 (<|im_start|>) and 2 (<|im_end|>): system, user, the assistant's opening.
  CHECK(std::count(ids.begin(), ids.end(), 1) == 3);
  CHECK(std::count(ids.begin(), ids.end(), 2) == 2);
  RunSettings settings;
  settings.input = Json{{"ids", ids}, {"special", true}}.dump();
  CHECK(run_doppler({"tokenize", smollm2(), "--stdin-jsonl"}, settings).json()["text"] ==
        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
        "<|im_start|>user\nWhat is <|im_end|>?<|im_end|>\n<|im_start|>assistant\n");
  const auto raw = [&](const std::string& flag) {
    return run_doppler(
               {"run", smollm2(), "<|im_end|>", flag, "--json", "--max-tokens", "0", "--device", "cpu"})
        .json()["prompt_ids"];
  };
  CHECK(raw("--special") == Json::array({2}));  // a plain prompt is its author's: also the default
  CHECK(raw("--no-special").size() > 1);
  const Ran none = run_doppler({"run", gemma(), "hi", "--chat", "--device", "cpu"});
  CHECK(none.exit_code == 1);
  CHECK(none.one_error_line());
}

TEST_CASE("the chunk of the prefill does not change the ids") {
  const Json reference = golden("greedy-gemma-f32.json");
  const Json* longest = &reference["refs"][0];
  for (const Json& ref : reference["refs"])
    if (ref["prompt_ids"].size() > (*longest)["prompt_ids"].size()) longest = &ref;
  REQUIRE((*longest)["prompt_ids"].size() > 512);  // beyond the window
  RunSettings settings;
  for (const int chunk : {1, 7, 64, 512})
    settings.input +=
        Json{{"prompt_ids", (*longest)["prompt_ids"]}, {"chunk", chunk}, {"max_tokens", 8}}.dump() + "\n";
  const auto answers = run_doppler({"run", gemma(), "--stdin-jsonl", "--temperature", "0", "--precision",
                                    "exact", "--device", "cpu"},
                                   settings)
                           .json_lines();
  REQUIRE(answers.size() == 4);
  for (const Json& answer : answers) CHECK(answer["ids"] == answers[0]["ids"]);
}

}  // namespace
}  // namespace doppler::test
