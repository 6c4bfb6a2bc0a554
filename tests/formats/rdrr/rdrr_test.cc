#include "formats/rdrr/rdrr.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "base/quants.h"
#include "formats/rdrr/rdrr_files.h"
#include "formats/rdrr/verify.h"
#include "formats/rdrr/writer.h"

using namespace doppler;
using namespace doppler::test;

TEST_CASE("directories of the original open, verify and dequantise sensibly") {
  for (const char* name : {"gemma3-f16", "gemma3-q4k", "gemma3-early", "llama-f16", "mixtral-early"}) {
    CAPTURE(name);
    auto model = rdrr::RdrrModel::open(golden_rdrr(name));
    REQUIRE_MESSAGE(model, (model ? "" : model.error().message));
    const auto report = rdrr::verify(golden_rdrr(name), nullptr);
    REQUIRE(report);
    CHECK(report->ok());
    CHECK(report->shards == 1);
    for (const TensorInfo& tensor : (*model)->tensors()) {
      CAPTURE(tensor.name);
      const auto bytes = (*model)->bytes(tensor);
      REQUIRE(bytes);
      CHECK(bytes->data.size() == tensor.size_bytes);
      const uint32_t block = dtype_info(tensor.dtype).block_elems;
      const size_t padded = (tensor.columns() + block - 1) / block * block;
      std::vector<float> row(padded);
      dequantize(tensor.dtype, bytes->data.data(), padded, row.data());
      for (size_t i = 0; i < tensor.columns(); ++i) CHECK(std::abs(row[i]) < 10.0f);
    }
  }
}

TEST_CASE("Q4_K rows padded to 256 columns stay close to the F16 weights they came from") {
  const auto q4k = rdrr::RdrrModel::open(golden_rdrr("gemma3-q4k")),
             f16 = rdrr::RdrrModel::open(golden_rdrr("gemma3-f16"));
  REQUIRE(q4k);
  REQUIRE(f16);
  const std::string name = "model.layers.3.mlp.down_proj.weight";
  const TensorInfo *packed = (*q4k)->find(name), *plain = (*f16)->find(name);
  REQUIRE(packed);
  REQUIRE(plain);
  CHECK(packed->dtype == DType::kQ4_K);
  CHECK(packed->shape == std::vector<uint64_t>{48, 96});
  CHECK(packed->size_bytes == 48 * 144);
  const auto a = (*q4k)->bytes(*packed), b = (*f16)->bytes(*plain);
  double error = 0, power = 0;
  for (uint64_t r = 0; r < 48; ++r) {
    std::vector<float> x(256), y(96);
    dequantize(DType::kQ4_K, a->data.data() + r * 144, 256, x.data());
    dequantize(DType::kF16, b->data.data() + r * 192, 96, y.data());
    for (size_t c = 0; c < 96; ++c) {
      error += (x[c] - y[c]) * (x[c] - y[c]);
      power += y[c] * y[c];
    }
  }
  CHECK(std::sqrt(error / power) < 0.12);
}

