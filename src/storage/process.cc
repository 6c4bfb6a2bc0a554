#include "storage/process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string_view>
#include <thread>

extern char** environ;

namespace doppler::storage {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kPoll{50};
constexpr milliseconds kGrace{2000};  // between asking a program to end and killing it

/// This process's environment with `changes` over it.
std::vector<std::string> merged_environment(const std::vector<std::string>& changes) {
  std::vector<std::string> merged = changes;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view line = *variable;
    const std::string_view name = line.substr(0, line.find('='));
    const bool changed = std::any_of(changes.begin(), changes.end(), [&](const std::string& change) {
      return std::string_view(change).substr(0, change.find('=')) == name;
    });
    if (!changed) merged.emplace_back(line);
  }
  return merged;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (std::string& text : strings) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

/// posix_spawn with the file actions and signal state that `options` ask for. Returns errno's value.
int spawn(const ProcessOptions& options, pid_t& pid) {
  std::vector<std::string> arguments = options.arguments;
  std::vector<std::string> environment = merged_environment(options.environment);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, options.output_path.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  posix_spawn_file_actions_addchdir_np(&actions, options.folder.c_str());

  // The caller may block or handle signals; the program starts with none blocked and the usual answers.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, defaults;
  sigemptyset(&none);
  sigemptyset(&defaults);
  for (int signal : {SIGINT, SIGTERM, SIGPIPE, SIGHUP}) sigaddset(&defaults, signal);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);

  const int error = posix_spawnp(&pid, arguments[0].c_str(), &actions, &attributes,
                                 pointers(arguments).data(), pointers(environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

/// Waits for `pid` until `limit` has passed; true if it ended.
bool wait_for_end(pid_t pid, milliseconds limit, int& status) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (true) {
    const pid_t ended = waitpid(pid, &status, WNOHANG);
    if (ended == pid || (ended < 0 && errno == ECHILD)) return true;
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(kPoll);
  }
}

}  // namespace

Result<ProcessEnd> run_process(const ProcessOptions& options) {
  pid_t pid = 0;
  if (const int error = spawn(options, pid); error == ENOENT) {
    return fail(ErrorCode::kNotFound, "[process] {} wanted, none in PATH", options.arguments[0]);
  } else if (error != 0) {
    return fail(ErrorCode::kIo, "[process] {} could not be started: {}", options.arguments[0],
                std::strerror(error));
  }
  ProcessEnd end;
  int status = 0;
  while (!wait_for_end(pid, 2 * kPoll, status)) {
    if (end.cancelled || !options.keep_going || options.keep_going()) continue;
    end.cancelled = true;
    kill(pid, SIGTERM);
    if (wait_for_end(pid, kGrace, status)) break;
    kill(pid, SIGKILL);
  }
  end.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return end;
}

}  // namespace doppler::storage
