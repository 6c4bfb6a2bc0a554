#include "kernels/common/activation.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace doppler::kernels {

using graph::Activation;

std::string_view activation_name(Activation activation) {
  switch (activation) {
    case Activation::kSilu:
      return "silu";
    case Activation::kGeluTanh:
      return "gelu_tanh";
    case Activation::kGeluErf:
      return "gelu_erf";
    case Activation::kGeluQuick:
      return "gelu_quick";
    case Activation::kRelu:
      return "relu";
    case Activation::kSigmoid:
      return "sigmoid";
    case Activation::kSwigluClamped:
      return "swiglu_clamped";
  }
  return "?";
}

void set_activation_defines(Defines& defines, Activation activation) {
  defines.flag("SILU", activation == Activation::kSilu)
      .flag("GELU_TANH", activation == Activation::kGeluTanh)
      .flag("GELU_ERF", activation == Activation::kGeluErf)
      .flag("GELU_QUICK", activation == Activation::kGeluQuick)
      .flag("RELU", activation == Activation::kRelu)
      .flag("SIGMOID", activation == Activation::kSigmoid);
}

double activation_reference(Activation activation, double x) {
  switch (activation) {
    case Activation::kSilu:
      return x / (1 + std::exp(-x));
    case Activation::kGeluTanh:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
    case Activation::kGeluErf:
      return 0.5 * x * std::erfc(-x / std::numbers::sqrt2);
    case Activation::kGeluQuick:
      return x / (1 + std::exp(-1.702 * x));
    case Activation::kRelu:
      return std::max(x, 0.0);
    case Activation::kSigmoid:
    case Activation::kSwigluClamped:
      return 1 / (1 + std::exp(-x));
  }
  return x;
}

}  // namespace doppler::kernels
