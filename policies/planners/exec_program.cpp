#include "policies/planners/exec_program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include "sim/error.h"
#include "sim/human_text.h"
#include "sim/presentable.h"

extern char** environ;  // what the program is started with, as POSIX names it

namespace memwall {
namespace {

constexpr int kLookEvery = 10;             // milliseconds between two looks at whether it has ended
constexpr std::size_t kMostWords = 2000;   // bytes of its standard error that are kept: the last
constexpr std::size_t kExecPiece = 65536;  // bytes read at once

// A file descriptor that is closed.
class OwnedDescriptor {
 public:
  explicit OwnedDescriptor(int descriptor = -1) : descriptor_(descriptor) {}
  ~OwnedDescriptor() { close(); }
  OwnedDescriptor(OwnedDescriptor&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  OwnedDescriptor& operator=(OwnedDescriptor&& other) noexcept {
    close();
    descriptor_ = std::exchange(other.descriptor_, -1);
    return *this;
  }
  int get() const { return descriptor_; }
  bool is_open() const { return descriptor_ >= 0; }
  void close() {
    if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
  }

 private:
  int descriptor_;
};

struct ExecPipe {
  OwnedDescriptor read, write;
  ExecPipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw UsageError(fmt::format("No pipe can be made: {}.", strerror(errno)));
    read = OwnedDescriptor(ends[0]);
    write = OwnedDescriptor(ends[1]);
  }
};

OwnedDescriptor file_without_name(std::string_view content) {
  OwnedDescriptor file(::memfd_create("memwall step profile", MFD_CLOEXEC));
  while (file.is_open() && !content.empty()) {
    const ssize_t written = ::write(file.get(), content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) file.close();
    content.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(0, written)));
  }
  if (!file.is_open() || ::lseek(file.get(), 0, SEEK_SET) != 0)
    throw UsageError(fmt::format("The program's input cannot be kept in memory: {}.", strerror(errno)));
  return file;
}

// As a shell looks for it.
std::optional<std::string> found_program(const std::string& name) {
  const auto is_file = [](const std::string& path) {
    std::error_code ignored;
    return std::filesystem::is_regular_file(path, ignored);
  };
  if (name.find('/') != std::string::npos) return is_file(name) ? std::optional(name) : std::nullopt;
  const char* const path = std::getenv("PATH");
  std::string_view folders = path != nullptr ? path : "/usr/bin:/bin";
  while (true) {
    const std::size_t end = std::min(folders.find(':'), folders.size());
    const std::string file = std::string(end == 0 ? "." : folders.substr(0, end)) + "/" + name;
    if (is_file(file) && ::access(file.c_str(), X_OK) == 0) return file;
    if (end == folders.size()) return std::nullopt;
    folders.remove_prefix(end + 1);
  }
}

// Between fork and exec: only what a signal handler may do.
[[noreturn]] void become(const char* file, char* const* arguments, int input, int output, int errors, int failure,
                         rlim_t memory) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit addresses{memory, memory}, no_core{0, 0};
  ::setrlimit(RLIMIT_AS, &addresses);
  ::setrlimit(RLIMIT_CORE, &no_core);
  ::signal(SIGPIPE, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (::dup2(input, 0) == 0 && ::dup2(output, 1) == 1 && ::dup2(errors, 2) == 2) ::execve(file, arguments, environ);
  const int error = errno;
  [[maybe_unused]] const ssize_t told = ::write(failure, &error, sizeof(error));
  ::_exit(127);
}

