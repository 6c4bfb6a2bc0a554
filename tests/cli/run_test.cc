// doppler run on a tiny model: output, options, lines of JSON, pipes and signals.
#include <filesystem>

#include "run_binary.h"
#include "support/files.h"
#include "support/tiny_llama.h"

namespace doppler::test {
namespace {

struct TinyModel {
  TempDir dir;
  std::string path = dir.file("tiny.gguf");
  explicit TinyModel(const TinyLlama& options = {}) { tiny_llama_gguf(path, options); }
};

using Args = std::vector<std::string>;

Args greedy(const std::string& model, Args more) {
  Args all = {"run", model, "--device", "cpu", "--temperature", "0"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

TEST_CASE("--json prints one object with everything scripts rely on") {
  const TinyModel model;
  const Ran ran =
      run_doppler(greedy(model.path, {"hello", "--json", "--max-tokens", "6", "--logprobs", "3"}));
  REQUIRE(ran.exit_code == 0);
  CHECK(ran.err.empty());
  const auto json = ran.json();
  for (const char* key : {"model", "device", "text", "finish_reason"}) CHECK(json[key].is_string());
  CHECK(json["prompt_ids"].size() > 0);
  CHECK(json["ids"].size() <= 6);
  REQUIRE(json["logprobs"].size() == json["ids"].size());
  for (size_t i = 0; i < json["ids"].size(); ++i) {
    const auto& step = json["logprobs"][i];
    CHECK(step["id"] == json["ids"][i]);
    REQUIRE(step["top"].size() == 3);
    CHECK(step["top"][0]["id"] == step["id"]);  // greedy takes the likeliest
    CHECK(step["top"][0]["logprob"] == step["logprob"]);
    CHECK(step["top"][1]["logprob"].get<double>() <= step["logprob"].get<double>());
  }
  for (const char* key : {"load_ms", "prompt_tokens", "prompt_ms", "first_token_ms", "gen_tokens", "gen_ms"})
    CHECK(json["timings"][key].is_number());
  CHECK(json["timings"]["gen_tokens"] == json["ids"].size());
}

TEST_CASE("plain mode streams the same text and ends with speeds on stderr") {
  const TinyModel model;
  const Ran json = run_doppler(greedy(model.path, {"hello", "--json", "--max-tokens", "20"}));
  const Ran plain = run_doppler(greedy(model.path, {"hello", "--max-tokens", "20"}));
  CHECK(plain.exit_code == 0);
  CHECK(plain.out == json.json()["text"].get<std::string>());
  CHECK(plain.err.find("tokens/s") != std::string::npos);
  CHECK(plain.err.find('\n') == plain.err.size() - 1);
}

TEST_CASE("no tokens, and not one more than asked for") {
  const TinyModel model;
  const auto none = run_doppler(greedy(model.path, {"hello", "--json", "--max-tokens", "0"})).json();
  CHECK(none["ids"].empty());
  CHECK(none["text"] == "");
  CHECK(none["finish_reason"] == "length");
  const auto one = run_doppler(greedy(model.path, {"hello", "--json", "--max-tokens", "1"})).json();
  CHECK(one["ids"].size() == 1);
}

TEST_CASE("seeds repeat, and a random one is told") {
  const TinyModel model;
  const auto ids = [&](const Args& more) {
    Args all = {"run",    model.path,     "hello", "--device",      "cpu",
                "--json", "--max-tokens", "12",    "--temperature", "2"};
    all.insert(all.end(), more.begin(), more.end());
    return run_doppler(all).json();
  };
  CHECK(ids({"--seed", "7"})["ids"] == ids({"--seed", "7"})["ids"]);
  CHECK(ids({"--seed", "7"})["ids"] != ids({"--seed", "8"})["ids"]);
  const auto random = ids({});
  CHECK(ids({"--seed", std::to_string(random["seed"].get<uint64_t>())})["ids"] == random["ids"]);
}

TEST_CASE("the prompt reaches the model as it was typed") {
  const TinyModel model;
  for (const std::string prompt :
       {"[a,b]", "{}", "%%", "\"quoted\"", "'x'", "a  b ", "[]", "--", "\\n", "=", "-"}) {
    CAPTURE(prompt);
    const auto typed = run_doppler(greedy(model.path, {"--json", "--max-tokens", "0", "--", prompt})).json();
    RunSettings settings;
    settings.input = prompt;
    const auto piped =
        run_doppler(greedy(model.path, {"--json", "--max-tokens", "0", "--prompt-file", "-"}), settings)
            .json();
    CHECK(typed["prompt_ids"] == piped["prompt_ids"]);
    CHECK(typed["prompt_ids"].size() > 0);
  }
}

TEST_CASE("prompt ids go in and ids come out, without a tokenizer") {
  const TinyModel model;
  const auto json =
      run_doppler(greedy(model.path, {"--prompt-ids", "5, 6,7", "--json", "--max-tokens", "4"})).json();
  CHECK(json["prompt_ids"] == nlohmann::json({5, 6, 7}));
  CHECK(json["ids"].size() > 0);
  CHECK(json["text"] == "");
  std::string ids;
  for (const auto& id : json["ids"]) ids += (ids.empty() ? "" : ",") + id.dump();
  CHECK(run_doppler(greedy(model.path, {"--prompt-ids", "5,6,7", "--max-tokens", "4"})).out == ids + "\n");
  const Ran beyond = run_doppler(greedy(model.path, {"--prompt-ids", "5,100000000"}));
  CHECK(beyond.exit_code == 1);
  CHECK(beyond.one_error_line());
}

TEST_CASE("the context holds prompt and answer, and says so when it does not") {
  const TinyModel model;
  const auto to_end =
      run_doppler(greedy(model.path, {"--prompt-ids", "5,6,7,8", "--json", "--context", "8"})).json();
  CHECK(to_end["finish_reason"] == "length");
  CHECK(to_end["ids"].size() == 5);  // the last one needs no place in the cache
  const auto full =
      run_doppler(greedy(model.path, {"--prompt-ids", "5,6,7,8", "--json", "--context", "4"})).json();
  CHECK(full["ids"].size() == 1);
  const Ran long_prompt = run_doppler(greedy(model.path, {"--prompt-ids", "5,6,7,8,9", "--context", "4"}));
  CHECK(long_prompt.exit_code == 1);
  CHECK(long_prompt.one_error_line());
  CHECK(long_prompt.err.find("5 tokens") != std::string::npos);
  CHECK(long_prompt.err.find("--context") != std::string::npos);
  const Ran too_large = run_doppler(greedy(model.path, {"hello", "--context", "100000"}));
  CHECK(too_large.exit_code == 1);
  CHECK(too_large.one_error_line());
}

TEST_CASE("what cannot be done is one line") {
  const TinyModel model;
  for (const Args& more : std::vector<Args>{{""},  // no text and no BOS
                                            {"hello", "--kv", "q8"},
                                            {"hello", "--device", "no-such-adapter"},
                                            {"hello", "--device", ""},
                                            {"--prompt-file", "/no/such/file"}}) {
    CAPTURE(more.back());
    Args all = {"run", model.path};
    all.insert(all.end(), more.begin(), more.end());
    const Ran ran = run_doppler(all);
    CHECK(ran.exit_code == 1);
    CHECK(ran.out.empty());
    CHECK(ran.one_error_line());
  }
}

TEST_CASE("lines of JSON: each is answered, a wrong one with its error") {
  const TinyModel model;
  RunSettings settings;
  settings.input =
      "{\"prompt\": \"hello\", \"max_tokens\": 3}\n"
      "\n"
      "not json\n"
      "[1]\n"
      "{\"prompt\": 5}\n"
      "{\"prompt\": \"a\", \"max_tokens\": \"3\"}\n"
      "{\"prompt\": \"a\", \"max_tokens\": -3}\n"
      "{\"prompt\": \"a\", \"max_tokens\": 2.5}\n"
      "{\"prompt\": \"a\", \"temperature\": null}\n"
      "{\"prompt\": \"a\", \"stop\": [1]}\n"
      "{\"prompt\": \"a\", \"stop\": [\"\"]}\n"
      "{\"prompt\": \"a\", \"max-tokens\": 3}\n"
      "{\"prompt_ids\": [1, -2]}\n"
      "{\"prompt_ids\": [1, 4000000000]}\n"
      "{\"prompt_ids\": []}\n"
      "{\"max_tokens\": 3}\n"
      "{\"prompt\": \"a\", \"prompt_ids\": [1]}\n"
      "{\"prompt\": \"a\", \"seed\": -1}\n"
      "{\"prompt\": \"\xff\"}\n"
      "{\"prompt_ids\": [5, 6], \"max_tokens\": 2, \"top_k\": 5, \"top_p\": 0.5, \"min_p\": 0.1, \"seed\": "
      "3, "
      "\"repetition_penalty\": 1.1, \"chunk\": 1, \"context\": 64, \"kv\": \"f32\", \"logprobs\": 2, "
      "\"precision\": \"exact\", \"threads\": 1}\n"
      "{\"prompt\": \"hello\", \"max_tokens\": 3}";  // no line end at the end of input
  const Ran ran = run_doppler(greedy(model.path, {"--stdin-jsonl"}), settings);
  CHECK(ran.exit_code == 0);
  CHECK(ran.err.empty());
  const auto lines = ran.json_lines();
  REQUIRE(lines.size() == 20);
  for (size_t i = 1; i < 18; ++i) {
    CAPTURE(i);
    CHECK(lines[i]["error"].is_string());
    CHECK(lines[i].size() == 1);
  }
  CHECK(lines[18]["ids"].size() == 2);
  CHECK(lines[18]["logprobs"].size() == 2);
  CHECK(lines[0]["ids"].size() == 3);
  CHECK(lines[0]["ids"] == lines[19]["ids"]);  // one line leaves nothing behind for the next
  CHECK(lines[0]["text"] == lines[19]["text"]);
}

TEST_CASE("a full disk is reported, a closed pipe is not") {
  const TinyModel model;
  RunSettings full;
  full.stdout_path = "/dev/full";
  for (const Args& arguments : {greedy(model.path, {"hello"}), greedy(model.path, {"hello", "--json"}),
                                Args{"--version"}, Args{"list"}}) {
    const Ran ran = run_doppler(arguments, full);
    CHECK(ran.exit_code == 1);
    CHECK(ran.one_error_line());
    CHECK(ran.err.find("No space left") != std::string::npos);
  }
  RunSettings closed;
  closed.close_stdout_after = 1;
  TinyLlama endless;
  endless.context = 1u << 20;
  const TinyModel large(endless);
  const Ran ran = run_doppler(greedy(large.path, {"hello", "--max-tokens", "1000000"}), closed);
  CHECK(ran.exit_code == 0);
  CHECK(ran.signal == 0);
  CHECK(ran.err.empty());
}

TEST_CASE("Ctrl-C keeps what was generated") {
  TinyLlama endless;
  endless.context = 1u << 20;
  const TinyModel model(endless);
  RunSettings settings;
  settings.interrupt_after = 20;
  const Ran plain = run_doppler(greedy(model.path, {"hello", "--max-tokens", "1000000"}), settings);
  CHECK(plain.exit_code == 130);
  CHECK(plain.out.size() >= 20);
  CHECK(plain.err.find("[cancelled]") != std::string::npos);

  // Ids only: no text ever comes that could be the occasion to look.
  settings.interrupt_after = 1;
  settings.input =
      "{\"prompt_ids\": [5], \"max_tokens\": 1}\n{\"prompt_ids\": [5], \"max_tokens\": 1000000}\n";
  CHECK(run_doppler(greedy(model.path, {"--stdin-jsonl"}), settings).exit_code == 130);

  // The answer to the first line is the sign that the second has begun.
  settings.interrupt_after = 1;
  settings.input =
      "{\"prompt\": \"hello\", \"max_tokens\": 1}\n{\"prompt\": \"hello\", \"max_tokens\": 1000000}\n";
  const Ran lines = run_doppler(greedy(model.path, {"--stdin-jsonl"}), settings);
  CHECK(lines.exit_code == 130);
  const auto answers = lines.json_lines();
  REQUIRE(answers.size() <= 2);
  if (answers.size() == 2) CHECK(answers[1]["finish_reason"] == "cancelled");
}

}  // namespace
}  // namespace doppler::test
