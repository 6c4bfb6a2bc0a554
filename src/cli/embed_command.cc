// doppler embed
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "cli/interrupt.h"
#include "cli/json.h"
#include "cli/line_reader.h"
#include "cli/program.h"
#include "cli/progress_bar.h"
#include "cli/run_options.h"
#include "doppler/doppler.h"

namespace doppler::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxFileBytes = 256u << 20;

struct EmbedCommand {
  RunOptions options;
  std::optional<std::string> text, file;
  bool json = false, jsonl = false;
};

// The shortest digits that give the same float back.
std::string digits(float value) { return fmt::format("{}", value); }

Json embedding_json(const Embedding& embedding) {
  Json values = Json::array();
  for (const float value : embedding.values) values.push_back(std::strtod(digits(value).c_str(), nullptr));
  return {{"ids", embedding.ids}, {"embedding", std::move(values)}, {"truncated", embedding.truncated}};
}

std::string embedding_line(const Embedding& embedding) {
  std::string line;
  for (const float value : embedding.values) line += (line.empty() ? "" : " ") + digits(value);
  return line;
}

Result<Json> answer(const Model& model, const std::string& text) {
  const auto line = nlohmann::json::parse(text, nullptr, false);
  if (!line.is_object() || !line.contains("text") || !line["text"].is_string())
    return fail(ErrorCode::kBadInput,
                "[jsonl] an object with a string \"text\" a line wanted, got something else");
  if (line.size() != 1) {
    for (const auto& [key, value] : line.items())
      if (key != "text") return fail(ErrorCode::kBadInput, "[jsonl] text alone wanted, got \"{}\"", key);
  }
  DOPPLER_TRY(const Embedding embedding, model.embed(line["text"].get<std::string>()));
  return embedding_json(embedding);
}

int run_jsonl(Program& program, const Model& model) {
  LineReader lines;
  std::string line;
  for (;;) {
    const auto more = lines.next(line);
    if (!more && more.error().code != ErrorCode::kBadInput) return fail_with(more.error());
    if (more && !*more) return kExitOk;
    if (more && line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const auto result = more ? answer(model, line) : Result<Json>(tl::unexpected(more.error()));
    if (!program.out.line(result ? dump(*result) : dump_error(result.error().message))) return kExitOk;
  }
}

// Each line is a text; an empty one counts, but the end of the last line begins none.
std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

int embed_texts(Program& program, const Model& model, const std::vector<std::string_view>& texts, bool file,
                const EmbedCommand& command) {
  Json embeddings = Json::array();
  for (size_t i = 0; i < texts.size(); ++i) {
    if (interrupted()) return kExitInterrupted;
    const auto embedding = model.embed(texts[i]);
    if (!embedding) return fail_with(embedding.error());
    if (command.json) {
      embeddings.push_back(embedding_json(*embedding));
      continue;
    }
    if (embedding->truncated)
      report(fmt::format("[embed] {} has more than the {} tokens that the model takes; its end was cut",
                         file ? fmt::format("line {}", i + 1) : std::string("the text"),
                         model.info().max_text_ids));
    if (!program.out.line(embedding_line(*embedding))) return kExitOk;
  }
  if (!command.json) return kExitOk;
  Json out = {{"model", command.options.model}, {"device", model.info().device}};
  if (file)
    out["embeddings"] = std::move(embeddings);
  else
    out.update(embeddings.front());
  program.out.line(dump(out));
  return kExitOk;
}

int run(Program& program, const EmbedCommand& command) {
  LoadOptions load = load_options(command.options);
  load.max_chunk = command.options.context;
  ProgressBar bar;
  load.progress = bar.callback();
  const auto model = Model::load(command.options.model, load);
  bar.clear();
  if (!model) return fail_with(model.error());
  if (model->info().embedding_width == 0) {
    const std::vector<int32_t> any = {0};
    return fail_with(model->embed(std::span<const int32_t>(any)).error());  // says what to use instead
  }
  if (command.jsonl) return run_jsonl(program, *model);
  if (command.text) return embed_texts(program, *model, {*command.text}, false, command);
  const auto text = read_text_argument(*command.file, kMaxFileBytes);
  if (!text) return fail_with(text.error());
  return embed_texts(program, *model, split_lines(*text), true, command);
}

}  // namespace

void add_embed_command(CLI::App& app, Program& program) {
  CLI::App* command = add_command(
      app, program, "embed", "Turn texts into vectors with an embedding model.",
      "doppler embed all-minilm-l6-v2 \"A man is eating food.\" --json\n  doppler embed all-minilm-l6-v2 "
      "--file lines.txt");
  auto state = std::make_shared<EmbedCommand>();
  command
      ->add_option("MODEL", state->options.model,
                   "a Hugging Face folder, a .gguf file, an RDRR directory or a catalogue name")
      ->required();
  CLI::Option* text = command->add_option("TEXT", state->text, "the text; prints its numbers in one line");
  CLI::Option* file = command->add_option("--file", state->file, "each line of a file is a text; -: stdin");
  command
      ->add_option("--context", state->options.context,
                   "most tokens of a text, whose end is cut beyond; default: the model's own limit")
      ->check(CLI::Range(1u, 1u << 20));
  add_device_options(*command, state->options);
  CLI::Option* json = command->add_flag("--json", state->json, "print one JSON object");
  CLI::Option* jsonl =
      command->add_flag("--stdin-jsonl", state->jsonl, "answer each line of stdin, {\"text\": ..}");
  text->excludes(file)->excludes(jsonl);
  file->excludes(jsonl);
  json->excludes(jsonl);
  command->callback([&program, state] {
    if (!state->jsonl && !state->text && !state->file)
      throw CLI::RequiredError("TEXT, --file or --stdin-jsonl");
    program.action = [&program, state] { return run(program, *state); };
  });
}

}  // namespace doppler::cli
