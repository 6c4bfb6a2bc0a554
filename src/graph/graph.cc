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

}  // namespace doppler::graph
