// A file's bytes, of which the next are unpacked while the last are read: a second thread fetches one block ahead.
//
// Unpacking gzip takes as long as understanding what is in it. What is read does not depend on the thread: blocks come
// in order (also where the system gives no thread), and what the source throws is thrown where its bytes would have been read.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace memwall {

class ByteSource;

class ReadAhead {
 public:
  static constexpr std::size_t kBlock = std::size_t{1} << 20;

  // `source` must outlive it, and nobody else reads it.
  explicit ReadAhead(ByteSource& source) : source_(source) {}
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  // As ByteSource::read.
  std::size_t read(char* to, std::size_t size);

 private:
  struct Block {
    std::vector<char> bytes;
    std::exception_ptr error;  // instead of what would come behind the bytes
    bool last = false;
  };

  void fetch(Block& block);
  void start();
  void run();
  bool next_block();

  ByteSource& source_;
  Block block_;             // being read
  std::size_t used_ = 0;    // of block_
  bool started_ = false;    // was the first block read?
  std::thread thread_;      // runs for files of more than one block
  std::mutex mutex_;        // guards what follows
  std::condition_variable changed_;
  Block ahead_;
  bool full_ = false;  // is ahead_ waiting to be read?
  bool stop_ = false;
};

}  // namespace memwall
