#include "kernels/expert_linear/expert_linear.h"

#include <algorithm>
#include <numeric>

#include "kernels/expert_linear/reference.h"
#include "kernels/quantize_act/reference.h"
#include "kernels/route/reference.h"
#include "kernels/support.h"

namespace doppler::kernels {
namespace {

struct Case {
  DType dtype = DType::kF32;
  uint32_t rows = 1, top_k = 2, experts = 5, columns = 64, w_rows = 70;
  bool shared = true, int8 = false, bias = false;
  uint32_t held = 0;    // experts a buffer; 0: all in one
  bool placed = false;  // experts lie in slots, the last ones first
  float x_scale = 1.0f;
  uint32_t gap = 0;  // columns of out beside each slot's; of x too, where a row's uses share it
};

/// A case's data and its run on a device.
class Run {
 public:
  Run(gpu::Device& device, const Case& c) : device_(device), c_(c) {
    w_ = random_weight(c.dtype, c.experts * c.w_rows, c.columns, c.columns * 7 + c.w_rows);
    x_ = random_floats(c.columns + c.rows, size_t{c.rows} * x_width(), c.x_scale);
    if (c.bias) bias_ = random_floats(3, size_t{c.experts} * c.w_rows);
    const std::vector<float> logits = random_floats(c.rows + c.experts, size_t{c.rows} * c.experts);
    const std::vector<double> routes =
        route_reference(logits, c.rows, c.experts, c.top_k, graph::Routing::kSoftmaxOfChosen);
    routes_.assign(routes.begin(), routes.end());
  }

  /// All slots' columns of every row. Nothing beside them may have been written.
  std::vector<float> on_device() {
    const gpu::Buffer x_buffer = upload(device_, spread_x());
    const gpu::Buffer routes = upload(device_, routes_);
    const uint32_t slot_width = c_.w_rows + c_.gap, out_stride = c_.gap + c_.top_k * slot_width;
    const gpu::Buffer out = filled(device_, size_t{c_.rows} * out_stride, 77.0f);
    ExpertLinearArgs args;
    args.x = columns(matrix(x_buffer, c_.rows, x_width() + x_gap()), x_gap(), x_width());
    args.routes = matrix(routes, c_.rows, 2 * c_.top_k);
    args.experts = c_.experts;
    args.out = columns(matrix(out, c_.rows, out_stride), c_.gap, c_.w_rows);
    args.slot_width = slot_width;

    const uint32_t quantized_rows = c_.shared ? c_.rows : c_.rows * c_.top_k;
    const gpu::Buffer quantized =
        must(device_.create_buffer(quantized_act_bytes(quantized_rows, c_.columns), "int8 x"));
    if (c_.int8) {
      args.quantized = quantized_act(quantized, quantized_rows, c_.columns);
      Matrix x = args.x;
      if (!c_.shared) x = matrix(x_buffer, quantized_rows, c_.columns);
      must(run_quantize_act(device_, {x, *args.quantized}));
    }
    const ExpertGroupPlan group = plan_expert_group(c_.rows, c_.top_k, c_.experts, device_.caps());
    const gpu::Buffer groups = must(device_.create_buffer(expert_groups_bytes(group), "groups"));
    if (expert_linear_groups(c_.rows, c_.top_k, c_.experts)) {
      args.groups = expert_groups(groups, group);
      must(run_expert_group(device_, {args.routes, c_.experts, *args.groups}));
    }
    std::vector<uint32_t> places(c_.experts), expert_at(c_.experts);
    for (uint32_t e = 0; e < c_.experts; ++e) places[e] = c_.placed ? c_.experts - 1 - e : e;
    for (uint32_t e = 0; e < c_.experts; ++e) expert_at[places[e]] = e;
    const gpu::Buffer places_buffer = upload(device_, places);
    if (c_.placed) args.places = &places_buffer;

    const uint32_t held = c_.held == 0 ? c_.experts : c_.held;
    for (uint32_t first = 0; first < c_.experts; first += held) {
      const uint32_t count = std::min(held, c_.experts - first);
      std::vector<std::byte> bytes;
      std::vector<float> bias;
      for (uint32_t i = first; i < first + count; ++i) {
        const size_t at = expert_at[i] * size_t{c_.w_rows};
        const auto part = std::span(w_.bytes).subspan(at * w_.row_bytes, c_.w_rows * w_.row_bytes);
        bytes.insert(bytes.end(), part.begin(), part.end());
        if (c_.bias) bias.insert(bias.end(), bias_.data() + at, bias_.data() + at + c_.w_rows);
      }
      TestWeight stack{std::move(bytes), w_.row_bytes, {}};
      const DeviceWeight weight = upload_weight(device_, c_.dtype, stack, c_.columns, 0, count * c_.w_rows);
      const gpu::Buffer bias_buffer = c_.bias ? upload(device_, bias) : gpu::Buffer();
      args.w = {&weight.buffer, weight.layout, c_.bias ? &bias_buffer : nullptr, first, count};
      must(run_expert_linear(device_, args));
    }
    return inside(download(device_, out), out_stride);
  }

