#include "kernels/rope/rope.h"

#include "kernels/rope/reference.h"
#include "kernels/support.h"

namespace doppler::kernels {
namespace {

TEST_CASE("rope matches the reference at near and far positions") {
  gpu::Device& device = gpu::test_device();
  for (const uint32_t position : {0u, 1u, 677u, 100000u})
    for (const bool interleaved : {false, true})
      for (const uint32_t rotary : {2u, 48u, 64u}) {
        CAPTURE(position);
        CAPTURE(interleaved);
        CAPTURE(rotary);
        const uint32_t rows = 3, head = 64, heads = 2, gap = 3, stride = heads * head + 2 * gap;
        std::vector<float> inv_freq;
        for (uint32_t i = 0; i < rotary / 2; ++i)
          inv_freq.push_back(static_cast<float>(std::pow(1e4, -2.0 * i / rotary)));
        const std::vector<float> x = random_floats(position + rotary, rows * stride);
        // The table begins two positions before the first row.
        const uint32_t first = position < 2 ? 0 : position - 2;
        const gpu::Buffer buffer = upload(device, x),
                          table = upload(device, rope_table(inv_freq, 1.25f, first, 2 + rows));
        RopeArgs args;
        args.x = columns(matrix(buffer, rows, stride), gap, heads * head);
        args.head_dim = head;
        args.rotary_dim = rotary;
        args.interleaved = interleaved;
        args.table = &table;
        args.table_row = position - first;
        must(run_rope(device, args));
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
        CHECK(nmse(after, rope_reference(before, rows, head, inv_freq, 1.25, position, interleaved)) < 1e-12);
      }
}

}  // namespace
}  // namespace doppler::kernels
