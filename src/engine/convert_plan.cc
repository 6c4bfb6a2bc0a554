#include "engine/convert_plan.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include "base/quants.h"
#include "engine/quant_recipe.h"
#include "model/names.h"

namespace doppler::convert_detail {
namespace {

using graph::Weight;
using model::Family;
using model::ModelConfig;
using model::NameStyle;
using model::Role;

// Smaller tensors are not worth it; the original draws the same line.
constexpr uint64_t kMinQuantizedValues = 1024;

struct RoleNames {
  Role role;
  const char* rdrr;
};
constexpr RoleNames kTopRoles[] = {{Role::kEmbedding, "embedding"},
                                   {Role::kPositions, "other"},
                                   {Role::kTokenTypes, "other"},
                                   {Role::kEmbeddingNorm, "norm"}};
// The norm before the feed-forward comes before the one after attention: where a family has one of them, the
// other's name may be the same.
constexpr RoleNames kLayerRoles[] = {
    {Role::kAttnNorm, "norm"}, {Role::kQ, "matmul"},          {Role::kK, "matmul"},
    {Role::kV, "matmul"},      {Role::kQkv, "matmul"},        {Role::kQNorm, "norm"},
    {Role::kKNorm, "norm"},    {Role::kSinks, "other"},       {Role::kAttnOut, "matmul"},
    {Role::kFfnNorm, "norm"},  {Role::kPostAttnNorm, "norm"}, {Role::kGate, "matmul"},
    {Role::kUp, "matmul"},     {Role::kGateUp, "matmul"},     {Role::kDown, "matmul"},
    {Role::kRouter, "router"}, {Role::kPostFfnNorm, "norm"}};

ModelConfig target_config(const ModelConfig& source) {
  ModelConfig c = source;
  c.transposed = c.experts_transposed = false;  // rows are written as they are used
  c.gate_interleaved = c.family == Family::kGptOss;
  if (c.names == NameStyle::kGguf) {
    c.names = NameStyle::kHuggingFace;
    c.name_prefix.clear();
    c.body = c.family == Family::kGpt2 ? "transformer." : c.family == Family::kBert ? "" : "model.";
    c.rope_interleaved = false;  // rows are put into Hugging Face's order
  }
  return c;
}

std::string numbered(const std::string& name, uint32_t expert) {
  const size_t hole = name.find("{}");
  return hole == std::string::npos ? name
                                   : name.substr(0, hole) + std::to_string(expert) + name.substr(hole + 2);
}

/// The same rows of one expert. Where each has a tensor of its own, that one alone is then read and let go.
RowRange of_expert(RowRange rows, uint32_t expert) {
  rows.expert = expert;
  if (rows.weight.name.find("{}") == std::string::npos) return rows;
  rows.weight.name = numbered(rows.weight.name, expert);
  rows.weight.experts = 0;
  return rows;
}

class Planner {
 public:
  explicit Planner(const Source& source)
      : source_(source), tensors_(*source.model.source), config_(source.model.config) {
    plan_.config = target_config(config_);
    for (const Weight& weight : source.model.graph.weights) weights_.emplace(weight.name, &weight);
  }

  Result<Plan> plan() {
    for (const RoleNames& entry : kTopRoles) add_role(entry, 0, "embed");
    for (uint32_t layer = 0; layer < config_.layers; ++layer) {
      const std::string group = fmt::format("layer.{}", layer);
      for (const RoleNames& entry : kLayerRoles)
        add_role(entry, layer, entry.role == Role::kRouter ? group + ".shared" : group);
      DOPPLER_CHECK_OK(add_experts(layer, group));
    }
    add_role({Role::kFinalNorm, "norm"}, 0, "head");
    add_role({Role::kHead, "lm_head"}, 0, "head");
    for (const Role role : {Role::kRopeFactors, Role::kRopeShort, Role::kRopeLong})
      if (const TensorInfo* info = tensors_.find(model::weight_name(config_, role)))
        add_bytes(*info, model::weight_name(plan_.config, role), "other", "other");
    add_rest();
    return std::move(plan_);
  }

 private:
  const Weight* find(const std::string& name) const {
    const auto found = weights_.find(name);
    return found == weights_.end() ? nullptr : found->second;
  }

  /// The graph's weight for a role, by whichever of its names the source uses.
  const Weight* find(Role role, uint32_t layer) const {
    if (const Weight* weight = find(model::weight_name(config_, role, layer))) return weight;
    for (const std::string& name : model::other_names(config_, role, layer))
      if (const Weight* weight = find(name)) return weight;
    return nullptr;
  }

