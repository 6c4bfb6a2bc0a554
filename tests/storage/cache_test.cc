#include "storage/cache.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "storage/catalogue.h"
#include "storage/scratch.h"

namespace doppler::storage {
namespace {

namespace fs = std::filesystem;

TEST_CASE("the cache folder follows DOPPLER_CACHE, XDG_CACHE_HOME and HOME, in that order") {
  const ScopedVariable models("DOPPLER_MODELS", std::nullopt), home("HOME", "/home/someone");
  {
    const ScopedVariable cache("DOPPLER_CACHE", "/data/x"), xdg("XDG_CACHE_HOME", "/xdg");
    CHECK(cache_folder().value() == "/data/x");
    CHECK(models_folder().value() == "/data/x/models");
  }
  {
    const ScopedVariable cache("DOPPLER_CACHE", std::nullopt), xdg("XDG_CACHE_HOME", "/xdg");
    CHECK(cache_folder().value() == "/xdg/doppler");
  }
  for (const std::optional<std::string>& unusable : {std::optional<std::string>(), {""}, {"relative"}}) {
    const ScopedVariable cache("DOPPLER_CACHE", std::nullopt), xdg("XDG_CACHE_HOME", unusable);
    CHECK(cache_folder().value() == "/home/someone/.cache/doppler");
  }
  const ScopedVariable cache("DOPPLER_CACHE", "somewhere");
  CHECK(cache_folder().value() == (fs::current_path() / "somewhere").string());
}

TEST_CASE("DOPPLER_MODELS names the models folder itself") {
  const ScopedVariable cache("DOPPLER_CACHE", "/data/x"), models("DOPPLER_MODELS", "/models");
  CHECK(models_folder().value() == "/models");
}

TEST_CASE("list shows the catalogue, then what else is in the folder") {
  const ScratchFolder scratch;
  const ScopedVariable models("DOPPLER_MODELS", scratch.path());
  const CatalogueEntry& entry = catalogue()[0];
  fs::create_directory(scratch / "my-rdrr");
  write_text(scratch / "my-rdrr/manifest.json", "{}");
  write_text(scratch / "my-rdrr/shard", "0123456789");
  write_text(scratch / "a.gguf", "GGUF");
  write_text(scratch / ".pull-x.lock", "");
  write_text(scratch / entry.file_name, "a file of the wrong size is not the model");

  const auto list = list_models().value();
  REQUIRE(list.size() == catalogue().size() + 2);
  CHECK(list[0].name == entry.name);
  CHECK(list[0].path == scratch / entry.file_name);
  CHECK(list[0].in_catalogue);
  CHECK_FALSE(list[0].present);
  CHECK(list[0].bytes == entry.bytes);
  const CachedModel& file = list[catalogue().size()];
  CHECK(file.name == "a.gguf");
  CHECK(file.present);
  CHECK(file.bytes == 4);
  CHECK(list.back().name == "my-rdrr");
  CHECK(list.back().bytes == 12);
}

TEST_CASE("list of a folder that does not exist has the catalogue alone") {
  const ScratchFolder scratch;
  const ScopedVariable models("DOPPLER_MODELS", scratch / "not-there");
  const auto list = list_models().value();
  CHECK(list.size() == catalogue().size());
  CHECK_FALSE(fs::exists(scratch / "not-there"));
}

TEST_CASE("a catalogue model is there when its file has the full size") {
  const ScratchFolder scratch;
  const ScopedVariable models("DOPPLER_MODELS", scratch.path());
  const CatalogueEntry& entry = catalogue()[0];
  const std::string path = scratch / entry.file_name;
  const auto before = resolve_model(entry.name);
  REQUIRE_FALSE(before);
  CHECK(before.error().code == ErrorCode::kNotFound);
  CHECK(before.error().message.find("doppler pull smollm2-135m-instruct") != std::string::npos);

  write_text(path, "");
  fs::resize_file(path, entry.bytes);  // sparse
  CHECK(resolve_model(entry.name).value() == path);
  CHECK(list_models().value()[0].present);
  CHECK(remove_model(entry.name).value() == entry.bytes);
  CHECK_FALSE(fs::exists(path));
  const auto again = remove_model(entry.name);
  REQUIRE_FALSE(again);
  CHECK(again.error().code == ErrorCode::kNotFound);
}

TEST_CASE("a model argument is a path first, then a name") {
  const ScratchFolder scratch;
  const ScopedVariable models("DOPPLER_MODELS", scratch.path());
  write_text(scratch / "mine.gguf", "GGUF");
  CHECK(resolve_model(scratch / "mine.gguf").value() == scratch / "mine.gguf");
  CHECK(resolve_model("mine.gguf").value() == scratch / "mine.gguf");
  for (const std::string_view unknown : {"", "no-such-model", "/no/such/path"}) {
    const auto result = resolve_model(unknown);
    REQUIRE_FALSE(result);
    CHECK(result.error().code == ErrorCode::kNotFound);
    CHECK(result.error().message.find("doppler list") != std::string::npos);
  }
}

TEST_CASE("remove takes names only, never a path out of the models folder") {
  const ScratchFolder scratch;
  fs::create_directory(scratch / "models");
  const ScopedVariable models("DOPPLER_MODELS", scratch / "models");
  write_text(scratch / "outside", "stays");
  for (const std::string_view path : {"", ".", "..", "../outside", "/etc/passwd", "a/b", ".hidden"}) {
    CAPTURE(path);
    const auto result = remove_model(path);
    REQUIRE_FALSE(result);
    CHECK(result.error().code == ErrorCode::kBadInput);
  }
  CHECK(fs::exists(scratch / "outside"));
  fs::create_directory(scratch / "models/folder");
  write_text(scratch / "models/folder/shard", "0123");
  CHECK(remove_model("folder").value() == 4);
  CHECK_FALSE(fs::exists(scratch / "models/folder"));
}

}  // namespace
}  // namespace doppler::storage
