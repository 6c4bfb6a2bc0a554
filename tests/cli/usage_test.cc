// Wrong usage, help, version.
#include "run_binary.h"

namespace doppler::test {
namespace {

TEST_CASE("wrong usage is exit code 2 and one line") {
  const std::vector<std::vector<std::string>> wrong = {
      {},
      {"swim"},
      {"run"},
      {"run", "m.gguf"},
      {"run", "m.gguf", "a", "b"},
      {"run", "m.gguf", "a", "--no-such-option"},
      {"run", "m.gguf", "a", "--prompt-file", "f"},
      {"run", "m.gguf", "a", "--prompt-ids", "1"},
      {"run", "m.gguf", "a", "--stdin-jsonl"},
      {"run", "m.gguf", "--json", "--stdin-jsonl"},
      {"run", "m.gguf", "--prompt-ids", "1,x"},
      {"run", "m.gguf", "--prompt-ids", "1,"},
      {"run", "m.gguf", "--prompt-ids", "-1"},
      {"run", "m.gguf", "--prompt-ids", "99999999999"},
      {"run", "m.gguf", "--prompt-ids", "1", "--chat"},
      {"run", "m.gguf", "--prompt-ids", "1", "--stop", "x"},
      {"run", "m.gguf", "a", "--max-tokens", "abc"},
      {"run", "m.gguf", "a", "--max-tokens", "-1"},
      {"run", "m.gguf", "a", "--max-tokens", "1.5"},
      {"run", "m.gguf", "a", "--max-tokens", "99999999999999999999"},
      {"run", "m.gguf", "a", "--temperature", "nan"},
      {"run", "m.gguf", "a", "--temperature", "inf"},
      {"run", "m.gguf", "a", "--temperature", "hot"},
      {"run", "m.gguf", "a", "--repetition-penalty", "0"},
      {"run", "m.gguf", "a", "--logprobs", "5000"},
      {"run", "m.gguf", "a", "--context", "0"},
      {"run", "m.gguf", "a", "--seed", "-4"},
      {"run", "m.gguf", "a", "--stop", ""},
      {"run", "m.gguf", "a", "--precision", "half"},
      {"run", "m.gguf", "a", "--kv", "f8"},
      {"run", "m.gguf", "a", "--system", "s"},
      {"tokenize", "m.gguf"},
      {"tokenize", "m.gguf", "a", "--decode", "1"},
      {"convert", "m.gguf"},
      {"convert", "m.gguf", "out", "--hash", "md5"},
      {"convert", "m.gguf", "out", "--shard-size", "64 MB"},
      {"convert", "m.gguf", "out", "--shard-size", "99999999999GiB"},
      {"convert", "m.gguf", "out", "--quant", "q9"},
      {"embed"},
      {"embed", "m"},
      {"embed", "m", "a", "--file", "f"},
      {"embed", "m", "a", "--stdin-jsonl"},
      {"embed", "m", "--json", "--stdin-jsonl"},
      {"embed", "m", "a", "--context", "0"},
      {"bench", "m.gguf", "--runs", "0"},
      {"eval", "m.gguf"},
      {"eval", "m.gguf", "--text", "f", "--against", "fast"},
      {"pull"},
  };
  for (const auto& arguments : wrong) {
    std::string line;
    for (const std::string& argument : arguments) line += argument + " ";
    CAPTURE(line);
    const Ran ran = run_doppler(arguments);
    CHECK(ran.exit_code == 2);
    CHECK(ran.out.empty());
    CHECK(ran.one_error_line());
    CHECK(ran.err.find("--help") != std::string::npos);
  }
}

TEST_CASE("an unknown command is named") {
  CHECK(run_doppler({"swim"}).err.find("a command wanted, got \"swim\"") != std::string::npos);
}

TEST_CASE("every command has help with an example") {
  const Ran all = run_doppler({"--help"});
  CHECK(all.exit_code == 0);
  for (const char* command : {"run", "tokenize", "embed", "convert", "inspect", "verify", "devices", "bench",
                              "eval", "plan", "pull", "list", "rm"}) {
    CAPTURE(command);
    CHECK(all.out.find(command) != std::string::npos);
    const Ran one = run_doppler({command, "--help"});
    CHECK(one.exit_code == 0);
    CHECK(one.err.empty());
    CHECK(one.out.find("Example:\n  doppler " + std::string(command)) != std::string::npos);
    CHECK(one.out.find("--verbose") != std::string::npos);
  }
}

TEST_CASE("the version") {
  const Ran ran = run_doppler({"--version"});
  CHECK(ran.exit_code == 0);
  CHECK(ran.out.starts_with("doppler "));
}

TEST_CASE("a model that is not there is one line and exit code 1") {
  for (const auto& arguments :
       std::vector<std::vector<std::string>>{{"run", "/no/such.gguf", "x"},
                                             {"tokenize", "no-such-name", "x"},
                                             {"embed", "/no/such", "x"},
                                             {"inspect", "/no/such.gguf"},
                                             {"verify", "/no/such"},
                                             {"bench", "/no/such.gguf"},
                                             {"plan", "/no/such.gguf"},
                                             {"eval", "/no/such.gguf", "--text", "/dev/null"},
                                             {"convert", "/no/such.gguf", "/tmp/never"},
                                             {"pull", "no-such-name"},
                                             {"rm", "no-such-name"}}) {
    CAPTURE(arguments[0]);
    const Ran ran = run_doppler(arguments);
    CHECK(ran.exit_code == 1);
    CHECK(ran.out.empty());
    CHECK(ran.one_error_line());
  }
}

}  // namespace
}  // namespace doppler::test
