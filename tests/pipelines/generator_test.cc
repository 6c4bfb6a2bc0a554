// The generation loop and the evaluation on a tiny model that runs on the CPU.
#include "pipelines/text/generator.h"

#include <doctest/doctest.h>

#include <cmath>

#include "model/model.h"
#include "pipelines/text/eval.h"
#include "pipelines/text/text_files.h"
#include "sampling/logprob.h"
#include "support/files.h"
#include "support/tiny_llama.h"

namespace doppler::test {
namespace {

struct Tiny {
  TempDir dir;
  model::LoadedModel model;
  std::unique_ptr<Executor> executor;
  std::unique_ptr<Tokenizer> tokenizer;
  std::unique_ptr<KvCache> kv;

  Tiny() {
    const std::string path = dir.file("tiny.gguf");
    tiny_llama_gguf(path, {});
    model = model::open_model(path).value();
    executor = make_cpu_executor(model.graph, *model.weights, {.precision = Precision::kExact, .threads = 1})
                   .value();
    tokenizer = tokenizer_of(*model.source, path).value();
    kv = executor->make_kv(256, KvType::kF32).value();
  }

  Generation run(const std::vector<int32_t>& end_ids, const GenerateOptions& options) {
    const GeneratorModel generator{model.config.vocab, end_ids, tokenizer.get()};
    const std::vector<int32_t> prompt = tokenizer->encode("hello");
    return generate(*executor, *kv, generator, prompt, options, {}, nullptr).value();
  }
};

GenerateOptions greedy(uint32_t max_tokens) {
  GenerateOptions options;
  options.sampling.temperature = 0;
  options.max_tokens = max_tokens;
  return options;
}

TEST_CASE("an end token stops, is kept in the ids and is not in the text") {
  Tiny tiny;
  const Generation free = tiny.run({}, greedy(12));
  REQUIRE(free.ids.size() == 12);
  size_t at = 1;  // the first id that was not generated before
  while (std::find(free.ids.begin(), free.ids.begin() + static_cast<ptrdiff_t>(at), free.ids[at]) !=
         free.ids.begin() + static_cast<ptrdiff_t>(at))
    ++at;
  const Generation stopped = tiny.run({-7, free.ids[at]}, greedy(12));
  CHECK(stopped.finish == FinishReason::kStop);
  CHECK(stopped.ids ==
        std::vector<int32_t>(free.ids.begin(), free.ids.begin() + static_cast<ptrdiff_t>(at) + 1));
  CHECK(stopped.text == tiny.tokenizer->decode(std::span(free.ids).first(at), {.skip_special = true}));
  GenerateOptions on = greedy(12);
  on.ignore_end = true;
  CHECK(tiny.run({free.ids[at]}, on).ids == free.ids);
}

TEST_CASE("log-probabilities are those of the raw logits, one step an id") {
  Tiny tiny;
  GenerateOptions options = greedy(5);
  options.sampling.repetition_penalty = 3;  // changes what is drawn, not what is reported
  options.logprobs = 4;
  const Generation out = tiny.run({}, options);
  REQUIRE(out.logprobs.size() == out.ids.size());
  std::vector<int32_t> all = out.prompt_ids;
  all.insert(all.end(), out.ids.begin(), out.ids.end() - 1);
  tiny.kv->truncate(0);
  std::vector<float> logits(all.size() * tiny.model.config.vocab);
  REQUIRE(tiny.executor->forward(*tiny.kv, all, LogitRows::kAll, logits).has_value());
  for (size_t i = 0; i < out.ids.size(); ++i) {
    const auto row = std::span<const float>(logits).subspan(
        (out.prompt_ids.size() - 1 + i) * tiny.model.config.vocab, tiny.model.config.vocab);
    const StepLogprobs wanted = step_logprobs(row, out.ids[i], 4).value();
    CHECK(out.logprobs[i].chosen.logprob == doctest::Approx(wanted.chosen.logprob).epsilon(1e-4));
    CHECK(out.logprobs[i].top[0].id == wanted.top[0].id);
  }
}

TEST_CASE("perplexity is that of its definition, whatever the chunk") {
  Tiny tiny;
  const uint32_t vocab = tiny.model.config.vocab, window = 16;
  std::vector<int32_t> ids(3 * window + 5);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(3 + (i * i) % 200);
  EvalOptions options;
  options.window = window;
  options.bos = 1;
  options.kv = KvType::kF32;

  double nll = 0;
  uint32_t count = 0;
  for (size_t w = 0; w < 3; ++w) {
    std::vector<int32_t> part(ids.begin() + static_cast<ptrdiff_t>(w * window),
                              ids.begin() + static_cast<ptrdiff_t>((w + 1) * window));
    part[0] = 1;
    tiny.kv->truncate(0);
    std::vector<float> logits(size_t{window} * vocab);
    REQUIRE(tiny.executor->forward(*tiny.kv, part, LogitRows::kAll, logits).has_value());
    for (uint32_t next = window / 2 + 1; next < window; ++next, ++count)
      nll -= step_logprobs(std::span<const float>(logits).subspan(size_t{next - 1} * vocab, vocab),
                           part[next], 0)
                 .value()
                 .chosen.logprob;
  }
  for (const uint32_t chunk : {0u, 1u, 3u, 8u}) {
    options.chunk = chunk;
    const EvalResult result = evaluate(*tiny.executor, nullptr, vocab, ids, options, {}).value();
    CHECK(result.windows == 3);
    CHECK(result.predictions == count);
    CHECK(result.perplexity == doctest::Approx(std::exp(nll / count)).epsilon(1e-5));
    CHECK_FALSE(result.kl_mean.has_value());
  }
  options.chunk = 0;
  const EvalResult same = evaluate(*tiny.executor, tiny.executor.get(), vocab, ids, options, {}).value();
  CHECK(same.kl_mean.value() == doctest::Approx(0).epsilon(1e-9));
  CHECK(same.reference_perplexity.value() == doctest::Approx(same.perplexity));
  options.max_windows = 1;
  CHECK(evaluate(*tiny.executor, nullptr, vocab, ids, options, {}).value().windows == 1);
  options.window = 128;
  CHECK_FALSE(evaluate(*tiny.executor, nullptr, vocab, ids, options, {}).has_value());
}

}  // namespace
}  // namespace doppler::test
