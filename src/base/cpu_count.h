#pragma once
// How many cores a cgroup's CPU quota allows, read from the kernel's files.
#include <optional>
#include <string>
#include <string_view>

namespace doppler {

/// Cores the tightest quota allows, rounded up; nullopt without a quota. `cgroup_text` is the content of
/// /proc/self/cgroup, `mount` the folder the hierarchies are mounted under (/sys/fs/cgroup). Reads version 2
/// (cpu.max) and version 1 (cpu.cfs_quota_us), the process's own group and every parent.
std::optional<unsigned> cgroup_cores(std::string_view cgroup_text, const std::string& mount);

}  // namespace doppler
