#include "kernels/gather/gather.h"

#include "kernels/support.h"

namespace doppler::kernels {
namespace {

TEST_CASE("gather: every type, a table in two parts") {
  gpu::Device& device = gpu::test_device();
  const uint32_t rows = 11, cut = 5;
  const std::vector<uint32_t> ids{99, 0, 4, 5, 10, 7, 7, 11};  // in words 1…6 those of the table
  for (const DType dtype : kRunnable)
    for (const uint32_t width : {1u, 33u, 288u}) {
      CAPTURE(dtype_name(dtype));
      CAPTURE(width);
      const TestWeight w = random_weight(dtype, rows, width, width);
      const DeviceWeight low = upload_weight(device, dtype, w, width, 0, cut);
      const DeviceWeight high = upload_weight(device, dtype, w, width, cut, rows - cut);
      const gpu::Buffer id_buffer = upload(device, ids);
      const gpu::Buffer out = filled(device, 7 * (width + 2), 77.0f);
      GatherArgs args;
      args.ids = &id_buffer;
      args.ids_offset = 1;
      args.out = columns(matrix(out, 7, width + 2), 1, width);
      args.scale = 25.5f;
      args.table = low.part();
      must(run_gather(device, args));
      args.table = high.part();
      must(run_gather(device, args));
      const std::vector<float> got = download(device, out);
      size_t wrong = 0;
      for (size_t i = 0; i < 7; ++i)
        for (size_t c = 0; c < width + 2; ++c) {
          const bool inside = c > 0 && c <= width && ids[i + 1] < rows;
          const double want = inside ? double{w.values[ids[i + 1] * width + c - 1]} * 25.5 : 77.0;
          wrong += std::abs(double{got[i * (width + 2) + c]} - want) > 1e-5 * std::abs(want) + 1e-6;
        }
      CHECK(wrong ==
            0);  // also: an id beyond both parts leaves its row, and nothing beside the slice is written
    }
}

TEST_CASE("gather: what does not fit is refused") {
  gpu::Device& device = gpu::test_device();
  const TestWeight w = random_weight(DType::kF32, 4, 8, 1);
  const DeviceWeight weight = upload_weight(device, DType::kF32, w, 8, 0, 4);
  const gpu::Buffer ids = upload(device, std::vector<uint32_t>{0, 1}), out = filled(device, 16);
  GatherArgs args{&ids, 0, weight.part(), matrix(out, 2, 8), 1.0f};
  CHECK(run_gather(device, args).has_value());
  args.ids_offset = 1;
  CHECK(run_gather(device, args).error().code == ErrorCode::kBadInput);
  args.ids_offset = 0;
  args.out = matrix(out, 2, 7);
  CHECK(run_gather(device, args).error().code == ErrorCode::kBadInput);
}

}  // namespace
}  // namespace doppler::kernels
