#include "tokenizer/unigram.h"

#include <algorithm>
#include <limits>
#include <string>

#include "tokenizer/byte_tokens.h"
#include "tokenizer/utf8.h"

namespace doppler {
namespace {

constexpr int32_t kUnknown = -1;
// How much worse than the worst token a character without a token is (SentencePiece's constant).
constexpr double kUnknownPenalty = 10;
// A longer piece is encoded in parts of about this many bytes, which bounds working memory to 64 MB.
constexpr size_t kMaxStretch = size_t{1} << 22;

size_t total_bytes(const std::vector<std::string>& tokens) {
  size_t sum = 0;
  for (const std::string& token : tokens) sum += token.size();
  return sum;
}

}  // namespace

Unigram::Unigram(const VocabData& vocab, const TokenIndex& index)
    : vocab_(&vocab), index_(&index), trie_(total_bytes(vocab.tokens)) {
  double worst = std::numeric_limits<double>::max();
  for (size_t id = 0; id < vocab.tokens.size(); ++id) {
    if (!is_symbol(static_cast<int32_t>(id)) || vocab.tokens[id].empty()) continue;
    trie_.insert(vocab.tokens[id], static_cast<int32_t>(id));
    // User-defined pieces of SentencePiece have the score 0, better than all others.
    if (vocab.float_paths && vocab.types[id] == TokenType::kUserDefined) continue;
    worst = std::min(worst, vocab.scores[id]);
  }
  if (worst == std::numeric_limits<double>::max()) worst = 0;
  unknown_score_ = vocab.float_paths ? static_cast<double>(static_cast<float>(worst - kUnknownPenalty))
                                     : worst - kUnknownPenalty;
  for (int b = 0; b < 256; ++b)
    byte_ids_[static_cast<size_t>(b)] = index.find(byte_token_text(static_cast<unsigned char>(b)));
}

// Text itself never turns into control, unknown, byte or unused tokens.
bool Unigram::is_symbol(int32_t id) const {
  if (id < 0) return false;
  const TokenType type = vocab_->types[static_cast<size_t>(id)];
  return type == TokenType::kNormal || type == TokenType::kUserDefined;
}

void Unigram::encode(std::string_view piece, Scratch& scratch, std::vector<int32_t>& ids) const {
  while (piece.size() > kMaxStretch) {
    size_t cut = piece.rfind("\xe2\x96\x81", kMaxStretch);  // before a space if there is one
    if (cut == std::string_view::npos || cut == 0)
      cut = kMaxStretch - utf8::incomplete_tail(piece.substr(0, kMaxStretch));
    encode_stretch(piece.substr(0, cut), scratch, ids);
    piece.remove_prefix(cut);
  }
  encode_stretch(piece, scratch, ids);
}

void Unigram::encode_stretch(std::string_view stretch, Scratch& scratch, std::vector<int32_t>& ids) const {
  auto& nodes = scratch.nodes;
  nodes.assign(stretch.size() + 1, {0, kUnknown, 0});
  const auto reach = [&](size_t start, size_t length, double score, int32_t id) {
    auto& target = nodes[start + length];
    double sum = nodes[start].score + score;
    if (vocab_->float_paths) sum = static_cast<double>(static_cast<float>(sum));
    if (target.length == 0 || sum > target.score) target = {sum, id, static_cast<uint32_t>(length)};
  };
  for (size_t start = 0; start < stretch.size();) {
    const size_t character = utf8::next(stretch, start).length;
    bool has_character = false;
    uint32_t node = Trie::kRoot;
    for (size_t end = start; end < stretch.size(); ++end) {
      node = trie_.child(node, static_cast<unsigned char>(stretch[end]));
      if (node == Trie::kRoot) break;
      const int32_t id = trie_.value(node);
      if (id < 0) continue;
      const size_t length = end + 1 - start;
      reach(start, length, vocab_->scores[static_cast<size_t>(id)], id);
      has_character = has_character || length == character;
    }
    if (!has_character) reach(start, character, unknown_score_, kUnknown);
    start += character;
  }
  auto& path = scratch.path;
  path.clear();
  for (size_t end = stretch.size(); end > 0; end -= nodes[end].length)
    path.emplace_back(static_cast<uint32_t>(end), nodes[end].id);
  size_t start = 0;
  for (size_t i = path.size(); i-- > 0;) {
    if (path[i].second == kUnknown && vocab_->fuse_unknown && i > 0 && path[i - 1].second == kUnknown)
      continue;
    const size_t end = path[i].first;
    if (path[i].second == kUnknown) {
      push_unknown(stretch.substr(start, end - start), ids);
    } else {
      ids.push_back(path[i].second);
    }
    start = end;
  }
}

void Unigram::push_unknown(std::string_view text, std::vector<int32_t>& ids) const {
  // Several characters without tokens of their own may spell a token that lost to them.
  if (const int32_t id = index_->find(text); is_symbol(id)) return ids.push_back(id);
  bool bytes = vocab_->byte_fallback;
  for (const char c : text) bytes = bytes && byte_ids_[static_cast<unsigned char>(c)] >= 0;
  if (bytes) {
    for (const char c : text) ids.push_back(byte_ids_[static_cast<unsigned char>(c)]);
  } else if (vocab_->unk) {
    ids.push_back(*vocab_->unk);
  }
}

}  // namespace doppler
