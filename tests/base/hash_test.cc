#include "base/hash.h"

#include <doctest/doctest.h>

#include <fstream>
#include <string>
#include <vector>

#include "support/files.h"

using namespace doppler;

namespace {

std::vector<std::byte> counting_bytes(size_t n) {  // the input of the official BLAKE3 vectors
  std::vector<std::byte> bytes(n);
  for (size_t i = 0; i < n; ++i) bytes[i] = static_cast<std::byte>(i % 251);
  return bytes;
}

std::string sha256(std::string_view text) {
  return hash_hex(HashKind::kSha256, std::as_bytes(std::span(text.data(), text.size())));
}

}  // namespace

TEST_CASE("sha256 gives the digests of FIPS 180-4's examples") {
  CHECK(sha256("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST_CASE("blake3 agrees with the reference at every block, chunk and tree boundary") {
  std::ifstream lines(DOPPLER_GOLDEN_DIR "/blake3.txt");
  size_t length = 0, seen = 0;
  std::string digest;
  while (lines >> length >> digest) {
    CAPTURE(length);
    CHECK(hash_hex(HashKind::kBlake3, counting_bytes(length)) == digest);
    ++seen;
  }
  CHECK(seen == 35);
}

TEST_CASE("a digest does not depend on how the input was cut") {
  const auto bytes = counting_bytes(10000);
  for (const HashKind kind : {HashKind::kSha256, HashKind::kBlake3})
    for (const size_t step : {1u, 63u, 64u, 65u, 1000u, 1024u, 1025u, 4096u}) {
      CAPTURE(step);
      const auto hasher = make_hasher(kind);
      for (size_t i = 0; i < bytes.size(); i += step)
        hasher->update(std::span(bytes).subspan(i, std::min(step, bytes.size() - i)));
      CHECK(hex(hasher->finish()) == hash_hex(kind, bytes));
    }
}

TEST_CASE("a file is hashed in pieces and a missing one is an error") {
  const test::TempDir dir;
  const auto bytes = counting_bytes((1 << 20) + 17);  // longer than the read buffer
  test::write_bytes(dir.file("data"), bytes);
  for (const HashKind kind : {HashKind::kSha256, HashKind::kBlake3}) {
    const auto digest = hash_file_hex(kind, dir.file("data"));
    REQUIRE(digest.has_value());
    CHECK(*digest == hash_hex(kind, bytes));
  }
  const auto missing = hash_file_hex(HashKind::kSha256, dir.file("none"));
  REQUIRE_FALSE(missing.has_value());
  CHECK(missing.error().code == ErrorCode::kNotFound);
  CHECK_FALSE(hash_file_hex(HashKind::kSha256, dir.path().string()).has_value());  // a folder
}

TEST_CASE("hash names") {
  CHECK(hash_kind_from_name("sha256") == HashKind::kSha256);
  CHECK(hash_kind_from_name("blake3") == HashKind::kBlake3);
  CHECK_FALSE(hash_kind_from_name("md5").has_value());
  CHECK(hash_name(HashKind::kBlake3) == "blake3");
}
