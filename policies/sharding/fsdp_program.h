// The ops that FSDP and DistributedDataParallel add to a step, priced: kernels and collectives on streams that the
// caller names, what ties these together, and the host's time for hooks.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "policies/trace/trace_edit.h"
#include "sim/machine/pricer.h"
#include "sim/trace/process_group.h"

namespace memwall {

// A process group among the groups of a trace.
struct ShardingGroup {
  std::uint16_t index = 0;  // Op::group
  std::uint32_t ranks = 1;
  ProcessGroup process_group;  // without members: ranks 0, 1, 2, ...
};

class FsdpProgram {
 public:
  // `edit` and `pricer` must outlive it.
  FsdpProgram(TraceEdit& edit, const Pricer& pricer) : edit_(edit), pricer_(pricer) {}

  // All ranks of the job, which a trace without collectives need not name; else a group of that name.
  // Throws UsageError where the trace has too many.
  ShardingGroup all_ranks(std::string_view name, std::uint32_t ranks);
  // Ranks `first`, `first` + `stride`, ...
  ShardingGroup group(std::string_view name, std::uint32_t ranks, std::uint32_t stride);

  std::uint16_t stream(std::string_view name) { return edit_.stream(name, StreamRole::communication); }

  // The host works for so long before the next op that is added.
  void charge(Duration host) { host_gap_ += host; }

  // As TraceEdit's.
  std::uint32_t record(InsertionPoint point, std::uint16_t stream) { return edit_.record(point, stream); }
  void wait(InsertionPoint point, std::uint32_t event, std::uint16_t stream) { edit_.wait(point, event, stream); }
  void wait_stream(InsertionPoint point, std::uint16_t waiter, std::uint16_t other) {
    edit_.wait_stream(point, waiter, other);
  }
  // The host waits for the event.
  void synchronize(InsertionPoint point, std::uint32_t event);

  // `bytes`: read and written. `kernels`: in a row.
  void kernel(InsertionPoint point, std::uint16_t stream, std::string_view name, Bytes bytes,
              const std::vector<StorageId>& reads, const std::vector<StorageId>& writes, std::size_t kernels = 1);
  // Between the device and the host's memory, on the stream. Page-locked memory is copied while the host goes on.
  enum class Way : std::uint8_t { to_device, to_host };
  void copy(InsertionPoint point, std::uint16_t stream, std::string_view name, Way way, Bytes bytes, bool pinned,
            StorageId from, StorageId to);
  // Copies of these storages of the host, on the device, from the stream's pool.
  std::vector<StorageId> upload(InsertionPoint point, std::uint16_t stream, const std::vector<StorageId>& storages,
                                bool pinned);
  // The host adds `bytes` to as many.
  void host_add(InsertionPoint point, Bytes bytes, StorageId from, StorageId to);
  // `message`: bytes of the whole, gathered tensor.
  void collective(InsertionPoint point, std::uint16_t stream, std::string_view name, CollectiveKind kind, Bytes message,
                  const ShardingGroup& group, const std::vector<StorageId>& reads,
                  const std::vector<StorageId>& writes);
  // From the pool of `stream`, at the place of `like` in the base trace; alloc'd at the point.
  StorageId alloc(InsertionPoint point, Bytes bytes, StorageKind kind, StorageId like, std::string_view label,
                  std::uint16_t stream);
  // Likewise in the host's memory.
  StorageId alloc_on_host(InsertionPoint point, Bytes bytes, StorageKind kind, std::string_view label, bool pinned);
  void free(InsertionPoint point, StorageId storage) { edit_.free(point, storage); }
  void free_behind(InsertionPoint point, StorageId storage, std::uint16_t user) {
    edit_.free_behind(point, storage, user);
  }

  TraceEdit& edit() { return edit_; }
  const Trace& base() const { return edit_.base(); }

  Bytes sent(CollectiveKind kind) const { return sent_[static_cast<std::size_t>(kind)]; }  // by one rank, so far
  std::uint64_t count(CollectiveKind kind) const { return count_[static_cast<std::size_t>(kind)]; }

 private:
  static constexpr std::size_t kKinds = 9;  // of CollectiveKind

  void put(InsertionPoint point, Op op, const std::vector<StorageId>& reads, const std::vector<StorageId>& writes);
  std::size_t next_group();

  TraceEdit& edit_;
  const Pricer& pricer_;
  std::size_t groups_ = 0;  // one past the number of the last one that was given out
  Duration host_gap_{};
  Bytes sent_[kKinds] = {};
  std::uint64_t count_[kKinds] = {};
};

}  // namespace memwall
