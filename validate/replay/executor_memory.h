// Real memory for the storages of a schedule: device memory from PyTorch's allocator over the back end's segments,
// kept warm from pass to pass; host memory and file room as planned (executor_places.h), obtained once.
#pragma once

#include <mutex>
#include <vector>

#include "sim/memory/pytorch_allocator.h"
#include "sim/trace/trace.h"
#include "validate/replay/backend.h"
#include "validate/replay/execution.h"
#include "validate/replay/executor_places.h"

namespace memwall {

class ReplayMemory {
 public:
  // `schedule` and `backend` must outlive it. `capacity`: device bytes that may be reserved. Throws UsageError where
  // host memory or the file has no room, saying how much is missing.
  ReplayMemory(const Trace& schedule, Backend& backend, Bytes capacity);
  // Gives everything back. REQUIRES: nothing runs on the back end.
  ~ReplayMemory();
  ReplayMemory(const ReplayMemory&) = delete;
  ReplayMemory& operator=(const ReplayMemory&) = delete;

  // Places the preexisting storages that have no place, which is all of them before the first pass. Throws UsageError
  // if they do not fit.
  void begin_pass();
  // Frees what the pass made and left on the device; its memory stays cached. What lived before stays where it is.
  void end_pass();

  // The rest may be called by several threads at once.
  // What op `op` (an alloc) asks for. Throws UsageError with the bytes that are missing.
  void alloc(OpId op);
  void free(OpId op);
  // Where a storage is now; the first `bytes` of it. Throws std::runtime_error if it is not there: the thread that
  // allocates it was not waited for.
  Buffer buffer(OpId for_op, StorageId storage, Bytes bytes) const;

  // hbm, and host and nvme where the schedule uses them. REQUIRES: nothing runs.
  std::vector<PlacePeak> peaks() const;

 private:
  static constexpr Address kAbsent = ~Address{0};

  bool on_device(StorageId storage) const;
  void drop(bool preexisting_too);
  void place(StorageId storage, const std::string& asker);
  void obtain_fixed();
  void give_back_fixed();

  const Trace& trace_;
  Backend& backend_;
  const Bytes capacity_;
  FixedPlaces places_;
  std::vector<Buffer> fixed_;  // as places_.blocks, as far as obtained
  mutable std::mutex mutex_;   // guards what follows
  PytorchAllocator allocator_;
  std::vector<Address> addresses_;  // by storage; kAbsent: not on the device at present
  Bytes peak_allocated_ = 0, peak_reserved_ = 0;
};

}  // namespace memwall
