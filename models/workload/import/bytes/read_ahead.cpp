#include "models/workload/import/bytes/read_ahead.h"

#include <algorithm>
#include <cstring>
#include <system_error>
#include <utility>

#include "models/workload/import/bytes/byte_source.h"

namespace memwall {

ReadAhead::~ReadAhead() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void ReadAhead::fetch(Block& block) {
  block.error = nullptr;
  block.bytes.resize(kBlock);
  std::size_t got = 0;
  try {
    got = source_.read(block.bytes.data(), kBlock);
  } catch (...) {
    block.error = std::current_exception();
  }
  block.bytes.resize(got);
  block.last = got < kBlock;
}

void ReadAhead::run() {
  Block block;
  while (!block.last) {
    fetch(block);
    const bool last = block.last;
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !full_ || stop_; });
    if (stop_) return;
    std::swap(ahead_, block);
    full_ = true;
    block.last = last;
    lock.unlock();
    changed_.notify_all();
  }
}

// Where the system gives no thread (ulimit -u), blocks are fetched when they are read.
void ReadAhead::start() {
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error&) {
  }
}

// The next block becomes the one that is read; false where there is none.
bool ReadAhead::next_block() {
  if (started_ && block_.last) return false;
  used_ = 0;
  if (!started_) {
    started_ = true;
    fetch(block_);
    if (!block_.last) start();
    return true;
  }
  if (!thread_.joinable()) {
    fetch(block_);
    return true;
  }
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return full_; });
    std::swap(block_, ahead_);
    full_ = false;
  }
  changed_.notify_all();
  return true;
}

std::size_t ReadAhead::read(char* to, std::size_t size) {
  std::size_t done = 0;
  while (done < size) {
    if (used_ == block_.bytes.size()) {
      if (started_ && block_.error) std::rethrow_exception(block_.error);
      if (!next_block()) break;
      continue;
    }
    const std::size_t n = std::min(size - done, block_.bytes.size() - used_);
    std::memcpy(to + done, block_.bytes.data() + used_, n);
    used_ += n;
    done += n;
  }
  return done;
}

}  // namespace memwall
