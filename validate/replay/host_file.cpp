#include "validate/replay/host_file.h"

#include <unistd.h>

#include <atomic>
#include <new>

#include "sim/error.h"

namespace memwall {
namespace {

constexpr Bytes kBlock = 4096;

// Several back ends of one process may share a folder.
std::filesystem::path name_of_file(const void* owner) {
  return "memwall-nvme-" + std::to_string(getpid()) + "-" + std::to_string(reinterpret_cast<std::uintptr_t>(owner));
}

}  // namespace

HostFile::HostFile(std::filesystem::path folder, Bytes bytes)
    : folder_(std::move(folder)), bytes_(bytes), room_(bytes, kBlock) {}

HostFile::~HostFile() {
  reader_.reset();  // before the file goes
}

void HostFile::open() {
  if (writer_) return;
  if (folder_.empty())
    throw UsageError(
        "this schedule keeps storages in the tier \"nvme\", which the host back end has as a file: give a "
        "folder for it (--scratch).");
  const std::filesystem::path path = folder_ / name_of_file(this);
  writer_ = std::make_unique<DirectFile>(path, static_cast<std::size_t>(bytes_), DirectFileSettings{});
  reader_ = std::make_unique<DirectFile>(path, DirectFileSettings{});
}

std::uint64_t HostFile::allocate(Bytes bytes) {
  const std::lock_guard lock(mutex_);
  open();
  const auto offset = room_.take(bytes);
  if (!offset) throw std::bad_alloc();
  return static_cast<std::uint64_t>(*offset);
}

void HostFile::free(std::uint64_t offset, Bytes bytes) {
  const std::lock_guard lock(mutex_);
  room_.give_back(static_cast<Bytes>(offset), bytes);
}

EngineSpan HostFile::read(void* data, Bytes bytes, std::uint64_t offset) {
  return read_engine_.run([&](auto) { reader_->read(data, static_cast<std::size_t>(bytes), offset); });
}

EngineSpan HostFile::write(const void* data, Bytes bytes, std::uint64_t offset) {
  return write_engine_.run([&](auto) { writer_->write(data, static_cast<std::size_t>(bytes), offset); });
}

std::string HostFile::method() const {
  const std::lock_guard lock(mutex_);
  return writer_ ? writer_->method() : "";
}

}  // namespace memwall