  std::vector<double> reference() const {
    std::vector<float> seen = x_;
    if (c_.int8) {
      const auto rounded =
          quantize_act_reference(x_, static_cast<uint32_t>(x_.size() / c_.columns), c_.columns);
      seen.assign(rounded.begin(), rounded.end());
    }
    return expert_linear_reference(
        {c_.rows, c_.top_k, c_.columns, c_.w_rows, c_.shared, seen, w_.values, bias_, routes_});
  }

 private:
  uint32_t x_width() const { return c_.shared ? c_.columns : c_.top_k * c_.columns; }
  uint32_t x_gap() const { return c_.shared ? c_.gap : 0; }

  std::vector<float> spread_x() const {
    const size_t stride = x_width() + x_gap();
    std::vector<float> out(c_.rows * stride, NAN);  // reading beside the slice would show
    for (size_t r = 0; r < c_.rows; ++r)
      std::copy_n(x_.begin() + static_cast<std::ptrdiff_t>(r * x_width()), x_width(),
                  out.begin() + static_cast<std::ptrdiff_t>(r * stride + x_gap()));
    return out;
  }

  std::vector<float> inside(const std::vector<float>& got, size_t out_stride) const {
    std::vector<float> values;
    size_t touched = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      const size_t c = i % out_stride;
      if (c >= c_.gap && (c - c_.gap) % (c_.w_rows + c_.gap) < c_.w_rows)
        values.push_back(got[i]);
      else
        touched += got[i] != 77.0f;
    }
    CHECK(touched == 0);
    return values;
  }

