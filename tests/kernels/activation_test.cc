// act and gated_act: every activation, both alignments, values from near zero to beyond f16.
#include "kernels/common/activation.h"

#include "kernels/act/act.h"
#include "kernels/act/reference.h"
#include "kernels/gated_act/gated_act.h"
#include "kernels/gated_act/reference.h"
#include "kernels/support.h"

namespace doppler::kernels {
namespace {

using graph::Activation;

constexpr Activation kPlain[] = {Activation::kSilu,      Activation::kGeluTanh, Activation::kGeluErf,
                                 Activation::kGeluQuick, Activation::kRelu,     Activation::kSigmoid};

TEST_CASE("act matches the reference") {
  gpu::Device& device = gpu::test_device();
  for (const Activation activation : kPlain)
    for (const uint32_t width : {1u, 3u, 4u, 5u, 64u, 2049u})
      for (const float scale : {1.0f, 1e5f}) {
        CAPTURE(activation_name(activation));
        CAPTURE(width);
        CAPTURE(scale);
        const uint32_t rows = 3, gap = width % 4 == 0 ? 4 : 1, stride = width + gap;
        const std::vector<float> x = random_floats(width, rows * width, scale);
        const gpu::Buffer in = upload(device, x), out = filled(device, rows * stride, 77.0f);
        must(run_act(device,
                     {matrix(in, rows, width), columns(matrix(out, rows, stride), gap, width), activation}));
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
        CHECK(nmse(got, act_reference(activation, x)) < 1e-11);
      }
}

TEST_CASE("act follows the curve everywhere, not only where it is large") {
  gpu::Device& device = gpu::test_device();
  std::vector<float> x;
  for (int i = -2000; i <= 2000; ++i) x.push_back(static_cast<float>(i) * 0.005f);  // [-10, 10]
  const auto width = static_cast<uint32_t>(x.size());
  const gpu::Buffer in = upload(device, x), out = filled(device, width);
  for (const Activation activation : kPlain) {
    CAPTURE(activation_name(activation));
    must(run_act(device, {matrix(in, 1, width), matrix(out, 1, width), activation}));
    const std::vector<float> got = download(device, out);
    const std::vector<double> want = act_reference(activation, x);
    // The tails are products with an exponential, whose error grows with its argument; tanh - 1 cancels.
    const double slack = activation == Activation::kGeluTanh ? 1e-6 : 1e-9;
    size_t wrong = 0;
    for (size_t i = 0; i < got.size(); ++i)
      wrong += !(std::abs(got[i] - want[i]) <= 5e-6 * std::abs(want[i]) + slack);
    CHECK(wrong == 0);
  }
}

TEST_CASE("act: what is no function of one value is refused") {
  gpu::Device& device = gpu::test_device();
  const gpu::Buffer in = filled(device, 8), out = filled(device, 8);
  CHECK(run_act(device, {matrix(in, 1, 8), matrix(out, 1, 8), Activation::kSwigluClamped}).error().code ==
        ErrorCode::kBadInput);
  CHECK_FALSE(run_act(device, {matrix(in, 1, 8), matrix(in, 1, 8), Activation::kRelu}).has_value());
}

struct Layout {
  uint32_t groups, half;
  bool interleaved;
};

void check_gated(gpu::Device& device, Activation activation, const Layout& layout, float scale) {
  CAPTURE(activation_name(activation));
  CAPTURE(layout.groups);
  CAPTURE(layout.half);
  CAPTURE(layout.interleaved);
  CAPTURE(scale);
  const uint32_t rows = 3, width = layout.groups * layout.half;
  const std::vector<float> x = random_floats(width, rows * 2 * width, scale);
  const gpu::Buffer in = upload(device, x), out = filled(device, rows * width);
  GatedActArgs args;
  args.in = matrix(in, rows, 2 * width);
  args.out = matrix(out, rows, width);
  args.activation = activation;
  args.group = layout.groups == 1 ? 0 : 2 * layout.half;
  args.interleaved = layout.interleaved;
  args.limit = 0.7f;
  args.alpha = 1.702f;
  must(run_gated_act(device, args));
  const GatedActReference shape{activation, args.group, args.interleaved, double{args.limit},
                                double{args.alpha}};
  CHECK(nmse(download(device, out), gated_act_reference(shape, x, rows, width)) < 1e-11);
}

TEST_CASE("gated_act: every activation at every width") {
  gpu::Device& device = gpu::test_device();
  for (const uint32_t width : {1u, 3u, 4u, 5u, 64u, 2049u})
    for (const float scale : {1.0f, 1e5f}) {
      for (const Activation activation : kPlain) check_gated(device, activation, {1, width, false}, scale);
      check_gated(device, Activation::kSwigluClamped, {1, width, false}, scale);
    }
}

TEST_CASE("gated_act: groups, and gate and up in turns") {
  gpu::Device& device = gpu::test_device();
  for (const bool interleaved : {false, true})
    for (const uint32_t groups : {1u, 2u, 5u})
      for (const uint32_t half : {1u, 3u, 4u, 48u, 50u})
        for (const Activation activation : {Activation::kSilu, Activation::kSwigluClamped})
          check_gated(device, activation, {groups, half, interleaved}, 1.0f);
}

TEST_CASE("gated_act: what does not fit is refused") {
  gpu::Device& device = gpu::test_device();
  const gpu::Buffer in = filled(device, 64), out = filled(device, 64);
  GatedActArgs args;
  args.in = matrix(in, 2, 24);
  args.out = matrix(out, 2, 12);
  CHECK(run_gated_act(device, args).has_value());
  for (const uint32_t group : {1u, 10u, 48u}) {
    args.group = group;
    CHECK(run_gated_act(device, args).error().code == ErrorCode::kBadInput);
  }
  args.group = 0;
  args.activation = Activation::kSwigluClamped;  // without a limit
  CHECK(run_gated_act(device, args).error().code == ErrorCode::kBadInput);
}

}  // namespace
}  // namespace doppler::kernels
