#pragma once
// Ctrl-C, SIGTERM and SIGHUP: the first one asks the work to stop, which keeps what was generated and removes
// files begun; the second one ends the process.

namespace doppler::cli {

/// Catches each of the three once, and ignores SIGPIPE and SIGXFSZ so that a closed pipe and a file grown too
/// large are seen as failed writes.
void install_signal_handlers();

bool interrupted();

/// 128 + the signal's number as shells have it: 130 for Ctrl-C.
int interrupt_exit_code();

}  // namespace doppler::cli
