#pragma once
// Random data, upload and download, and the error measure that kernel tests share.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "base/quants.h"
#include "gpu/test_device.h"
#include "kernels/common/matrix.h"
#include "kernels/weights/packed.h"
#include "support/random_blocks.h"

namespace doppler::kernels {

/// A failed Result fails the test with its message.
template <class T>
T must(Result<T> result) {
  if (!result) FAIL(result.error().message);
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

/// The test device as it is, then pretending to have neither subgroups nor f16.
template <class Body>
void for_each_device(Body body) {
  {
    INFO("device as it is");
    body(gpu::test_device());
  }
  static const std::unique_ptr<gpu::Device> plain = [] {
    gpu::DeviceOptions options;
    options.disable_f16 = options.disable_subgroups = true;
    return gpu::open_test_device(options);
  }();
  INFO("device without subgroups and f16");
  body(*plain);
}

inline std::vector<float> random_floats(uint32_t seed, size_t n, float scale = 1.0f) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0f, scale);
  std::vector<float> out(n);
  for (float& v : out) v = normal(random);
  return out;
}

template <class T>
gpu::Buffer upload(gpu::Device& device, const std::vector<T>& values) {
  gpu::Buffer buffer = must(device.create_buffer(values.size() * sizeof(T), "test input"));
  must(device.write(buffer, 0, std::as_bytes(std::span(values))));
  return buffer;
}

/// A buffer of `n` floats that all read `value`: what a kernel must not touch can be told afterwards.
inline gpu::Buffer filled(gpu::Device& device, size_t n, float value = 0.0f) {
  return upload(device, std::vector<float>(n, value));
}

inline std::vector<float> download(gpu::Device& device, const gpu::Buffer& buffer) {
  std::vector<float> out(buffer.bytes() / 4);
  must(device.read(buffer, 0, std::as_writable_bytes(std::span(out))));
  return out;
}

/// Squared error over squared signal. Infinity where one side has a value that is not finite.
inline double nmse(std::span<const float> got, std::span<const double> want) {
  REQUIRE(got.size() == want.size());
  double error = 0, signal = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const double d = double{got[i]} - want[i];
    error += d * d;
    signal += want[i] * want[i];
  }
  if (!std::isfinite(error)) return HUGE_VAL;
  return signal == 0 ? error : error / signal;
}

/// rows x columns of a packed type as a file has them, with what they mean. Rows are padded to whole blocks,
/// and the padding holds values that no kernel may read.
struct TestWeight {
  std::vector<std::byte> bytes;
  uint64_t row_bytes = 0;
  std::vector<float> values;  // [rows, columns]
};

inline TestWeight random_weight(DType dtype, uint32_t rows, uint32_t columns, uint32_t seed,
                                float scale = 0.5f) {
  TestWeight w;
  w.row_bytes = row_bytes(dtype, columns);
  const DTypeInfo& info = dtype_info(dtype);
  const size_t padded = w.row_bytes / info.block_bytes * info.block_elems;
  w.bytes.resize(rows * w.row_bytes);
  std::vector<float> row = random_floats(seed, padded, scale), back(padded);
  std::mt19937 random(seed);
  if (!can_quantize(dtype)) w.bytes = test::random_blocks(dtype, rows * padded, seed, scale);
  for (size_t r = 0; r < rows; ++r) {
    std::shuffle(row.begin(), row.end(), random);
    std::byte* at = w.bytes.data() + r * w.row_bytes;
    if (can_quantize(dtype)) quantize(dtype, row.data(), padded, at);
    dequantize(dtype, at, padded, back.data());
    w.values.insert(w.values.end(), back.begin(), back.begin() + columns);
  }
  return w;
}

/// A part of a weight on the device.
struct DeviceWeight {
  gpu::Buffer buffer;
  PackedLayout layout;
  PackedWeight part() const { return {&buffer, layout, first_row}; }
  uint32_t first_row = 0;
};

inline DeviceWeight upload_weight(gpu::Device& device, DType dtype, const TestWeight& w, uint32_t columns,
                                  uint32_t first, uint32_t rows) {
  DeviceWeight out;
  out.layout = packed_layout(dtype, rows, columns);
  out.first_row = first;
  out.buffer = must(device.create_buffer(out.layout.bytes, "test weight"));
  must(upload_packed(device, out.buffer, out.layout, std::span(w.bytes).subspan(first * w.row_bytes),
                     w.row_bytes));
  return out;
}

inline constexpr DType kRunnable[] = {DType::kF32,  DType::kF16,    DType::kBF16,   DType::kQ4_0,
                                      DType::kQ4_1, DType::kQ5_0,   DType::kQ5_1,   DType::kQ8_0,
                                      DType::kQ2_K, DType::kQ3_K,   DType::kQ4_K,   DType::kQ5_K,
                                      DType::kQ6_K, DType::kIQ4_NL, DType::kIQ4_XS, DType::kMXFP4};

}  // namespace doppler::kernels
