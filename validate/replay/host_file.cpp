#include "validate/replay/host_file.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <new>

#include "sim/error.h"
#include "validate/replay/host_computer.h"
#include "validate/replay/host_content.h"
#include "validate/replay/mapped_memory.h"

namespace memwall {
namespace {

constexpr Bytes kBlock = 4096;

// Several back ends of one process may share a folder.
std::filesystem::path name_of_file(const void* owner) {
  return "memwall-nvme-" + std::to_string(getpid()) + "-" + std::to_string(reinterpret_cast<std::uintptr_t>(owner));
}

// Rounded up: a transfer may be late, never early.
void keep_pace(std::chrono::steady_clock::time_point start, Bytes bytes, double bytes_per_second) {
  if (bytes_per_second <= 0) return;
  const double seconds = static_cast<double>(bytes) / bytes_per_second;
  wait_until(start + std::chrono::nanoseconds(static_cast<std::int64_t>(std::ceil(seconds * 1e9))));
}

}  // namespace

HostFile::HostFile(std::filesystem::path folder, Bytes bytes, FilePace pace)
    : folder_(std::move(folder)), bytes_(bytes), pace_(pace), room_(bytes, kBlock) {}

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

void HostFile::fill(std::uint64_t offset, Bytes bytes, std::uint64_t tag) {
  const Bytes piece = MiB(4);
  const MappedMemory staging(piece);
  for (Bytes done = 0; done < bytes; done += piece) {
    const Bytes part = std::min(piece, bytes - done);
    fill_pattern(staging.data(), part, tag, static_cast<std::uint64_t>(done) / 8);
    write(staging.data(), part, offset + static_cast<std::uint64_t>(done));
  }
}

EngineSpan HostFile::read(void* data, Bytes bytes, std::uint64_t offset) {
  return read_engine_.run([&](auto start) {
    reader_->read(data, static_cast<std::size_t>(bytes), offset);
    keep_pace(start, bytes, pace_.read);
  });
}

EngineSpan HostFile::write(const void* data, Bytes bytes, std::uint64_t offset) {
  return write_engine_.run([&](auto start) {
    writer_->write(data, static_cast<std::size_t>(bytes), offset);
    keep_pace(start, bytes, pace_.write);
  });
}

std::string HostFile::method() const {
  const std::lock_guard lock(mutex_);
  return writer_ ? writer_->method() : "";
}

}  // namespace memwall
