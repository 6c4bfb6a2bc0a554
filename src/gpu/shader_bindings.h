#pragma once
// Reads a WGSL source's @group(0) bindings, so that layouts are explicit without being written twice.
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace doppler::gpu {

enum class BindingKind : uint8_t { kReadStorage, kReadWriteStorage, kUniform };

/// The kinds in binding order. Errors (kGpu): a group other than 0, a gap or a repetition in the numbers, or
/// something that is not a buffer.
Result<std::vector<BindingKind>> shader_bindings(std::string_view source);

}  // namespace doppler::gpu
