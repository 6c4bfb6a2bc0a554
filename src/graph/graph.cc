#include "graph/graph.h"

namespace doppler::graph {

std::string_view op_name(Op op) {
  switch (op) {
    case Op::kEmbed:
      return "embed";
    case Op::kAddPosition:
      return "add_position";
    case Op::kAddVector:
      return "add_vector";
    case Op::kRmsNorm:
      return "rms_norm";
    case Op::kLayerNorm:
      return "layer_norm";
    case Op::kLinear:
      return "linear";
    case Op::kRope:
      return "rope";
    case Op::kKvWrite:
      return "kv_write";
    case Op::kAttention:
      return "attention";
    case Op::kGatedAct:
      return "gated_act";
    case Op::kAct:
      return "act";
    case Op::kAdd:
      return "add";
    case Op::kMul:
      return "mul";
    case Op::kRoute:
      return "route";
    case Op::kExpertLinear:
      return "expert_linear";
    case Op::kExpertSum:
      return "expert_sum";
    case Op::kSelectRows:
      return "select_rows";
    case Op::kMeanRows:
      return "mean_rows";
    case Op::kFirstRow:
      return "first_row";
    case Op::kL2Norm:
      return "l2_norm";
    case Op::kSoftcap:
      return "softcap";
  }
  return "?";
}

std::string beyond_plain_decoder(const Graph& graph) {
  for (const RopeTable& table : graph.rope_tables)
    if (!table.long_inv_freq.empty()) return "LongRoPE";
  for (const Weight& weight : graph.weights)
    if (weight.experts == 0 && weight.storage != Storage::kRows)
      return weight.name + ", which is stored transposed or split";
  for (const Node& node : graph.nodes) {
    switch (node.op) {
      case Op::kEmbed:
      case Op::kRmsNorm:
      case Op::kRope:
      case Op::kKvWrite:
      case Op::kAdd:
      case Op::kSelectRows:
      case Op::kSoftcap:
      case Op::kRoute:
      case Op::kExpertLinear:
      case Op::kExpertSum:
        break;
      case Op::kLinear:
        if (!node.biases.empty()) return "linear layers with biases";
        break;
      case Op::kAttention:
        if (!node.weights.empty()) return "attention sinks";
        if (!node.causal) return "bidirectional attention";
        break;
      case Op::kGatedAct:
        if (node.interleaved ||
            (node.activation != Activation::kSilu && node.activation != Activation::kGeluTanh))
          return "this kind of gated activation";
        break;
      default:
        return std::string("the op ") + std::string(op_name(node.op));
    }
  }
  return "";
}

}  // namespace doppler::graph
