#pragma once
// Activations as int8: per 32 columns q = round(x / s), s = max|x| / 127. Input of the int8 form of linear.
#include <array>
#include <cstdint>
#include <string_view>

#include "kernels/common/matrix.h"
#include "kernels/quantize_act/plan.h"

namespace doppler::kernels {

/// Where quantised rows lie: one buffer, quants [rows, groups, 8 words] and, from byte `scales_offset` (a
/// multiple of 256), [rows, groups] pairs of f32 (s, s * sum of q). Columns beyond `columns` count as zero.
struct QuantizedAct {
  const gpu::Buffer* buffer = nullptr;
  uint32_t rows = 0, columns = 0;
  uint64_t scales_offset = 0;
};

/// Bytes a buffer needs for rows x columns, and the QuantizedAct that describes it.
uint64_t quantized_act_bytes(uint32_t rows, uint32_t columns);
QuantizedAct quantized_act(const gpu::Buffer& buffer, uint32_t rows, uint32_t columns);

/// kBadInput unless `out` has room for the matrix and a buffer of its own.
Result<void> check_quantized(std::string_view op, const Matrix& x, const QuantizedAct& out);

/// Its quants and its scales, as bindings of their own: one buffer bound twice at ranges that do not overlap.
std::array<gpu::Binding, 2> bind_quantized(const QuantizedAct& out);

struct QuantizeActArgs {
  Matrix x;
  QuantizedAct out;  // same rows and columns as x
};

Result<void> record_quantize_act(gpu::Device& device, gpu::Commands& commands, const QuantizeActArgs& args);
Result<void> run_quantize_act(gpu::Device& device, const QuantizeActArgs& args);

}  // namespace doppler::kernels
