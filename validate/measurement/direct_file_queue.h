// How the requests of a DirectFile reach the kernel: by io_uring, or by threads with pread and pwrite.
#pragma once

#include <cstddef>
#include <memory>

namespace memwall {

// Bytes of a file to be brought to, or taken from, memory.
struct FileTransfer {
  int file = -1;  // descriptor; not owned
  bool write = false;
  std::byte* data = nullptr;  // only read from where `write`
  std::size_t bytes = 0, offset = 0;
  // Requests begin and end at multiples of this (O_DIRECT: 4096); what a short one leaves is done again from
  // the last multiple.
  std::size_t alignment = 1;
};

class FileRequestQueue {
 public:
  virtual ~FileRequestQueue() = default;
  // Cuts the transfer into blocks, keeps `depth` of them in flight; returns when all are done. Throws
  // std::runtime_error, never while the kernel still uses the memory.
  virtual void run(const FileTransfer& transfer) = 0;
};

// nullptr where this program was built without liburing or the kernel does not allow it.
std::unique_ptr<FileRequestQueue> make_uring_queue(std::size_t block, unsigned depth);
std::unique_ptr<FileRequestQueue> make_thread_queue(std::size_t block, unsigned depth);

// The message of a failed request. `error`: errno, or 0 for a file that ended too early.
[[noreturn]] void throw_file_error(const FileTransfer& transfer, std::size_t offset, int error);

}  // namespace memwall
