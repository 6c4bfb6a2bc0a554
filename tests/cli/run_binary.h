#pragma once
// Runs the built `doppler` as a user's shell would, and measures it.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace doppler::test {

struct Ran {
  int exit_code = -1;  // -1: ended by a signal
  int signal = 0;
  std::string out, err;
  double cpu_seconds = 0;
  long max_rss_bytes = 0;

  /// The only JSON object on stdout.
  nlohmann::json json() const {
    const auto value = nlohmann::json::parse(out, nullptr, false);
    REQUIRE_MESSAGE(value.is_object(),
                    "one JSON object wanted on stdout, got: " << out << "\nstderr: " << err);
    return value;
  }

  std::vector<nlohmann::json> json_lines() const {
    std::vector<nlohmann::json> lines;
    for (size_t at = 0; at < out.size();) {
      const size_t end = std::min(out.find('\n', at), out.size());
      lines.push_back(nlohmann::json::parse(out.substr(at, end - at), nullptr, false));
      REQUIRE(lines.back().is_object());
      at = end + 1;
    }
    return lines;
  }

  /// One line that says where: "doppler: [where] ...".
  bool one_error_line() const {
    return err.starts_with("doppler: [") && !err.empty() && err.find('\n') == err.size() - 1;
  }
};

struct RunSettings {
  std::string input;
  std::string stdout_path;        // "": captured
  size_t close_stdout_after = 0;  // bytes after which the reader goes away; 0: never
  size_t interrupt_after = 0;     // bytes of stdout after which SIGINT is sent; 0: never
};

inline Ran run_doppler(const std::vector<std::string>& arguments, const RunSettings& settings = {}) {
  std::array<int, 2> in{}, out{}, err{};
  REQUIRE(pipe2(in.data(), O_CLOEXEC) == 0);
  REQUIRE(pipe2(out.data(), O_CLOEXEC) == 0);
  REQUIRE(pipe2(err.data(), O_CLOEXEC) == 0);
  std::signal(SIGPIPE, SIG_IGN);
  std::vector<char*> argv = {const_cast<char*>(DOPPLER_BINARY)};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::signal(SIGPIPE, SIG_DFL);
    dup2(in[0], STDIN_FILENO);
    if (settings.stdout_path.empty())
      dup2(out[1], STDOUT_FILENO);
    else
      dup2(open(settings.stdout_path.c_str(), O_WRONLY), STDOUT_FILENO);
    dup2(err[1], STDERR_FILENO);
    execv(DOPPLER_BINARY, argv.data());
    _exit(127);
  }
  close(in[0]);
  close(out[1]);
  close(err[1]);

  Ran ran;
  size_t written = 0;
  bool interrupted = false;
  int input = in[1];
  std::array<pollfd, 3> watched = {pollfd{out[0], POLLIN, 0}, pollfd{err[0], POLLIN, 0},
                                   pollfd{input, POLLOUT, 0}};
  if (settings.input.empty()) {
    close(input);
    watched[2].fd = -1;
  }
  while (watched[0].fd >= 0 || watched[1].fd >= 0) {
    if (poll(watched.data(), watched.size(), 120000) <= 0) {
      kill(child, SIGKILL);
      FAIL_CHECK("doppler said nothing for two minutes");
      break;
    }
    for (size_t i = 0; i < 2; ++i) {
      if (watched[i].fd < 0 || watched[i].revents == 0) continue;
      std::array<char, 65536> block;
      const ssize_t count = read(watched[i].fd, block.data(), block.size());
      if (count > 0) (i == 0 ? ran.out : ran.err).append(block.data(), static_cast<size_t>(count));
      const bool enough =
          i == 0 && settings.close_stdout_after > 0 && ran.out.size() >= settings.close_stdout_after;
      if (count <= 0 || enough) {
        close(watched[i].fd);
        watched[i].fd = -1;
      }
    }
    if (watched[2].fd >= 0 && watched[2].revents != 0) {
      const ssize_t count = write(input, settings.input.data() + written, settings.input.size() - written);
      if (count > 0) written += static_cast<size_t>(count);
      if (count < 0 || written == settings.input.size()) {
        close(input);
        watched[2].fd = -1;
      }
    }
    if (!interrupted && settings.interrupt_after > 0 && ran.out.size() >= settings.interrupt_after) {
      kill(child, SIGINT);
      interrupted = true;
    }
  }
  for (const pollfd& file : watched)
    if (file.fd >= 0) close(file.fd);
  int status = 0;
  rusage usage = {};
  wait4(child, &status, 0, &usage);
  if (WIFEXITED(status)) ran.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) ran.signal = WTERMSIG(status);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  ran.cpu_seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  ran.max_rss_bytes = usage.ru_maxrss * 1024;
  return ran;
}

}  // namespace doppler::test
