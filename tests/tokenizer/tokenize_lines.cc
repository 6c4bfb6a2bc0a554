// The other side of tools/tokenizer_oracle.py: tokenises lines with one tokenizer file.
//
//     doppler_tokenize_lines FILE [--special] [--bos] [--decode]     FILE: tokenizer.json, a SentencePiece
//     model
//
// Reads {"text": ...} lines and answers {"ids": [...]} lines, with --decode also the text of the ids.
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "tokenizer/tokenizer.h"

using namespace doppler;

int main(int argc, char** argv) {
  const std::string path = argc > 1 ? argv[1] : "";
  EncodeOptions options;
  bool decode = false;
  for (int i = 2; i < argc; ++i) {
    const std::string flag = argv[i];
    options.parse_special = options.parse_special || flag == "--special";
    if (flag == "--bos") options.bos = BosRule::kModel;
    decode = decode || flag == "--decode";
  }
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  auto vocab = path.ends_with(".model") ? vocab_from_sentencepiece(bytes) : vocab_from_tokenizer_json(bytes);
  auto tokenizer = vocab ? make_tokenizer(std::move(*vocab)) : tl::unexpected<Error>(vocab.error());
  if (!tokenizer) {
    std::fprintf(stderr, "%s\n", tokenizer.error().message.c_str());
    return 1;
  }
  std::string line;
  while (std::getline(std::cin, line)) {
    const auto request = nlohmann::json::parse(line, nullptr, false);
    if (!request.is_object() || !request.contains("text") || !request["text"].is_string()) return 2;
    const auto ids = (*tokenizer)->encode(request["text"].get<std::string>(), options);
    nlohmann::json answer = {{"ids", ids}};
    if (decode) answer["text"] = (*tokenizer)->decode(ids, {.skip_special = true});
    std::cout << answer.dump() << '\n';
  }
  return 0;
}
