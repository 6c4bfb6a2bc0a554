// doppler embed: one text, lines of a file, lines of JSON, and what is said about texts that are cut.
#include <cmath>
#include <filesystem>
#include <sstream>

#include "run_binary.h"
#include "support/files.h"
#include "support/models.h"
#include "support/tiny_llama.h"

namespace doppler::test {
namespace {

using Args = std::vector<std::string>;

Ran embed(const Args& more, const std::string& input = "") {
  Args all = {"embed", model_path("all-minilm-l6-v2"), "--device", "cpu"};
  all.insert(all.end(), more.begin(), more.end());
  RunSettings settings;
  settings.input = input;
  return run_doppler(all, settings);
}

TEST_CASE("embed: the numbers of a text in one line, and the same as JSON") {
  const Ran plain = embed({"A man is eating food."});
  REQUIRE(plain.exit_code == 0);
  CHECK(plain.err.empty());
  std::istringstream in(plain.out);
  std::vector<double> numbers;
  for (double x; in >> x;) numbers.push_back(x);
  REQUIRE(numbers.size() == 384);
  const auto json = embed({"A man is eating food.", "--json"}).json();
  CHECK(json["ids"] == nlohmann::json({101, 1037, 2158, 2003, 5983, 2833, 1012, 102}));
  CHECK(json["embedding"].get<std::vector<double>>() == numbers);
  CHECK(json["truncated"] == false);
  CHECK(json["model"].is_string());
  CHECK(json["device"].is_string());
  double sum = 0;
  for (const double x : numbers) sum += x * x;
  CHECK(std::sqrt(sum) == doctest::Approx(1).epsilon(1e-5));
}

TEST_CASE("embed --file: a vector for each line, empty ones too") {
  const Ran plain = embed({"--file", "-"}, "hello\n\nlast line");
  REQUIRE(plain.exit_code == 0);
  CHECK(std::count(plain.out.begin(), plain.out.end(), '\n') == 3);
  const auto json = embed({"--file", "-", "--json"}, "hello\r\n\nlast line\n").json();
  REQUIRE(json["embeddings"].size() == 3);
  CHECK(json["embeddings"][0]["ids"] == nlohmann::json({101, 7592, 102}));
  CHECK(json["embeddings"][1]["ids"] == nlohmann::json({101, 102}));
  CHECK(embed({"--file", "-"}, "").out.empty());
}

TEST_CASE("embed --stdin-jsonl answers every line, wrong ones with an error") {
  const Ran ran = embed({"--stdin-jsonl"},
                        "{\"text\": \"hello\"}\n\n{\"text\": \"\"}\n[1]\n{\"text\": 3}\n{\"text\": \"a\", "
                        "\"top_k\": 1}\nnonsense\n{\"text\": \"hello\"}\n");
  REQUIRE(ran.exit_code == 0);
  const auto lines = ran.json_lines();
  REQUIRE(lines.size() == 7);
  CHECK(lines[0]["embedding"].size() == 384);
  CHECK(lines[1]["ids"].size() == 2);
  for (const size_t wrong : {2, 3, 4, 5}) CHECK(lines[wrong]["error"].is_string());
  CHECK(lines[6] == lines[0]);
}

TEST_CASE("a text beyond the limit is cut, and that is said") {
  std::string words;
  for (int i = 0; i < 300; ++i) words += "word ";
  const Ran plain = embed({words});
  CHECK(plain.exit_code == 0);
  CHECK(plain.one_error_line());
  CHECK(plain.err.find("256 tokens") != std::string::npos);
  const auto json = embed({words, "--json"}).json();
  CHECK(json["truncated"] == true);
  CHECK(json["ids"].size() == 256);
  CHECK(json["ids"].back() == 102);
  CHECK(embed({"one two three four", "--json", "--context", "4"}).json()["ids"].size() == 4);
}

TEST_CASE("the wrong kind of model is one clear error") {
  const TempDir dir;
  tiny_llama_gguf(dir.file("tiny.gguf"));
  const Ran text = run_doppler({"embed", dir.file("tiny.gguf"), "hello", "--device", "cpu"});
  CHECK(text.exit_code == 1);
  CHECK(text.one_error_line());
  CHECK(text.err.find("doppler run") != std::string::npos);
  for (const Args& arguments :
       {Args{"run", model_path("all-minilm-l6-v2"), "hello", "--device", "cpu"},
        {"bench", model_path("all-minilm-l6-v2"), "--device", "cpu"},
        {"eval", model_path("all-minilm-l6-v2"), "--text", "/etc/passwd", "--device", "cpu"}}) {
    const Ran ran = run_doppler(arguments);
    CAPTURE(arguments[0]);
    CHECK(ran.exit_code == 1);
    CHECK(ran.out.empty());
    CHECK(ran.one_error_line());
    CHECK(ran.err.find("embed") != std::string::npos);
  }
}

}  // namespace
}  // namespace doppler::test
