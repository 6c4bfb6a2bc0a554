#include "graph/graph.h"

namespace doppler::graph {

std::string_view op_name(Op op) {
  switch (op) {
    case Op::kEmbed:
      return "embed";
    case Op::kRmsNorm:
      return "rms_norm";
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
    case Op::kAdd:
      return "add";
    case Op::kSelectRows:
      return "select_rows";
    case Op::kSoftcap:
      return "softcap";
  }
  return "?";
}

}  // namespace doppler::graph
