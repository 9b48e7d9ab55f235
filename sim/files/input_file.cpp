#include "sim/files/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "sim/files/file_descriptor.h"
#include "sim/files/kept_pipe.h"
#include "sim/error.h"

namespace memwall {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const fs::path& path, const std::string& found, std::string_view expected) {
  throw InputError(path.string() + ": " + found + "; expected " + std::string(expected) + ".");
}

bool is_terminal(const fs::path& path) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  return file && ::isatty(file.number()) == 1;
}

std::string kind_of(const fs::path& path, ::mode_t mode) {
  if (S_ISCHR(mode) && is_terminal(path)) return "this is a terminal, and nothing is piped into it";
  if (S_ISDIR(mode)) return "this is a folder";
  if (S_ISSOCK(mode)) return "this is a socket";
  return "this is a device";
}

// /proc and /sys; their numbers are in linux/magic.h.
bool is_made_up([[maybe_unused]] const struct ::statfs& system) {
#ifdef __linux__
  return system.f_type == 0x9fa0 || system.f_type == 0x62656572;
#else
  return false;
#endif
}

::ssize_t read_some(int file, char* to, std::size_t size) {
  for (;;) {
    const ::ssize_t got = ::read(file, to, size);
    if (got >= 0 || errno != EINTR) return got;
  }
}

}  // namespace

fs::path readable_path(const fs::path& path, std::string_view expected, std::uint64_t largest) {
  struct ::stat state {};
  if (::stat(path.c_str(), &state) != 0)
    refuse(path,
           errno == ENOENT ? "there is no such file"
                           : std::string("the file cannot be opened (") + std::strerror(errno) + ")",
           expected);
  const bool is_pipe = S_ISFIFO(state.st_mode) || (S_ISSOCK(state.st_mode) && path == kStandardInput);
  if (!S_ISREG(state.st_mode) && !is_pipe) refuse(path, kind_of(path, state.st_mode), expected);
  if (is_pipe) {
    std::string why_not;
    const fs::path kept = kept_pipe(path, std::min(largest, kLargestPipe), why_not);
    if (kept.empty()) refuse(path, why_not, expected);
    return kept;
  }
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) refuse(path, std::string("the file cannot be opened (") + std::strerror(errno) + ")", expected);
  // What the system makes up as it is read calls itself an ordinary file; reading may never end (/proc/kmsg).
  struct ::statfs system {};
  if (::fstatfs(file.number(), &system) == 0 && is_made_up(system))
    refuse(path, "the system makes this file up as it is read", expected);
  char first = 0;
  if (state.st_size == 0 && read_some(file.number(), &first, 1) < 0)
    refuse(path, std::string("the file cannot be read (") + std::strerror(errno) + ")", expected);
  return path;
}

fs::path readable_path_or_none(const fs::path& path) {
  try {
    return readable_path(path);
  } catch (const InputError&) {
    return {};
  }
}

std::string content_of_file(const fs::path& path, std::size_t largest, std::string_view expected) {
  const fs::path to_open = readable_path(path, expected, largest);
  const FileDescriptor file(::open(to_open.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) refuse(path, std::string("the file cannot be opened (") + std::strerror(errno) + ")", expected);
  constexpr std::size_t kPiece = std::size_t{1} << 16;
  std::string content;
  for (;;) {
    const std::size_t before = content.size();
    content.resize(before + kPiece);
    const ::ssize_t got = read_some(file.number(), content.data() + before, kPiece);
    if (got < 0)
      refuse(path, "byte " + std::to_string(before) + " and what follows cannot be read (" + std::strerror(errno) + ")",
             expected);
    content.resize(before + static_cast<std::size_t>(got));
    if (got == 0) return content;
    if (content.size() > largest)
      refuse(path, "it holds more than " + std::to_string(largest) + " bytes",
             std::string(expected) + " of at most so many");
  }
}

}  // namespace memwall
