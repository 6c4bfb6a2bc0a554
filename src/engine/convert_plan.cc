#include "engine/convert_plan.h"

#include <algorithm>
#include <map>

#include "base/quants.h"
#include "engine/quant_recipe.h"
#include "model/names.h"

namespace doppler::convert_detail {
namespace {

using model::ModelConfig;
using model::NameStyle;
using model::Role;

constexpr uint64_t kMinQuantizedValues =
    1024;  // smaller tensors are not worth it; the original draws the same line

struct Place {
  std::string name, role, group;
  bool paired = false;
  uint64_t order = 0;  // embedding, layers, head, rest
  uint32_t layer = 0;
};

struct RoleNames {
  Role role;
  const char* rdrr;
};
constexpr RoleNames kLayerRoles[] = {
    {Role::kAttnNorm, "norm"},   {Role::kQ, "matmul"},          {Role::kK, "matmul"},
    {Role::kV, "matmul"},        {Role::kQNorm, "norm"},        {Role::kKNorm, "norm"},
    {Role::kAttnOut, "matmul"},  {Role::kPostAttnNorm, "norm"}, {Role::kFfnNorm, "norm"},
    {Role::kGate, "matmul"},     {Role::kUp, "matmul"},         {Role::kDown, "matmul"},
    {Role::kPostFfnNorm, "norm"}};

/// Every name the source may use -> where it goes.
std::map<std::string, Place, std::less<>> all_places(const ModelConfig& config) {
  ModelConfig target = config;
  target.names = NameStyle::kHuggingFace;
  if (config.names == NameStyle::kGguf) target.name_prefix.clear();
  std::map<std::string, Place, std::less<>> places;
  const auto add = [&](Role role, uint32_t layer, std::string_view rdrr_role, std::string group,
                       uint64_t order) {
    const std::string from = model::weight_name(config, role, layer),
                      to = model::weight_name(target, role, layer);
    const bool paired =
        config.rope_interleaved && config.names == NameStyle::kGguf && (role == Role::kQ || role == Role::kK);
    places.emplace(from, Place{to, std::string(rdrr_role), std::move(group), paired, order, layer});
  };
  add(Role::kEmbedding, 0, "embedding", "embed", 0);
  for (uint32_t layer = 0; layer < config.layers; ++layer)
    for (const RoleNames& entry : kLayerRoles) {
      // A LLaMA has no norm after attention; its name there means the one before the feed-forward.
      if (!config.sandwich_norms && (entry.role == Role::kPostAttnNorm || entry.role == Role::kPostFfnNorm))
        continue;
      add(entry.role, layer, entry.rdrr, fmt::format("layer.{}", layer), 1 + layer);
    }
  add(Role::kFinalNorm, 0, "norm", "head", 1 + config.layers);
  add(Role::kHead, 0, "lm_head", "head", 1 + config.layers);
  return places;
}

bool is_matrix(const PlannedTensor& tensor) {
  return (tensor.role == "matmul" || tensor.role == "embedding" || tensor.role == "lm_head" ||
          tensor.role == "expert") &&
         tensor.source->shape.size() >= 2 && tensor.source->element_count() >= kMinQuantizedValues;
}

/// The type `quant` asks a matrix to be stored in.
DType wanted_dtype(const PlannedTensor& tensor, const Quant& quant, uint32_t layer, uint32_t layers,
                   bool compat) {
  const bool vocabulary = tensor.role == "embedding" || tensor.role == "lm_head";
  const uint64_t columns = tensor.source->columns();
  const DType wanted = recipe_dtype(quant, {tensor.name, vocabulary, layer, layers});
  if (!compat) return without_padding(wanted, columns);
  if (original_reads(wanted, tensor.role, columns)) return wanted;
  return vocabulary ? DType::kF16 : quant.dtype;  // four bits cost a vocabulary's matrices most
}

}  // namespace

bool original_reads(DType dtype, std::string_view role, uint64_t columns) {
  switch (dtype) {
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16:
    case DType::kQ4_K:
      return true;
    case DType::kQ6_K:  // expanded block by block: no room for padded rows
      return role == "matmul" && columns % 256 == 0;
    default:
      return false;
  }
}

Result<std::vector<PlannedTensor>> plan_tensors(const TensorSource& source, const ModelConfig& config,
                                                const rdrr::Manifest* manifest,
                                                const ConvertOptions& options) {
  std::optional<Quant> quant;
  if (options.quant != "keep") {
    quant = quant_from_name(options.quant);
    if (!quant)
      return fail(ErrorCode::kBadInput,
                  "[convert] --quant keep, f32, f16, bf16, q8_0, q6_k, q5_k, q5_k_m, q5_1, q5_0, q4_k, "
                  "q4_k_m, q4_1 or q4_0 wanted, got \"{}\"",
                  options.quant);
    if (options.compat && !original_reads(quant->dtype, "matmul", 256))
      return fail(ErrorCode::kBadInput,
                  "[convert] --compat writes f32, f16, bf16, q4_k_m or q6_k, got --quant {}; leave out one "
                  "of the two",
                  options.quant);
  }
  const auto places = all_places(config);
  std::vector<std::pair<uint64_t, PlannedTensor>> ordered;
  for (const TensorInfo& info : source.tensors()) {
    PlannedTensor tensor;
    tensor.source = &info;
    uint64_t order = 2 + config.layers;
    uint32_t layer = 0;
    if (const auto at = places.find(info.name); at != places.end()) {
      const Place& place = at->second;
      tensor.name = place.name;
      tensor.role = place.role;
      tensor.group = place.group;
      order = place.order;
      layer = place.layer;
      if (place.paired) {
        tensor.paired_rows = config.rotary_dim;
        tensor.head_rows = config.head_dim;
      }
    } else {
      const rdrr::Tensor* entry = manifest ? manifest->find(info.name) : nullptr;
      tensor.name = info.name;
      tensor.role = entry ? entry->role : "other";
      tensor.group = entry && !entry->group.empty() ? entry->group : "other";
    }
    tensor.dtype = info.dtype;
    if (is_runnable(info.dtype)) {
      if (quant && is_matrix(tensor))
        tensor.dtype = wanted_dtype(tensor, *quant, layer, config.layers, options.compat);
      if (options.compat && !original_reads(tensor.dtype, tensor.role, info.columns()))
        tensor.dtype = DType::kF16;
    }
    ordered.emplace_back(order, std::move(tensor));
  }
  std::sort(ordered.begin(), ordered.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : a.second.source < b.second.source;
  });
  std::vector<PlannedTensor> out;
  for (auto& [order, tensor] : ordered) out.push_back(std::move(tensor));
  return out;
}

}  // namespace doppler::convert_detail
