#pragma once
// Scores of a Unigram model as the reference implementation of tokenizer.json reads them.
#include <string>
#include <string_view>

namespace doppler::tokenizer_json {

/// The number that `token` (JSON) spells, rounded as Hugging Face's reader does it: once for the digits and
/// once for the power of ten. The last bit decides between segmentations whose scores tie.
double read_score(std::string_view token);

/// A JSON number that read_score() reads as `score`.
std::string write_score(double score);

}  // namespace doppler::tokenizer_json
