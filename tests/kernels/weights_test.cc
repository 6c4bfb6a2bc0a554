#include "kernels/common/wgsl.h"
#include "kernels/support.h"

namespace doppler::kernels {
namespace {

TEST_CASE("packed weights grow a file by at most 3 %") {
  for (const DType dtype : kRunnable) {
    CAPTURE(dtype_name(dtype));
    const PackedLayout layout = packed_layout(dtype, 2048, 2048);
    const double file = 2048.0 * static_cast<double>(row_bytes(dtype, 2048));
    CHECK(static_cast<double>(layout.bytes) <= file * 1.03);
    CHECK(static_cast<double>(layout.bytes) >= file);
  }
}

TEST_CASE("packing in chunks equals packing at once") {
  const uint32_t rows = 13, width = 300;
  for (const DType dtype : kRunnable) {
    CAPTURE(dtype_name(dtype));
    const TestWeight w = random_weight(dtype, rows, width, 3);
    const PackedLayout layout = packed_layout(dtype, rows, width);
    std::vector<uint32_t> whole(layout.bytes / 4), pieces(layout.bytes / 4);
    std::array<PackedSegment, 4> segments;
    const auto pack = [&](uint32_t first, uint32_t count, std::vector<uint32_t>& to) {
      pack_rows(layout, first, count, std::span(w.bytes).subspan(first * w.row_bytes), w.row_bytes, segments);
      for (const PackedSegment& s : segments)
        std::copy(s.words.begin(), s.words.end(), to.begin() + static_cast<std::ptrdiff_t>(s.offset / 4));
    };
    pack(0, rows, whole);
    for (uint32_t first = 0; first < rows; first += 4) pack(first, std::min(4u, rows - first), pieces);
    CHECK(whole == pieces);
  }
}

TEST_CASE("parts stay under the limit") {
  const uint64_t limit = 128ull << 20;
  const uint32_t rows = rows_per_part(DType::kQ8_0, 262144, 640, limit);
  CHECK(packed_layout(DType::kQ8_0, rows, 640).bytes <= limit);
  CHECK(rows > 262144 / 2);  // Gemma 3's embedding in two parts, not three
  CHECK(rows_per_part(DType::kQ8_0, 100, 640, limit) == 100);
  CHECK(rows_per_part(DType::kF32, 100, 1 << 20, 1 << 20) == 0);
}

TEST_CASE("wgsl: conditions, unrolling, words and binding numbers") {
  Defines defines;
  defines.number("N", 2).flag("ON", true).flag("OFF", false);
  const auto expand = [&](std::string_view text) { return expand_wgsl_text("test", text, defines); };
  CHECK(*expand("#if ON\na\n#else\nb\n#endif") == "a\n");
  CHECK(*expand("#if OFF\na\n#else\nb\n#endif") == "b\n");
  CHECK(*expand("#if !UNKNOWN\na\n#endif") == "a\n");
  CHECK(*expand("#if OFF\n#if ON\na\n#else\nb\n#endif\n#endif\nc") == "c\n");
  CHECK(*expand("N NN xN N;") == "2u NN xN 2u;\n");
  CHECK(*expand("@binding(next) @binding(next)") == "@binding(0) @binding(1)\n");
  CHECK(*expand("#unroll i N\n#unroll j 2\na{i}{j}\n#end\n#end") == "a00\na01\na10\na11\n");
  CHECK(*expand("a // comment") == "a \n");
  CHECK_FALSE(expand("#if ON").has_value());
  CHECK_FALSE(expand("#endif").has_value());
  CHECK_FALSE(expand("#unroll i 2\na").has_value());
  CHECK_FALSE(expand("#unroll i many\n#end").has_value());
  CHECK_FALSE(expand("#include \"none.wgsl\"").has_value());
  CHECK(expand("#include \"weights/q8_0.wgsl\"")->find("fn w_load") != std::string::npos);
}

}  // namespace
}  // namespace doppler::kernels
