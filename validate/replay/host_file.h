// The NVMe tier of the host back end: room in one file, read and written past the page cache, reads and writes
// each one at a time and beside each other.
#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <string>

#include "validate/measurement/direct_file.h"
#include "validate/replay/first_fit.h"
#include "validate/replay/host_copy_engine.h"

namespace memwall {

// A transfer does not end before its start + bytes / rate. Bytes per second; 0 = as fast as the file goes.
struct FilePace {
  double read = 0, write = 0;
};

class HostFile {
 public:
  // The file is made when room in it is first asked for. `folder` empty: asking is a UsageError.
  HostFile(std::filesystem::path folder, Bytes bytes, FilePace pace = {});
  ~HostFile();

  // Offset, a multiple of 4096. Throws std::bad_alloc if there is no room, UsageError if there is no file.
  std::uint64_t allocate(Bytes bytes);
  void free(std::uint64_t offset, Bytes bytes);

  // Writes pattern(tag) (replay/pattern.h) to `bytes` bytes from `offset` on. REQUIRES and throws as write().
  void fill(std::uint64_t offset, Bytes bytes, std::uint64_t tag);

  // On the calling thread, when the engine of the direction is free. `data` is a multiple of 4096 and reaches to
  // the next multiple. Throws std::runtime_error on an I/O error. REQUIRES: allocate was called.
  EngineSpan read(void* data, Bytes bytes, std::uint64_t offset);
  EngineSpan write(const void* data, Bytes bytes, std::uint64_t offset);

  // How the file is accessed, or "" while there is none.
  std::string method() const;

 private:
  void open();

  std::filesystem::path folder_;
  Bytes bytes_;
  FilePace pace_;
  mutable std::mutex mutex_;
  FirstFit room_;
  std::unique_ptr<DirectFile> writer_, reader_;  // two handles on one file; the writer's removes it
  HostCopyEngine read_engine_, write_engine_;
};

}  // namespace memwall
