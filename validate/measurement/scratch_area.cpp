#include "validate/measurement/scratch_area.h"

#include <unistd.h>

#include <cstdlib>
#include <ctime>
#include <system_error>

#include "sim/error.h"

namespace memwall {
namespace {

namespace fs = std::filesystem;

sigset_t interrupts() {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGINT);
  ::sigaddset(&set, SIGTERM);
  ::sigaddset(&set, SIGHUP);
  return set;
}

}  // namespace

ScratchArea::ScratchArea(const fs::path& parent, const std::string& prefix) {
  std::error_code error;
  const fs::path folder = parent.empty() ? fs::temp_directory_path(error) : parent;
  if (error || !fs::is_directory(folder, error))
    throw UsageError("--scratch \"" + folder.string() + "\": there is no such folder; expected one.");
  std::string name = (folder / (prefix + "-XXXXXX")).string();
  if (::mkdtemp(name.data()) == nullptr)
    throw UsageError("--scratch \"" + folder.string() + "\": no folder can be made in it; expected a writable one.");
  path_ = name;
  const sigset_t set = interrupts();
  ::pthread_sigmask(SIG_BLOCK, &set, &before_);
  watcher_ = std::thread([this] { watch(); });
}

ScratchArea::~ScratchArea() {
  ended_ = true;
  watcher_.join();
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

// A thread of its own may do what a signal handler may not.
void ScratchArea::watch() const {
  const sigset_t set = interrupts();
  const timespec a_moment{0, 100'000'000};
  while (!ended_) {
    const int signal = ::sigtimedwait(&set, nullptr, &a_moment);
    if (signal < 0) continue;  // nothing yet
    std::error_code ignored;
    fs::remove_all(path_, ignored);
    std::_Exit(128 + signal);
  }
}

}  // namespace memwall
