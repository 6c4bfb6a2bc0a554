#include "storage/catalogue.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "base/hash.h"
#include "storage/cache.h"

namespace doppler::storage {
namespace {

bool is_sha256(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

TEST_CASE("every catalogue entry is complete and pinned") {
  std::set<std::string_view> names, files, packages;
  for (const CatalogueEntry& entry : catalogue()) {
    CAPTURE(entry.name);
    CHECK(find_entry(entry.name) == &entry);
    CHECK(names.insert(entry.name).second);
    CHECK(files.insert(entry.file_name).second);
    CHECK(is_sha256(entry.sha256) == entry.files.empty());
    uint64_t bytes = 0;
    for (const FolderFile& file : entry.files) {
      CHECK(is_sha256(file.sha256));
      bytes += file.bytes;
    }
    if (!entry.files.empty()) {
      CHECK(bytes == entry.bytes);
      CHECK(entry.wheels.size() == 1);
    }
    CHECK(entry.file_name.find('/') == std::string_view::npos);
    CHECK_FALSE(entry.file_name.starts_with('.'));
    CHECK_FALSE(entry.wheels.empty());
    for (const Wheel& wheel : entry.wheels) {
      CAPTURE(wheel.package);
      CHECK(packages.insert(wheel.package).second);
      CHECK(is_sha256(wheel.sha256));
      CHECK_FALSE(wheel.version.empty());
      CHECK(wheel.bytes > 0);
    }
  }
  CHECK(find_entry("") == nullptr);
  CHECK(find_entry("gemma-3") == nullptr);
}

TEST_CASE("the pulled models have the catalogue's digests") {
  for (const CatalogueEntry& entry : catalogue()) {
    const std::string path = cached_path(entry).value();
    REQUIRE_MESSAGE(!path.empty(), "run `make models` or `doppler pull ", std::string(entry.name), "`");
    if (entry.files.empty()) CHECK(hash_file_hex(HashKind::kSha256, path).value() == entry.sha256);
    for (const FolderFile& file : entry.files)
      CHECK(hash_file_hex(HashKind::kSha256, path + "/" + std::string(file.path)).value() == file.sha256);
  }
}

}  // namespace
}  // namespace doppler::storage
