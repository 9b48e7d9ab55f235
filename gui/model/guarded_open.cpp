#include "gui/model/guarded_open.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/error.h"

extern char** environ;  // what the child is started with, as POSIX names it

namespace memwall::gui {
namespace {

constexpr std::size_t kMostWords = 4096;  // bytes of what the child says that are kept
constexpr int kLookEvery = 10;            // milliseconds between two calls of `progress`

// Both ends of a pipe that other children do not inherit.
struct Pipe {
  int read = -1, write = -1;
  Pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw UsageError(fmt::format("No pipe can be made: {}.", strerror(errno)));
    read = ends[0];
    write = ends[1];
  }
  ~Pipe() {
    if (read >= 0) ::close(read);
    close_write();
  }
  void close_write() {
    if (write >= 0) ::close(std::exchange(write, -1));
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
};

class Child {
 public:
  Child(const std::filesystem::path& program, const std::filesystem::path& file, const ProbeLimits& limits) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, words_.write, STDERR_FILENO);
    std::string arguments[] = {program.string(), file.string(), std::to_string(limits.bytes),
                               fmt::format("{}", limits.seconds)};
    char* list[] = {arguments[0].data(), arguments[1].data(), arguments[2].data(), arguments[3].data(), nullptr};
    const int error = ::posix_spawn(&id_, arguments[0].c_str(), &actions, nullptr, list, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0)
      throw UsageError(fmt::format("'{}', which looks at files before they are opened, cannot be started: {}.",
                                   program.string(), strerror(error)));
    words_.close_write();
  }
  // A child that was not waited for is ended.
  ~Child() {
    if (has_ended_) return;
    ::kill(id_, SIGKILL);
    wait();
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Reads what the child says, for a moment. False once it has closed its end.
  bool listen() {
    pollfd poll{words_.read, POLLIN, 0};
    if (::poll(&poll, 1, kLookEvery) <= 0) return true;
    char bytes[1024];
    const ssize_t got = ::read(words_.read, bytes, sizeof(bytes));
    if (got < 0) return errno == EINTR || errno == EAGAIN;
    said_.append(bytes, static_cast<std::size_t>(std::max<ssize_t>(0, got)));
    said_.resize(std::min(said_.size(), kMostWords));
    return got > 0;
  }
  // Its status, once it has ended.
  std::optional<int> ended() {
    int status = 0;
    pid_t id = 0;
    while ((id = ::waitpid(id_, &status, WNOHANG)) < 0 && errno == EINTR) {
    }
    if (id == 0) return std::nullopt;
    has_ended_ = true;
    return status;
  }
  const std::string& said() const { return said_; }

 private:
  void wait() {
    int status = 0;
    while (::waitpid(id_, &status, 0) < 0 && errno == EINTR) {
    }
  }

  Pipe words_;
  pid_t id_ = -1;
  bool has_ended_ = false;
  std::string said_;
};

// On one line, without what would make a terminal or a dialog do something.
std::string printable(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  return text;
}

std::string out_of_time(const std::filesystem::path& file, const ProbeLimits& limits) {
  return fmt::format(
      "Run file '{}': opening it took more than {:.3g} s of processor time and was ended; it is damaged, "
      "or made to do harm.",
      file.string(), limits.seconds);
}

std::optional<std::string> reason(const std::filesystem::path& file, const ProbeLimits& limits, int status,
                                  const std::string& said) {
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return std::nullopt;
  if (WIFEXITED(status) && WEXITSTATUS(status) == kProbeRefused && !said.empty()) return printable(said);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kProbeOutOfMemory)
    return fmt::format("Run file '{}': opening it takes more than {} MiB of memory; it is damaged, or made to do harm.",
                       file.string(), limits.bytes >> 20);
  if (WIFSIGNALED(status) && (WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGKILL))
    return out_of_time(file, limits);
  if (WIFSIGNALED(status))
    return fmt::format(
        "Run file '{}': the program that opened it first crashed ({}); the file is damaged, or made to "
        "do harm.",
        file.string(), strsignal(WTERMSIG(status)));
  // Where a process is started by fork and exec alone, only the child learns that there is no such program.
  constexpr int kNoSuchProgram = 127;
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNoSuchProgram)
    throw UsageError("memwall-probe, which opens files first, cannot be started; it belongs beside memwall-viewer.");
  return fmt::format("Run file '{}': the program that opened it first ended with code {} and said '{}'.", file.string(),
                     WEXITSTATUS(status), printable(said));
}

}  // namespace

std::optional<std::string> refused_by_probe(const std::filesystem::path& program, const std::filesystem::path& file,
                                            const ProbeLimits& limits, const LoadProgress& progress) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  Child child(program, file, limits);
  bool speaks = true;
  for (;;) {
    if (speaks)
      speaks = child.listen();
    else
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    // Once it is silent for good it is about to end.
    if (!speaks)
      if (const std::optional<int> status = child.ended()) return reason(file, limits, *status, child.said());
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    if (seconds > 2 * limits.seconds) return out_of_time(file, limits);
    if (progress && !progress(std::min(1.0, seconds / (2 * limits.seconds)))) throw LoadCancelled{};
  }
}

}  // namespace memwall::gui
