#include "sim/files/temporary_name.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>

namespace memwall {
namespace {

// What a signal handler reads has to be global. Who takes a name out of the list, handler or owner, has it alone: a
// name that the handler took is never freed.
std::array<std::atomic<char*>, 64> listed_names;
static_assert(std::atomic<char*>::is_always_lock_free, "a signal handler must not wait for a lock");

void remove_and_end(int signal) {
  for (std::atomic<char*>& name : listed_names)
    if (const char* path = name.exchange(nullptr)) ::unlink(path);
  ::raise(signal);  // whose action is the default again: SA_RESETHAND
}

void handle(int signal) {
  struct sigaction before {};
  if (::sigaction(signal, nullptr, &before) != 0 || before.sa_handler != SIG_DFL) return;
  struct sigaction action {};
  action.sa_handler = remove_and_end;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER);
  ::sigemptyset(&action.sa_mask);
  ::sigaction(signal, &action, nullptr);
}

void keep_number_taken(int number) {
  if (::fcntl(number, F_GETFD) >= 0 || errno != EBADF) return;
  // The lowest free number is given: all below are open.
  const int opened = ::open("/dev/null", number == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  (void)opened;
}

}  // namespace

void prepare_program() {
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) keep_number_taken(number);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE}) handle(signal);
  ::signal(SIGXFSZ, SIG_IGN);
}

TemporaryName::TemporaryName(const std::filesystem::path& path) : path_(std::filesystem::absolute(path)) {
  char* const copy = ::strdup(path_.c_str());
  if (copy == nullptr) throw std::bad_alloc();
  for (std::atomic<char*>& name : listed_names) {
    char* none = nullptr;
    if (!name.compare_exchange_strong(none, copy)) continue;
    listed_ = copy;
    return;
  }
  ::free(copy);
}

TemporaryName::~TemporaryName() {
  if (!released_) ::unlink(path_.c_str());
  release();
}

void TemporaryName::release() {
  released_ = true;
  if (listed_ == nullptr) return;
  for (std::atomic<char*>& name : listed_names) {
    char* mine = listed_;
    if (!name.compare_exchange_strong(mine, nullptr)) continue;
    ::free(listed_);
    break;
  }
  listed_ = nullptr;
}

}  // namespace memwall
