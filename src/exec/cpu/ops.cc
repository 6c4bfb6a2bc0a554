#include "exec/cpu/ops.h"

#include <algorithm>
#include <cmath>

namespace doppler::cpu {
namespace {

// Rows a thread should get at least, so that waking it pays (about 16,000 values).
size_t grain(uint32_t width) { return 16384 / (width + 1) + 1; }

float silu(float x) { return x / (1.0f + std::exp(-x)); }

// 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
float gelu_tanh(float x) {
  constexpr float kSqrt2OverPi = 0.7978845608028654f;
  return 0.5f * x * (1.0f + std::tanh(kSqrt2OverPi * (x + 0.044715f * x * x * x)));
}

float sigmoid(float x) { return 1.0f / (1.0f + std::exp(-x)); }

}  // namespace

float activate(graph::Activation activation, float x) {
  using enum graph::Activation;
  switch (activation) {
    case kSilu:
      return silu(x);
    case kGeluTanh:
      return gelu_tanh(x);
    case kGeluErf:
      return 0.5f * x * (1.0f + std::erf(x * 0.70710678118654752f));
    case kGeluQuick:
      return x * sigmoid(1.702f * x);
    case kRelu:
      return std::max(x, 0.0f);
    case kSigmoid:
    case kSwigluClamped:
      return sigmoid(x);
  }
  return x;
}

void rms_norm(ThreadPool& pool, const Rows& in, std::span<const float> weight, float offset, float eps,
              const Rows& out) {
  const size_t group = weight.size();
  pool.parallel_for(in.rows, grain(in.width), [&](size_t begin, size_t end) {
    for (size_t r = begin; r < end; ++r) {
      for (size_t start = 0; start + group <= in.width; start += group) {
        const float* x = in.row(static_cast<uint32_t>(r)) + start;
        float* y = out.row(static_cast<uint32_t>(r)) + start;
        double squares[4] = {};  // four chains: the adder's latency, not its rate, bounds one
        for (size_t i = 0; i < group; ++i) squares[i % 4] += static_cast<double>(x[i]) * x[i];
        const double mean = (squares[0] + squares[1] + squares[2] + squares[3]) / static_cast<double>(group);
        const auto scale = static_cast<float>(1.0 / std::sqrt(mean + eps));
        for (size_t i = 0; i < group; ++i) y[i] = x[i] * scale * (weight[i] + offset);
      }
    }
  });
}

void rope_angles(std::span<const float> inv_freq, float magnitude, uint32_t first_position, uint32_t rows,
                 std::span<float> angles) {
  const size_t pairs = inv_freq.size();
  for (uint32_t r = 0; r < rows; ++r) {
    for (size_t i = 0; i < pairs; ++i) {
      const double angle = (static_cast<double>(first_position) + r) * inv_freq[i];
      angles[(r * pairs + i) * 2] = static_cast<float>(std::cos(angle) * magnitude);
      angles[(r * pairs + i) * 2 + 1] = static_cast<float>(std::sin(angle) * magnitude);
    }
  }
}

void rope(ThreadPool& pool, const Rows& in, std::span<const float> angles, uint32_t pairs, uint32_t group,
          bool interleaved, const Rows& out) {
  pool.parallel_for(in.rows, grain(in.width), [&](size_t begin, size_t end) {
    for (size_t r = begin; r < end; ++r) {
      const float* angle = angles.data() + r * 2 * pairs;
      for (uint32_t start = 0; start + group <= in.width; start += group) {
        const float* x = in.row(static_cast<uint32_t>(r)) + start;
        float* y = out.row(static_cast<uint32_t>(r)) + start;
        for (uint32_t i = 0; i < pairs; ++i) {
          const uint32_t a = interleaved ? 2 * i : i, b = interleaved ? 2 * i + 1 : i + pairs;
          const float xa = x[a], xb = x[b], cosine = angle[2 * i], sine = angle[2 * i + 1];
          y[a] = xa * cosine - xb * sine;
          y[b] = xb * cosine + xa * sine;
        }
        for (uint32_t i = 2 * pairs; i < group; ++i) y[i] = x[i];
      }
    }
  });
}

void layer_norm(ThreadPool& pool, const Rows& in, std::span<const float> weight, std::span<const float> bias,
                float eps, const Rows& out) {
  pool.parallel_for(in.rows, grain(in.width), [&](size_t begin, size_t end) {
    for (size_t r = begin; r < end; ++r) {
      const float* x = in.row(static_cast<uint32_t>(r));
      float* y = out.row(static_cast<uint32_t>(r));
      double sum = 0, squares = 0;
      for (uint32_t i = 0; i < in.width; ++i) sum += x[i];
      const double mean = sum / in.width;
      for (uint32_t i = 0; i < in.width; ++i) squares += (x[i] - mean) * (x[i] - mean);
      const double scale = 1.0 / std::sqrt(squares / in.width + eps);
      for (uint32_t i = 0; i < in.width; ++i)
        y[i] = static_cast<float>((x[i] - mean) * scale) * weight[i] + bias[i];
    }
  });
}

void gated_act(ThreadPool& pool, const Rows& in, const graph::Node& node, const Rows& out) {
  const uint32_t group = (node.group == 0 ? in.width : node.group) / 2;
  const bool clamped = node.activation == graph::Activation::kSwigluClamped;
  pool.parallel_for(static_cast<size_t>(in.rows) * out.width, 4096, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const auto r = static_cast<uint32_t>(i / out.width), column = static_cast<uint32_t>(i % out.width);
      const float* x = in.row(r) + column / group * group * 2;
      const uint32_t pair = column % group;
      float gate = x[node.interleaved ? 2 * pair : pair];
      float up = x[node.interleaved ? 2 * pair + 1 : group + pair];
      if (clamped) {
        gate = std::min(gate, node.limit);
        up = std::clamp(up, -node.limit, node.limit);
        out.row(r)[column] = gate * sigmoid(node.alpha * gate) * (up + 1.0f);
      } else {
        out.row(r)[column] = activate(node.activation, gate) * up;
      }
    }
  });
}

