// A file read and written past the page cache, as an NVMe tier is: blocks of fixed size, several in
// flight. Benchmarks and the replay use the same code, so that what is measured is what runs.
//
// With io_uring and O_DIRECT where the kernel and the file system take them; else threads with
// pread/pwrite, with O_DIRECT if possible. `method()` says which it became.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>

namespace memwall {

struct DirectFileSettings {
  std::size_t block = std::size_t{1} << 20;  // bytes per request; a multiple of 4096
  unsigned depth = 16;                       // requests in flight
  bool allow_io_uring = true;
  bool allow_direct = true;
};

class DirectFile {
 public:
  // Creates (or truncates) and preallocates `bytes`. Throws UsageError if the place cannot be written.
  DirectFile(const std::filesystem::path& path, std::size_t bytes, const DirectFileSettings& settings);
  // A second handle on a file that another DirectFile made: one handle reads while the other writes. Does not
  // truncate, and leaves the file in place. Throws UsageError.
  DirectFile(const std::filesystem::path& existing, const DirectFileSettings& settings);
  ~DirectFile();  // removes the file that it created
  DirectFile(const DirectFile&) = delete;
  DirectFile& operator=(const DirectFile&) = delete;

  // Return when all bytes are there. Not thread-safe: one caller at a time per object. Throw
  // std::runtime_error on an I/O error. REQUIRES: `offset`, `data` multiples of 4096; `bytes` too, or the
  // buffer and the file reach to the next multiple. A written byte is where other readers see it, not yet
  // where it survives a power cut: no fsync, as an offloaded tensor needs none.
  void read(void* data, std::size_t bytes, std::size_t offset);
  void write(const void* data, std::size_t bytes, std::size_t offset);

  // "io_uring, O_DIRECT", "pread threads, page cache", ...
  const std::string& method() const;

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace memwall
