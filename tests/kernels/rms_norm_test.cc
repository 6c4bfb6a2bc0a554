#include "kernels/rms_norm/rms_norm.h"

#include "kernels/rms_norm/reference.h"
#include "kernels/support.h"

namespace doppler::kernels {
namespace {

TEST_CASE("rms_norm matches the reference") {
  gpu::Device& device = gpu::test_device();
  for (const uint32_t width : {1u, 3u, 4u, 5u, 63u, 64u, 255u, 256u, 257u, 640u, 1152u, 2049u})
    for (const float scale : {1.0f, 1e5f}) {
      CAPTURE(width);
      CAPTURE(scale);
      const std::vector<float> x = random_floats(width, 3 * width, scale),
                               w = random_floats(width + 1, width);
      const gpu::Buffer in = upload(device, x), weight = upload(device, w), out = filled(device, 3 * width);
      RmsNormArgs args;
      args.x = matrix(in, 3, width);
      args.weight = &weight;
      args.weight_offset = 1.0f;
      args.out = matrix(out, 3, width);
      must(run_rms_norm(device, args));
      CHECK(nmse(download(device, out), rms_norm_reference(x, w, 1e-6, 1)) < 1e-12);
    }
}

TEST_CASE("rms_norm with 256 threads, as a GPU gets it") {
  gpu::Device& device = gpu::test_device();
  gpu::Caps caps = device.caps();
  caps.hardware = true;
  for (const uint32_t width : {2048u, 2052u, 8192u}) {
    const std::vector<float> x = random_floats(width, 2 * width), w = random_floats(width + 1, width);
    const gpu::Buffer in = upload(device, x), weight = upload(device, w), out = filled(device, 2 * width);
    RmsNormArgs args;
    args.x = matrix(in, 2, width);
    args.weight = &weight;
    args.plan = plan_rms_norm(2, 1, width, true, caps);
    CHECK(args.plan->workgroup == 256);
    args.out = matrix(out, 2, width);
    must(run_rms_norm(device, args));
    CHECK(nmse(download(device, out), rms_norm_reference(x, w, 1e-6, 0)) < 1e-12);
  }
}

TEST_CASE("rms_norm per head, in place, on a slice") {
  gpu::Device& device = gpu::test_device();
  for (const uint32_t head : {8u, 64u, 66u, 256u}) {
    CAPTURE(head);
    const uint32_t rows = 5, heads = 3, gap = 12, stride = heads * head + 2 * gap;
    const std::vector<float> x = random_floats(head, rows * stride), w = random_floats(2, head + 4);
    const gpu::Buffer buffer = upload(device, x), weight = upload(device, w);
    RmsNormArgs args;
    args.x = args.out = columns(matrix(buffer, rows, stride), gap, heads * head);
    args.group = head;
    args.weight = &weight;
    args.weight_base = 4;
    must(run_rms_norm(device, args));
    const std::vector<float> got = download(device, buffer);
    std::vector<float> before, after;
    size_t touched = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      if (i % stride < gap || i % stride >= gap + heads * head) {
        touched += got[i] != x[i];
        continue;
      }
      before.push_back(x[i]);
      after.push_back(got[i]);
    }
    CHECK(touched == 0);
    CHECK(nmse(after, rms_norm_reference(before, std::span(w).subspan(4), 1e-6, 0)) < 1e-12);
  }
}

TEST_CASE("rms_norm of more rows than one grid dimension") {
  gpu::Device& device = gpu::test_device();
  const uint32_t rows = 65537, width = 4;
  const std::vector<float> x = random_floats(9, rows * width), w{1, 2, 3, 4};
  const gpu::Buffer buffer = upload(device, x), weight = upload(device, w);
  RmsNormArgs args;
  args.x = args.out = matrix(buffer, rows, width);
  args.weight = &weight;
  must(run_rms_norm(device, args));
  CHECK(nmse(download(device, buffer), rms_norm_reference(x, w, 1e-6, 0)) < 1e-12);
}

TEST_CASE("add_rms_norm: sum in its own buffer, in a and in b") {
  gpu::Device& device = gpu::test_device();
  for (const uint32_t width : {3u, 640u})
    for (const int place : {0, 1, 2}) {
      CAPTURE(width);
      CAPTURE(place);
      const uint32_t rows = 3;
      const std::vector<float> a = random_floats(1, rows * width, 1e5f), b = random_floats(2, rows * width),
                               w = random_floats(3, width);
      const gpu::Buffer a_buffer = upload(device, a), b_buffer = upload(device, b),
                        weight = upload(device, w), sum_buffer = filled(device, rows * width),
                        out = filled(device, rows * width);
      const gpu::Buffer& sum = place == 0 ? sum_buffer : place == 1 ? a_buffer : b_buffer;
      AddRmsNormArgs args;
      args.a = matrix(a_buffer, rows, width);
      args.b = matrix(b_buffer, rows, width);
      args.sum = matrix(sum, rows, width);
      args.weight = &weight;
      args.out = matrix(out, rows, width);
      must(run_add_rms_norm(device, args));
      std::vector<float> added(a.size());
      for (size_t i = 0; i < a.size(); ++i) added[i] = a[i] + b[i];
      CHECK(download(device, sum) == added);
      CHECK(nmse(download(device, out), rms_norm_reference(added, w, 1e-6, 0)) < 1e-12);
    }
}

}  // namespace
}  // namespace doppler::kernels
