#include "base/cpu_count.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <thread>
#include <vector>

#include "base/byte_source.h"
#include "base/thread_pool.h"

namespace doppler {
namespace {

constexpr uint64_t kSmallFile = 64 * 1024;

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

std::optional<double> number(std::string_view text) {
  const size_t end = text.find_first_of(" \n");
  if (end != std::string_view::npos) text = text.substr(0, end);
  int64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return static_cast<double>(value);
}

std::optional<unsigned> cores(std::optional<double> quota_us, std::optional<double> period_us) {
  if (!quota_us || !period_us || *quota_us <= 0 || *period_us <= 0) return std::nullopt;  // -1: no limit
  const auto whole = static_cast<unsigned>(std::min(*quota_us / *period_us, 1e6));
  return std::max(1u, whole + (whole * *period_us < *quota_us ? 1u : 0u));
}

/// Version 2: "200000 100000" is two cores, "max 100000" no limit.
std::optional<unsigned> quota_v2(const std::string& folder) {
  const auto text = read_text_file(folder + "/cpu.max", kSmallFile);
  if (!text) return std::nullopt;
  const auto parts = split(*text, ' ');
  if (parts.size() < 2) return std::nullopt;
  return cores(number(parts[0]), number(parts[1]));
}

std::optional<unsigned> quota_v1(const std::string& folder) {
  const auto quota = read_text_file(folder + "/cpu.cfs_quota_us", kSmallFile);
  const auto period = read_text_file(folder + "/cpu.cfs_period_us", kSmallFile);
  if (!quota || !period) return std::nullopt;
  return cores(number(*quota), number(*period));
}

void keep_smaller(std::optional<unsigned>& least, std::optional<unsigned> other) {
  if (other && (!least || *other < *least)) least = other;
}

}  // namespace

std::optional<unsigned> cgroup_cores(std::string_view cgroup_text, const std::string& mount) {
  std::optional<unsigned> least;
  for (const std::string_view line : split(cgroup_text, '\n')) {  // "<id>:<controllers>:<path>"
    const size_t first = line.find(':');
    if (first == std::string_view::npos) continue;
    const size_t second = line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const bool v2 = controllers.empty();
    const auto names = split(controllers, ',');
    if (!v2 && std::find(names.begin(), names.end(), "cpu") == names.end()) continue;
    // A container sees its own group at the mount's root though the path names the host's: go up to there.
    std::string path(line.substr(second + 1));
    for (;;) {
      if (v2) {
        keep_smaller(least, quota_v2(mount + path));
      } else {
        for (const char* hierarchy : {"/cpu", "/cpu,cpuacct"})
          keep_smaller(least, quota_v1(mount + hierarchy + path));
      }
      if (path.empty()) break;
      path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
    }
  }
  return least;
}

unsigned usable_cores() {
  unsigned count = std::max(1u, std::thread::hardware_concurrency());
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof allowed, &allowed) == 0 && CPU_COUNT(&allowed) > 0)
    count = static_cast<unsigned>(CPU_COUNT(&allowed));
  if (const auto text = read_text_file("/proc/self/cgroup", kSmallFile))
    if (const auto quota = cgroup_cores(*text, "/sys/fs/cgroup")) count = std::min(count, *quota);
  return count;
}

}  // namespace doppler
