// The part of GraphBuilder that names a mixture of experts.
#include <fmt/format.h>

#include "model/builder.h"

namespace doppler::model {

using graph::Node;
using graph::Op;
using graph::Storage;
using graph::View;
using graph::WeightId;

// A stack [experts, rows, columns]: one tensor, split MXFP4, transposed, or one tensor an expert.
WeightId GraphBuilder::expert_weight(Role role, uint32_t rows, uint32_t columns) {
  const uint32_t experts = config_.experts;
  std::vector<std::string> names{weight_name(config_, role, layer_index())};
  for (std::string& other : other_names(config_, role, layer_index())) names.push_back(std::move(other));
  for (const std::string& name : names) {
    if (const TensorInfo* blocks = source_.find(name + "_blocks")) {
      const TensorInfo* scales = source_.find(name + "_scales");
      const std::vector<uint64_t> wanted{experts, rows, columns / 32};
      std::vector<uint64_t> wanted_blocks = wanted;
      wanted_blocks.push_back(16);
      if (columns % 32 != 0 || !scales || scales->shape != wanted || blocks->shape != wanted_blocks ||
          blocks->dtype != DType::kU8 || scales->dtype != DType::kU8) {
        bad_shape(*blocks, fmt::format("{}, {}, {}, 16] with U8 scales [{}, {}, {}", experts, rows,
                                       columns / 32, experts, rows, columns / 32));
        return 0;
      }
      check_type(name, DType::kMXFP4);
      return add_weight({name, DType::kMXFP4, rows, columns, experts, Storage::kSplitMxfp4});
    }
    if (const TensorInfo* info = source_.find(name)) {
      const bool plain = info->shape == std::vector<uint64_t>{experts, rows, columns};
      const bool turned = info->shape == std::vector<uint64_t>{experts, columns, rows};
      if (!plain && !turned) {
        bad_shape(*info, fmt::format("{}, {}, {}", experts, rows, columns));
        return 0;
      }
      check_type(name, info->dtype);
      // gpt-oss from Hugging Face holds [in, out]; square matrices do not tell.
      const bool transposed = config_.experts_transposed;
      if ((transposed && !turned) || (!transposed && !plain) ||
          (transposed && dtype_info(info->dtype).block_elems != 1)) {
        bad_shape(*info, transposed ? fmt::format("{}, {}, {}", experts, columns, rows)
                                    : fmt::format("{}, {}, {}", experts, rows, columns));
        return 0;
      }
      return add_weight(
          {name, info->dtype, rows, columns, experts, transposed ? Storage::kTransposed : Storage::kRows});
    }
    const size_t hole = name.find("{}");
    if (hole == std::string::npos) continue;
    const auto of = [&](uint32_t e) {
      return source_.find(name.substr(0, hole) + std::to_string(e) + name.substr(hole + 2));
    };
    const TensorInfo* first = of(0);
    if (!first) continue;
    for (uint32_t e = 0; e < experts; ++e) {
      const TensorInfo* info = of(e);
      if (!info || info->dtype != first->dtype || info->shape != std::vector<uint64_t>{rows, columns}) {
        set_error(ErrorCode::kBadFile,
                  "[model] tensor {} for experts 0 to {}, each {} [{}, {}], wanted; {} is not", name,
                  experts - 1, dtype_name(first->dtype), rows, columns, e);
        return 0;
      }
    }
    check_type(first->name, first->dtype);
    return add_weight({name, first->dtype, rows, columns, experts});
  }
  set_error(ErrorCode::kBadFile, "[model] tensor {} wanted, {} has none; the file is incomplete", names[0],
            source_.path());
  return 0;
}

// [experts, rows]; experts that are one tensor each have no biases in any family.
WeightId GraphBuilder::expert_bias(WeightId stack) {
  if (error_) return graph::kNone;
  const graph::Weight w = graph_.weights[stack];
  const TensorInfo* info = source_.find(bias_name(w.name));
  if (!info) return graph::kNone;
  if (info->shape != std::vector<uint64_t>{w.experts, w.rows})
    bad_shape(*info, fmt::format("{}, {}", w.experts, w.rows));
  check_type(info->name, info->dtype);
  return add_weight({info->name, info->dtype, w.experts, w.rows});
}

View GraphBuilder::expert_linear(View in, View routes, std::initializer_list<Rows> weights, uint32_t columns,
                                 std::string_view tap) {
  uint32_t width = 0;
  for (const Rows& part : weights) width += part.rows;
  const View out = new_value(tap, width * config_.experts_per_token);
  Node& added = node(Op::kExpertLinear, in, out, tap);
  added.in2 = routes;
  added.top_k = config_.experts_per_token;
  bool any = false;
  for (const Rows& part : weights) {
    added.weights.push_back(expert_weight(part.role, part.rows, columns));
    added.biases.push_back(expert_bias(added.weights.back()));
    any |= added.biases.back() != graph::kNone;
  }
  if (!any) added.biases.clear();
  return out;
}

View GraphBuilder::experts(View in) {
  const uint32_t ffn = config_.expert_ffn, top_k = config_.experts_per_token;
  const View logits = linear(in, {{Role::kRouter, config_.experts}}, "router");
  const View routes = new_value("routes", 2 * top_k);
  Node& route = node(Op::kRoute, logits, routes, "routes");
  route.top_k = top_k;
  route.routing = config_.routing;

  const std::string fused = weight_name(config_, Role::kExpertGateUp, layer_index());
  const bool one = source_.find(fused) || source_.find(fused + "_blocks");
  const View gate_up =
      one ? expert_linear(in, routes, {{Role::kExpertGateUp, 2 * ffn}}, in.width, "expert_gate_up")
          : expert_linear(in, routes, {{Role::kExpertGate, ffn}, {Role::kExpertUp, ffn}}, in.width,
                          "expert_gate_up");
  const View act = gated_act(gate_up, "expert_act");
  graph_.nodes.back().group = 2 * ffn;
  graph_.nodes.back().interleaved = one && config_.gate_interleaved;
  const View down = expert_linear(act, routes, {{Role::kExpertDown, config_.hidden}}, ffn, "expert_down");
  const View out = new_value("ffn_out", config_.hidden);
  Node& sum = node(Op::kExpertSum, down, out, "ffn_out");
  sum.in2 = routes;
  sum.top_k = top_k;
  return out;
}

}  // namespace doppler::model
