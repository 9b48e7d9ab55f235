#include "cli/viewer_program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "sim/error.h"
#include "traces/figure/figure_stream.h"

extern char** environ;

namespace memwall {
namespace {

namespace fs = std::filesystem;

constexpr const char* kName = "memwall-viewer";

bool can_be_started(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
}

// A child that ends early must not end this program: writing to it fails instead.
class BrokenPipesAreErrors {
 public:
  BrokenPipesAreErrors() : before_(std::signal(SIGPIPE, SIG_IGN)) {}
  ~BrokenPipesAreErrors() { std::signal(SIGPIPE, before_); }
  BrokenPipesAreErrors(const BrokenPipesAreErrors&) = delete;
  BrokenPipesAreErrors& operator=(const BrokenPipesAreErrors&) = delete;

 private:
  void (*before_)(int);
};

// As far as it is read.
void write_all(int file, const std::string& bytes) {
  const BrokenPipesAreErrors guard;
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t written = ::write(file, bytes.data() + done, bytes.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // the child says why it stopped reading
    done += static_cast<std::size_t>(written);
  }
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> all;
  for (std::string& word : words) all.push_back(word.data());
  all.push_back(nullptr);
  return all;
}

int exit_code_of(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) throw std::runtime_error(fmt::format("{} got lost ({}).", kName, std::strerror(errno)));
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  throw std::runtime_error(fmt::format("{} ended by signal {} ({}); the picture was not written.", kName,
                                       WTERMSIG(status), ::strsignal(WTERMSIG(status))));
}

}  // namespace

fs::path find_viewer(const std::string& purpose) {
  std::error_code error;
  const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const fs::path& place : {folder / kName, folder.parent_path() / "gui" / kName})
    if (!folder.empty() && can_be_started(place)) return place;
  const char* const path = std::getenv("PATH");
  for (std::string_view rest = path == nullptr ? "" : path; !rest.empty();) {
    const std::size_t colon = std::min(rest.find(':'), rest.size());
    const fs::path place = fs::path(rest.substr(0, colon)) / kName;
    if (colon > 0 && can_be_started(place)) return place;
    rest.remove_prefix(std::min(colon + 1, rest.size()));
  }
  throw UsageError(fmt::format(
      "{} needs {}, which is neither beside memwall nor on PATH; it is built where Qt 6 is found (Debian: qt6-base-dev "
      "libqt6svg6-dev). `memwall render -o FILE.svg` works without it.",
      purpose, kName));
}

int paint_with_viewer(const fs::path& viewer, const Figure& figure, const std::string& output, double scale) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    throw std::runtime_error(fmt::format("no pipe to {} ({}).", kName, std::strerror(errno)));
  std::vector<std::string> words{viewer.string(), "--export", output, "--scale", fmt::format("{}", scale)};
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ends[0], STDIN_FILENO);
  pid_t child = -1;
  const int problem = ::posix_spawn(&child, viewer.c_str(), &actions, nullptr, pointers(words).data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[0]);
  if (problem == 0) write_all(ends[1], figure_bytes(figure));
  ::close(ends[1]);
  if (problem != 0)
    throw UsageError(fmt::format("{}: cannot be started ({}).", viewer.string(), std::strerror(problem)));
  return exit_code_of(child);
}

void become_viewer(const fs::path& viewer, const std::vector<std::string>& arguments) {
  std::vector<std::string> words{viewer.string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  ::execv(viewer.c_str(), pointers(words).data());
  throw UsageError(fmt::format("{}: cannot be started ({}).", viewer.string(), std::strerror(errno)));
}

}  // namespace memwall