  void add(PlannedTensor tensor) { plan_.tensors.push_back(std::move(tensor)); }

  void add_bytes(const TensorInfo& info, std::string name, std::string_view role, std::string_view group) {
    used_.insert(info.name);
    PlannedTensor tensor;
    tensor.name = std::move(name);
    tensor.role = role;
    tensor.group = group;
    tensor.from = tensor.dtype = tensor.asked = info.dtype;
    tensor.shape = info.shape;
    tensor.source = &info;
    add(std::move(tensor));
  }

  void add_rows(std::string name, std::string_view role, std::string_view group, std::vector<uint64_t> shape,
                std::vector<Part> parts) {
    PlannedTensor tensor;
    tensor.name = std::move(name);
    tensor.role = role;
    tensor.group = group;
    tensor.form = Form::kRows;
    tensor.from = tensor.dtype = tensor.asked = parts.front().even.weight.dtype;
    tensor.shape = std::move(shape);
    tensor.parts = std::move(parts);
    add(std::move(tensor));
  }

  void use_stack(const Weight& stack) {
    const bool merged = stack.name.find("{}") == std::string::npos;
    for (uint32_t e = 0; e < (merged ? 1 : stack.experts); ++e) used_.insert(numbered(stack.name, e));
    if (stack.storage != graph::Storage::kSplitMxfp4) return;
    used_.insert(stack.name + "_blocks");
    used_.insert(stack.name + "_scales");
  }

  /// A weight of the graph and its bias, if the source has them and no other role had them.
  void add_role(const RoleNames& entry, uint32_t layer, const std::string& group) {
    const Weight* weight = find(entry.role, layer);
    if (!weight || used_.contains(weight->name)) return;
    // GGUF's Phi-3 has gate and up under the name of up.
    if (entry.role == Role::kUp && config_.gated_ffn && weight->rows == 2 * config_.ffn) return;
    const bool paired = config_.rope_interleaved && config_.names == NameStyle::kGguf &&
                        (entry.role == Role::kQ || entry.role == Role::kK);
    const std::string name = model::weight_name(plan_.config, entry.role, layer);
    add_plain(*weight, name, entry.rdrr, group, paired);
    const Weight* bias = find(model::bias_name(weight->name));
    if (bias && !used_.contains(bias->name))
      add_plain(*bias, model::bias_name(name), entry.rdrr == std::string_view("norm") ? "norm" : "other",
                group, paired);
  }

  void add_plain(const Weight& weight, std::string name, std::string_view role, const std::string& group,
                 bool paired) {
    const TensorInfo& info = *tensors_.find(weight.name);
    if (info.shape.size() < 2 && !paired) return add_bytes(info, std::move(name), role, group);
    used_.insert(weight.name);
    Part part{weight.rows, {weight}, {}, 0, 0};
    std::vector<uint64_t> shape{weight.rows, weight.columns};
    if (info.shape.size() < 2) {  // a bias, whose values are the rows
      part.even.weight.rows = part.rows = weight.columns;
      part.even.weight.columns = 1;
      shape = {weight.columns};
    }
    if (paired) {
      part.paired_rows = config_.rotary_dim;
      part.head_rows = config_.head_dim;
    }
    add_rows(std::move(name), role, group, std::move(shape), {std::move(part)});
  }

  Result<void> add_experts(uint32_t layer, const std::string& group) {
    const Weight *fused = find(Role::kExpertGateUp, layer), *gate = find(Role::kExpertGate, layer),
                 *up = find(Role::kExpertUp, layer), *down = find(Role::kExpertDown, layer);
    if (!down || down->experts == 0 || (!fused && (!gate || !up))) return {};
    for (const Weight* stack : {fused, fused ? nullptr : gate, fused ? nullptr : up, down})
      if (stack) use_stack(*stack);
    // Where the gates' rows and the ups' begin and how far apart they are.
    const uint32_t ffn = config_.expert_ffn, step = fused && config_.gate_interleaved ? 2 : 1;
    const RowRange gates{fused ? *fused : *gate, 0, 0, step};
    const RowRange ups{fused ? *fused : *up, 0, fused ? (step == 2 ? 1 : ffn) : 0, step};
    if (config_.family == Family::kGptOss) return add_packed(layer, group, gates, ups, *down);

    for (const Weight* stack : {&gates.weight, &ups.weight, down})
      if (find(model::bias_name(stack->name)))
        return fail(ErrorCode::kUnsupported, "[convert] experts without biases wanted, {} has one",
                    stack->name);
    for (uint32_t e = 0; e < config_.experts; ++e) {
      const auto one = [&](Role role, RowRange range, uint32_t rows) {
        range = of_expert(std::move(range), e);
        const uint64_t columns = range.weight.columns;
        add_rows(numbered(model::weight_name(plan_.config, role, layer), e), "expert",
                 fmt::format("{}.expert.{}", group, e), {rows, columns},
                 {{rows, std::move(range), {}, 0, 0}});
      };
      one(Role::kExpertGate, gates, ffn);
      one(Role::kExpertUp, ups, ffn);
      one(Role::kExpertDown, {*down, 0, 0, 1}, config_.hidden);
    }
    return {};
  }

