// A new folder for files that nobody needs afterwards. It is removed, with all that is in it, at the end, and when
// the program is interrupted (SIGINT, SIGTERM, SIGHUP), which then ends with code 128 + the signal's number.
//
// REQUIRES: at most one lives at a time, made before other threads are: they must not take the signals.
#pragma once

#include <signal.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>

namespace memwall {

class ScratchArea {
 public:
  // In `parent`, or in the system's temporary folder where that is empty. Its name begins with `prefix`. Throws
  // UsageError if there is no such folder or it cannot be written.
  ScratchArea(const std::filesystem::path& parent, const std::string& prefix);
  ~ScratchArea();
  ScratchArea(const ScratchArea&) = delete;
  ScratchArea& operator=(const ScratchArea&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  void watch() const;

  std::filesystem::path path_;
  sigset_t before_{};  // the signals that were blocked
  std::atomic<bool> ended_ = false;
  std::thread watcher_;
};

}  // namespace memwall
