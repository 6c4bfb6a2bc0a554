// add, mul, softcap, select_rows.
#include "kernels/add/add.h"
#include "kernels/add/reference.h"
#include "kernels/mul/mul.h"
#include "kernels/mul/reference.h"
#include "kernels/select_rows/select_rows.h"
#include "kernels/softcap/reference.h"
#include "kernels/softcap/softcap.h"
#include "kernels/support.h"

namespace doppler::kernels {
namespace {

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

// Columns [gap, gap + width) of each row.
std::vector<float> inside(const std::vector<float>& all, uint32_t gap, uint32_t width) {
  std::vector<float> out;
  const uint32_t stride = gap + width;
  for (size_t i = 0; i < all.size(); ++i)
    if (i % stride >= gap) out.push_back(all[i]);
  return out;
}

TEST_CASE("mul: by a matrix and by a column, three places for the result, slices of any alignment") {
  gpu::Device& device = gpu::test_device();
  for (const uint32_t width : {1u, 3u, 4u, 5u, 640u})
    for (const uint32_t gap : {1u, 4u})
      for (const uint32_t b_width : {1u, width})
        for (const int place : {0, 1, 2}) {
          if (place == 2 && b_width != width) continue;
          CAPTURE(width);
          CAPTURE(gap);
          CAPTURE(b_width);
          CAPTURE(place);
          const uint32_t rows = 3;
          const std::vector<float> a = random_floats(1, rows * (gap + width), 1e5f),
                                   b = random_floats(2, rows * (gap + b_width));
          const gpu::Buffer a_buffer = upload(device, a), b_buffer = upload(device, b),
                            c_buffer = filled(device, rows * (gap + width), 77.0f);
          const gpu::Buffer* buffers[] = {&c_buffer, &a_buffer, &b_buffer};
          const auto slice = [&](const gpu::Buffer& buffer, uint32_t columns_) {
            return columns(matrix(buffer, rows, gap + columns_), gap, columns_);
          };
          must(run_mul(device,
                       {slice(a_buffer, width), slice(b_buffer, b_width), slice(*buffers[place], width)}));
          const std::vector<float> got = download(device, *buffers[place]);
          const std::vector<float> before = place == 1   ? a
                                            : place == 2 ? b
                                                         : std::vector<float>(a.size(), 77.0f);
          size_t touched = 0;
          for (size_t i = 0; i < got.size(); ++i) touched += i % (gap + width) < gap && got[i] != before[i];
          CHECK(touched == 0);
          CHECK(nmse(inside(got, gap, width),
                     mul_reference(inside(a, gap, width), inside(b, gap, b_width), rows)) < 1e-13);
        }
  const gpu::Buffer x = filled(device, 64), y = filled(device, 64), out = filled(device, 64);
  CHECK_FALSE(run_mul(device, {matrix(x, 2, 8), matrix(y, 2, 3), matrix(out, 2, 8)}).has_value());
  CHECK_FALSE(run_mul(device, {matrix(x, 2, 8), matrix(y, 1, 8), matrix(out, 2, 8)}).has_value());
  CHECK_FALSE(
      run_mul(device, {matrix(x, 2, 8), columns(matrix(out, 2, 8), 1, 1), matrix(out, 2, 8)}).has_value());
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
