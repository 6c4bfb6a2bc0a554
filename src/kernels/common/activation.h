#pragma once
// What gated_act and act share: an activation's name, its shader's defines and its f64 form.
#include <string_view>

#include "graph/graph.h"
#include "kernels/common/wgsl.h"

namespace doppler::kernels {

/// For labels: "silu", "gelu_tanh", …, "swiglu_clamped".
std::string_view activation_name(graph::Activation activation);

/// The flags of common/activation.wgsl. kSwigluClamped has a formula of its own and sets none of them.
void set_activation_defines(Defines& defines, graph::Activation activation);

/// act(x), of every kind but kSwigluClamped.
double activation_reference(graph::Activation activation, double x);

}  // namespace doppler::kernels
