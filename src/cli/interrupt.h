#pragma once
// Ctrl-C: the first one asks the work to stop and keeps what there is; the second one ends the process.

namespace doppler::cli {

/// Catches SIGINT once, and ignores SIGPIPE so that a closed pipe is seen as a failed write.
void install_signal_handlers();

bool interrupted();

}  // namespace doppler::cli