  /// gpt-oss: all experts in one tensor, gates and ups in alternate rows, with biases.
  Result<void> add_packed(uint32_t layer, const std::string& group, const RowRange& gates,
                          const RowRange& ups, const Weight& down) {
    if (gates.weight.dtype != ups.weight.dtype)
      return fail(ErrorCode::kUnsupported, "[convert] {} and {} of one type wanted, got {} and {}",
                  gates.weight.name, ups.weight.name, dtype_name(gates.weight.dtype),
                  dtype_name(ups.weight.dtype));
    ++plan_.packed_layers;
    const uint32_t ffn = config_.expert_ffn, experts = config_.experts;
    const std::string gate_up_name = model::weight_name(plan_.config, Role::kExpertGateUp, layer),
                      down_name = model::weight_name(plan_.config, Role::kExpertDown, layer);
    std::vector<Part> gate_ups, downs;
    for (uint32_t e = 0; e < experts; ++e) {
      gate_ups.push_back({2 * ffn, of_expert(gates, e), of_expert(ups, e), 0, 0});
      downs.push_back({config_.hidden, of_expert({down, 0, 0, 1}, e), {}, 0, 0});
    }
    add_rows(gate_up_name, "expert", group, {experts, 2 * ffn, gates.weight.columns}, gate_ups);
    add_rows(down_name, "expert", group, {experts, config_.hidden, down.columns}, downs);

    const Weight *gate_bias = find(model::bias_name(gates.weight.name)),
                 *up_bias = find(model::bias_name(ups.weight.name)),
                 *down_bias = find(model::bias_name(down.name));
    if (gate_bias && up_bias) {
      std::vector<Part> parts;
      for (uint32_t e = 0; e < experts; ++e)
        parts.push_back({2 * ffn, values(*gate_bias, gates, e), values(*up_bias, ups, e), 0, 0});
      used_.insert({gate_bias->name, up_bias->name});
      add_rows(model::bias_name(gate_up_name), "other", group, {experts, 2 * ffn}, std::move(parts));
    }
    if (down_bias) add_bytes(*tensors_.find(down_bias->name), model::bias_name(down_name), "other", group);
    return {};
  }

  /// One expert's biases [experts, rows] as rows of one value, taken as `rows` takes its matrix's.
  static RowRange values(const Weight& bias, const RowRange& rows, uint32_t expert) {
    Weight stack = bias;
    stack.experts = bias.rows;
    stack.rows = bias.columns;
    stack.columns = 1;
    return {std::move(stack), expert, rows.first, rows.step};
  }

  /// What no role names: kept under its own name, or left out where it is not part of the text model.
  void add_rest() {
    const rdrr::Manifest* manifest = source_.manifest();
    for (const TensorInfo& info : tensors_.tensors()) {
      if (used_.contains(info.name)) continue;
      if (!source_.gguf && !manifest) {
        plan_.left_out.push_back(info.name);
        continue;
      }
      const rdrr::Tensor* entry = manifest ? manifest->find(info.name) : nullptr;
      add_bytes(info, info.name, entry ? entry->role : "other",
                entry && !entry->group.empty() ? entry->group : "other");
    }
  }

