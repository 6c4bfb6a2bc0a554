// doppler tokenize
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/json.h"
#include "cli/line_reader.h"
#include "cli/program.h"
#include "cli/progress_bar.h"
#include "cli/values.h"
#include "doppler/doppler.h"

namespace doppler::cli {
namespace {

using Json = nlohmann::ordered_json;

struct TokenizeCommand {
  std::string model;
  std::optional<std::string> text, file;
  std::string ids;
  bool special = false, bos = false, json = false, jsonl = false;
};

Result<Json> encode(const Model& model, std::string_view text, bool bos, bool special) {
  DOPPLER_TRY(const std::vector<int32_t> ids, model.encode(text, {.add_bos = bos, .parse_special = special}));
  DOPPLER_TRY(const std::vector<std::string> tokens, model.token_texts(ids));
  return Json{{"ids", ids}, {"tokens", tokens}};
}

Result<bool> flag(const nlohmann::json& line, const char* key, bool fallback) {
  const auto found = line.find(key);
  if (found == line.end()) return fallback;
  if (!found->is_boolean()) return fail(ErrorCode::kBadInput, "[jsonl] \"{}\" must be true or false", key);
  return found->get<bool>();
}

Result<Json> answer(const Model& model, const TokenizeCommand& defaults, const std::string& text) {
  const auto line = nlohmann::json::parse(text, nullptr, false);
  if (!line.is_object())
    return fail(ErrorCode::kBadInput,
                "[jsonl] an object with \"text\" or \"ids\" a line wanted, got something else");
  for (const auto& [key, value] : line.items())
    if (key != "text" && key != "ids" && key != "special" && key != "bos")
      return fail(ErrorCode::kBadInput, "[jsonl] text, ids, special or bos wanted, got \"{}\"", key);
  DOPPLER_TRY(const bool special, flag(line, "special", defaults.special));
  DOPPLER_TRY(const bool bos, flag(line, "bos", defaults.bos));
  const bool has_text = line.contains("text"), has_ids = line.contains("ids");
  if (has_text == has_ids) return fail(ErrorCode::kBadInput, "[jsonl] either \"text\" or \"ids\" wanted");
  if (has_text) {
    if (!line["text"].is_string()) return fail(ErrorCode::kBadInput, "[jsonl] \"text\" must be a string");
    return encode(model, line["text"].get<std::string>(), bos, special);
  }
  if (!line["ids"].is_array())
    return fail(ErrorCode::kBadInput, "[jsonl] \"ids\" must be a list of token ids");
  std::vector<int32_t> ids;
  for (const auto& item : line["ids"]) {
    if (!item.is_number_integer() || item.get<double>() < 0 || item.get<double>() > 2147483647.0)
      return fail(ErrorCode::kBadInput, "[jsonl] \"ids\" must hold token ids");
    ids.push_back(item.get<int32_t>());
  }
  DOPPLER_TRY(std::string decoded, model.decode(ids, special));
  return Json{{"text", std::move(decoded)}};
}

int run_lines(Program& program, const Model& model, const TokenizeCommand& command) {
  LineReader lines;
  std::string line;
  for (;;) {
    const auto more = lines.next(line);
    if (!more && more.error().code != ErrorCode::kBadInput) return fail_with(more.error());
    if (more && !*more) return kExitOk;
    if (more && line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const auto result = more ? answer(model, command, line) : Result<Json>(tl::unexpected(more.error()));
    if (!program.out.line(result ? dump(*result) : dump_error(result.error().message))) return kExitOk;
  }
}

Result<void> run_once(Program& program, const Model& model, const TokenizeCommand& command, bool decode) {
  if (decode) {
    DOPPLER_TRY(const std::vector<int32_t> ids, parse_ids(command.ids));
    DOPPLER_TRY(const std::string text, model.decode(ids, command.special));
    program.out.line(command.json ? dump(Json{{"text", text}}) : text);
    return {};
  }
  std::string text = command.text.value_or("");
  if (command.file) {
    constexpr size_t kMaxBytes = 256u << 20;
    DOPPLER_TRY(text, read_text_argument(*command.file, kMaxBytes));
  }
  DOPPLER_TRY(const Json result, encode(model, text, command.bos, command.special));
  if (command.json) {
    program.out.line(dump(result));
    return {};
  }
  std::string ids;
  for (const auto& id : result["ids"]) ids += (ids.empty() ? "" : ",") + id.dump();
  program.out.line(ids);
  return {};
}

}  // namespace

void add_tokenize_command(CLI::App& app, Program& program) {
  CLI::App* command = add_command(app, program, "tokenize", "Turn text into token ids, or ids into text.",
                                  "doppler tokenize gemma-3-270m \"Hello world\" --json\n  doppler tokenize "
                                  "gemma-3-270m --decode 9259,1902");
  auto state = std::make_shared<TokenizeCommand>();
  command
      ->add_option("MODEL", state->model,
                   "a .gguf file, an RDRR directory, a Hugging Face folder or a catalogue name")
      ->required();
  CLI::Option* text = command->add_option("TEXT", state->text, "the text to encode");
  CLI::Option* file = command->add_option("--file", state->file, "read the text from a file; -: stdin");
  CLI::Option* decode = command->add_option("--decode", state->ids, "token ids to decode, e.g. 1,2,3")
                            ->check(CLI::Validator([](std::string& ids) { return check_ids(ids); }, "IDS"));
  command->add_flag("--special", state->special, "control tokens: parsed in text, shown when decoding");
  command->add_flag("--bos", state->bos, "add the beginning-of-text token where the model's rule adds one");
  CLI::Option* json = command->add_flag("--json", state->json, "print one JSON object");
  CLI::Option* jsonl = command->add_flag("--stdin-jsonl", state->jsonl,
                                         "answer each line of stdin, {\"text\": ..} or {\"ids\": [..]}");
  text->excludes(file)->excludes(decode)->excludes(jsonl);
  file->excludes(decode)->excludes(jsonl);
  decode->excludes(jsonl);
  json->excludes(jsonl);
  command->callback([&program, state, text, file, decode] {
    const bool decoding = static_cast<bool>(*decode);
    if (!state->jsonl && !*text && !*file && !decoding)
      throw CLI::RequiredError("TEXT, --file, --decode or --stdin-jsonl");
    program.action = [&program, state, decoding] {
      ProgressBar bar;
      const auto model =
          Model::load(state->model, {.parts = LoadParts::kTokenizer, .progress = bar.callback()});
      bar.clear();
      if (!model) return fail_with(model.error());
      if (state->jsonl) return run_lines(program, *model, *state);
      const auto done = run_once(program, *model, *state, decoding);
      return done ? kExitOk : fail_with(done.error());
    };
  });
}

}  // namespace doppler::cli
