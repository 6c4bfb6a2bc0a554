// What a good GGUF file gives.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>

#include "base/quants.h"
#include "formats/gguf/gguf.h"
#include "support/files.h"
#include "support/gguf_writer.h"
#include "support/models.h"
#include "support/tiny_llama.h"

using namespace doppler;
using gguf::GgufFile;
using gguf::ValueType;

namespace {

std::unique_ptr<GgufFile> opened(std::vector<std::byte> bytes) {
  auto file = GgufFile::open(memory_source("test.gguf", std::move(bytes)));
  REQUIRE_MESSAGE(file.has_value(), file.error().message);
  return std::move(*file);
}

std::vector<float> values(const GgufFile& file, const TensorInfo& tensor) {
  const auto bytes = file.bytes(tensor);
  REQUIRE(bytes.has_value());
  std::vector<float> out(tensor.element_count());
  dequantize(tensor.dtype, bytes->data.data(), out.size(), out.data());
  return out;
}

}  // namespace

TEST_CASE("a file of the gguf package: every metadata and array type") {
  auto result = GgufFile::open(DOPPLER_GOLDEN_DIR "/gguf/all-types.gguf");
  REQUIRE_MESSAGE(result.has_value(), result.error().message);
  const GgufFile& f = **result;
  CHECK(f.version() == 3);
  CHECK(f.alignment() == 64);
  CHECK(f.metadata().front().first == "general.architecture");
  CHECK(f.get_string("general.architecture").value() == "test");

  CHECK(f.get_uint("one.UINT8").value() == 200u);
  CHECK(f.get_uint("one.UINT16").value() == 60000u);
  CHECK(f.get_uint("one.UINT32").value() == 4000000000u);
  CHECK(f.get_uint("one.UINT64").value() == (uint64_t{1} << 63) + 5);
  for (const char* negative : {"one.INT8", "one.INT16", "one.INT32", "one.INT64"})
    CHECK_FALSE(f.get_uint(negative).has_value());
  CHECK(std::get<int64_t>(f.value("one.INT8")->data) == -100);
  CHECK(std::get<int64_t>(f.value("one.INT16")->data) == -30000);
  CHECK(std::get<int64_t>(f.value("one.INT32")->data) == -2000000000);
  CHECK(std::get<int64_t>(f.value("one.INT64")->data) == -(int64_t{1} << 62));
  CHECK(f.get_float("one.FLOAT32").value() == 0.15625);
  CHECK(f.get_float("one.FLOAT64").value() == 1e300);
  CHECK(f.get_bool("one.BOOL").value() == true);
  CHECK(f.get_string("one.STRING").value() == "gr\u00fc\u00dfe \u2581");

  using Ints = std::vector<int64_t>;
  CHECK(f.get_ints("array.UINT8").value() == Ints{200, 1, 200});
  CHECK(f.get_ints("array.INT8").value() == Ints{-100, 1, -100});
  CHECK(f.get_ints("array.UINT16").value() == Ints{60000, 1, 60000});
  CHECK(f.get_ints("array.INT16").value() == Ints{-30000, 1, -30000});
  CHECK(f.get_ints("array.UINT32").value() == Ints{4000000000, 1, 4000000000});
  CHECK(f.get_ints("array.INT32").value() == Ints{-2000000000, 1, -2000000000});
  CHECK(f.get_ints("array.INT64").value() == Ints{-(int64_t{1} << 62), 1, -(int64_t{1} << 62)});
  CHECK_FALSE(f.get_ints("array.UINT64").has_value());  // beyond int64
  CHECK(f.get_floats("array.FLOAT32").value() == std::vector<float>{0.15625f, 1.0f, 0.15625f});
  const auto bools = f.get_array("array.BOOL", ValueType::kBool);
  REQUIRE(*bools != nullptr);
  CHECK((*bools)->raw[0] == std::byte{1});
  CHECK((*bools)->raw[1] == std::byte{0});
  const auto strings = f.get_array("array.STRING", ValueType::kString);
  REQUIRE(*strings != nullptr);
  CHECK((*strings)->strings ==
        std::vector<std::string_view>{"gr\u00fc\u00dfe \u2581", "", "gr\u00fc\u00dfe \u2581"});
  CHECK((*f.get_array("array.FLOAT64", ValueType::kF64))->count == 3);
}

TEST_CASE("a file of the gguf package: tensors of one to four dimensions, slowest first") {
  auto result = GgufFile::open(DOPPLER_GOLDEN_DIR "/gguf/all-types.gguf");
  REQUIRE(result.has_value());
  const GgufFile& f = **result;
  REQUIRE(f.tensors().size() == 6);
  std::vector<uint64_t> shape;
  for (uint64_t dims = 1; dims <= 4; ++dims) {
    CAPTURE(dims);
    shape.push_back(dims + 1);
    const TensorInfo* t = f.find("t" + std::to_string(dims));
    REQUIRE(t != nullptr);
    CHECK(t->shape == shape);
    CHECK(t->columns() == dims + 1);
    const auto got = values(f, *t);
    for (size_t i = 0; i < got.size(); ++i) CHECK(got[i] == static_cast<float>(i));
  }
  const auto half = values(f, *f.find("half")), q8 = values(f, *f.find("q8"));
  REQUIRE(half.size() == 64);
  for (size_t i = 0; i < 64; ++i) {
    CHECK(half[i] == static_cast<float>(i) / 8);
    CHECK(q8[i] == doctest::Approx(half[i]).epsilon(0.02));
  }
  CHECK(f.find("t5") == nullptr);
  f.release(*f.find("half"));
  CHECK(values(f, *f.find("half")) == half);
}