class RunningProgram {
 public:
  RunningProgram(const std::string& name, std::string_view input, const ExecLimits& limits)
      : name_(name),
        limits_(limits),
        deadline_(Clock::now() + std::chrono::duration_cast<Clock::duration>(limits.time)) {
    const std::optional<std::string> file = found_program(name);
    if (!file) fail("is neither a file nor a command found on PATH");
    OwnedDescriptor document = file_without_name(input);
    ExecPipe output, errors, failure;
    std::string own_name = name;
    char* arguments[] = {own_name.data(), nullptr};
    id_ = ::fork();
    if (id_ == 0)
      become(file->c_str(), arguments, document.get(), output.write.get(), errors.write.get(), failure.write.get(),
             static_cast<rlim_t>(limits.memory));
    if (id_ < 0) fail(fmt::format("cannot be started: {}", strerror(errno)));
    ::setpgid(id_, id_);  // as the child does: whoever is first
    output_ = std::move(output.read);
    errors_ = std::move(errors.read);
    failure.write.close();
    int error = 0;
    if (::read(failure.read.get(), &error, sizeof(error)) == sizeof(error))
      fail(fmt::format(
          "cannot be started: {}{}", strerror(error),
          error == EACCES || error == ENOEXEC ? " (expected an executable file; a script begins with #!)" : ""));
  }
  ~RunningProgram() {
    if (id_ > 0) end();
  }
  RunningProgram(const RunningProgram&) = delete;
  RunningProgram& operator=(const RunningProgram&) = delete;

  std::string output() {
    std::string printed;
    while (true) {
      const bool has_ended = look();
      const bool more = listen(printed);
      if (printed.size() > limits_.output)
        fail(fmt::format("printed more than {}; expected a memory plan",
                         human_bytes(static_cast<Bytes>(limits_.output))));
      // Not until its output is closed: somebody whom it has started may hold that open.
      if (has_ended && !more) break;
      if (Clock::now() > deadline_) fail(fmt::format("took longer than {:.4g} s and was ended", limits_.time.count()));
    }
    if (ended_.si_code != CLD_EXITED)
      fail(fmt::format("was ended by a signal ({}); it may take {} of memory", strsignal(ended_.si_status),
                       human_bytes(limits_.memory)));
    if (ended_.si_status != 0) fail(fmt::format("ended with exit code {}; expected 0", ended_.si_status));
    return printed;
  }

 private:
  using Clock = std::chrono::steady_clock;

  [[noreturn]] void fail(const std::string& what) {
    if (id_ > 0) end();
    std::string text = fmt::format("Program '{}' {}.", presentable(name_), what);
    while (!words_.empty() && (words_.back() == '\n' || words_.back() == ' ')) words_.pop_back();
    if (!words_.empty()) text += " It said: " + presentable(words_);
    throw UsageError(text);
  }

  // Takes what is there. False once there is nothing, and nothing can come but from others.
  bool listen(std::string& printed) {
    pollfd streams[] = {{output_.get(), POLLIN, 0}, {errors_.get(), POLLIN, 0}};  // closed ones are left aside
    if (::poll(streams, 2, output_.is_open() || errors_.is_open() ? kLookEvery : 0) <= 0) {
      if (!output_.is_open() && !errors_.is_open() && ended_.si_pid == 0) ::poll(nullptr, 0, kLookEvery);
      return false;
    }
    take(streams[0].revents, output_, printed);
    take(streams[1].revents, errors_, words_);
    if (words_.size() > kMostWords) words_.erase(0, words_.size() - kMostWords);
    return true;
  }

  static void take(short events, OwnedDescriptor& from, std::string& to) {
    if (events == 0) return;
    const std::size_t had = to.size();
    to.resize(had + kExecPiece);
    const ssize_t got = ::read(from.get(), to.data() + had, kExecPiece);
    to.resize(had + static_cast<std::size_t>(std::max<ssize_t>(0, got)));
    if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN)) from.close();
  }

  // Has it ended? Its number stays taken until end().
  bool look() {
    if (ended_.si_pid == 0 && ::waitid(P_PID, static_cast<id_t>(id_), &ended_, WEXITED | WNOHANG | WNOWAIT) != 0)
      ended_.si_pid = 0;
    return ended_.si_pid != 0;
  }

  // It and what it has started; it is waited for.
  void end() {
    ::kill(-id_, SIGKILL);
    while (::waitpid(id_, nullptr, 0) < 0 && errno == EINTR) {
    }
    id_ = -1;
  }

  const std::string name_;
  const ExecLimits limits_;
  const Clock::time_point deadline_;
  pid_t id_ = -1;
  OwnedDescriptor output_, errors_;
  siginfo_t ended_{};
  std::string words_;  // the end of what it says on standard error
};

}  // namespace

std::string output_of_program(const std::string& program, std::string_view input, const ExecLimits& limits) {
  return RunningProgram(program, input, limits).output();
}

}  // namespace memwall
