// What makes one vector of a text: mean_rows and l2_norm.
#include "kernels/l2_norm/l2_norm.h"
#include "kernels/l2_norm/reference.h"
#include "kernels/mean_rows/mean_rows.h"
#include "kernels/mean_rows/reference.h"
#include "kernels/support.h"

namespace doppler::kernels {
namespace {

TEST_CASE("mean_rows: rows and widths around a workgroup's, on slices, as a GPU gets it too") {
  gpu::Device& device = gpu::test_device();
  gpu::Caps hardware = device.caps();
  hardware.hardware = true;
  for (const uint32_t rows : {1u, 2u, 3u, 4u, 5u, 15u, 16u, 17u, 512u})
    for (const uint32_t width : {1u, 15u, 16u, 17u, 384u})
      for (const bool as_gpu : {false, true}) {
        CAPTURE(rows);
        CAPTURE(width);
        CAPTURE(as_gpu);
        const uint32_t gap = 3, stride = width + 2 * gap;
        const std::vector<float> x = random_floats(rows + width, rows * width, 1e5f);
        std::vector<float> wide(rows * stride, NAN);
        for (size_t i = 0; i < x.size(); ++i) wide[i / width * stride + gap + i % width] = x[i];
        const gpu::Buffer in = upload(device, wide), out = filled(device, width + 2, 77.0f);
        MeanRowsArgs args{columns(matrix(in, rows, stride), gap, width),
                          columns(matrix(out, 1, width + 2), 1, width), std::nullopt};
        if (as_gpu) args.plan = plan_mean_rows(width, hardware);
        must(run_mean_rows(device, args));
        std::vector<float> got = download(device, out);
        CHECK(got.front() == 77.0f);
        CHECK(got.back() == 77.0f);
        got = {got.begin() + 1, got.end() - 1};
        CHECK(nmse(got, mean_rows_reference(x, rows)) < 1e-11);
      }
}

TEST_CASE("l2_norm: to length 1, but zeros stay zeros") {
  gpu::Device& device = gpu::test_device();
  for (const uint32_t width : {1u, 3u, 4u, 63u, 64u, 65u, 384u, 2049u})
    for (const float scale : {1e-3f, 1.0f, 1e5f}) {
      CAPTURE(width);
      CAPTURE(scale);
      const uint32_t rows = 3, gap = 5, stride = width + gap;
      std::vector<float> x = random_floats(width, rows * width, scale);
      std::fill(x.begin(), x.begin() + width, 0.0f);
      const gpu::Buffer in = upload(device, x), out = filled(device, rows * stride, 77.0f);
      must(run_l2_norm(device,
                       {matrix(in, rows, width), columns(matrix(out, rows, stride), gap, width), 1e-12f}));
      const std::vector<float> all = download(device, out);
      std::vector<float> got;
      size_t touched = 0;
      for (size_t i = 0; i < all.size(); ++i) {
        if (i % stride < gap)
          touched += all[i] != 77.0f;
        else
          got.push_back(all[i]);
      }
      CHECK(touched == 0);
      CHECK(nmse(got, l2_norm_reference(x, rows, 1e-12)) < 1e-12);
    }
}

TEST_CASE("l2_norm: below eps the divisor is eps, rows beyond one grid dimension") {
  gpu::Device& device = gpu::test_device();
  const std::vector<float> x = random_floats(3, 65537 * 2, 0.1f);
  const gpu::Buffer in = upload(device, x), out = filled(device, x.size());
  must(run_l2_norm(device, {matrix(in, 65537, 2), matrix(out, 65537, 2), 0.2f}));
  CHECK(nmse(download(device, out), l2_norm_reference(x, 65537, double{0.2f})) < 1e-12);
  CHECK_FALSE(run_l2_norm(device, {matrix(in, 2, 2), matrix(in, 2, 2), 0.2f}).has_value());
  CHECK_FALSE(run_mean_rows(device, {matrix(in, 4, 2), matrix(out, 2, 2), std::nullopt}).has_value());
}

}  // namespace
}  // namespace doppler::kernels
