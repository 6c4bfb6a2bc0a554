#include "exec/cpu/ops.h"

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

}  // namespace

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

void rope_angles(const graph::RopeTable& table, uint32_t first_position, uint32_t rows,
                 std::span<float> angles) {
  const size_t pairs = table.inv_freq.size();
  for (uint32_t r = 0; r < rows; ++r) {
    for (size_t i = 0; i < pairs; ++i) {
      const double angle = (static_cast<double>(first_position) + r) * table.inv_freq[i];
      angles[(r * pairs + i) * 2] = static_cast<float>(std::cos(angle) * table.magnitude);
      angles[(r * pairs + i) * 2 + 1] = static_cast<float>(std::sin(angle) * table.magnitude);
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

void gated_act(ThreadPool& pool, const Rows& in, graph::Activation activation, const Rows& out) {
  const uint32_t width = out.width;
  pool.parallel_for(static_cast<size_t>(in.rows) * width, 4096, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const auto r = static_cast<uint32_t>(i / width);
      const size_t column = i % width;
      const float gate = in.row(r)[column], up = in.row(r)[width + column];
      out.row(r)[column] = (activation == graph::Activation::kSilu ? silu(gate) : gelu_tanh(gate)) * up;
    }
  });
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
