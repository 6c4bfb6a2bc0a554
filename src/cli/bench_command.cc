// doppler bench
#include <fmt/core.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/interrupt.h"
#include "cli/json.h"
#include "cli/program.h"
#include "cli/progress_bar.h"
#include "cli/run_options.h"
#include "cli/values.h"
#include "doppler/doppler.h"

namespace doppler::cli {
namespace {

struct BenchCommand {
  RunOptions options;
  uint32_t prompt_tokens = 512, gen_tokens = 128, runs = 3;
  bool json = false;
};

struct BenchResult {
  std::string device;
  double load_ms = 0, prompt_tok_s = 0, gen_tok_s = 0, first_token_ms = 0;
  uint64_t peak_rss_bytes = 0, gpu_bytes = 0;
  std::optional<ExpertStats> experts;  // of the last run
};

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/// Peak resident size of this program. getrusage() also counts what the process was before it ran this
/// program, so the kernel's own figure is read where there is one.
uint64_t peak_rss_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return std::strtoull(line.c_str() + 6, nullptr, 10) * 1024;
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

Result<BenchResult> measure(const BenchCommand& command) {
  DOPPLER_TRY(const SessionOptions session_wanted, session_options(command.options));
  LoadOptions load = load_options(command.options);
  load.parts = LoadParts::kWeights;
  ProgressBar bar;
  load.progress = bar.callback();
  DOPPLER_TRY(const Model model, Model::load(command.options.model, load));
  bar.clear();
  SessionOptions wanted = session_wanted;
  if (wanted.context == 0)
    wanted.context = std::min(model.info().max_context, command.prompt_tokens + command.gen_tokens);
  DOPPLER_TRY(Session session, model.new_session(wanted));

  // Any ids do: the work does not depend on them. Spread over the vocabulary, as text's are.
  std::vector<int32_t> ids(command.prompt_tokens);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>((i * 7919 + 13) % model.info().vocab);
  GenerateOptions options;
  options.sampling.temperature = 0;
  options.max_tokens = command.gen_tokens;
  options.chunk = command.options.generate.chunk;
  options.ignore_end = true;
  options.text = false;
  GenerateCallbacks callbacks;
  callbacks.on_id = [](int32_t) { return !interrupted(); };
  callbacks.on_prompt = [](uint32_t, uint32_t) { return !interrupted(); };
  const auto generate = [&](size_t prompt, uint32_t tokens) -> Result<Generation> {
    options.max_tokens = tokens;
    DOPPLER_TRY(Generation out,
                session.generate(std::span<const int32_t>(ids).first(prompt), options, callbacks));
    if (out.finish == FinishReason::kError) return fail(out.error_code, "{}", out.error);
    if (interrupted()) return fail(ErrorCode::kCancelled, "[bench] interrupted");
    return out;
  };

  // Warm-up: pages come in, pipelines are compiled, caches grow.
  DOPPLER_CHECK_OK(generate(std::min<size_t>(ids.size(), 16), 2));
  std::vector<double> prompt, gen, first;
  std::optional<ExpertStats> experts;
  for (uint32_t run = 0; run < command.runs; ++run) {
    DOPPLER_TRY(const Generation out, generate(ids.size(), command.gen_tokens));
    const Timings& t = out.timings;
    prompt.push_back(t.prompt_ms > 0 ? t.prompt_tokens * 1000.0 / t.prompt_ms : 0);
    first.push_back(t.first_token_ms);
    experts = t.experts;
    // The first token comes with the prompt; gen_ms is the time of the others.
    if (t.gen_tokens > 1 && t.gen_ms > 0) gen.push_back((t.gen_tokens - 1) * 1000.0 / t.gen_ms);
  }
  BenchResult result;
  result.experts = experts;
  result.device = model.info().device;
  result.load_ms = model.info().load_ms;
  result.prompt_tok_s = median(prompt);
  result.gen_tok_s = median(gen);
  result.first_token_ms = median(first);
  result.peak_rss_bytes = peak_rss_bytes();
  result.gpu_bytes = model.info().on_gpu ? model.device_bytes() + session.cache_bytes() : 0;
  return result;
}

int run(Program& program, const BenchCommand& command) {
  const auto result = measure(command);
  if (!result) return fail_with(result.error());
  if (command.json) {
    nlohmann::ordered_json out = {{"device", result->device},
                                  {"load_ms", result->load_ms},
                                  {"prompt_tok_s", result->prompt_tok_s},
                                  {"gen_tok_s", result->gen_tok_s},
                                  {"first_token_ms", result->first_token_ms},
                                  {"peak_rss_bytes", result->peak_rss_bytes},
                                  {"gpu_bytes", result->gpu_bytes},
                                  {"prompt_tokens", command.prompt_tokens},
                                  {"gen_tokens", command.gen_tokens},
                                  {"runs", command.runs},
                                  {"precision", command.options.precision}};
    if (result->experts) out["experts"] = experts_json(*result->experts);
    program.out.line(dump(out));
    return kExitOk;
  }
  program.out.write(fmt::format(
      "device        {}\nload          {:.0f} ms\nprompt        {:.1f} tokens/s ({} tokens)\n"
      "generation    {:.1f} tokens/s ({} tokens)\nfirst token   {:.0f} ms\npeak memory   {}\nGPU memory    "
      "{}\n"
      "medians of {} runs, precision {}\n",
      result->device, result->load_ms, result->prompt_tok_s, command.prompt_tokens, result->gen_tok_s,
      command.gen_tokens, result->first_token_ms, format_bytes(static_cast<double>(result->peak_rss_bytes)),
      format_bytes(static_cast<double>(result->gpu_bytes)), command.runs, command.options.precision));
  if (result->experts) program.out.write(experts_line(*result->experts) + " (last run)\n");
  return kExitOk;
}

}  // namespace

void add_bench_command(CLI::App& app, Program& program) {
  CLI::App* command =
      add_command(app, program, "bench", "Measure speed and memory; prints medians.",
                  "doppler bench gemma-3-270m --prompt-tokens 512 --gen-tokens 128 --device cpu");
  auto state = std::make_shared<BenchCommand>();
  command
      ->add_option("MODEL", state->options.model,
                   "a .gguf file, an RDRR directory, a Hugging Face folder or a catalogue name")
      ->required();
  command->add_option("--prompt-tokens", state->prompt_tokens, "default 512")
      ->check(CLI::Range(1u, 1u << 24));
  command->add_option("--gen-tokens", state->gen_tokens, "default 128")->check(CLI::Range(1u, 1u << 24));
  command->add_option("--runs", state->runs, "default 3")->check(CLI::Range(1u, 1000u));
  add_session_options(*command, state->options);
  add_device_options(*command, state->options);
  command->add_flag("--json", state->json, "print one JSON object");
  command->callback(
      [&program, state] { program.action = [&program, state] { return run(program, *state); }; });
}

}  // namespace doppler::cli