TEST_CASE("shards of any size read back bit-exact, contiguous or not") {
  for (const uint64_t shard_bytes : {uint64_t{4096}, uint64_t{4099}, uint64_t{1000003}, uint64_t{64} << 20}) {
    for (const HashKind hash : {HashKind::kSha256, HashKind::kBlake3}) {
      CAPTURE(shard_bytes);
      TemporaryDirectory temporary;
      const std::string directory = temporary / "model";
      auto writer = rdrr::Writer::create(directory, {shard_bytes, hash});
      REQUIRE(writer);
      struct Written {
        rdrr::NewTensor tensor;
        std::vector<std::byte> bytes;
      };
      std::vector<Written> all;
      all.push_back({{"model.embed_tokens.weight", DType::kF16, {300, 700}, "embedding", "embed"},
                     random_bytes(1, 420000)});
      all.push_back({{"model.layers.0.input_layernorm.weight", DType::kF32, {7}, "norm", "layer.0"},
                     random_bytes(2, 28)});
      all.push_back({{"model.layers.0.mlp.up_proj.weight", DType::kQ4_K, {1001, 300}, "matmul", "layer.0"},
                     random_bytes(3, 1001 * 288)});
      all.push_back({{"model.layers.0.odd", DType::kU8, {33}, "other", "layer.0"}, random_bytes(4, 33)});
      all.push_back({{"model.norm.weight", DType::kF32, {640}, "norm", "head"}, random_bytes(5, 2560)});
      for (const Written& one : all) {
        REQUIRE((*writer)->begin_tensor(one.tensor));
        const std::span<const std::byte> bytes(one.bytes);
        const size_t half = bytes.size() / 3;
        REQUIRE((*writer)->append(bytes.first(half)));
        REQUIRE((*writer)->append(bytes.subspan(half)));
        REQUIRE((*writer)->end_tensor());
      }
      REQUIRE((*writer)->add_file("tokenizer.json", "{}"));
      CHECK_FALSE(std::filesystem::exists(directory));
      const auto done = (*writer)->finish(small_manifest());
      REQUIRE_MESSAGE(done, (done ? "" : done.error().message));

      const auto report = rdrr::verify(directory, nullptr);
      REQUIRE(report);
      CHECK_MESSAGE(report->ok(), report->summary());
      CHECK(report->roots == 5);
      CHECK(report->groups == 3);
      auto model = rdrr::RdrrModel::open(directory);
      REQUIRE_MESSAGE(model, (model ? "" : model.error().message));
      for (const Written& one : all) {
        const TensorInfo* tensor = (*model)->find(one.tensor.name);
        REQUIRE(tensor);
        const auto bytes = (*model)->bytes(*tensor);
        REQUIRE(bytes);
        REQUIRE(bytes->data.size() == one.bytes.size());
        CHECK(std::memcmp(bytes->data.data(), one.bytes.data(), one.bytes.size()) == 0);
        CHECK(reinterpret_cast<uintptr_t>(bytes->data.data()) % (tensor->dtype == DType::kF32 ? 4 : 1) == 0);
        (*model)->release(*tensor);
      }
    }
  }
}

namespace {

/// A written model of several shards to damage.
std::string write_small(const TemporaryDirectory& temporary) {
  const std::string directory = temporary / "small";
  auto writer = rdrr::Writer::create(directory, {4096, HashKind::kSha256});
  REQUIRE(writer);
  REQUIRE(
      (*writer)->begin_tensor({"model.embed_tokens.weight", DType::kF32, {50, 100}, "embedding", "embed"}));
  REQUIRE((*writer)->append(random_bytes(9, 20000)));
  REQUIRE((*writer)->end_tensor());
  REQUIRE((*writer)->add_file("tokenizer.json", "{\"a\": 1}"));
  REQUIRE((*writer)->finish(small_manifest()));
  return directory;
}

}  // namespace

TEST_CASE("a damaged directory gives one clear error that names the file") {
  TemporaryDirectory temporary;
  const std::string directory = write_small(temporary);
  const std::string shard = directory + "/shard_00002.bin";

  SUBCASE("flipped byte") {
    flip_byte(shard, 77);
    CHECK(rdrr::RdrrModel::open(directory));  // digests are verify's business
    const auto report = rdrr::verify(directory, nullptr);
    REQUIRE(report);
    REQUIRE(report->problems.size() == 1);
    CHECK(report->problems[0].where == "shard_00002.bin");
    CHECK(report->summary().find("shard_00002.bin") != std::string::npos);
  }
  SUBCASE("flipped byte in the tokenizer") {
    flip_byte(directory + "/tokenizer.json", 2);
    const auto report = rdrr::verify(directory, nullptr);
    REQUIRE(report);
    REQUIRE(report->problems.size() == 1);
    CHECK(report->problems[0].where == "tokenizer.json");
  }
  SUBCASE("truncated shard") {
    std::filesystem::resize_file(shard, 4000);
    const auto model = rdrr::RdrrModel::open(directory);
    REQUIRE_FALSE(model);
    CHECK(model.error().code == ErrorCode::kBadFile);
    CHECK(model.error().message.find("shard_00002.bin is truncated: 4096 bytes wanted, got 4000") !=
          std::string::npos);
    CHECK(rdrr::verify(directory, nullptr)->problems.front().where == "shard_00002.bin");
  }
  SUBCASE("longer shard") {
    std::filesystem::resize_file(shard, 5000);
    const auto model = rdrr::RdrrModel::open(directory);
    REQUIRE_FALSE(model);
    CHECK(model.error().message.find("too long") != std::string::npos);
  }
  SUBCASE("missing shard") {
    std::filesystem::remove(shard);
    const auto model = rdrr::RdrrModel::open(directory);
    REQUIRE_FALSE(model);
    CHECK(model.error().code == ErrorCode::kNotFound);
    CHECK(model.error().message.find("shard_00002.bin is missing") != std::string::npos);
    CHECK(rdrr::verify(directory, nullptr)->problems.front().message == "missing");
  }
  SUBCASE("wrong size in the manifest") {
    std::string manifest = slurp(directory + "/manifest.json");
    replace_once(manifest, "\"size\": 4096", "\"size\": 4097");
    spill(directory + "/manifest.json", manifest);
    const auto model = rdrr::RdrrModel::open(directory);
    REQUIRE_FALSE(model);
    CHECK(model.error().message.find("shard 1] \"offset\": 4097 wanted") != std::string::npos);
    CHECK_FALSE(rdrr::verify(directory, nullptr));
  }
  SUBCASE("no manifest") {
    std::filesystem::remove(directory + "/manifest.json");
    const auto model = rdrr::RdrrModel::open(directory);
    REQUIRE_FALSE(model);
    CHECK(model.error().code == ErrorCode::kNotFound);
    CHECK_FALSE(rdrr::is_rdrr_directory(directory));
  }
}

