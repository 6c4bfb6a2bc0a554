#pragma once
// Expected failures are values: every function that can fail on input returns Result<T>.
#include <fmt/core.h>

#include <utility>

#include "doppler/types.h"  // ErrorCode, Error, Result

namespace doppler {

/// Makes the error side of a Result: `return fail(ErrorCode::kBadFile, "[gguf] {} bytes wanted", n);`
template <class... Args>
tl::unexpected<Error> fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  return tl::unexpected<Error>(Error{code, fmt::format(format, std::forward<Args>(args)...)});
}

/// Passes an error of one Result on as the error of another.
template <class T>
tl::unexpected<Error> forward_error(Result<T>& result) {
  return tl::unexpected<Error>(std::move(result.error()));
}

#define DOPPLER_CONCAT_(a, b) a##b
#define DOPPLER_CONCAT(a, b) DOPPLER_CONCAT_(a, b)

/// DOPPLER_TRY(auto x, f()): declares x from f()'s value, or returns f()'s error.
#define DOPPLER_TRY(declaration, expression)                            \
  auto DOPPLER_CONCAT(result_, __LINE__) = (expression);                \
  if (!DOPPLER_CONCAT(result_, __LINE__))                               \
    return ::doppler::forward_error(DOPPLER_CONCAT(result_, __LINE__)); \
  declaration = std::move(*DOPPLER_CONCAT(result_, __LINE__))

/// DOPPLER_CHECK_OK(f()): returns f()'s error if there is one (for Result<void>).
#define DOPPLER_CHECK_OK(expression)                         \
  do {                                                       \
    if (auto doppler_result = (expression); !doppler_result) \
      return ::doppler::forward_error(doppler_result);       \
  } while (0)

}  // namespace doppler
