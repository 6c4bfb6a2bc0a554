// The public interface on a tiny model.
#include <doctest/doctest.h>

#include <thread>

#include "doppler/doppler.h"
#include "support/files.h"
#include "support/tiny_llama.h"

namespace doppler::test {
namespace {

struct Loaded {
  TempDir dir;
  Model model;

  explicit Loaded(const TinyLlama& options = {}, LoadParts parts = LoadParts::kAll)
      : model(load(options, parts)) {}

  Model load(const TinyLlama& options, LoadParts parts) {
    tiny_llama_gguf(dir.file("tiny.gguf"), options);
    LoadOptions load;
    load.device = "cpu";
    load.precision = Precision::kExact;
    load.threads = 2;
    load.parts = parts;
    auto loaded = Model::load(dir.file("tiny.gguf"), load);
    REQUIRE_MESSAGE(loaded.has_value(), loaded.error().message);
    return *loaded;
  }
};

GenerateOptions greedy(uint32_t max_tokens) {
  GenerateOptions options;
  options.sampling.temperature = 0;
  options.max_tokens = max_tokens;
  options.ignore_end = true;
  return options;
}

SessionOptions with_context(uint32_t context) {
  SessionOptions options;
  options.context = context;
  return options;
}

TEST_CASE("what a model says of itself") {
  const Loaded tiny;
  const ModelInfo& info = tiny.model.info();
  CHECK(info.family == "llama");
  CHECK(info.max_context == 256);
  CHECK(info.vocab > 256);
  CHECK_FALSE(info.on_gpu);
  CHECK(info.device.find("CPU") != std::string::npos);
  CHECK_FALSE(info.device_reason.empty());
  CHECK_FALSE(version().empty());
}

TEST_CASE("streamed text is the text, and a callback can stop it") {
  const Loaded tiny;
  Session session = tiny.model.new_session().value();
  std::string streamed;
  GenerateCallbacks callbacks;
  callbacks.on_text = [&](std::string_view text) {
    streamed += text;
    return true;
  };
  const Generation whole = session.generate("hello", greedy(30), callbacks).value();
  CHECK(whole.ids.size() == 30);
  CHECK(whole.text == streamed);
  CHECK(whole.finish == FinishReason::kLength);
  CHECK(whole.timings.prompt_tokens == whole.prompt_ids.size());

  callbacks.on_text = [](std::string_view) { return false; };
  const Generation stopped = session.generate("hello", greedy(30), callbacks).value();
  CHECK(stopped.finish == FinishReason::kCancelled);
  CHECK(stopped.ids.size() < 30);
  CHECK_FALSE(stopped.ids.empty());

  callbacks = {};
  std::vector<int32_t> seen;
  callbacks.on_id = [&](int32_t id) {
    seen.push_back(id);
    return seen.size() < 4;
  };
  const Generation four = session.generate("hello", greedy(30), callbacks).value();
  CHECK(four.finish == FinishReason::kCancelled);
  CHECK(four.ids == seen);
  CHECK(seen.size() == 4);

  callbacks = {};
  callbacks.on_prompt = [](uint32_t, uint32_t) { return false; };
  const Generation none = session.generate("hello", greedy(30), callbacks).value();
  CHECK(none.finish == FinishReason::kCancelled);
  CHECK(none.ids.empty());
}

TEST_CASE("cancel from another thread keeps what there is, and the session goes on") {
  TinyLlama endless;
  endless.context = 1u << 20;
  const Loaded tiny(endless);
  Session session = tiny.model.new_session().value();
  session.cancel();  // nothing runs: no effect on what follows
  std::atomic<int> texts = 0;
  GenerateCallbacks callbacks;
  callbacks.on_text = [&](std::string_view) {
    ++texts;
    return true;
  };
  std::thread other([&] {
    while (texts.load() < 3) std::this_thread::yield();
    session.cancel();
  });
  const Generation out = session.generate("hello", greedy(1000000), callbacks).value();
  other.join();
  CHECK(out.finish == FinishReason::kCancelled);
  CHECK(out.ids.size() >= 3);
  const Generation next = session.generate("hello", greedy(5)).value();
  CHECK(next.finish == FinishReason::kLength);
  CHECK(std::equal(next.ids.begin(), next.ids.end(), out.ids.begin()));
}

TEST_CASE("sessions on one model do not touch each other, from several threads") {
  const Loaded tiny;
  const std::vector<std::string> prompts = {"hello", "a", "the quick brown fox", "1 2 3"};
  std::vector<std::vector<int32_t>> alone, together(prompts.size());
  for (const std::string& prompt : prompts) {
    Session session = tiny.model.new_session().value();
    alone.push_back(session.generate(prompt, greedy(20)).value().ids);
  }
  std::vector<std::thread> threads;
  for (size_t i = 0; i < prompts.size(); ++i)
    threads.emplace_back([&, i] {
      Session session = tiny.model.new_session().value();
      together[i] = session.generate(prompts[i], greedy(20)).value().ids;
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(together == alone);
  CHECK(alone[0] != alone[1]);
}

TEST_CASE("the chunk of the prompt does not change the ids") {
  const Loaded tiny;
  Session session = tiny.model.new_session().value();
  std::vector<int32_t> prompt(60);
  for (size_t i = 0; i < prompt.size(); ++i) prompt[i] = static_cast<int32_t>(10 + i % 90);
  const std::span<const int32_t> ids(prompt);
  const std::vector<int32_t> wanted = session.generate(ids, greedy(10)).value().ids;
  for (const uint32_t chunk : {1u, 7u, 59u, 60u, 1000u}) {
    CAPTURE(chunk);
    GenerateOptions options = greedy(10);
    options.chunk = chunk;
    uint32_t calls = 0, last = 0;
    GenerateCallbacks callbacks;
    callbacks.on_prompt = [&](uint32_t done, uint32_t total) {
      ++calls;
      last = done;
      CHECK(total == 60);
      return true;
    };
    CHECK(session.generate(ids, options, callbacks).value().ids == wanted);
    CHECK(calls == (60 + std::min(chunk, 60u) - 1) / std::min(chunk, 60u));
    CHECK(last == 60);
  }
}

TEST_CASE("a stop text ends the generation and is not in its text") {
  const Loaded tiny;
  Session session = tiny.model.new_session().value();
  const Generation free = session.generate("hello", greedy(12)).value();
  REQUIRE(free.text.size() > 4);
  GenerateOptions options = greedy(12);
  options.stop = {free.text.substr(2, 2)};
  const Generation stopped = session.generate("hello", options).value();
  CHECK(stopped.finish == FinishReason::kStop);
  CHECK(stopped.text == free.text.substr(0, free.text.find(options.stop[0])));
  CHECK(stopped.ids.size() <= free.ids.size());
}

TEST_CASE("encode and decode, with only the tokenizer loaded") {
  const Loaded tiny({}, LoadParts::kTokenizer);
  const std::string text = "hello \xC3\xA9 \xF0\x9F\x98\x80";
  const auto ids = tiny.model.encode(text).value();
  CHECK(tiny.model.decode(ids).value() == text);
  CHECK(tiny.model.token_texts(ids).value().size() == ids.size());
  CHECK_FALSE(tiny.model.decode(std::vector<int32_t>{1 << 30}).has_value());
  CHECK_FALSE(tiny.model.decode(std::vector<int32_t>{-1}).has_value());
  CHECK_FALSE(tiny.model.new_session().has_value());
}

TEST_CASE("requests that cannot be met are refused before anything runs") {
  const Loaded tiny;
  Session session = tiny.model.new_session(with_context(16)).value();
  CHECK(session.context() == 16);
  const auto code = [](const Result<Generation>& result) {
    REQUIRE_FALSE(result.has_value());
    return result.error().code;
  };
  const std::vector<int32_t> many(17, 5), outside = {5, 1 << 30}, negative = {-1}, empty;
  CHECK(code(session.generate(std::span<const int32_t>(many), greedy(1))) == ErrorCode::kBadInput);
  CHECK(code(session.generate(std::span<const int32_t>(outside), greedy(1))) == ErrorCode::kBadInput);
  CHECK(code(session.generate(std::span<const int32_t>(negative), greedy(1))) == ErrorCode::kBadInput);
  CHECK(code(session.generate(std::span<const int32_t>(empty), greedy(1))) == ErrorCode::kBadInput);
  GenerateOptions options = greedy(1);
  options.stop = {""};
  CHECK(code(session.generate("hello", options)) == ErrorCode::kBadInput);
  options = greedy(1);
  options.sampling.repetition_penalty = -1;
  CHECK(code(session.generate("hello", options)) == ErrorCode::kBadInput);
  const std::vector<ChatMessage> odd_role = {{"narrator", "hi"}};
  CHECK(code(session.generate(std::span<const ChatMessage>(odd_role), greedy(1))) == ErrorCode::kBadInput);
  CHECK_FALSE(tiny.model.new_session(with_context(257)).has_value());
  CHECK_FALSE(Model::load("/no/such/model.gguf").has_value());
}

}  // namespace
}  // namespace doppler::test
