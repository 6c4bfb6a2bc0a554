#include "base/byte_source.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "base/hash.h"
#include "support/files.h"

using namespace doppler;

namespace {

std::vector<std::byte> pattern(size_t n, unsigned seed) {
  std::vector<std::byte> bytes(n);
  for (size_t i = 0; i < n; ++i) bytes[i] = static_cast<std::byte>(i * 7 + seed + i / 256);
  return bytes;
}

bool equal(std::span<const std::byte> a, std::span<const std::byte> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

}  // namespace

TEST_CASE("a mapped file shows its bytes and refuses ranges outside it") {
  const test::TempDir dir;
  const auto bytes = pattern(10001, 1);
  test::write_bytes(dir.file("a"), bytes);
  auto source = open_file(dir.file("a"));
  REQUIRE(source.has_value());
  const ByteSource& file = **source;
  CHECK(file.size() == bytes.size());
  CHECK(file.name() == dir.file("a"));
  const auto whole = file.view(0, bytes.size());
  REQUIRE(whole.has_value());
  CHECK(equal(*whole, bytes));
  CHECK(file.view(10001, 0).has_value());
  for (const auto& [offset, length] :
       {std::pair<uint64_t, uint64_t>{10001, 1}, {0, 10002}, {10002, 0}, {5, ~0ull}, {~0ull, 5}})
    CHECK_FALSE(file.view(offset, length).has_value());

  file.release(100, 9000);  // the pages come back with the same bytes
  file.release(5, ~0ull);   // outside: ignored
  CHECK(equal(*whole, bytes));
}

TEST_CASE("files are mapped one after the other") {
  const test::TempDir dir;
  const size_t page = page_size();
  const auto a = pattern(2 * page, 3), b = pattern(page, 5), c = pattern(123, 7);
  test::write_bytes(dir.file("a"), a);
  test::write_bytes(dir.file("b"), b);
  test::write_bytes(dir.file("c"), c);
  auto source = open_files({dir.file("a"), dir.file("b"), dir.file("c")});
  REQUIRE(source.has_value());
  auto joined = a;
  joined.insert(joined.end(), b.begin(), b.end());
  joined.insert(joined.end(), c.begin(), c.end());
  CHECK((*source)->size() == joined.size());
  const auto middle = (*source)->view(2 * page - 10, page + 30);  // crosses both boundaries
  REQUIRE(middle.has_value());
  CHECK(equal(*middle, std::span(joined).subspan(2 * page - 10, page + 30)));
  (*source)->release(0, joined.size());
  CHECK(equal(*middle, std::span(joined).subspan(2 * page - 10, page + 30)));

  const auto uneven = open_files({dir.file("c"), dir.file("a")});
  REQUIRE_FALSE(uneven.has_value());
  CHECK(uneven.error().code == ErrorCode::kBadInput);
}

TEST_CASE("what cannot be mapped is an error with the reason") {
  const test::TempDir dir;
  test::write_text(dir.file("empty"), "");
  test::write_text(dir.file("some"), "x");
  const auto code = [](const auto& result) {
    return result.has_value() ? ErrorCode::kCancelled : result.error().code;
  };
  CHECK(code(open_file(dir.file("none"))) == ErrorCode::kNotFound);
  CHECK(code(open_file(dir.file("some") + "/below")) == ErrorCode::kNotFound);
  CHECK(code(open_file(dir.path().string())) == ErrorCode::kBadInput);
  CHECK(code(open_file(dir.file("empty"))) == ErrorCode::kBadFile);
  CHECK(code(open_file("/dev/null")) == ErrorCode::kBadInput);
  CHECK(code(open_files({})) == ErrorCode::kBadInput);
}

TEST_CASE("a named pipe that nobody writes to is refused, not waited for") {
  const test::TempDir dir;
  REQUIRE(::mkfifo(dir.file("pipe").c_str(), 0600) == 0);
  CHECK(open_file(dir.file("pipe")).error().code == ErrorCode::kBadInput);
  CHECK(read_text_file(dir.file("pipe"), 10).error().code == ErrorCode::kBadInput);
  CHECK(read_text_file("/dev/zero", 10).error().code == ErrorCode::kBadInput);
  CHECK(hash_file_hex(HashKind::kSha256, dir.file("pipe")).error().code == ErrorCode::kBadInput);
  CHECK(hash_file_hex(HashKind::kSha256, "/dev/zero").error().code == ErrorCode::kBadInput);
}

TEST_CASE("a file cut short while mapped is an error, one deleted keeps its bytes") {
  const test::TempDir dir;
  const auto bytes = pattern(3 * page_size(), 9);
  test::write_bytes(dir.file("a"), bytes);
  test::write_bytes(dir.file("b"), bytes);
  auto cut = open_file(dir.file("a")), gone = open_file(dir.file("b"));
  REQUIRE(cut.has_value());
  REQUIRE(gone.has_value());
  std::filesystem::resize_file(dir.file("a"), 100);
  const auto view = (*cut)->view(0, 3 * page_size());
  REQUIRE_FALSE(view.has_value());
  CHECK(view.error().code == ErrorCode::kIo);
  std::filesystem::remove(dir.file("b"));
  const auto kept = (*gone)->view(0, bytes.size());
  REQUIRE(kept.has_value());
  CHECK(equal(*kept, bytes));
}

TEST_CASE("bytes in memory are a source too") {
  const auto source = memory_source("x", pattern(10, 0));
  CHECK(source->size() == 10);
  CHECK(source->name() == "x");
  CHECK(source->view(2, 8)->size() == 8);
  CHECK_FALSE(source->view(2, 9).has_value());
}

TEST_CASE("text files are read whole up to a limit") {
  const test::TempDir dir;
  const std::string text(100000, 'q');
  test::write_text(dir.file("t"), text);
  test::write_text(dir.file("empty"), "");
  CHECK(read_text_file(dir.file("t"), 100000).value() == text);
  CHECK(read_text_file(dir.file("t"), 99999).error().code == ErrorCode::kBadFile);
  CHECK(read_text_file(dir.file("empty"), 0).value().empty());
  CHECK(read_text_file(dir.file("none"), 10).error().code == ErrorCode::kNotFound);
  CHECK(read_text_file(dir.path().string(), 10).error().code == ErrorCode::kIo);
}

TEST_CASE("an atomic write replaces the whole file and leaves nothing beside it") {
  const test::TempDir dir;
  test::write_text(dir.file("out"), "a longer text that was there before");
  const auto bytes = pattern(70000, 2);
  REQUIRE(write_file_atomically(dir.file("out"), bytes).has_value());
  CHECK(equal(test::read_bytes(dir.file("out")), bytes));
  REQUIRE(write_file_atomically(dir.file("out"), {}).has_value());
  CHECK(std::filesystem::file_size(dir.file("out")) == 0);
  std::filesystem::create_directory(dir.file("folder"));
  CHECK_FALSE(write_file_atomically(dir.file("folder"), bytes).has_value());  // the rename fails
  CHECK_FALSE(write_file_atomically(dir.file("no/such/out"), bytes).has_value());
  size_t entries = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(dir.path())) ++entries;
  CHECK(entries == 2);
}
