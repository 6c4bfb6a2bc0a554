// Writers of Q4_K, Q5_K and Q6_K: a search for the scales with the least weighted squared error.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/half.h"
#include "base/quant_blocks.h"

namespace doppler {
namespace {

constexpr int kBlock = 256;
constexpr float kMaxHalf = 65504.0f;

float as_half(float f) { return f16_to_f32(f32_to_f16(std::clamp(f, -kMaxHalf, kMaxHalf))); }

void put_half(std::byte* b, float f) {
  const uint16_t h = f32_to_f16(std::clamp(f, -kMaxHalf, kMaxHalf));
  std::memcpy(b, &h, sizeof h);
}

/// Nearest integer in [low, high]; NaN gives low. Compiles to min, max and a truncation, which vectorise.
int nearest(float v, int low, int high) {
  const auto from = static_cast<float>(low), span = static_cast<float>(high - low);
  float up = v - from;
  up = up > 0 ? up : 0.0f;
  up = up < span ? up : span;
  return static_cast<int>(up + 0.5f) + low;
}

/// The block's values with anything not finite replaced, so that one bad weight cannot spread to 255 others.
std::array<float, kBlock> finite_copy(const float* x) {
  std::array<float, kBlock> copy;
  for (int i = 0; i < kBlock; ++i)
    copy[i] = std::isfinite(x[i]) ? x[i] : (std::isnan(x[i]) ? 0.0f : std::copysign(kMaxHalf, x[i]));
  return copy;
}

/// Weights of the error. Large values meet large activations more than chance would have it, so they count
/// more; the root mean square keeps small ones from being ignored.
std::array<float, kBlock> error_weights(const std::array<float, kBlock>& x) {
  double squares = 0;
  for (const float v : x) squares += static_cast<double>(v) * v;
  const auto rms = static_cast<float>(std::sqrt(squares / kBlock));
  std::array<float, kBlock> w;
  for (int i = 0; i < kBlock; ++i) w[i] = rms + std::fabs(x[i]);
  return w;
}

/// Weighted sums of one group of 32 for a least-squares fit of x = scale * q - min.
struct Sums {
  double w = 0, q = 0, qq = 0, x = 0, qx = 0;
};

/// The sums for levels q = (x - low) * inverse, rounded.
Sums sums_at(const float* x, const float* w, float low, float inverse, int top) {
  float part[5][8] = {};
  for (int i = 0; i < 32; i += 8)
    for (int j = 0; j < 8; ++j) {
      const auto q = static_cast<float>(nearest((x[i + j] - low) * inverse, 0, top));
      const float wq = w[i + j] * q;
      part[0][j] += w[i + j];
      part[1][j] += wq;
      part[2][j] += wq * q;
      part[3][j] += w[i + j] * x[i + j];
      part[4][j] += wq * x[i + j];
    }
  double total[5] = {};
  for (int k = 0; k < 5; ++k)
    for (const float sum : part[k]) total[k] += static_cast<double>(sum);
  return {total[0], total[1], total[2], total[3], total[4]};
}

struct Affine {
  float scale = 0, min = 0;  // x = scale * q - min, both not negative
  double error = 0;
};

double affine_error(const float* x, const float* w, float scale, float min, int top) {
  const float inverse = scale > 0 ? 1 / scale : 0;
  float sums[8] = {};  // independent sums, so that the loop vectorises without reordering
  for (int i = 0; i < 32; i += 8)
    for (int j = 0; j < 8; ++j) {
      const auto q = static_cast<float>(nearest((x[i + j] + min) * inverse, 0, top));
      const float off = scale * q - min - x[i + j];
      sums[j] += w[i + j] * off * off;
    }
  double error = 0;
  for (const float sum : sums) error += static_cast<double>(sum);
  return error;
}

/// Best scale and min of one group of 32: levels are taken from a row of trial scales, then scale and min are
/// fitted to the levels by least squares.
Affine fit_affine(const float* x, const float* w, int top) {
  const auto [least, greatest] = std::minmax_element(x, x + 32);
  const float low = std::min(*least, 0.0f), range = *greatest - low;  // min is stored unsigned: low <= 0
  if (!(range > 0)) return {0, -low, 0};
  Affine best{range / static_cast<float>(top), -low, 0};
  best.error = affine_error(x, w, best.scale, best.min, top);
  for (int step = -10; step <= 10; ++step) {
    const float inverse = (static_cast<float>(top) + 0.1f * static_cast<float>(step)) / range;
    const Sums s = sums_at(x, w, low, inverse, top);
    const double determinant = s.w * s.qq - s.q * s.q;
    if (determinant <= 0) continue;
    double scale = (s.w * s.qx - s.x * s.q) / determinant;
    double min = (s.q * s.qx - s.qq * s.x) / determinant;
    if (min < 0) {  // all values above zero: the best min is zero
      min = 0;
      scale = s.qx / s.qq;
    }
    if (scale <= 0) continue;
    Affine trial{static_cast<float>(scale), static_cast<float>(min), 0};
    trial.error = affine_error(x, w, trial.scale, trial.min, top);
    if (trial.error < best.error) best = trial;
  }
  return best;
}

struct AffineBlock {
  float d = 0, dmin = 0;  // as f16 holds them
  std::array<ScaleMin, 8> groups{};
  double error = 0;
};

/// Chooses each group's 6-bit scale and min for given d and dmin, looking one step around the fitted ones.
void choose_scales(AffineBlock& block, const std::array<Affine, 8>& fits, const float* x, const float* w,
                   int top) {
  const float inverse_d = block.d > 0 ? 1 / block.d : 0, inverse_m = block.dmin > 0 ? 1 / block.dmin : 0;
  block.error = 0;
  for (int g = 0; g < 8; ++g) {
    const int scale = nearest(fits[g].scale * inverse_d, 0, 63),
              min = nearest(fits[g].min * inverse_m, 0, 63);
    double best = INFINITY;
    for (int s = std::max(scale - 1, 0); s <= std::min(scale + 1, 63); ++s)
      for (int m = std::max(min - 1, 0); m <= std::min(min + 1, 63); ++m) {
        const double error = affine_error(x + 32 * g, w + 32 * g, block.d * static_cast<float>(s),
                                          block.dmin * static_cast<float>(m), top);
        if (error >= best) continue;
        best = error;
        block.groups[g] = {static_cast<uint8_t>(s), static_cast<uint8_t>(m)};
      }
    block.error += best;
  }
}

std::array<uint8_t, kBlock> affine_levels(const AffineBlock& block, const float* x, int top) {
  std::array<uint8_t, kBlock> q;
  for (int g = 0; g < 8; ++g) {
    const float scale = block.d * static_cast<float>(block.groups[g].scale);
    const float min = block.dmin * static_cast<float>(block.groups[g].min);
    const float inverse = scale > 0 ? 1 / scale : 0;
    for (int i = 32 * g; i < 32 * g + 32; ++i)
      q[i] = static_cast<uint8_t>(nearest((x[i] + min) * inverse, 0, top));
  }
  return q;
}

/// Refits d and dmin of the whole block to its scales, mins and levels: x = d * (s * q) - dmin * m.
void refit(AffineBlock& block, const float* x, const float* w, int top) {
  const auto q = affine_levels(block, x, top);
  double aa = 0, ab = 0, bb = 0, ax = 0, bx = 0;
  for (int i = 0; i < kBlock; ++i) {
    const double a = block.groups[i / 32].scale * q[i], b = -static_cast<double>(block.groups[i / 32].min);
    aa += w[i] * a * a;
    ab += w[i] * a * b;
    bb += w[i] * b * b;
    ax += w[i] * a * x[i];
    bx += w[i] * b * x[i];
  }
  const double determinant = aa * bb - ab * ab;
  if (determinant > 1e-9 * aa * bb) {
    const double d = (ax * bb - bx * ab) / determinant, dmin = (bx * aa - ax * ab) / determinant;
    if (d > 0 && dmin >= 0) {
      block.d = as_half(static_cast<float>(d));
      block.dmin = as_half(static_cast<float>(dmin));
    }
  } else if (aa > 0 && ax > 0 && bb == 0) {
    block.d = as_half(static_cast<float>(ax / aa));
  }
}

AffineBlock fit_affine_block(const float* x, const float* w, int top) {
  std::array<Affine, 8> fits;
  float max_scale = 0, max_min = 0;
  for (int g = 0; g < 8; ++g) {
    fits[g] = fit_affine(x + 32 * g, w + 32 * g, top);
    max_scale = std::max(max_scale, fits[g].scale);
    max_min = std::max(max_min, fits[g].min);
  }
  AffineBlock best;
  best.d = as_half(max_scale / 63);
  best.dmin = as_half(max_min / 63);
  choose_scales(best, fits, x, w, top);
  AffineBlock trial = best;
  for (int round = 0; round < 2; ++round) {
    refit(trial, x, w, top);
    choose_scales(trial, fits, x, w, top);
    if (trial.error < best.error) best = trial;
  }
  return best;
}

void put_affine_header(const AffineBlock& fit, std::byte* block) {
  put_half(block, fit.d);
  put_half(block + 2, fit.dmin);
  uint8_t scales[12] = {};
  for (int g = 0; g < 8; ++g) pack_scale_min(scales, g, fit.groups[g]);
  std::memcpy(block + 4, scales, sizeof scales);
}

/// Low 4 bits of every level: groups 2k and 2k + 1 share 32 bytes.
void put_nibbles(const std::array<uint8_t, kBlock>& q, std::byte* b) {
  for (int i = 0; i < 128; ++i) {
    const int low = i / 32 * 64 + i % 32;
    b[i] = static_cast<std::byte>((q[low] & 15) | (q[low + 32] & 15) << 4);
  }
}

/// Best scale of 16 values on levels -32..31, of either sign; trial scales around the extreme, refitted.
float fit_q6_scale(const float* x, const float* w) {
  float extreme = 0;
  for (int i = 0; i < 16; ++i)
    if (std::fabs(x[i]) > std::fabs(extreme)) extreme = x[i];
  if (extreme == 0) return 0;
  double best_gain = 0;
  float best = 0;
  for (int step = -9; step <= 9; ++step) {
    const float inverse = -(32.0f + 0.1f * static_cast<float>(step)) / extreme;
    double qx = 0, qq = 0;
    for (int i = 0; i < 16; ++i) {
      const double q = nearest(x[i] * inverse, -32, 31);
      qx += w[i] * q * x[i];
      qq += w[i] * q * q;
    }
    // With the best scale qx / qq the squared error is sum(w x^2) - qx^2 / qq.
    if (qq > 0 && qx * qx / qq > best_gain) {
      best_gain = qx * qx / qq;
      best = static_cast<float>(qx / qq);
    }
  }
  return best;
}

}  // namespace

void pack_q4_k(const float* values, std::byte* block) {
  const auto x = finite_copy(values);
  const AffineBlock fit = fit_affine_block(x.data(), error_weights(x).data(), 15);
  put_affine_header(fit, block);
  put_nibbles(affine_levels(fit, x.data(), 15), block + 16);
}

void pack_q5_k(const float* values, std::byte* block) {
  const auto x = finite_copy(values);
  const AffineBlock fit = fit_affine_block(x.data(), error_weights(x).data(), 31);
  const auto q = affine_levels(fit, x.data(), 31);
  put_affine_header(fit, block);
  for (int i = 0; i < 32; ++i) {
    unsigned bits = 0;
    for (int g = 0; g < 8; ++g) bits |= static_cast<unsigned>(q[g * 32 + i] >> 4) << g;
    block[16 + i] = static_cast<std::byte>(bits);
  }
  put_nibbles(q, block + 48);
}

void pack_q6_k(const float* values, std::byte* block) {
  const auto x = finite_copy(values);
  const auto w = error_weights(x);
  std::array<float, 16> scales;
  float extreme = 0;
  for (int g = 0; g < 16; ++g) {
    scales[g] = fit_q6_scale(x.data() + 16 * g, w.data() + 16 * g);
    if (std::fabs(scales[g]) > std::fabs(extreme)) extreme = scales[g];
  }
  const float d = as_half(extreme / -128);  // the extreme scale takes the level that has no positive twin
  const float inverse_d = d != 0 ? 1 / d : 0;
  std::memset(block, 0, 192);
  for (int g = 0; g < 16; ++g) {
    const int s = nearest(scales[g] * inverse_d, -128, 127);
    block[192 + g] = static_cast<std::byte>(static_cast<int8_t>(s));
    const float scale = d * static_cast<float>(s), inverse = scale != 0 ? 1 / scale : 0;
    for (int i = 16 * g; i < 16 * g + 16; ++i) {
      const int q = nearest(x[i] * inverse, -32, 31) + 32;
      const Q6KPlace p = q6_k_place(i);
      block[p.low_byte] |= static_cast<std::byte>((q & 15) << p.low_shift);
      block[128 + p.high_byte] |= static_cast<std::byte>((q >> 4) << p.high_shift);
    }
  }
  put_half(block + 208, d);
}

}  // namespace doppler