  gpu::Device& device_;
  Case c_;
  TestWeight w_;
  std::vector<float> x_, bias_, routes_;
};

// f32 sums against f64 ones: rounding alone; a quant at a rounding tie may go either way.
constexpr double kExact = 1e-11, kInt8 = 1e-6;

void check(gpu::Device& device, const Case& c) {
  CAPTURE(dtype_name(c.dtype));
  CAPTURE(c.rows);
  CAPTURE(c.top_k);
  CAPTURE(c.experts);
  CAPTURE(c.columns);
  CAPTURE(c.w_rows);
  CAPTURE(c.shared);
  CAPTURE(c.int8);
  Run run(device, c);
  CHECK(nmse(run.on_device(), run.reference()) < (c.int8 ? kInt8 : kExact));
}

/// A row count for each kernel.
constexpr uint32_t kOneByOne = 2, kGrouped = 23;

TEST_CASE("expert_linear: every type, both kernels, exact activations") {
  for_each_device([](gpu::Device& device) {
    for (const DType dtype : kRunnable) {
      check(device, {dtype, kOneByOne, 2, 5, 288, 40});
      if (&device == &gpu::test_device()) check(device, {dtype, kGrouped, 2, 5, 288, 40, false});
    }
  });
}

TEST_CASE("expert_linear: every quantised type, both kernels, int8 activations") {
  for_each_device([](gpu::Device& device) {
    for (const DType dtype : kRunnable) {
      if (!linear_takes_int8(dtype)) continue;
      check(device, {dtype, kOneByOne, 2, 5, 288, 40, false, true});
      if (&device == &gpu::test_device()) check(device, {dtype, kGrouped, 2, 5, 288, 40, true, true});
    }
  });
}

TEST_CASE("expert_linear: numbers of experts, of experts a row, and of rows") {
  gpu::Device& device = gpu::test_device();
  for (const uint32_t experts : {1u, 3u, 8u, 33u, 128u})
    for (const uint32_t top_k : {1u, 2u, 8u})
      for (const uint32_t rows : {1u, 4u, 5u, 16u, 17u, 70u, 140u}) {
        if (top_k > experts) continue;
        check(device, {DType::kF16, rows, top_k, experts, 32, 9, rows % 2 == 0});
        check(device, {DType::kQ8_0, rows, top_k, experts, 32, 9, rows % 2 == 1, true});
      }
}

TEST_CASE("expert_linear: columns and weight rows of 1, odd, and around groups and tiles, with biases") {
  gpu::Device& device = gpu::test_device();
  for (const uint32_t rows : {kOneByOne, kGrouped})
    for (const bool shared : {true, false}) {
      for (const uint32_t columns_ : {1u, 3u, 4u, 31u, 33u, 257u}) {
        check(device, {DType::kF32, rows, 2, 3, columns_, 33, shared});
        check(device, {DType::kQ4_K, rows, 2, 3, columns_, 33, shared, false, true});
        check(device, {DType::kMXFP4, rows, 2, 3, columns_, 33, shared, true, true});
      }
      for (const uint32_t w_rows : {1u, 2u, 31u, 33u, 63u, 64u, 65u, 129u})
        check(device, {DType::kMXFP4, rows, 2, 3, 64, w_rows, shared, false, true});
    }
}

TEST_CASE("expert_linear: slices of x and out, values beyond f16") {
  for_each_device([](gpu::Device& device) {
    for (const uint32_t rows : {kOneByOne, kGrouped})
      for (const uint32_t gap : {1u, 4u}) {
        Case c{DType::kBF16, rows, 3, 4, 96, 40};
        c.gap = gap;
        c.x_scale = 1e5f;
        check(device, c);
        c.dtype = DType::kQ5_0;
        c.int8 = true;
        check(device, c);
      }
  });
}

TEST_CASE("expert_linear: experts in several buffers and in other places give the same bits") {
  gpu::Device& device = gpu::test_device();
  for (const uint32_t rows : {kOneByOne, kGrouped})
    for (const bool int8 : {false, true}) {
      Case c{DType::kMXFP4, rows, 3, 7, 96, 50, true, int8, true};
      const std::vector<float> want = Run(device, c).on_device();
      for (const uint32_t held : {0u, 1u, 3u, 6u})
        for (const bool placed : {false, true}) {
          CAPTURE(held);
          CAPTURE(placed);
          c.held = held;
          c.placed = placed;
          CHECK(Run(device, c).on_device() == want);
        }
    }
}

TEST_CASE("expert_linear: uses of experts that are not there are left alone") {
  gpu::Device& device = gpu::test_device();
  const TestWeight w = random_weight(DType::kF32, 4, 8, 1);
  const DeviceWeight weight = upload_weight(device, DType::kF32, w, 8, 0, 4);
  const gpu::Buffer x = upload(device, random_floats(2, 8)), out = filled(device, 8, 77.0f);
  const gpu::Buffer routes = upload(device, std::vector<float>{2, 0, 0.5f, 0.5f});
  const gpu::Buffer places = upload(device, std::vector<uint32_t>{UINT32_MAX, UINT32_MAX, 0});
  ExpertLinearArgs args;
  args.x = matrix(x, 1, 8);
  args.routes = matrix(routes, 1, 4);
  args.experts = 3;
  args.w = {&weight.buffer, weight.layout, nullptr, 0, 1};
  args.out = columns(matrix(out, 1, 8), 0, 4);
  args.slot_width = 4;
  args.places = &places;
  must(run_expert_linear(device, args));
  const std::vector<float> got = download(device, out);
  for (size_t i = 0; i < 4; ++i) {
    CHECK(got[i] != 77.0f);
    CHECK(got[i + 4] == 77.0f);
  }
}

TEST_CASE("expert_linear: what does not fit is refused") {
  gpu::Device& device = gpu::test_device();
  const TestWeight w = random_weight(DType::kF32, 12, 8, 1);
  const DeviceWeight weight = upload_weight(device, DType::kF32, w, 8, 0, 12);
  const gpu::Buffer x = filled(device, 64), out = filled(device, 64), routes = filled(device, 64);
  ExpertLinearArgs good;
  good.x = matrix(x, 1, 8);
  good.routes = matrix(routes, 1, 4);
  good.experts = 3;
  good.w = {&weight.buffer, weight.layout, nullptr, 0, 3};
  good.out = columns(matrix(out, 1, 8), 0, 4);
  good.slot_width = 4;
  CHECK(run_expert_linear(device, good).has_value());
  const auto code = [&](const ExpertLinearArgs& args) {
    const auto result = run_expert_linear(device, args);
    return result ? ErrorCode::kGpu : result.error().code;
  };
  ExpertLinearArgs bad = good;
  bad.x.width = 7;
  CHECK(code(bad) == ErrorCode::kBadInput);
  bad = good;
  bad.out.width = 5;
  CHECK(code(bad) == ErrorCode::kBadInput);
  bad = good;
  bad.slot_width = 3;
  CHECK(code(bad) == ErrorCode::kBadInput);
  bad = good;
  bad.out.buffer = &x;
  CHECK(code(bad) == ErrorCode::kBadInput);
  bad = good;
  bad.quantized = quantized_act(x, 1, 8);
  CHECK(code(bad) == ErrorCode::kUnsupported);
  bad = good;
  bad.x.rows = bad.routes.rows = bad.out.rows = 7;
  CHECK(code(bad) == ErrorCode::kBadInput);  // no groups
}

TEST_CASE("expert_linear: the plan is a function of shape and capabilities, not of what is resident") {
  gpu::Caps caps;
  const LinearPlan one = plan_expert_linear({DType::kQ4_K, 1, 8, 128, 2048, 768}, caps);
  CHECK(one.kernel == LinearKernel::kMatvec);
  CHECK(one.grid[2] == 8);
  CHECK(plan_expert_linear({DType::kQ4_K, 16, 8, 128, 2048, 768}, caps).kernel == LinearKernel::kMatvec);
  const LinearPlan many = plan_expert_linear({DType::kQ4_K, 512, 8, 128, 2048, 768}, caps);
  CHECK(many.kernel == LinearKernel::kMatmat);
  CHECK(many.x_rows_tile == 32);
  CHECK(many.grid[1] == 4096 / 32 + 128);
}

}  // namespace
}  // namespace doppler::kernels
