// Names in a folder that must not outlive the program.
#pragma once

#include <filesystem>

namespace memwall {

// What every program of ours does first, once, before it has threads:
// - SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGPIPE remove the files of living TemporaryNames, then end the program as
//   they always do, so that a shell sees the signal. A signal that the caller had ignored (nohup) stays ignored.
// - SIGXFSZ is ignored: a file beyond the limit of its size is then an error that is told, as a full disk is.
// - Standard input, output and error that the caller had closed are opened so that reading and writing them fails:
//   otherwise a file that is written takes their number, and what is printed goes into it.
void prepare_program();

// The file of this name is removed at the end of this object, or by a signal (prepare_program). The name may be that
// of no file yet. More than 64 at a time are not removed by signals.
class TemporaryName {
 public:
  // `path` is made absolute. Throws std::bad_alloc.
  explicit TemporaryName(const std::filesystem::path& path);
  ~TemporaryName();
  TemporaryName(const TemporaryName&) = delete;
  TemporaryName& operator=(const TemporaryName&) = delete;

  const std::filesystem::path& path() const { return path_; }
  // The file is no longer ours to remove: it was renamed or removed.
  void release();

 private:
  std::filesystem::path path_;
  char* listed_ = nullptr;  // a copy that the signal handler may read; in the list of names while it is ours
  bool released_ = false;
};

}  // namespace memwall
