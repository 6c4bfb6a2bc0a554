#pragma once
// Adds nodes to a graph, so that a family file reads like its formula. Weights are checked against the file
// as they are named; the first thing that is wrong is kept and finish() returns it, so builders need no
// checks.
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "formats/tensor_source.h"
#include "graph/graph.h"
#include "model/config.h"
#include "model/names.h"

namespace doppler::model {

class GraphBuilder {
 public:
  GraphBuilder(const ModelConfig& config, const TensorSource& source);

  /// Nodes added from here on belong to `layer`; -1: to none.
  void begin_layer(int32_t layer) { layer_ = layer; }

  /// A rope table of the config's rotary_dim with this base. `scaled` applies the config's scaling and the
  /// file's per-frequency factors. Returns its index.
  uint32_t rope_table(float base, bool scaled);

  struct Rows {
    Role role;
    uint32_t rows;
  };
  bool has(Role role) const;  // in this layer

  graph::View embed();                         // [n, hidden], scaled
  graph::View add_positions(graph::View in);   // learned ones
  graph::View add_token_type(graph::View in);  // type 0 to every row
  graph::View norm(graph::View in, Role weight,
                   std::string_view tap);  // over the whole row, as the config has it
  void head_norm(graph::View heads, Role weight, std::string_view tap);  // each head, in place
  graph::View linear(graph::View in, std::initializer_list<Rows> weights,
                     std::string_view tap);                            // with what biases
                                                                       // the file has
  void rope(graph::View heads, uint32_t table, std::string_view tap);  // each head, in place
  graph::View attention(graph::View q, graph::View k, graph::View v, uint32_t window, std::string_view tap);
  graph::View gated_act(graph::View gate_up, std::string_view tap);
  graph::View act(graph::View in, std::string_view tap);
  graph::View add(graph::View a, graph::View b, std::string_view tap);
  graph::View experts(graph::View in);  // router, expert_ffn gated by the config's activation, weighted sum
  graph::View select_rows(graph::View in);
  void head(graph::View in);  // logits, soft-capped where the config says so
  void pool(graph::View in);  // an embedder's end: pooling, and length 1 where the config says so

  /// Columns [offset, offset + width) of a view.
  static graph::View slice(graph::View view, uint32_t offset, uint32_t width);

  Result<graph::Graph> finish();

 private:
  graph::View new_value(std::string_view name, uint32_t width);
  uint32_t layer_index() const { return layer_ < 0 ? 0 : static_cast<uint32_t>(layer_); }
  std::string find_name(Role role) const;  // of a weight that is there, else the usual one
  graph::WeightId weight(Role role, uint32_t rows, uint32_t columns);  // rows 0: a vector of `columns`
  graph::WeightId bias(const std::string& weight, uint32_t rows);      // kNone where the file has none
  graph::WeightId table(Role role, uint32_t columns);                  // [any rows, columns]
  graph::WeightId expert_weight(Role role, uint32_t rows, uint32_t columns);
  graph::WeightId expert_bias(graph::WeightId stack);
  graph::View expert_linear(graph::View in, graph::View routes, std::initializer_list<Rows> weights,
                            uint32_t columns, std::string_view tap);
  graph::WeightId add_weight(graph::Weight weight);
  bool check_type(const std::string& name, DType dtype);
  bool bad_shape(const TensorInfo& info, const std::string& wanted);
  graph::Node& node(graph::Op op, graph::View in, graph::View out, std::string_view tap);
  template <class... Args>
  void set_error(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
    if (!error_) error_ = Error{code, fmt::format(format, std::forward<Args>(args)...)};
  }

  const ModelConfig& config_;
  const TensorSource& source_;
  graph::Graph graph_;
  int32_t layer_ = -1;
  bool selected_ = false;  // values made now have only the rows whose logits are asked for
  std::optional<graph::WeightId> embedding_;
  std::optional<Error> error_;
};

}  // namespace doppler::model