TEST_CASE("verify stops when asked to") {
  const Progress stop = [](std::string_view, uint64_t, uint64_t) { return false; };
  const auto report = rdrr::verify(golden_rdrr("llama-f16"), stop);
  REQUIRE_FALSE(report);
  CHECK(report.error().code == ErrorCode::kCancelled);
}

TEST_CASE("an unfinished or refused write leaves nothing behind") {
  TemporaryDirectory temporary;
  {
    auto writer = rdrr::Writer::create(temporary / "out", {});
    REQUIRE(writer);
    REQUIRE((*writer)->begin_tensor({"a", DType::kF32, {4}, "norm", "head"}));
    REQUIRE((*writer)->append(random_bytes(1, 12)));
    const auto ended = (*writer)->end_tensor();
    REQUIRE_FALSE(ended);
    CHECK(ended.error().message.find("16 bytes, got 12") != std::string::npos);
    CHECK_FALSE(std::filesystem::is_empty(temporary.path()));
  }
  CHECK(std::filesystem::is_empty(temporary.path()));

  spill(temporary / "file", "x");
  std::filesystem::create_directory(temporary / "empty");
  CHECK_FALSE(rdrr::Writer::create(temporary / "file", {}));
  CHECK_FALSE(rdrr::Writer::create(temporary.path(), {}));
  CHECK_FALSE(rdrr::Writer::create(temporary / "absent/out", {}));
  CHECK_FALSE(rdrr::Writer::create(temporary / "tiny", {100, HashKind::kSha256}));
  CHECK(rdrr::Writer::create(temporary / "empty", {}));
}

TEST_CASE("an external tensor map is read") {
  TemporaryDirectory temporary;
  const std::string directory = write_small(temporary);
  auto manifest = rdrr::read_manifest(directory);
  REQUIRE(manifest);
  manifest->tensors_file = "tensors.json";
  manifest->groups.clear();
  spill(directory + "/manifest.json", rdrr::to_json(*manifest));
  CHECK_FALSE(rdrr::RdrrModel::open(directory));
  spill(
      directory + "/tensors.json",
      R"({"w": {"shard": 0, "offset": 0, "size": 20000, "shape": [50, 100], "dtype": "F32", "role": "embedding",
            "spans": [{"shard": 0, "offset": 0, "size": 4096}, {"shardIndex": 1, "offset": 0, "size": 4096},
                      {"shard": 2, "offset": 0, "size": 4096}, {"shardIndex": 3, "offset": 0, "size": 4096},
                      {"shard": 4, "offset": 0, "size": 3616}]}})");
  // The block tree names a tensor the map does not have.
  CHECK_FALSE(rdrr::RdrrModel::open(directory));
  manifest->merkle.reset();
  spill(directory + "/manifest.json", rdrr::to_json(*manifest));
  auto model = rdrr::RdrrModel::open(directory);
  REQUIRE_MESSAGE(model, (model ? "" : model.error().message));
  const auto bytes = (*model)->bytes((*model)->tensors().front());
  REQUIRE(bytes);
  const auto wanted = random_bytes(9, 20000);
  CHECK(std::memcmp(bytes->data.data(), wanted.data(), wanted.size()) == 0);
}
