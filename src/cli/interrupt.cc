#include "cli/interrupt.h"

#include <csignal>

#include "cli/output.h"

namespace doppler::cli {
namespace {

volatile std::sig_atomic_t g_signal = 0;

void on_signal(int number) { g_signal = number; }

}  // namespace

void install_signal_handlers() {
  struct sigaction action = {};
  action.sa_handler = on_signal;
  // RESETHAND: the second signal has its default effect. No SA_RESTART: a blocked read of stdin returns.
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  // `nohup` has SIGHUP ignored, and it stays so.
  struct sigaction hangup = {};
  if (sigaction(SIGHUP, nullptr, &hangup) == 0 && hangup.sa_handler == SIG_DFL)
    sigaction(SIGHUP, &action, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  // Past `ulimit -f` a write then fails with EFBIG, and what was begun is removed.
  std::signal(SIGXFSZ, SIG_IGN);
}

bool interrupted() { return g_signal != 0; }

int interrupt_exit_code() { return g_signal == 0 ? kExitInterrupted : 128 + static_cast<int>(g_signal); }

}  // namespace doppler::cli
