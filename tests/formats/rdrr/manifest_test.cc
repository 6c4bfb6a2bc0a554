#include "formats/rdrr/manifest.h"

#include <doctest/doctest.h>

#include "formats/rdrr/merkle.h"
#include "formats/rdrr/rdrr_files.h"

using namespace doppler;
using namespace doppler::test;

namespace {

// 20,000 bytes in one shard; the pieces below are replaced to make each fault.
std::string good() {
  const std::string hash(64, 'a');
  return R"({"version": 1, "modelId": "m", "modelType": "transformer", "quantization": "F16", "hashAlgorithm": "sha256",
    "totalSize": 300, "eos_token_id": [1, 2], "architecture": {"numLayers": 2, "hiddenSize": 5, "intermediateSize": 9,
    "numAttentionHeads": 1, "numKeyValueHeads": 1, "headDim": 5, "vocabSize": 10, "maxSeqLen": 64},
    "inference": {"attention": {"queryPreAttnScalar": 5, "slidingWindow": null, "somethingNew": [1]}},
    "shards": [{"index": 0, "filename": "a.bin", "size": 200, "hash": ")" +
         hash + R"(", "offset": 0},
               {"index": 1, "filename": "b.bin", "size": 100, "hash": ")" +
         hash + R"(", "offset": 200}],
    "tensors": {"x": {"shard": 0, "offset": 0, "size": 40, "shape": [2, 5], "dtype": "F32", "role": "matmul"},
                "y": {"spans": [{"shardIndex": 0, "offset": 180, "size": 20}, {"shardIndex": 1, "offset": 0, "size": 20}],
                      "size": 40, "shape": [2, 10], "dtype": "F16", "role": "norm", "group": "g"}},
    "groups": {"g": {"type": "layer", "version": "1.0.0", "shards": [0, 1], "tensors": ["y"], "hash": ")" +
         hash + R"("}},
    "somethingElse": {"k": 1}})";
}

}  // namespace

TEST_CASE("a manifest parses, and what it does not know survives writing") {
  const auto first = rdrr::parse_manifest(good(), "manifest.json");
  REQUIRE_MESSAGE(first, (first ? "" : first.error().message));
  CHECK(first->eos_ids == std::vector<uint64_t>{1, 2});
  CHECK(first->architecture->hidden == 5);
  CHECK(first->inference.attention.query_pre_attn_scalar == 5);
  CHECK_FALSE(first->inference.attention.sliding_window);
  CHECK(first->find("y")->spans.size() == 2);
  CHECK(first->find("x")->spans.size() == 1);
  CHECK(first->find("z") == nullptr);
  const std::string text = rdrr::to_json(*first);
  CHECK(text.find("somethingNew") != std::string::npos);
  CHECK(text.find("somethingElse") != std::string::npos);
  const auto second = rdrr::parse_manifest(text, "manifest.json");
  REQUIRE_MESSAGE(second, (second ? "" : second.error().message));
  CHECK(rdrr::to_json(*second) == text);
}

TEST_CASE("each fault of a manifest is one error that names what is wrong") {
  struct Fault {
    const char *from, *to, *says;
  };
  const Fault faults[] = {
      {"\"version\": 1,", "\"version\": 0,", "version"},
      {"\"version\": 1,", "", "version"},
      {"\"modelId\": \"m\"", "\"modelId\": 7", "modelId"},
      {"\"modelId\": \"m\"", "\"modelId\": \"m\", \"modelId\": \"n\"", "twice"},
      {"\"sha256\"", "\"md5\"", "hashAlgorithm"},
      {"\"totalSize\": 300", "\"totalSize\": 301", "totalSize"},
      {"\"totalSize\": 300", "\"totalSize\": -300", "totalSize"},
      {"\"totalSize\": 300", "\"totalSize\": 1e300", "totalSize"},
      {"[1, 2]", "[]", "eos_token_id"},
      {"[1, 2]", "[1, \"2\"]", "eos_token_id"},
      {"\"numLayers\": 2", "\"numLayers\": 0", "numLayers"},
      {"\"numLayers\": 2", "\"numLayers\": 2.5", "numLayers"},
      {"\"a.bin\"", "\"../a.bin\"", "leave the model's directory"},
      {"\"a.bin\"", "\"/etc/passwd\"", "leave the model's directory"},
      {"\"a.bin\"", "\"a\\u0000.bin\"", "leave the model's directory"},
      {"\"a.bin\"", "\"..\"", "leave the model's directory"},
      {"\"a.bin\"", "\"b.bin\"", "named twice"},
      {"\"index\": 1", "\"index\": 0", "index"},
      {"\"size\": 200", "\"size\": 0", "size"},
      {"\"size\": 200", "\"size\": \"200\"", "size"},
      {"\"size\": 200", "\"size\": 100", "offset"},
      {"\"offset\": 200", "\"offset\": 199", "offset"},
      {"aaaaaaaa\"", "aaaaaaaA\"", "hex digits"},
      {"aaaaaaaa\"", "aaaaaaa\"", "hex digits"},
      {"\"shard\": 0, \"offset\": 0", "\"shard\": 2, \"offset\": 0", "lies in shard 2"},
      {"\"shard\": 0, \"offset\": 0", "\"offset\": 0", "missing"},
      {"\"shard\": 0, \"offset\": 0", "\"shard\": 0, \"offset\": 170", "needs bytes"},
      {"\"shard\": 0, \"offset\": 0", "\"shard\": 0, \"offset\": 9007199254740991", "needs bytes"},
      {"\"shard\": 0, \"offset\": 0", "\"shard\": 0, \"offset\": 150", "overlap"},
      {"\"offset\": 180, \"size\": 20", "\"offset\": 180, \"size\": 19", "spans cover 39"},
      {"[2, 5]", "[2, 6]", "follow from its shape"},
      {"[2, 5]", "[0, 5]", "zero"},
      {"[2, 5]", "[4294967296, 4294967296]", "follow from its shape"},
      {"[2, 5]", "[1,1,1,1,1,1,1,1,10]", "dimensions"},
      {"[2, 5]", "10", "shape"},
      {"\"role\": \"matmul\"", "\"rule\": \"matmul\"", "role"},
      {"\"F32\"", "32", "dtype"},
      {"\"F32\"", "\"functional-x\"", "descriptor"},
      {"[\"y\"]", "[\"q\"]", "which is not there"},
      {"[\"y\"]", "[\"y\", \"y\"]", "in the groups"},
      {"\"shards\": [0, 1]", "\"shards\": [1, 0]", "ascending"},
      {"\"shards\": [0, 1]", "\"shards\": [0, 2]", "names shard 2"},
      {"\"slidingWindow\": null", "\"slidingWindow\": \"many\"", "slidingWindow"},
      {"\"inference\": {", "\"reference\": {", "inference"},
      {"{\"version\"", "[{\"version\"", "JSON"},
      {"\"tensors\": {", "\"sensors\": {", "tensors"},
  };
  for (const Fault& fault : faults) {
    CAPTURE(fault.from);
    CAPTURE(fault.to);
    std::string text = good();
    const std::string before = text;
    replace_once(text, fault.from, fault.to);
    REQUIRE(text != before);
    const auto manifest = rdrr::parse_manifest(text, "manifest.json");
    REQUIRE_FALSE(manifest);
    CHECK_MESSAGE(manifest.error().message.find(fault.says) != std::string::npos, manifest.error().message);
    CHECK(manifest.error().message.find("manifest.json") != std::string::npos);
  }
}

