#pragma once
// The manifest of a converted model: one that the early and the current readers of the original both accept.
#include <string>
#include <vector>

#include "engine/convert_plan.h"
#include "formats/rdrr/manifest.h"

namespace doppler::convert_detail {

/// From the configuration of what is written. Shards, tensors and tokenizer are filled in later.
rdrr::Manifest make_manifest(const Plan& plan);

/// From a source's own manifest. What speaks of the old shards goes. An execution graph names kernels chosen
/// for the stored types, in the words of one generation: `keep_graph` keeps it, else the manifest suits both
/// generations.
rdrr::Manifest rewrite_manifest(const rdrr::Manifest& source, const Plan& plan, bool keep_graph);

/// Sets the headline type ("Q4_K_M", "F16", …: the one most bytes of matrices have) and quantizationInfo.
void set_quantization(rdrr::Manifest& manifest, const std::vector<PlannedTensor>& tensors);

/// Lower-case letters, digits and hyphens.
std::string make_model_id(std::string_view name);

/// The original's name of a chat format, recognised by the marks its template writes: chatml, gemma, llama3,
/// gpt-oss; "" if there is none or it is another.
std::string chat_type_of(std::string_view jinja);

}  // namespace doppler::convert_detail
