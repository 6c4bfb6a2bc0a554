// Safetensors files: what is read, and what is refused with one line.
#include "formats/safetensors/safetensors.h"

#include <doctest/doctest.h>

#include <cstring>

#include "support/files.h"

namespace doppler::test {
namespace {

using safetensors::SafetensorsFolder;

std::vector<std::byte> file_of(const std::string& header, size_t data_bytes, uint64_t length_offset = 0) {
  std::vector<std::byte> bytes(8 + header.size() + data_bytes);
  const uint64_t length = header.size() + length_offset;
  std::memcpy(bytes.data(), &length, sizeof length);
  std::memcpy(bytes.data() + 8, header.data(), header.size());
  for (size_t i = 0; i < data_bytes; ++i) bytes[8 + header.size() + i] = static_cast<std::byte>(i);
  return bytes;
}

constexpr const char* kTwo =
    R"({"__metadata__":{"format":"pt"},"b":{"dtype":"BF16","shape":[2,3],"data_offsets":[4,16]},)"
    R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";

std::string error_of(const std::string& header, size_t data_bytes, uint64_t length_offset = 0) {
  const auto source = memory_source("m.safetensors", file_of(header, data_bytes, length_offset));
  const auto read = safetensors::read_header(*source);
  if (read) return "";
  CHECK(read.error().message.starts_with("[safetensors] m.safetensors: "));
  CHECK(read.error().message.find('\n') == std::string::npos);
  return read.error().message;
}

TEST_CASE("safetensors: names, types, shapes and bytes") {
  const TempDir folder;
  write_bytes(folder.file("model.safetensors"), file_of(kTwo, 16));
  const auto source = SafetensorsFolder::open(folder.path().string());
  REQUIRE(source.has_value());
  REQUIRE((*source)->tensors().size() == 2);
  const TensorInfo* b = (*source)->find("b");
  REQUIRE(b != nullptr);
  CHECK(b->dtype == DType::kBF16);
  CHECK(b->shape == std::vector<uint64_t>{2, 3});
  const auto bytes = (*source)->bytes(*b);
  REQUIRE(bytes.has_value());
  REQUIRE(bytes->data.size() == 12);
  CHECK(bytes->data[0] == std::byte{4});
  CHECK((*source)->find("c") == nullptr);
}

TEST_CASE("safetensors: shards by their index") {
  const TempDir folder;
  const char* one = R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})";
  const char* two = R"({"b":{"dtype":"U8","shape":[3],"data_offsets":[1,4]}})";
  write_bytes(folder.file("m-1.safetensors"), file_of(one, 2));
  write_bytes(folder.file("m-2.safetensors"), file_of(two, 4));
  const std::string index = folder.file("model.safetensors.index.json");
  write_text(index, R"({"weight_map":{"a":"m-1.safetensors","b":"m-2.safetensors"}})");
  const auto source = SafetensorsFolder::open(folder.path().string());
  REQUIRE(source.has_value());
  const auto bytes = (*source)->bytes(*(*source)->find("b"));
  REQUIRE(bytes.has_value());
  CHECK(bytes->data[0] == std::byte{1});

  for (const char* wrong :
       {R"({"weight_map":{"a":"m-2.safetensors","b":"m-1.safetensors"}})",
        R"({"weight_map":{"a":"../m.safetensors"}})", R"({"weight_map":{"a":"m-3.safetensors"}})",
        R"({"weight_map":{"c":"m-1.safetensors"}})", R"({"weight_map":{"a":1}})", R"({"weight_map":[]})", "[",
        ""}) {
    CAPTURE(wrong);
    write_text(index, wrong);
    CHECK_FALSE(SafetensorsFolder::open(folder.path().string()).has_value());
  }
}

TEST_CASE("safetensors: a folder without weights, and one with too many") {
  const TempDir folder;
  CHECK_FALSE(SafetensorsFolder::open(folder.path().string()).has_value());
  write_bytes(folder.file("x.safetensors"), file_of(kTwo, 16));
  CHECK(SafetensorsFolder::open(folder.path().string()).has_value());
  write_bytes(folder.file("y.safetensors"), file_of(kTwo, 16));
  CHECK_FALSE(SafetensorsFolder::open(folder.path().string()).has_value());
}

TEST_CASE("safetensors: hostile headers are refused") {
  const auto has = [](const std::string& message, const char* part) {
    CAPTURE(message);
    CHECK(message.find(part) != std::string::npos);
  };
  CHECK(error_of(kTwo, 16).empty());
  has(error_of(kTwo, 15), "inside 15 bytes");
  has(error_of(kTwo, 16, 17), "cut short");
  has(error_of(kTwo, 16, UINT64_MAX / 2), "cut short");
  has(error_of("[]", 0), "JSON object");
  has(error_of("{", 0), "JSON object");
  has(error_of(std::string(100000, '['), 0), "JSON object");
  has(error_of(R"({"a":{"x":[[[[[1]]]]]}})", 0), "JSON object");
  has(error_of(R"({"a":1})", 0), "dtype, shape");
  has(error_of(R"({"a":{"dtype":"F8_E4M3","shape":[1],"data_offsets":[0,1]}})", 1), "F8_E4M3");
  has(error_of(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4), "shape");
  has(error_of(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4]}})", 4), "shape");
  has(error_of(R"({"a":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,4]}})", 4), "dimensions");
  has(error_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 8), "of 8 bytes");
  has(error_of(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[2,0]}})", 8), "data_offsets");
  has(error_of(
          R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
          3),
      "overlap");
  has(error_of(
          R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
          2),
      "twice");
  const auto tiny = memory_source("m.safetensors", std::vector<std::byte>(7));
  CHECK_FALSE(safetensors::read_header(*tiny).has_value());
}

}  // namespace
}  // namespace doppler::test
