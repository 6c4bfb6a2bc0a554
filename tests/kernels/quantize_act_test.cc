#include "kernels/quantize_act/quantize_act.h"

#include "kernels/quantize_act/reference.h"
#include "kernels/support.h"

namespace doppler::kernels {
namespace {

struct Quantised {
  std::vector<float> values;  // s * q, [rows, columns]
  std::vector<float> sums;    // s * sum of q, [rows, groups]
};

Quantised run(gpu::Device& device, const std::vector<float>& x, uint32_t rows, uint32_t columns_) {
  const gpu::Buffer in = upload(device, x);
  const gpu::Buffer out = must(device.create_buffer(quantized_act_bytes(rows, columns_), "int8"));
  const QuantizedAct act = quantized_act(out, rows, columns_);
  must(run_quantize_act(device, {matrix(in, rows, columns_), act}));
  std::vector<std::byte> bytes(out.bytes());
  must(device.read(out, 0, bytes));
  Quantised got;
  const size_t groups = (columns_ + 31) / 32;
  for (size_t r = 0; r < rows; ++r)
    for (size_t g = 0; g < groups; ++g) {
      float scale[2];
      std::memcpy(scale, bytes.data() + act.scales_offset + (r * groups + g) * 8, 8);
      got.sums.push_back(scale[1]);
      for (size_t i = 0; i < 32; ++i) {
        const int q = static_cast<int8_t>(bytes[(r * groups + g) * 32 + i]);
        if (g * 32 + i < columns_)
          got.values.push_back(scale[0] * static_cast<float>(q));
        else
          CHECK(q == 0);
      }
    }
  return got;
}

TEST_CASE("quantize_act matches the reference") {
  gpu::Device& device = gpu::test_device();
  for (const uint32_t columns_ : {1u, 3u, 4u, 31u, 32u, 33u, 640u, 2049u})
    for (const float scale : {1e-8f, 1.0f, 1e5f}) {
      CAPTURE(columns_);
      CAPTURE(scale);
      const std::vector<float> x = random_floats(columns_, 3 * columns_, scale);
      // A tie may round either way: at most one step of 1/127 of the peak, in few values.
      CHECK(nmse(run(device, x, 3, columns_).values, quantize_act_reference(x, 3, columns_)) < 1e-6);
    }
}

TEST_CASE("quantize_act: sums belong to the rounded values, zeros stay zeros, infinity shows") {
  gpu::Device& device = gpu::test_device();
  std::vector<float> x = random_floats(1, 96);
  std::fill(x.begin() + 32, x.begin() + 64, 0.0f);
  x[70] = HUGE_VALF;
  const Quantised got = run(device, x, 1, 96);
  double sum = 0;
  for (size_t i = 0; i < 32; ++i) sum += double{got.values[i]};
  CHECK(got.sums[0] == doctest::Approx(sum).epsilon(1e-5));
  for (size_t i = 32; i < 64; ++i) CHECK(got.values[i] == 0.0f);
  CHECK(got.sums[1] == 0.0f);
  CHECK_FALSE(std::isfinite(got.sums[2]));
}

}  // namespace
}  // namespace doppler::kernels
