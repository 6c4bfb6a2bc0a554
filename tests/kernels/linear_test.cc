#include "kernels/linear/linear.h"

#include "kernels/linear/reference.h"
#include "kernels/quantize_act/reference.h"
#include "kernels/support.h"

namespace doppler::kernels {
namespace {

struct Case {
  DType dtype = DType::kF32;
  uint32_t x_rows = 1, columns = 64, w_rows = 70;
  bool int8 = false, bias = false;
  uint32_t gap = 4;  // columns of x's and out's buffers beside the slice
  float x_scale = 1.0f;
  bool hardware = false;  // the plan a GPU would get
};

/// Runs the case on a slice with strides and offsets, checks it and that nothing beside the slice was
/// written.
void check(gpu::Device& device, const Case& c, double bound) {
  CAPTURE(dtype_name(c.dtype));
  CAPTURE(c.x_rows);
  CAPTURE(c.columns);
  CAPTURE(c.w_rows);
  CAPTURE(c.int8);
  CAPTURE(c.gap);
  const TestWeight w = random_weight(c.dtype, c.w_rows, c.columns, c.columns * 7 + c.w_rows);
  const std::vector<float> x = random_floats(c.columns + c.x_rows, size_t{c.x_rows} * c.columns, c.x_scale);
  const std::vector<float> bias = c.bias ? random_floats(3, c.w_rows) : std::vector<float>();

  const uint32_t x_stride = c.columns + 2 * c.gap, out_stride = c.w_rows + 2 * c.gap;
  std::vector<float> x_rows(size_t{c.x_rows} * x_stride, NAN);  // reading beside the slice would show
  for (size_t r = 0; r < c.x_rows; ++r)
    std::copy_n(x.begin() + static_cast<std::ptrdiff_t>(r * c.columns), c.columns,
                x_rows.begin() + static_cast<std::ptrdiff_t>(r * x_stride + c.gap));
  const gpu::Buffer x_buffer = upload(device, x_rows);
  const gpu::Buffer out_buffer = filled(device, size_t{c.x_rows} * out_stride, 77.0f);
  const gpu::Buffer bias_buffer = c.bias ? upload(device, bias) : gpu::Buffer();
  const gpu::Buffer scratch = must(device.create_buffer(quantized_act_bytes(c.x_rows, c.columns), "int8 x"));
  const DeviceWeight weight = upload_weight(device, c.dtype, w, c.columns, 0, c.w_rows);

  LinearArgs args;
  args.x = columns(matrix(x_buffer, c.x_rows, x_stride), c.gap, c.columns);
  args.w = weight.part();
  args.out = columns(matrix(out_buffer, c.x_rows, out_stride), c.gap, c.w_rows);
  if (c.bias) args.bias = &bias_buffer;
  if (c.hardware) {
    gpu::Caps caps = device.caps();
    caps.hardware = true;
    args.plan = plan_linear({c.dtype, c.x_rows, c.columns, c.w_rows, c.int8, c.gap % 4 == 0, c.bias}, caps);
  }
  std::vector<float> seen = x;
  if (c.int8) {
    args.quantized = quantized_act(scratch, c.x_rows, c.columns);
    must(run_quantize_act(device, {args.x, *args.quantized}));
    const std::vector<double> rounded = quantize_act_reference(x, c.x_rows, c.columns);
    seen.assign(rounded.begin(), rounded.end());
  }
  must(run_linear(device, args));

  const std::vector<float> got = download(device, out_buffer);
  std::vector<float> inside;
  size_t touched = 0;
  for (size_t r = 0; r < c.x_rows; ++r)
    for (size_t n = 0; n < out_stride; ++n) {
      const float v = got[r * out_stride + n];
      if (n >= c.gap && n < c.gap + c.w_rows)
        inside.push_back(v);
      else if (v != 77.0f)
        ++touched;
    }
  CHECK(touched == 0);
  CHECK(nmse(inside, linear_reference(seen, w.values, bias, c.x_rows, c.columns, c.w_rows)) < bound);
}

// f32 sums against f64 ones: rounding alone.
constexpr double kExact = 1e-11;
// A quant at a rounding tie may go either way on the GPU: one step of 1/127 in a few of the values.
constexpr double kInt8 = 1e-6;

/// Row counts that reach each kernel; the tiled one is the same with and without subgroups.
std::vector<uint32_t> kernel_rows(const gpu::Device& device) {
  return &device == &gpu::test_device() ? std::vector<uint32_t>{1, 3, 9} : std::vector<uint32_t>{1, 3};
}

TEST_CASE("linear: every type, both kernels, exact activations") {
  for_each_device([](gpu::Device& device) {
    for (const DType dtype : kRunnable)
      for (const uint32_t rows : kernel_rows(device)) check(device, {dtype, rows, 288, 70}, kExact);
  });
}

TEST_CASE("linear: every quantised type, both kernels, int8 activations") {
  for_each_device([](gpu::Device& device) {
    for (const DType dtype : kRunnable)
      if (linear_takes_int8(dtype))
        for (const uint32_t rows : kernel_rows(device)) check(device, {dtype, rows, 288, 70, true}, kInt8);
  });
}

TEST_CASE("linear: row counts on both sides of each threshold") {
  gpu::Device& device = gpu::test_device();
  for (const uint32_t rows : {1u, 2u, 3u, 4u, 5u, 8u, 9u, 16u, 17u, 32u, 33u, 64u, 65u, 130u}) {
    check(device, {DType::kQ4_K, rows, 256, 65}, kExact);
    check(device, {DType::kQ4_K, rows, 256, 65, true}, kInt8);
  }
}

TEST_CASE("linear: columns of 1, odd, and around the group and block sizes") {
  gpu::Device& device = gpu::test_device();
  for (const uint32_t columns : {1u, 3u, 4u, 31u, 32u, 33u, 63u, 65u, 255u, 257u, 640u})
    for (const uint32_t rows : {1u, 5u}) {
      check(device, {DType::kF32, rows, columns, 33}, kExact);
      check(device, {DType::kQ4_K, rows, columns, 33}, kExact);
      check(device, {DType::kQ8_0, rows, columns, 33, true}, kInt8);
      check(device, {DType::kF16, rows, columns, 33, false, false, 3}, kExact);
    }
}

TEST_CASE("linear: weight rows of 1, odd, and around the tiles, bias") {
  gpu::Device& device = gpu::test_device();
  for (const uint32_t w_rows : {1u, 2u, 3u, 31u, 32u, 33u, 63u, 64u, 65u, 129u})
    for (const uint32_t rows : {1u, 2u, 6u}) {
      check(device, {DType::kQ8_0, rows, 64, w_rows, false, true}, kExact);
      check(device, {DType::kQ5_1, rows, 64, w_rows, true, true, 1}, kInt8);
    }
}

TEST_CASE("linear: activations and sums beyond f16") {
  for_each_device([](gpu::Device& device) {
    for (const uint32_t rows : {1u, 4u, 5u, 32u, 33u})
      for (const DType dtype : {DType::kF16, DType::kQ4_1})
        check(device, {dtype, rows, 96, 40, false, false, 4, 1e5f}, kExact);
    for (const uint32_t rows : {4u, 5u})
      check(device, {DType::kQ6_K, rows, 96, 40, true, false, 4, 1e5f}, kInt8);
  });
}

TEST_CASE("linear: the plans of a GPU, run here") {
  for_each_device([](gpu::Device& device) {
    for (const uint32_t columns_ : {256u, 544u, 1056u})  // teams of 8, 16, 32
      for (const uint32_t w_rows : {33u, 2049u, 8193u})  // 1, 2, 4 rows a thread
        check(device, {DType::kQ8_0, 1, columns_, w_rows, false, false, 4, 1.0f, true}, kExact);
    check(device, {DType::kQ4_K, 3, 1056, 65, true, false, 4, 1.0f, true}, kInt8);
    check(device, {DType::kQ4_K, 65, 256, 65, false, false, 4, 1.0f, true}, kExact);
  });
}

/// Rows (r % 251, 1) of BF16 in parts of `part_rows`, times (2, 0.5).
void check_parts(gpu::Device& device, uint32_t w_rows, uint32_t part_rows) {
  TestWeight w;
  w.row_bytes = 4;
  w.bytes.resize(w_rows * w.row_bytes);
  for (uint32_t r = 0; r < w_rows; ++r) {
    const float pair[2] = {static_cast<float>(r % 251), 1.0f};
    quantize(DType::kBF16, pair, 2, w.bytes.data() + r * w.row_bytes);
  }
  const gpu::Buffer x = upload(device, std::vector<float>{2.0f, 0.5f});
  const gpu::Buffer out = filled(device, w_rows);
  for (uint32_t first = 0; first < w_rows; first += part_rows) {
    const uint32_t count = std::min(part_rows, w_rows - first);
    const DeviceWeight part = upload_weight(device, DType::kBF16, w, 2, first, count);
    LinearArgs args;
    args.x = matrix(x, 1, 2);
    args.w = part.part();
    args.out = columns(matrix(out, 1, w_rows), first, count);
    must(run_linear(device, args));
  }
  const std::vector<float> got = download(device, out);
  size_t wrong = 0;
  for (uint32_t r = 0; r < w_rows; ++r) wrong += got[r] != static_cast<float>(r % 251) * 2 + 0.5f;
  CHECK(wrong == 0);
}

TEST_CASE("linear: a tensor in parts, and more workgroups than one grid dimension") {
  gpu::Device& device = gpu::test_device();
  check_parts(device, 1000, 301);
  // 65,535 workgroups of 32 rows fill the first dimension; packed, this is just below 128 MiB.
  const uint32_t w_rows = 65535 * 32 + 1;
  REQUIRE(plan_linear({DType::kBF16, 1, 2, w_rows}, device.caps()).grid[1] == 2);
  check_parts(device, w_rows, w_rows);
}

TEST_CASE("linear: a row's result does not depend on the rows beside it") {
  for_each_device([](gpu::Device& device) {
    const uint32_t columns_ = 640, w_rows = 96, rows = 40;
    const TestWeight w = random_weight(DType::kQ5_0, w_rows, columns_, 5);
    const DeviceWeight weight = upload_weight(device, DType::kQ5_0, w, columns_, 0, w_rows);
    const gpu::Buffer x = upload(device, random_floats(6, rows * columns_));
    const auto rows_of = [&](uint32_t first, uint32_t count, LinearKernel kernel) {
      const gpu::Buffer out = filled(device, count * w_rows);
      LinearArgs args;
      args.x = matrix(x, rows, columns_);
      args.x.offset = uint64_t{first} * columns_;
      args.x.rows = count;
      args.w = weight.part();
      args.out = matrix(out, count, w_rows);
      args.kernel = kernel;
      must(run_linear(device, args));
      return download(device, out);
    };
    const std::vector<float> all = rows_of(0, rows, LinearKernel::kMatmat);
    const std::vector<float> some = rows_of(30, 7, LinearKernel::kMatmat);
    CHECK(std::equal(some.begin(), some.end(), all.begin() + 30 * w_rows));
    const std::vector<float> four = rows_of(8, 4, LinearKernel::kMatvec);
    const std::vector<float> one = rows_of(10, 1, LinearKernel::kMatvec);
    CHECK(std::equal(one.begin(), one.end(), four.begin() + 2 * w_rows));
  });
}

TEST_CASE("linear: what does not fit is refused") {
  gpu::Device& device = gpu::test_device();
  const TestWeight w = random_weight(DType::kF32, 4, 8, 1);
  const DeviceWeight weight = upload_weight(device, DType::kF32, w, 8, 0, 4);
  const gpu::Buffer x = filled(device, 64), out = filled(device, 64);
  LinearArgs good;
  good.x = matrix(x, 2, 8);
  good.w = weight.part();
  good.out = matrix(out, 2, 4);
  CHECK(run_linear(device, good).has_value());
  LinearArgs bad = good;
  bad.x.width = 7;
  CHECK(run_linear(device, bad).error().code == ErrorCode::kBadInput);
  bad = good;
  bad.out.rows = 1;
  CHECK(run_linear(device, bad).error().code == ErrorCode::kBadInput);
  bad = good;
  bad.out.buffer = &x;
  CHECK(run_linear(device, bad).error().code == ErrorCode::kBadInput);
  bad = good;
  bad.out.offset = 60;
  CHECK(run_linear(device, bad).error().code == ErrorCode::kBadInput);
  bad = good;
  bad.quantized = quantized_act(x, 2, 8);
  CHECK(run_linear(device, bad).error().code == ErrorCode::kUnsupported);
}

TEST_CASE("linear: the plan is a function of shape and capabilities") {
  gpu::Caps software, hardware;
  hardware.hardware = hardware.subgroups = true;
  hardware.subgroup_size = 32;
  const LinearShape one{DType::kQ4_K, 1, 4096, 4096};
  CHECK(plan_linear(one, software).kernel == LinearKernel::kMatvec);
  CHECK(plan_linear(one, software).team == 8);
  CHECK_FALSE(plan_linear(one, software).subgroups);
  CHECK(plan_linear(one, hardware).team == 32);
  CHECK(plan_linear(one, hardware).subgroups);
  LinearShape many = one;
  many.x_rows = kMatvecRows;
  CHECK(plan_linear(many, hardware).kernel == LinearKernel::kMatvec);
  many.x_rows = kMatvecRows + 1;
  CHECK(plan_linear(many, hardware).kernel == LinearKernel::kMatmat);
  LinearShape wide = one;
  wide.w_rows = 65536 * 32;
  const auto grid = plan_linear(wide, software).grid;
  CHECK(grid[0] <= 65535);
  CHECK(grid[0] * grid[1] * 32ull >= wide.w_rows);
}

}  // namespace
}  // namespace doppler::kernels
