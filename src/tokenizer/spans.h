#pragma once
// Cutting a text at the matches of a pattern, and what a split does with the matches.
#include <string_view>

#include "tokenizer/regex.h"
#include "tokenizer/utf8.h"
#include "tokenizer/vocab.h"

namespace doppler {

/// Calls emit(piece, is_match) for the matches of a pattern and for the text between them, in order, leaving
/// nothing out; empty matches are passed over. Ill-formed bytes match nothing and no match crosses one.
template <class Emit>
void for_each_span(std::string_view text, Matcher& matcher, Emit&& emit) {
  size_t start = 0;  // of the text not yet emitted
  const auto well_formed = [&](size_t from, size_t to) {
    const std::string_view stretch = text.substr(from, to - from);
    size_t begin = 0, end = 0, at = 0;
    while (at < stretch.size() && matcher.find(stretch, at, begin, end)) {
      if (end <= begin) {  // empty: look again one character on
        if (begin >= stretch.size()) break;
        at = begin + utf8::next(stretch, begin).length;
        continue;
      }
      if (from + begin > start) emit(text.substr(start, from + begin - start), false);
      emit(stretch.substr(begin, end - begin), true);
      at = end;
      start = from + end;
    }
  };
  size_t from = 0;
  for (size_t i = 0; i < text.size();) {
    const utf8::Unit unit = utf8::next(text, i);
    if (unit.code_point == utf8::kIllFormed) {
      well_formed(from, i);
      from = i + 1;
    }
    i += unit.length;
  }
  well_formed(from, text.size());
  if (start < text.size()) emit(text.substr(start), false);
}

/// The same for a literal.
template <class Emit>
void for_each_literal_span(std::string_view text, std::string_view literal, Emit&& emit) {
  size_t start = 0;
  for (size_t hit = text.find(literal); hit != std::string_view::npos; hit = text.find(literal, start)) {
    if (hit > start) emit(text.substr(start, hit - start), false);
    emit(text.substr(hit, literal.size()), true);
    start = hit + literal.size();
  }
  if (start < text.size()) emit(text.substr(start), false);
}

/// Joins adjoining spans as a split behaviour asks and hands on the pieces. Feed it with add(), end with
/// finish().
template <class Sink>
class SpanJoiner {
 public:
  SpanJoiner(SplitBehavior behavior, Sink& sink) : behavior_(behavior), sink_(sink) {}

  void add(std::string_view piece, bool is_match) {
    if (pending_.data() != nullptr && joins(is_match)) {
      pending_ = {pending_.data(), pending_.size() + piece.size()};
    } else {
      flush();
      pending_ = piece;
    }
    previous_is_match_ = is_match;
  }
  void finish() {
    flush();
    pending_ = {};
  }

 private:
  bool joins(bool is_match) const {
    switch (behavior_) {
      case SplitBehavior::kContiguous:
        return is_match == previous_is_match_;
      case SplitBehavior::kMergedWithPrevious:
        return is_match && !previous_is_match_;
      case SplitBehavior::kMergedWithNext:
        return previous_is_match_ && !is_match;
      default:
        return false;
    }
  }
  void flush() {
    if (pending_.empty() || (behavior_ == SplitBehavior::kRemoved && previous_is_match_)) return;
    sink_(pending_);
  }

  SplitBehavior behavior_;
  Sink& sink_;
  std::string_view pending_;
  bool previous_is_match_ = false;
};

}  // namespace doppler
