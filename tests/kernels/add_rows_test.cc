#include "kernels/add_rows/add_rows.h"

#include "kernels/add_rows/reference.h"
#include "kernels/support.h"

namespace doppler::kernels {
namespace {

TEST_CASE("add_rows: every type, a table in two parts, positions and one row for all") {
  gpu::Device& device = gpu::test_device();
  const uint32_t table_rows = 11, cut = 5, rows = 6;
  for (const DType dtype : kRunnable)
    for (const uint32_t width : {1u, 31u, 32u, 33u, 288u})
      for (const uint32_t step : {1u, 0u})
        for (const uint32_t first : {0u, 3u, 5u}) {  // within a part, across the cut, in the second
          CAPTURE(dtype_name(dtype));
          CAPTURE(width);
          CAPTURE(step);
          CAPTURE(first);
          const TestWeight w = random_weight(dtype, table_rows, width, width);
          const DeviceWeight low = upload_weight(device, dtype, w, width, 0, cut);
          const DeviceWeight high = upload_weight(device, dtype, w, width, cut, table_rows - cut);
          const std::vector<float> x = random_floats(first, rows * width);
          const gpu::Buffer in = upload(device, x), out = filled(device, rows * (width + 2), 77.0f);
          AddRowsArgs args;
          args.in = matrix(in, rows, width);
          args.out = columns(matrix(out, rows, width + 2), 1, width);
          args.first = first;
          args.step = step;
          for (const DeviceWeight* part : {&low, &high}) {
            args.table = part->part();
            must(run_add_rows(device, args));
          }
          const std::vector<float> all = download(device, out);
          std::vector<float> got;
          size_t touched = 0;
          for (size_t i = 0; i < all.size(); ++i) {
            if (i % (width + 2) == 0 || i % (width + 2) == width + 1)
              touched += all[i] != 77.0f;
            else
              got.push_back(all[i]);
          }
          CHECK(touched == 0);
          CHECK(nmse(got, add_rows_reference(x, w.values, width, first, step)) < 1e-13);
        }
}

TEST_CASE("add_rows: a row beyond the table stays as it was, and what does not fit is refused") {
  gpu::Device& device = gpu::test_device();
  const TestWeight w = random_weight(DType::kF32, 4, 8, 1);
  const DeviceWeight weight = upload_weight(device, DType::kF32, w, 8, 0, 4);
  const gpu::Buffer in = filled(device, 16, 1e5f), out = filled(device, 16, 77.0f);
  AddRowsArgs args{matrix(in, 2, 8), weight.part(), matrix(out, 2, 8), 3, 1};
  must(run_add_rows(device, args));
  const std::vector<float> got = download(device, out);
  CHECK(got[0] == 1e5f + w.values[24]);
  CHECK(got[8] == 77.0f);
  args.step = 2;
  CHECK(run_add_rows(device, args).error().code == ErrorCode::kBadInput);
  args.step = 1;
  args.out = args.in;
  CHECK(run_add_rows(device, args).error().code == ErrorCode::kBadInput);
  args.out = matrix(out, 2, 7);
  CHECK(run_add_rows(device, args).error().code == ErrorCode::kBadInput);
}

}  // namespace
}  // namespace doppler::kernels
