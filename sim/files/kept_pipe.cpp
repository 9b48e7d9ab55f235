#include "sim/files/kept_pipe.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <vector>

#include "sim/files/file_descriptor.h"
#include "sim/files/input_file.h"
#include "sim/files/unnamed_file.h"

namespace memwall {
namespace {

namespace fs = std::filesystem;

struct KeptPipe {
  fs::path path;  // numbers of removed files are given again
  ::dev_t device;
  ::ino_t inode;
  FileDescriptor content;
};

std::string path_of(const FileDescriptor& file) { return "/proc/self/fd/" + std::to_string(file.number()); }

// Standard input may be a pipe that its name does not open: another user's, or a socket.
FileDescriptor open_pipe(const fs::path& path) {
  if (path == kStandardInput) return FileDescriptor(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0));
  return FileDescriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
}

// A FIFO of the file system may wait for ever for somebody to write; a pipe that a shell made has its writer.
bool has_a_name(const fs::path& path) {
  struct ::stat state {};
  return ::lstat(path.c_str(), &state) == 0 && S_ISFIFO(state.st_mode);
}

// Until there is something to read, or all writers are gone. False if nothing happens for `milliseconds`; -1: for ever.
bool wait_for_bytes(int pipe, int milliseconds) {
  ::pollfd wanted{pipe, POLLIN, 0};
  for (;;) {
    const int ready = ::poll(&wanted, 1, milliseconds);
    if (ready >= 0 || errno != EINTR) return ready != 0;
  }
}

bool write_all(int file, const char* bytes, std::size_t size) {
  while (size > 0) {
    const ::ssize_t written = ::write(file, bytes, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes += written;
    size -= static_cast<std::size_t>(written);
  }
  return true;
}

// "" or what went wrong.
std::string copy_pipe(int pipe, bool named, std::uint64_t largest, int to) {
  constexpr int kForEver = -1;
  constexpr auto kMilliseconds = static_cast<int>(std::chrono::milliseconds(kLongestSilence).count());
  std::vector<char> piece(std::size_t{1} << 18);
  std::uint64_t total = 0;
  for (;;) {
    if (!wait_for_bytes(pipe, named && total == 0 ? kMilliseconds : kForEver))
      return "this is a pipe to which nobody has written for " + std::to_string(kLongestSilence.count()) + " s";
    const ::ssize_t got = ::read(pipe, piece.data(), piece.size());
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got < 0) return std::string("the pipe cannot be read (") + std::strerror(errno) + ")";
    if (got == 0) return "";
    total += static_cast<std::uint64_t>(got);
    if (total > largest)
      return "more than " + std::to_string(largest) + " bytes come through this pipe" +
             (largest == kLargestPipe ? "; write them to a file first" : "");
    if (!write_all(to, piece.data(), static_cast<std::size_t>(got)))
      return std::string("what comes through this pipe cannot be kept in the temporary folder (") +
             std::strerror(errno) + ")";
  }
}

}  // namespace

fs::path kept_pipe(const fs::path& path, std::uint64_t largest, std::string& why_not) {
  // Bytes of a pipe can be taken once, whoever asks: this is the process's state, not ours.
  static std::mutex mutex;
  static std::vector<KeptPipe> pipes;
  const std::lock_guard lock(mutex);
  struct ::stat state {};
  const FileDescriptor pipe = open_pipe(path);
  if (!pipe || ::fstat(pipe.number(), &state) != 0) {
    why_not = std::string("the pipe cannot be opened (") + std::strerror(errno) + ")";
    return {};
  }
  for (const KeptPipe& kept : pipes)
    if (kept.path == path && kept.device == state.st_dev && kept.inode == state.st_ino) return path_of(kept.content);
  FileDescriptor content = unnamed_temporary_file();
  if (!content) {
    why_not = std::string("what comes through this pipe cannot be kept in the temporary folder (") +
              std::strerror(errno) + ")";
    return {};
  }
  why_not = copy_pipe(pipe.number(), has_a_name(path), largest, content.number());
  if (!why_not.empty()) return {};
  pipes.push_back({path, state.st_dev, state.st_ino, std::move(content)});
  return path_of(pipes.back().content);
}

}  // namespace memwall
