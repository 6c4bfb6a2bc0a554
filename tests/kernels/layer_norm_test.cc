#include "kernels/layer_norm/layer_norm.h"

#include "kernels/layer_norm/reference.h"
#include "kernels/support.h"

namespace doppler::kernels {
namespace {

TEST_CASE("layer_norm matches the reference, with weight and bias in one buffer") {
  gpu::Device& device = gpu::test_device();
  for (const uint32_t width : {1u, 3u, 4u, 5u, 63u, 64u, 65u, 255u, 256u, 257u, 384u, 2049u})
    for (const float scale : {1.0f, 1e5f})
      for (const float mean : {0.0f, 100.0f}) {
        CAPTURE(width);
        CAPTURE(scale);
        CAPTURE(mean);
        const uint32_t rows = 3, bias_base = (width + 3) / 4 * 4;
        std::vector<float> x = random_floats(width, rows * width, scale);
        for (float& v : x) v += mean * scale;
        const std::vector<float> vectors = random_floats(width + 1, bias_base + width);
        const std::span<const float> weight = std::span(vectors).first(width);
        const std::span<const float> bias = std::span(vectors).subspan(bias_base);
        const gpu::Buffer in = upload(device, x), both = upload(device, vectors),
                          out = filled(device, rows * width);
        LayerNormArgs args;
        args.x = matrix(in, rows, width);
        args.weight = args.bias = &both;
        args.bias_base = bias_base;
        args.eps = 1e-5f;
        args.out = matrix(out, rows, width);
        must(run_layer_norm(device, args));
        // A mean of 100 deviations costs two decimal digits of an f32.
        CHECK(nmse(download(device, out), layer_norm_reference(x, weight, bias, double{1e-5f})) <
              (mean == 0 ? 1e-12 : 1e-9));
      }
}

TEST_CASE("layer_norm with 256 threads, as a GPU gets it, and on slices") {
  gpu::Device& device = gpu::test_device();
  gpu::Caps caps = device.caps();
  caps.hardware = true;
  for (const uint32_t width : {2044u, 2048u, 2052u, 4096u}) {
    CAPTURE(width);
    const uint32_t rows = 2, gap = 4, stride = width + 2 * gap;
    std::vector<float> x = random_floats(width, rows * width), wide(rows * stride, NAN);
    for (size_t i = 0; i < x.size(); ++i) wide[i / width * stride + gap + i % width] = x[i];
    const std::vector<float> w = random_floats(1, width + 8), b = random_floats(2, width);
    const gpu::Buffer in = upload(device, wide), weight = upload(device, w), bias = upload(device, b),
                      out = filled(device, rows * stride, 77.0f);
    LayerNormArgs args;
    args.x = columns(matrix(in, rows, stride), gap, width);
    args.weight = &weight;
    args.weight_base = 8;
    args.bias = &bias;
    args.plan = plan_layer_norm(rows, width, true, caps);
    CHECK(args.plan->workgroup == (width >= 2048 ? 256 : 64));
    args.out = columns(matrix(out, rows, stride), gap, width);
    must(run_layer_norm(device, args));
    const std::vector<float> all = download(device, out);
    std::vector<float> got;
    size_t touched = 0;
    for (size_t i = 0; i < all.size(); ++i) {
      if (i % stride < gap || i % stride >= gap + width)
        touched += all[i] != 77.0f;
      else
        got.push_back(all[i]);
    }
    CHECK(touched == 0);
    CHECK(nmse(got, layer_norm_reference(x, std::span(w).subspan(8), b, 1e-5)) < 1e-12);
  }
}

TEST_CASE("layer_norm of more rows than one grid dimension") {
  gpu::Device& device = gpu::test_device();
  const uint32_t rows = 65537, width = 4;
  const std::vector<float> x = random_floats(9, rows * width), w{1, 2, 3, 4}, b{5, 6, 7, 8};
  const gpu::Buffer in = upload(device, x), weight = upload(device, w), bias = upload(device, b),
                    out = filled(device, rows * width);
  LayerNormArgs args;
  args.x = matrix(in, rows, width);
  args.weight = &weight;
  args.bias = &bias;
  args.out = matrix(out, rows, width);
  must(run_layer_norm(device, args));
  CHECK(nmse(download(device, out), layer_norm_reference(x, w, b, 1e-5)) < 1e-11);
  args.bias_base = 1;
  CHECK(run_layer_norm(device, args).error().code == ErrorCode::kBadInput);
  args.bias_base = 0;
  args.out = args.x;
  CHECK(run_layer_norm(device, args).error().code == ErrorCode::kBadInput);
}

}  // namespace
}  // namespace doppler::kernels
