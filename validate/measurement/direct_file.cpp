#include "validate/measurement/direct_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cassert>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "sim/files/file_descriptor.h"
#include "sim/files/temporary_name.h"
#include "sim/error.h"
#include "validate/measurement/direct_file_queue.h"

namespace memwall {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kSector = 4096;  // what every device and file system takes for O_DIRECT
constexpr unsigned kDeepest = 1024;

std::size_t rounded_up(std::size_t bytes) { return (bytes + kSector - 1) / kSector * kSector; }

[[noreturn]] void refuse(const fs::path& path, const std::string& what, int error) {
  throw UsageError(path.string() + ": " + what + " (" + std::strerror(error) + ").");
}

// O_DIRECT may be accepted by open() and refused by the first transfer.
bool takes_direct_reads(int file) {
  void* const sector = std::aligned_alloc(kSector, kSector);
  if (sector == nullptr) throw std::bad_alloc();
  const bool taken = ::pread(file, sector, kSector, 0) >= 0;
  std::free(sector);
  return taken;
}

FileDescriptor create(const fs::path& path, std::size_t bytes) {
  FileDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file) refuse(path, "the file cannot be written", errno);
  // Room is taken now, so that no transfer waits for it; through the page cache, as C libraries imitate the
  // call by writing single bytes where a file system lacks it.
  const int error = bytes == 0 ? 0 : ::posix_fallocate(file.number(), 0, static_cast<off_t>(bytes));
  if (error != 0) {
    ::unlink(path.c_str());
    refuse(path, "there is no room for " + std::to_string(bytes) + " bytes", error);
  }
  return file;
}

}  // namespace

void throw_file_error(const FileTransfer& transfer, std::size_t offset, int error) {
  throw std::runtime_error(std::string(transfer.write ? "writing" : "reading") + " a direct file failed at byte " +
                           std::to_string(offset) + ": " + (error == 0 ? "the file ends there" : std::strerror(error)) +
                           ".");
}

class DirectFile::Implementation {
 public:
  Implementation(fs::path path, FileDescriptor file, bool created, const DirectFileSettings& settings)
      : path_(std::move(path)), file_(std::move(file)) {
    if (created) name_ = std::make_unique<TemporaryName>(path_);
    try {
      open_direct(settings);
      if (settings.allow_io_uring) queue_ = make_uring_queue(settings.block, settings.depth);
      method_ = queue_ ? "io_uring" : "pread threads";
      if (!queue_) queue_ = make_thread_queue(settings.block, settings.depth);
      method_ += direct_ ? ", O_DIRECT" : ", page cache";
    } catch (...) {
      remove();
      throw;
    }
  }
  ~Implementation() {
    queue_.reset();
    remove();
  }
  Implementation(const Implementation&) = delete;
  Implementation& operator=(const Implementation&) = delete;

  void run(bool write, std::byte* data, std::size_t bytes, std::size_t offset) {
    assert(offset % kSector == 0 && reinterpret_cast<std::uintptr_t>(data) % kSector == 0);
    if (bytes == 0) return;
    FileTransfer transfer{file_.number(), write, data, bytes, offset, 1};
    if (direct_) {
      transfer.bytes = rounded_up(bytes);
      transfer.alignment = kSector;
    }
    queue_->run(transfer);
  }
  const std::string& method() const { return method_; }

 private:
  void open_direct(const DirectFileSettings& settings) {
#ifdef O_DIRECT
    if (!settings.allow_direct) return;
    FileDescriptor direct(::open(path_.c_str(), O_RDWR | O_DIRECT | O_CLOEXEC));
    if (!direct || !takes_direct_reads(direct.number())) return;
    file_ = std::move(direct);
    direct_ = true;
#else
    (void)settings;
#endif
  }
  void remove() { name_.reset(); }

  fs::path path_;
  FileDescriptor file_;
  bool direct_ = false;
  std::unique_ptr<TemporaryName> name_;  // of a file that was created
  std::unique_ptr<FileRequestQueue> queue_;
  std::string method_;
};

namespace {
void require_sound(const DirectFileSettings& settings) {
  if (settings.block == 0 || settings.block % kSector != 0 || settings.block > (std::size_t{1} << 30))
    throw UsageError("a direct file's block is " + std::to_string(settings.block) +
                     " bytes; expected a multiple of 4096 up to 1 GiB.");
  if (settings.depth == 0 || settings.depth > kDeepest)
    throw UsageError("a direct file's depth is " + std::to_string(settings.depth) + "; expected 1 to " +
                     std::to_string(kDeepest) + ".");
}
}  // namespace

DirectFile::DirectFile(const fs::path& path, std::size_t bytes, const DirectFileSettings& settings) {
  require_sound(settings);
  implementation_ = std::make_unique<Implementation>(path, create(path, rounded_up(bytes)), true, settings);
}

DirectFile::DirectFile(const fs::path& existing, const DirectFileSettings& settings) {
  require_sound(settings);
  FileDescriptor file(::open(existing.c_str(), O_RDWR | O_CLOEXEC));
  if (!file) refuse(existing, "the file cannot be opened for reading and writing", errno);
  implementation_ = std::make_unique<Implementation>(existing, std::move(file), false, settings);
}

DirectFile::~DirectFile() = default;

void DirectFile::read(void* data, std::size_t bytes, std::size_t offset) {
  implementation_->run(false, static_cast<std::byte*>(data), bytes, offset);
}

void DirectFile::write(const void* data, std::size_t bytes, std::size_t offset) {
  // Only read from: FileTransfer serves both directions.
  implementation_->run(true, const_cast<std::byte*>(static_cast<const std::byte*>(data)), bytes, offset);
}

const std::string& DirectFile::method() const { return implementation_->method(); }

}  // namespace memwall