void act(ThreadPool& pool, const Rows& in, graph::Activation activation, const Rows& out) {
  pool.parallel_for(static_cast<size_t>(in.rows) * in.width, 4096, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const auto r = static_cast<uint32_t>(i / in.width);
      const size_t column = i % in.width;
      out.row(r)[column] = activate(activation, in.row(r)[column]);
    }
  });
}

void add_bias(ThreadPool& pool, std::span<const float> bias, const Rows& out) {
  pool.parallel_for(out.rows, grain(out.width), [&](size_t begin, size_t end) {
    for (size_t r = begin; r < end; ++r) {
      float* y = out.row(static_cast<uint32_t>(r));
      for (size_t i = 0; i < bias.size(); ++i) y[i] += bias[i];
    }
  });
}

void mul(ThreadPool& pool, const Rows& a, const Rows& b, const Rows& out) {
  pool.parallel_for(a.rows, grain(a.width), [&](size_t begin, size_t end) {
    for (size_t r = begin; r < end; ++r) {
      const float* x = a.row(static_cast<uint32_t>(r));
      const float* y = b.row(static_cast<uint32_t>(r));
      float* product = out.row(static_cast<uint32_t>(r));
      for (uint32_t i = 0; i < a.width; ++i) product[i] = x[i] * y[b.width == 1 ? 0 : i];
    }
  });
}

void mean_rows(const Rows& in, const Rows& out) {
  for (uint32_t i = 0; i < in.width; ++i) {
    double sum = 0;
    for (uint32_t r = 0; r < in.rows; ++r) sum += in.row(r)[i];
    out.row(0)[i] = static_cast<float>(sum / in.rows);
  }
}

void l2_norm(const Rows& in, float eps, const Rows& out) {
  for (uint32_t r = 0; r < in.rows; ++r) {
    double squares = 0;
    for (uint32_t i = 0; i < in.width; ++i) squares += static_cast<double>(in.row(r)[i]) * in.row(r)[i];
    const double scale = 1.0 / std::max(std::sqrt(squares), static_cast<double>(eps));
    for (uint32_t i = 0; i < in.width; ++i) out.row(r)[i] = static_cast<float>(in.row(r)[i] * scale);
  }
}

void add(ThreadPool& pool, const Rows& a, const Rows& b, const Rows& out) {
  pool.parallel_for(a.rows, grain(a.width), [&](size_t begin, size_t end) {
    for (size_t r = begin; r < end; ++r) {
      const float* x = a.row(static_cast<uint32_t>(r));
      const float* y = b.row(static_cast<uint32_t>(r));
      float* sum = out.row(static_cast<uint32_t>(r));
      for (uint32_t i = 0; i < a.width; ++i) sum[i] = x[i] + y[i];
    }
  });
}

void softcap(ThreadPool& pool, const Rows& in, float cap, const Rows& out) {
  pool.parallel_for(static_cast<size_t>(in.rows) * in.width, 4096, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const auto r = static_cast<uint32_t>(i / in.width);
      const size_t column = i % in.width;
      out.row(r)[column] = cap * std::tanh(in.row(r)[column] / cap);
    }
  });
}

}  // namespace doppler::cpu
