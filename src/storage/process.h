#pragma once
// Runs another program to its end, without a shell.
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"

namespace doppler::storage {

struct ProcessOptions {
  std::vector<std::string> arguments;          // [0] is looked up in PATH
  std::vector<std::string> environment;        // "NAME=value", set over this process's own
  std::string folder;                          // working folder
  std::string output_path;                     // takes stdout and stderr
  std::function<bool()> keep_going = nullptr;  // asked about ten times a second; false ends the program
};

struct ProcessEnd {
  int status = 0;          // exit status, or 128 + the signal that ended it
  bool cancelled = false;  // `keep_going` returned false
};

/// Errors: kNotFound if there is no such program in PATH, kIo if it cannot be started.
Result<ProcessEnd> run_process(const ProcessOptions& options);

}  // namespace doppler::storage
