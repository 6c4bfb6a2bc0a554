#pragma once
// JSON as scripts read it from stdout.
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "doppler/generate.h"

namespace doppler::cli {

/// One line; bytes that are not UTF-8 become U+FFFD.
std::string dump(const nlohmann::ordered_json& value);

/// {"error": MESSAGE}
std::string dump_error(std::string_view message);

/// "stop", "length", "cancelled", "error"
std::string_view finish_name(FinishReason reason);

nlohmann::ordered_json experts_json(const ExpertStats& stats);

/// The object `doppler run --json` prints.
nlohmann::ordered_json generation_json(const Generation& generation, std::string_view model,
                                       std::string_view device);

}  // namespace doppler::cli