TEST_CASE("what is absent, of another type or out of range is told apart") {
  test::GgufWriter g;
  g.set("int", int32_t{7});
  g.set("float", 1.5f);
  g.set("nan", std::numeric_limits<float>::quiet_NaN());
  g.set_string("text", "x");
  g.set_array("none", std::vector<float>{});
  g.set_strings("no strings", {});
  const auto f = opened(g.bytes());
  CHECK_FALSE(f->get_uint("absent").value().has_value());
  CHECK_FALSE(f->get_float("absent").value().has_value());
  CHECK_FALSE(f->get_bool("absent").value().has_value());
  CHECK_FALSE(f->get_string("absent").value().has_value());
  CHECK(f->get_array("absent", ValueType::kF32).value() == nullptr);
  CHECK(f->get_ints("absent").value().empty());
  CHECK(f->get_floats("absent").value().empty());
  CHECK(f->value("absent") == nullptr);

  CHECK(f->get_uint("int").value() == 7u);
  CHECK_FALSE(f->get_uint("float").has_value());
  CHECK_FALSE(f->get_float("int").has_value());
  CHECK_FALSE(f->get_float("nan").has_value());
  CHECK_FALSE(f->get_bool("int").has_value());
  CHECK_FALSE(f->get_string("int").has_value());
  CHECK_FALSE(f->get_floats("text").has_value());
  CHECK_FALSE(f->get_ints("none").has_value());
  CHECK(f->get_floats("none").value().empty());
  CHECK((*f->get_array("no strings", ValueType::kString))->count == 0);
  const auto wrong = f->get_uint("text");
  CHECK(wrong.error().code == ErrorCode::kBadFile);
  CHECK(wrong.error().message == "[gguf] test.gguf: text should be an integer, is string");
  CHECK(f->get_ints("none").error().message ==
        "[gguf] test.gguf: none should be an integer array, is f32 array");
}

TEST_CASE("version 2, other alignments and an empty table are read") {
  auto g = test::tiny_llama();
  g.version = 2;
  CHECK(opened(g.bytes())->version() == 2);
  for (const uint32_t alignment : {8u, 16u, 4096u}) {
    g.set("general.alignment", alignment);
    g.alignment = alignment;
    const auto f = opened(g.bytes());
    CHECK(f->alignment() == alignment);
    CHECK(values(*f, *f->find("output_norm.weight")).size() == 64);
  }
  g.set("split.count", uint16_t{1});
  CHECK(opened(g.bytes())->tensors().size() == g.tensors.size());
  CHECK(opened(test::GgufWriter().bytes())->tensors().empty());
}

TEST_CASE("the tiny model reads back in every type it can be written in") {
  using enum DType;
  const auto exact = opened(test::tiny_llama({.hidden = 256}).bytes());
  const auto wanted = values(*exact, *exact->find("blk.1.ffn_down.weight"));
  for (const DType dtype : {kF32, kF16, kBF16, kQ4_0, kQ4_1, kQ5_0, kQ5_1, kQ8_0, kQ4_K, kQ5_K, kQ6_K}) {
    CAPTURE(dtype_name(dtype));
    const test::TempDir dir;
    test::tiny_llama_gguf(dir.file("tiny.gguf"), {.dtype = dtype, .hidden = 256});
    auto file = GgufFile::open(dir.file("tiny.gguf"));
    REQUIRE_MESSAGE(file.has_value(), file.error().message);
    const TensorInfo* t = (*file)->find("blk.1.ffn_down.weight");
    REQUIRE(t != nullptr);
    CHECK(t->dtype == dtype);
    CHECK(t->shape == std::vector<uint64_t>{256, 512});
    const auto got = values(**file, *t);
    double error = 0, size = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      error += std::pow(static_cast<double>(got[i]) - wanted[i], 2);
      size += std::pow(static_cast<double>(wanted[i]), 2);
    }
    CHECK(error / size < 0.01);
  }
}

TEST_CASE("the real models: every tensor as the gguf package reads it") {
  for (const char* name : {"SmolLM2-135M-Instruct.Q4_1", "gemma-3-270m-q4_k_m"}) {
    CAPTURE(name);
    auto result = GgufFile::open(test::model_path(std::string(name) + ".gguf"));
    REQUIRE_MESSAGE(result.has_value(), result.error().message);
    const GgufFile& f = **result;
    std::ifstream lines(std::string(DOPPLER_GOLDEN_DIR "/gguf/") + name + ".txt");
    size_t pairs = 0, tensors = 0, seen = 0;
    lines >> pairs >> tensors;
    CHECK(f.metadata().size() == pairs);
    REQUIRE(f.tensors().size() == tensors);
    std::string tensor, dtype, number;
    uint64_t rows = 0, columns = 0;
    while (lines >> tensor >> dtype >> rows >> columns) {
      CAPTURE(tensor);
      const TensorInfo* t = f.find(tensor);
      REQUIRE(t != nullptr);
      CHECK(dtype_name(t->dtype) == dtype);
      CHECK(t->rows() == rows);
      REQUIRE(t->columns() == columns);
      const auto bytes = f.bytes(*t);
      REQUIRE(bytes.has_value());
      const uint64_t stride = row_bytes(t->dtype, columns);
      REQUIRE(bytes->data.size() == rows * stride);
      std::vector<float> row(columns);
      dequantize(t->dtype, bytes->data.data() + (rows - 1) * stride, columns, row.data());
      for (size_t i = columns - 4; i < columns; ++i) {
        lines >> number;  // hexadecimal: exact
        CHECK(static_cast<double>(row[i]) == std::strtod(number.c_str(), nullptr));
      }
      f.release(*t);
      ++seen;
    }
    CHECK(seen == tensors);
  }
}
