// Requests by io_uring (Axboe 2019, "Efficient IO with io_uring"): one thread, `depth` requests in flight.
#include "validate/measurement/direct_file_queue.h"

#ifndef MEMWALL_IO_URING

namespace memwall {
std::unique_ptr<FileRequestQueue> make_uring_queue(std::size_t, unsigned) { return nullptr; }
}  // namespace memwall

#else

#include <liburing.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <vector>

namespace memwall {
namespace {

struct UringRequest {
  std::size_t from = 0, bytes = 0;  // within the transfer
};

class UringQueue final : public FileRequestQueue {
 public:
  UringQueue(std::size_t block, unsigned depth) : block_(block), requests_(depth) {
    usable_ = io_uring_queue_init(depth, &ring_, 0) == 0;
    if (usable_ && !knows_read_and_write()) {
      io_uring_queue_exit(&ring_);
      usable_ = false;
    }
  }
  ~UringQueue() override {
    if (usable_) io_uring_queue_exit(&ring_);
  }
  UringQueue(const UringQueue&) = delete;
  UringQueue& operator=(const UringQueue&) = delete;

  bool usable() const { return usable_; }

  void run(const FileTransfer& transfer) override {
    if (broken_ != 0) throw_file_error(transfer, transfer.offset, broken_);
    begin_run();
    for (std::size_t next = 0; next < transfer.bytes || in_flight_ > 0;) {
      while (next < transfer.bytes && !free_.empty() && !failed_) {
        const std::size_t bytes = std::min(block_, transfer.bytes - next);
        const std::size_t slot = free_.back();
        free_.pop_back();
        requests_[slot] = {next, bytes};
        prepare(transfer, slot);
        next += bytes;
      }
      if (failed_ && in_flight_ == 0) break;
      wait();
      take_completions(transfer);
    }
    if (failed_) throw_file_error(transfer, transfer.offset + failed_at_, error_);
  }

 private:
  // READ and WRITE came with Linux 5.6, later than io_uring itself.
  bool knows_read_and_write() {
    io_uring_probe* const probe = io_uring_get_probe_ring(&ring_);
    const bool known = probe != nullptr && io_uring_opcode_supported(probe, IORING_OP_READ) &&
                       io_uring_opcode_supported(probe, IORING_OP_WRITE);
    if (probe != nullptr) io_uring_free_probe(probe);
    return known;
  }

  void begin_run() {
    free_.clear();
    for (std::size_t slot = requests_.size(); slot-- > 0;) free_.push_back(slot);
    in_flight_ = 0;
    failed_ = false;
    error_ = 0;
  }

  void prepare(const FileTransfer& transfer, std::size_t slot) {
    io_uring_sqe* entry = io_uring_get_sqe(&ring_);  // never full: as many entries as slots
    const UringRequest& request = requests_[slot];
    const std::uint64_t offset = transfer.offset + request.from;
    if (transfer.write)
      io_uring_prep_write(entry, transfer.file, transfer.data + request.from, static_cast<unsigned>(request.bytes),
                          offset);
    else
      io_uring_prep_read(entry, transfer.file, transfer.data + request.from, static_cast<unsigned>(request.bytes),
                         offset);
    io_uring_sqe_set_data(entry, &requests_[slot]);
    ++in_flight_;
  }

  // Whatever goes wrong with the ring itself, what is in flight must come back first: the kernel writes into
  // the caller's memory until then.
  void wait() {
    if (broken_ != 0) {
      io_uring_cqe* completion = nullptr;
      io_uring_wait_cqe(&ring_, &completion);
      return;
    }
    const int result = io_uring_submit_and_wait(&ring_, 1);
    if (result >= 0 || result == -EINTR || result == -EAGAIN || result == -EBUSY) return;
    broken_ = -result;
    note_failure(0, broken_);
    in_flight_ -= io_uring_sq_ready(&ring_);  // those that the kernel never saw, and never will
  }

  void take_completions(const FileTransfer& transfer) {
    for (io_uring_cqe* completion = nullptr; io_uring_peek_cqe(&ring_, &completion) == 0;) {
      auto* const request = static_cast<UringRequest*>(io_uring_cqe_get_data(completion));
      const int result = completion->res;
      io_uring_cqe_seen(&ring_, completion);
      --in_flight_;
      complete(transfer, *request, result);
    }
  }

  void complete(const FileTransfer& transfer, UringRequest& request, int result) {
    const std::size_t slot = static_cast<std::size_t>(&request - requests_.data());
    const bool again = result == -EINTR || result == -EAGAIN;
    if (result <= 0 && !again) note_failure(request.from, -result);
    if (result > 0) {
      const std::size_t done = static_cast<std::size_t>(result);
      // A short one: the rest is asked for again, from an offset that O_DIRECT takes.
      const std::size_t kept = done >= request.bytes ? request.bytes : done / transfer.alignment * transfer.alignment;
      if (kept == 0) note_failure(request.from, 0);
      request.from += kept;
      request.bytes -= kept;
    }
    if (request.bytes > 0 && !failed_)
      prepare(transfer, slot);
    else
      free_.push_back(slot);
  }

  void note_failure(std::size_t at, int error) {
    if (failed_) return;
    failed_ = true;
    failed_at_ = at;
    error_ = error;
  }

  std::size_t block_;
  std::vector<UringRequest> requests_;
  std::vector<std::size_t> free_;  // slots of requests_
  io_uring ring_{};
  bool usable_ = false, failed_ = false;
  unsigned in_flight_ = 0;
  std::size_t failed_at_ = 0;
  int error_ = 0;
  int broken_ = 0;  // errno of a ring that takes no more requests
};

}  // namespace

std::unique_ptr<FileRequestQueue> make_uring_queue(std::size_t block, unsigned depth) {
  auto queue = std::make_unique<UringQueue>(block, depth);
  if (!queue->usable()) return nullptr;
  return queue;
}

}  // namespace memwall

#endif
