// gated_act, add, softcap, select_rows.
#include "kernels/add/add.h"
#include "kernels/add/reference.h"
#include "kernels/gated_act/gated_act.h"
#include "kernels/gated_act/reference.h"
#include "kernels/select_rows/select_rows.h"
#include "kernels/softcap/reference.h"
#include "kernels/softcap/softcap.h"
#include "kernels/support.h"

namespace doppler::kernels {
namespace {

TEST_CASE("gated_act matches the reference") {
  gpu::Device& device = gpu::test_device();
  for (const uint32_t width : {1u, 3u, 4u, 5u, 64u, 2049u})
    for (const Gate gate : {Gate::kSilu, Gate::kGeluTanh})
      for (const float scale : {1.0f, 1e5f}) {
        CAPTURE(width);
        CAPTURE(scale);
        const std::vector<float> x = random_floats(width, 3 * 2 * width, scale);
        const gpu::Buffer in = upload(device, x), out = filled(device, 3 * width);
        must(run_gated_act(device, {matrix(in, 3, 2 * width), matrix(out, 3, width), gate}));
        CHECK(nmse(download(device, out), gated_act_reference(x, 3, width, gate)) < 1e-11);
      }
}

TEST_CASE("add: three places for the result, slices of any alignment") {
  gpu::Device& device = gpu::test_device();
  for (const uint32_t width : {1u, 4u, 33u, 640u})
    for (const uint32_t gap : {1u, 4u})
      for (const int place : {0, 1, 2}) {
        CAPTURE(width);
        CAPTURE(gap);
        CAPTURE(place);
        const uint32_t rows = 3, stride = width + gap;
        const std::vector<float> a = random_floats(1, rows * stride, 1e5f),
                                 b = random_floats(2, rows * stride);
        const gpu::Buffer a_buffer = upload(device, a), b_buffer = upload(device, b),
                          c_buffer = filled(device, rows * stride, 77.0f);
        const gpu::Buffer* buffers[] = {&c_buffer, &a_buffer, &b_buffer};
        const auto slice = [&](const gpu::Buffer& buffer) {
          return columns(matrix(buffer, rows, stride), gap, width);
        };
        must(run_add(device, {slice(a_buffer), slice(b_buffer), slice(*buffers[place])}));
        const std::vector<float> got = download(device, *buffers[place]);
        const std::vector<double> sum = add_reference(a, b);
        const std::vector<float> before = place == 1   ? a
                                          : place == 2 ? b
                                                       : std::vector<float>(a.size(), 77.0f);
        size_t wrong = 0;
        for (size_t i = 0; i < got.size(); ++i)
          wrong += got[i] != (i % stride < gap ? before[i] : static_cast<float>(sum[i]));
        CHECK(wrong == 0);
      }
}

TEST_CASE("softcap matches the reference, far values too") {
  gpu::Device& device = gpu::test_device();
  for (const float scale : {1.0f, 100.0f, 1e6f}) {
    const std::vector<float> x = random_floats(7, 333, scale);
    const gpu::Buffer buffer = upload(device, x);
    must(run_softcap(device, {matrix(buffer, 3, 111), 30.0f}));
    CHECK(nmse(download(device, buffer), softcap_reference(x, 30)) < 1e-11);
  }
}

TEST_CASE("select_rows: a run and a list") {
  gpu::Device& device = gpu::test_device();
  const uint32_t width = 37, rows = 9;
  const std::vector<float> x = random_floats(1, rows * width);
  const std::vector<uint32_t> list{0, 8, 3, 3};
  const gpu::Buffer in = upload(device, x), numbers = upload(device, list), out = filled(device, 3 * width);
  const auto check = [&](const SelectRowsArgs& args, std::vector<size_t> want) {
    must(run_select_rows(device, args));
    const std::vector<float> got = download(device, out);
    for (size_t r = 0; r < want.size(); ++r)
      CHECK(std::equal(got.begin() + static_cast<std::ptrdiff_t>(r * width),
                       got.begin() + static_cast<std::ptrdiff_t>((r + 1) * width),
                       x.begin() + static_cast<std::ptrdiff_t>(want[r] * width)));
  };
  check({matrix(in, rows, width), matrix(out, 3, width), 6, nullptr}, {6, 7, 8});
  check({matrix(in, rows, width), matrix(out, 3, width), 1, &numbers}, {8, 3, 3});
  CHECK_FALSE(
      run_select_rows(device, {matrix(in, rows, width), matrix(out, 3, width), 7, nullptr}).has_value());
}

}  // namespace
}  // namespace doppler::kernels