  const Source& source_;
  const TensorSource& tensors_;
  const ModelConfig& config_;
  std::map<std::string, const Weight*, std::less<>> weights_;
  std::set<std::string, std::less<>> used_;
  Plan plan_;
};

bool is_matrix(const PlannedTensor& tensor) {
  return (tensor.role == "matmul" || tensor.role == "embedding" || tensor.role == "lm_head" ||
          tensor.role == "expert") &&
         tensor.shape.size() >= 2 && tensor.rows() * tensor.columns() >= kMinQuantizedValues;
}

uint32_t layer_of(const PlannedTensor& tensor) {
  constexpr std::string_view prefix = "layer.";
  return tensor.group.starts_with(prefix)
             ? static_cast<uint32_t>(std::strtoul(tensor.group.c_str() + prefix.size(), nullptr, 10))
             : 0;
}

void choose_dtype(PlannedTensor& tensor, const std::optional<Quant>& quant, uint32_t layers, bool compat) {
  if (!is_runnable(tensor.from)) return;
  const bool vocabulary = tensor.role == "embedding" || tensor.role == "lm_head";
  if (quant && is_matrix(tensor)) {
    tensor.asked = recipe_dtype(*quant, {tensor.name, vocabulary, layer_of(tensor), layers});
    if (!compat)
      tensor.dtype = without_padding(tensor.asked, tensor.columns());
    else if (original_reads(tensor.asked, tensor.role, tensor.columns()))
      tensor.dtype = tensor.asked;
    else
      tensor.dtype = vocabulary ? DType::kF16 : quant->dtype;  // four bits cost a vocabulary's matrices most
  }
  const bool split = tensor.role == "expert" && tensor.shape.size() == 3 && tensor.dtype == DType::kMXFP4;
  if (compat && !split && !original_reads(tensor.dtype, tensor.role, tensor.columns()))
    tensor.dtype = DType::kF16;
}

/// Packed experts in MXFP4 become the two U8 tensors that Hugging Face's files and the original have.
void split_mxfp4(std::vector<PlannedTensor>& tensors) {
  std::vector<PlannedTensor> out;
  for (PlannedTensor& tensor : tensors) {
    if (tensor.role != "expert" || tensor.shape.size() != 3 || tensor.dtype != DType::kMXFP4 ||
        tensor.from != DType::kMXFP4) {
      out.push_back(std::move(tensor));
      continue;
    }
    tensor.dtype = DType::kU8;
    PlannedTensor scales = tensor;
    tensor.form = Form::kMxfp4Pairs;
    tensor.name += "_blocks";
    tensor.shape = {tensor.shape[0], tensor.shape[1], tensor.shape[2] / 32, 16};
    scales.form = Form::kMxfp4Scales;
    scales.name += "_scales";
    scales.shape[2] /= 32;
    out.push_back(std::move(tensor));
    out.push_back(std::move(scales));
  }
  tensors = std::move(out);
}

bool is_packed(DType dtype) { return dtype_info(dtype).block_elems > 1; }

}  // namespace

uint64_t PlannedTensor::rows() const {
  uint64_t n = 1;
  for (size_t i = 0; i + 1 < shape.size(); ++i) n *= shape[i];
  return n;
}

uint64_t PlannedTensor::source_bytes() const {
  if (form == Form::kBytes) return source->size_bytes;
  uint64_t bytes = 0;
  for (const Part& part : parts) {
    const uint64_t blocks = uint64_t{part.rows} * (part.even.weight.columns / 32);
    bytes += form == Form::kMxfp4Pairs    ? blocks * 16
             : form == Form::kMxfp4Scales ? blocks
                                          : part.rows * row_bytes(from, part.even.weight.columns);
  }
  return bytes;
}

bool original_reads(DType dtype, std::string_view role, uint64_t columns) {
  switch (dtype) {
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16:
    case DType::kQ4_K:
      return true;
    case DType::kU8:  // halves of MXFP4
      return role == "expert";
    case DType::kQ6_K:  // expanded block by block: no room for padded rows
      return role == "matmul" && columns % 256 == 0;
    default:
      return false;
  }
}

Result<Plan> plan_conversion(const Source& source, const ConvertOptions& options) {
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
  DOPPLER_TRY(Plan plan, Planner(source).plan());
  for (PlannedTensor& tensor : plan.tensors) {
    choose_dtype(tensor, quant, plan.config.layers, options.compat);
    if (tensor.dtype != tensor.from && is_packed(tensor.dtype) && is_packed(tensor.from) &&
        !options.requantize && !options.compat)
      return fail(ErrorCode::kBadInput,
                  "[convert] --quant {} from F32, F16 or BF16 wanted, {} is {} already and would lose twice; "
                  "start from the float model, or add --requantize",
                  options.quant, tensor.name, dtype_name(tensor.from));
  }
  split_mxfp4(plan.tensors);
  return plan;
}

}  // namespace doppler::convert_detail
