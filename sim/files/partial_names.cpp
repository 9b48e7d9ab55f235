#include "sim/files/partial_names.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <string>
#include <system_error>

#include "sim/files/file_descriptor.h"

namespace memwall {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kRoomForNumbers = 24;

std::string prefix_of(const fs::path& target) {
  return target.filename().string().substr(0, NAME_MAX - kRoomForNumbers) + ".partial-";
}

// The process that a name behind its prefix speaks of; 0 if it is no such name.
::pid_t process_of(std::string_view numbers) {
  ::pid_t process = 0;
  const char* const end = numbers.data() + numbers.size();
  auto [at, error] = std::from_chars(numbers.data(), end, process);
  if (error != std::errc() || process <= 0) return 0;
  int number = 0;
  if (at != end && *at == '-') at = std::from_chars(at + 1, end, number).ptr;
  return at == end ? process : 0;
}

// Its process is not here, and no other computer that shares the folder holds it.
bool is_abandoned(const fs::path& path, ::pid_t process) {
  if (::kill(process, 0) == 0 || errno != ESRCH) return false;
  const FileDescriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  return file && ::flock(file.number(), LOCK_EX | LOCK_NB) == 0;
}

}  // namespace

fs::path partial_name(const fs::path& target, int number) {
  std::string name = prefix_of(target) + std::to_string(::getpid());
  if (number > 0) name += "-" + std::to_string(number);
  return target.parent_path() / name;
}

void remove_stale_partial_files(const fs::path& target) noexcept {
  try {
    const std::string prefix = prefix_of(target);
    std::error_code error;
    const fs::path folder = target.parent_path().empty() ? fs::path(".") : target.parent_path();
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
      const std::string name = at->path().filename().string();
      if (!name.starts_with(prefix)) continue;
      const ::pid_t process = process_of(std::string_view(name).substr(prefix.size()));
      if (process > 0 && is_abandoned(at->path(), process)) ::unlink(at->path().c_str());
    }
  } catch (...) {  // no memory for a name: the file stays until the next time
  }
}

}  // namespace memwall