TEST_CASE("documents that are no manifest at all are refused") {
  for (const std::string& text :
       {std::string(), std::string("null"), std::string("[]"), std::string("{"), std::string("\xff\xfe"),
        std::string(1000000, '['), "{\"a\":" + std::string(100, '{')}) {
    CHECK_FALSE(rdrr::parse_manifest(text, "manifest.json"));
  }
}

TEST_CASE("cut or altered manifests never crash the parser") {
  const std::string text = good();
  for (size_t cut = 0; cut < text.size(); ++cut) {
    const auto manifest = rdrr::parse_manifest(std::string_view(text).substr(0, cut), "manifest.json");
    CHECK_FALSE(manifest);
  }
  std::mt19937 random(5);
  const std::string digits = "0123456789-eE.\"{}[]:,ntf ";
  for (int i = 0; i < 5000; ++i) {
    std::string altered = text;
    altered[random() % altered.size()] = digits[random() % digits.size()];
    altered[random() % altered.size()] = static_cast<char>(random());
    const auto manifest = rdrr::parse_manifest(altered, "manifest.json");
    if (!manifest) CHECK_FALSE(manifest.error().message.empty());
  }
}

TEST_CASE("a BLAKE3 manifest takes the digest of that name first") {
  std::string text = good();
  replace_once(text, "\"sha256\"", "\"blake3\"");
  replace_once(text, "\"offset\": 0}", "\"offset\": 0, \"blake3\": \"" + std::string(64, 'b') + "\"}");
  const auto manifest = rdrr::parse_manifest(text, "manifest.json");
  REQUIRE(manifest);
  CHECK(manifest->hash == HashKind::kBlake3);
  CHECK(manifest->shards[0].hash == std::string(64, 'b'));
  CHECK(manifest->shards[1].hash == std::string(64, 'a'));
}

TEST_CASE("manifests of both generations of the original parse and survive a rewrite") {
  for (const char* name : {"gemma3-f16", "gemma3-q4k", "gemma3-early", "llama-f16", "mixtral-early"}) {
    CAPTURE(name);
    const auto manifest = rdrr::read_manifest(golden_rdrr(name));
    REQUIRE_MESSAGE(manifest, (manifest ? "" : manifest.error().message));
    CHECK(manifest->architecture->hidden == 48);
    const auto again = rdrr::parse_manifest(rdrr::to_json(*manifest), name);
    REQUIRE_MESSAGE(again, (again ? "" : again.error().message));
    CHECK(again->tensors.size() == manifest->tensors.size());
    CHECK(rdrr::to_json(*again) == rdrr::to_json(*manifest));
  }
}

TEST_CASE("block trees agree with the original's roots") {
  const auto manifest = rdrr::read_manifest(golden_rdrr("llama-f16"));
  REQUIRE(manifest);
  REQUIRE(manifest->merkle);
  const std::string shard = slurp(golden_rdrr("llama-f16") + "/shard_00000.bin");
  for (const auto& [name, root] : manifest->merkle->roots) {
    const rdrr::Tensor& tensor = *manifest->find(name);
    rdrr::MerkleTree tree(manifest->merkle->block_size);
    tree.update(std::as_bytes(std::span(shard)).subspan(tensor.spans[0].offset, tensor.size));
    CHECK(tree.root() == root);
  }
}
