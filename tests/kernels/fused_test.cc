// Kernels that do several ops in one dispatch: the same as those ops one after the other.
#include <cstring>

#include "kernels/attention/attention.h"
#include "kernels/gated_act/gated_act.h"
#include "kernels/quantize_act/reference.h"
#include "kernels/rms_norm/reference.h"
#include "kernels/rms_norm/rms_norm.h"
#include "kernels/rope/rope.h"
#include "kernels/rope_kv/rope_kv.h"
#include "kernels/support.h"

namespace doppler::kernels {
namespace {

/// s * q of int8 rows; columns are whole groups.
std::vector<float> dequantised(gpu::Device& device, const QuantizedAct& act) {
  std::vector<std::byte> bytes(act.buffer->bytes());
  must(device.read(*act.buffer, 0, bytes));
  std::vector<float> values(size_t{act.rows} * act.columns);
  for (size_t i = 0; i < values.size(); ++i) {
    float scale;
    std::memcpy(&scale, bytes.data() + act.scales_offset + i / 32 * 8, 4);
    values[i] = scale * static_cast<float>(static_cast<int8_t>(bytes[i]));
  }
  return values;
}

std::vector<double> as_double(const std::vector<float>& values) { return {values.begin(), values.end()}; }

struct Int8Out {
  gpu::Buffer buffer;
  QuantizedAct act;
};

std::unique_ptr<Int8Out> int8_out(gpu::Device& device, uint32_t rows, uint32_t columns) {
  auto out = std::make_unique<Int8Out>();
  out->buffer = must(device.create_buffer(quantized_act_bytes(rows, columns), "int8"));
  out->act = quantized_act(out->buffer, rows, columns);
  return out;
}

TEST_CASE("rms_norm writes its out as int8 too") {
  gpu::Device& device = gpu::test_device();
  for (const uint32_t width : {32u, 64u, 640u, 2080u, 8192u})
    for (const float scale : {1.0f, 1e5f}) {
      CAPTURE(width);
      const uint32_t rows = 3;
      const std::vector<float> x = random_floats(width, rows * width, scale), w = random_floats(7, width);
      const gpu::Buffer in = upload(device, x), weight = upload(device, w), out = filled(device, x.size());
      const auto int8 = int8_out(device, rows, width);
      RmsNormArgs args;
      args.x = matrix(in, rows, width);
      args.weight = &weight;
      args.quantized = int8->act;
      args.out = matrix(out, rows, width);
      must(run_rms_norm(device, args));
      const std::vector<float> got = download(device, out);
      CHECK(nmse(got, rms_norm_reference(x, w, 1e-6, 0)) < 1e-12);
      CHECK(nmse(dequantised(device, int8->act), quantize_act_reference(got, rows, width)) < 1e-6);
    }
}

TEST_CASE("add_rms_norm with a norm of what is added, in place or not, f32 and int8") {
  gpu::Device& device = gpu::test_device();
  for (const uint32_t width : {1u, 5u, 32u, 640u, 2080u})
    for (const bool in_place : {false, true})
      for (const bool quant : {false, true}) {
        if (quant && width % 32 != 0) continue;
        CAPTURE(width);
        CAPTURE(in_place);
        CAPTURE(quant);
        const uint32_t rows = 3, padded = (width + 3) / 4 * 4;
        const std::vector<float> a = random_floats(width, rows * width),
                                 b = random_floats(2, rows * width, 1e4f), w = random_floats(3, 2 * padded);
        const gpu::Buffer buffer_a = upload(device, a), buffer_b = upload(device, b),
                          weight = upload(device, w), other = filled(device, a.size()),
                          out = filled(device, a.size());
        const auto int8 = int8_out(device, rows, width);
        AddRmsNormArgs args;
        args.a = matrix(buffer_a, rows, width);
        args.b = matrix(buffer_b, rows, width);
        args.sum = matrix(in_place ? buffer_a : other, rows, width);
        args.weight = &weight;
        args.b_weight_base = padded;
        args.weight_offset = 1.0f;
        if (quant) args.quantized = int8->act;
        args.out = matrix(out, rows, width);
        must(run_add_rms_norm(device, args));

        std::vector<double> sum = rms_norm_reference(b, std::span(w).subspan(padded, width), 1e-6, 1);
        for (size_t i = 0; i < sum.size(); ++i) sum[i] += double{a[i]};
        CHECK(nmse(download(device, in_place ? buffer_a : other), sum) < 1e-12);
        const std::vector<float> rounded(sum.begin(), sum.end());
        const std::vector<float> got = download(device, out);
        CHECK(nmse(got, rms_norm_reference(rounded, std::span(w).first(width), 1e-6, 1)) < 1e-11);
        if (quant)
          CHECK(nmse(dequantised(device, int8->act), quantize_act_reference(got, rows, width)) < 1e-6);
      }
}

TEST_CASE("int8 beside f32 wants whole groups and a buffer of its own") {
  gpu::Device& device = gpu::test_device();
  const gpu::Buffer in = filled(device, 96), weight = filled(device, 48), out = filled(device, 96);
  const auto int8 = int8_out(device, 2, 48);
  RmsNormArgs args;
  args.x = matrix(in, 2, 48);
  args.weight = &weight;
  args.quantized = int8->act;
  args.out = matrix(out, 2, 48);
  const auto done = run_rms_norm(device, args);
  REQUIRE(!done);
  CHECK(done.error().code == ErrorCode::kBadInput);
}

TEST_CASE("gated_act writes its out as int8 too") {
  gpu::Device& device = gpu::test_device();
  for (const uint32_t width : {32u, 96u, 2048u})
    for (const bool interleaved : {false, true}) {
      CAPTURE(width);
      CAPTURE(interleaved);
      const uint32_t rows = 3;
      const gpu::Buffer in = upload(device, random_floats(width, rows * 2 * width, 3.0f));
      const gpu::Buffer out = filled(device, rows * width), plain = filled(device, rows * width);
      const auto int8 = int8_out(device, rows, width);
      GatedActArgs args;
      args.in = matrix(in, rows, 2 * width);
      args.interleaved = interleaved;
      args.out = matrix(plain, rows, width);
      must(run_gated_act(device, args));
      args.out = matrix(out, rows, width);
      args.quantized = int8->act;
      must(run_gated_act(device, args));
      const std::vector<float> got = download(device, out);
      CHECK(nmse(got, as_double(download(device, plain))) < 1e-13);
      CHECK(nmse(dequantised(device, int8->act), quantize_act_reference(got, rows, width)) < 1e-6);
    }
}

struct HeadCase {
  uint32_t q_heads, kv_heads, head_dim, rotary_dim;
  bool norms, interleaved;
  KvElement element;
};

void check_heads(gpu::Device& device, const HeadCase& c) {
  CAPTURE(c.head_dim);
  CAPTURE(c.rotary_dim);
  CAPTURE(c.norms);
  const uint32_t rows = 3, position = 5, capacity = 16, gap = 4;
  const uint32_t q = c.q_heads * c.head_dim, kv = c.kv_heads * c.head_dim, width = q + 2 * kv,
                 stride = width + gap;
  const std::vector<float> x = random_floats(c.head_dim, rows * stride),
                           w = random_floats(4, 2 * c.head_dim + 4);
  std::vector<float> frequencies(c.rotary_dim / 2);
  for (size_t i = 0; i < frequencies.size(); ++i) frequencies[i] = 1.0f / static_cast<float>(i + 1);
  const gpu::Buffer table = upload(device, rope_table(frequencies, 1.0f, position, rows)),
                    weights = upload(device, w);
  const uint64_t bytes = kv_bytes(capacity, kv, c.element);
  const gpu::Buffer cache[4] = {
      must(device.create_buffer(bytes, "k")), must(device.create_buffer(bytes, "v")),
      must(device.create_buffer(bytes, "k")), must(device.create_buffer(bytes, "v"))};
  const gpu::Buffer apart = upload(device, x), fused = upload(device, x);

  // One after the other.
  const Matrix all = columns(matrix(apart, rows, stride), gap, width);
  const Matrix heads[2] = {columns(all, 0, q), columns(all, q, kv)};
  for (int i = 0; i < 2; ++i) {
    if (c.norms) {
      RmsNormArgs norm;
      norm.x = norm.out = heads[i];
      norm.group = c.head_dim;
      norm.weight = &weights;
      norm.weight_base = i == 0 ? 4 : 4 + c.head_dim;
      norm.weight_offset = 1;
      must(run_rms_norm(device, norm));
    }
    must(run_rope(device, {heads[i], c.head_dim, c.rotary_dim, c.interleaved, &table, 0}));
  }
  must(run_kv_write(
      device,
      {heads[1], columns(all, q + kv, kv), {&cache[0], &cache[1], kv, capacity, c.element}, position}));

  RopeKvArgs args;
  args.x = columns(matrix(fused, rows, stride), gap, width);
  args.q_heads = c.q_heads;
  args.kv_heads = c.kv_heads;
  args.head_dim = c.head_dim;
  if (c.norms) args.norms = HeadNorms{&weights, 4, 4 + c.head_dim, 1e-6f, 1.0f};
  args.table = &table;
  args.rotary_dim = c.rotary_dim;
  args.interleaved = c.interleaved;
  args.cache = {&cache[2], &cache[3], kv, capacity, c.element};
  args.position = position;
  must(run_rope_kv(device, args));

  const std::vector<float> got = download(device, fused), want = download(device, apart);
  double error = 0, signal = 0;
  for (uint32_t r = 0; r < rows; ++r)
    for (uint32_t i = 0; i < stride; ++i) {
      const size_t at = r * stride + i;
      if (i >= gap && i < gap + q) {
        error += std::pow(double{got[at]} - double{want[at]}, 2);
        signal += double{want[at]} * double{want[at]};
      } else {
        CHECK(got[at] == x[at]);  // k and v stay as they were
      }
    }
  CHECK(error <= 1e-12 * signal);
  const auto halves = [&](const gpu::Buffer& buffer) {
    std::vector<uint16_t> words(bytes / 2);
    must(device.read(buffer, 0, std::as_writable_bytes(std::span(words))));
    return words;
  };
  for (int i = 0; i < 2; ++i) {
    if (c.element == KvElement::kF32) {
      CHECK(nmse(download(device, cache[2 + i]), as_double(download(device, cache[i]))) < 1e-12);
      continue;
    }
    const auto a = halves(cache[2 + i]), b = halves(cache[i]);
    size_t far = 0;
    for (size_t n = 0; n < a.size(); ++n)
      far += std::abs(int{a[n]} - int{b[n]}) > 1;  // a last bit may differ
    CHECK(far == 0);
  }
}

TEST_CASE("rope_kv does what norms, rope and kv_write do") {
  for_each_device([](gpu::Device& device) {
    for (const KvElement element : {KvElement::kF16, KvElement::kF32})
      for (const bool norms : {false, true})
        for (const HeadCase& c :
             {HeadCase{4, 2, 64, 64, norms, false, element}, HeadCase{1, 1, 8, 8, norms, true, element},
              HeadCase{3, 1, 40, 32, norms, false, element}, HeadCase{4, 1, 256, 256, norms, false, element},
              HeadCase{2, 2, 128, 2, norms, true, element}, HeadCase{1, 1, 1024, 512, norms, false, element}})
          check_heads(device, c);
  });
}

TEST_CASE("rope_kv refuses heads that do not fit") {
  gpu::Device& device = gpu::test_device();
  const gpu::Buffer x = filled(device, 1024), table = filled(device, 64), k = filled(device, 256),
                    v = filled(device, 256);
  RopeKvArgs args;
  args.x = matrix(x, 1, 36);
  args.q_heads = args.kv_heads = 1;
  args.head_dim = 12;
  args.table = &table;
  args.rotary_dim = 12;
  args.cache = {&k, &v, 16, 4, KvElement::kF32};
  const auto done = run_rope_kv(device, args);
  REQUIRE(!done);
  CHECK(done.error().code == ErrorCode::kBadInput);
}

TEST_CASE("attention writes its out as int8 too, from one split or several") {
  gpu::Device& device = gpu::test_device();
  for (const uint32_t head_dim : {32u, 64u, 256u})
    for (const uint32_t position : {0u, 200u})
      for (const uint32_t rows : {1u, 4u}) {
        CAPTURE(head_dim);
        CAPTURE(position);
        CAPTURE(rows);
        const uint32_t heads = 4, kv_heads = 2, kv = kv_heads * head_dim, width = heads * head_dim;
        const uint32_t length = position + rows;
        const gpu::Buffer q = upload(device, random_floats(1, size_t{rows} * width)),
                          k = upload(device, random_floats(2, size_t{length} * kv)),
                          v = upload(device, random_floats(3, size_t{length} * kv)),
                          plain = filled(device, size_t{rows} * width),
                          out = filled(device, size_t{rows} * width);
        AttentionArgs args;
        args.q = matrix(q, rows, width);
        args.cache = {&k, &v, kv, length, KvElement::kF32};
        args.out = matrix(plain, rows, width);
        args.heads = heads;
        args.kv_heads = kv_heads;
        args.head_dim = head_dim;
        args.position = position;
        args.scale = 0.2f;
        must(run_attention(device, args));

        gpu::Caps hardware = device.caps();
        hardware.hardware = true;
        const AttentionShape shape{rows, heads, kv_heads, head_dim, position, 0};
        args.plan = plan_attention(shape, true, hardware);
        const gpu::Buffer scratch =
            must(device.create_buffer(attention_scratch_bytes(heads, head_dim, hardware), "scratch"));
        const auto int8 = int8_out(device, rows, width);
        args.scratch = &scratch;
        args.out = matrix(out, rows, width);
        args.quantized = int8->act;
        must(run_attention(device, args));
        const std::vector<float> got = download(device, out);
        CHECK(nmse(got, as_double(download(device, plain))) < 1e-11);
        CHECK(nmse(dequantised(device, int8->act), quantize_act_reference(got, rows, width)) < 1e-6);
      }
}

}  // namespace
}  // namespace doppler::kernels
