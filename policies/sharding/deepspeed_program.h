// What DeepSpeed's host program issues besides the network's own ops: kernels on a stream, collectives, copies, work of
// the CPU, waits. Each is priced and goes into a TraceEdit.
//
// Collectives run on a stream of their process group, as PyTorch's do: it waits for the stream that calls, which then
// waits for it; those of one group are first in, first out, whoever calls them. Source: pytorch/pytorch,
// torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp (async_op=False).
#pragma once

#include <compare>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policies/sharding/deepspeed_settings.h"
#include "policies/trace/trace_edit.h"
#include "sim/machine/machine.h"
#include "sim/machine/pricer.h"

namespace memwall {

using Storages = std::vector<StorageId>;

// Ranks 0, stride, 2 * stride, ...: neighbours, or one of each so many. 0 members: all ranks of the job.
struct RankSet {
  std::uint32_t members = 0, stride = 1;
  auto operator<=>(const RankSet&) const = default;
  // ".8_neighbours", ".4_of_every_8th": behind the names of their group and stream.
  std::string name() const {
    const std::string many = "." + std::to_string(members);
    return stride == 1 ? many + "_neighbours" : many + "_of_every_" + std::to_string(stride) + "th";
  }
};

class DeepSpeedProgram {
 public:
  // All must outlive it. What it issues has names that begin with `prefix` and a point.
  DeepSpeedProgram(TraceEdit& edit, const Machine& machine, const Pricer& pricer, std::uint32_t ranks, Duration hook,
                   std::string_view prefix = "deepspeed", std::uint32_t parts = 0);

  TraceEdit& edit() { return edit_; }
  const Trace& base() const { return edit_.base(); }
  std::uint32_t ranks() const { return ranks_; }
  std::uint32_t parts() const { return parts_; }         // into which optimizer states are cut; by default all ranks
  const std::string& prefix() const { return prefix_; }  // with its point

  // On `stream`, bound by memory: reads and writes `bytes` in all.
  void kernel(InsertionPoint point, std::uint16_t stream, std::string_view name, Bytes bytes, const Storages& reads,
              const Storages& writes);
  // `message`: bytes of the whole, gathered tensor, among these ranks. `stream` calls.
  void collective(InsertionPoint point, std::uint16_t stream, CollectiveKind kind, Bytes message, const Storages& reads,
                  const Storages& writes, RankSet among = {});
  // Likewise, and `stream` goes on at once. Returns the event behind which it is done.
  std::uint32_t start_collective(InsertionPoint point, std::uint16_t stream, CollectiveKind kind, Bytes message,
                                 const Storages& reads, const Storages& writes, RankSet among = {});
  // Between places (as a pageable copy, if what is in host memory is not page-locked); the host goes on at once, or
  // with `blocks` when the copy is done. REQUIRES: `to` is not empty, and all of it is in one place.
  void copy(InsertionPoint point, std::uint16_t stream, Bytes bytes, StorageId from, const Storages& to,
            bool blocks = false);
  // The thread computes, bound by the host's DRAM; `thread`: which, without a value that of the op beside.
  void host_work(InsertionPoint point, std::string_view name, Bytes dram_bytes, const Storages& reads,
                 const Storages& writes, std::optional<std::uint16_t> thread = {});
  // `thread` (without a value that of the op beside) goes on once `awaited`, an op of the base on another thread, and
  // all that is put behind it has ended.
  void hand_over(InsertionPoint point, OpId awaited, std::optional<std::uint16_t> thread = {});
  // Between `buffers`, which are all in one place (the host's memory, or the GPU's), and `far` on NVMe, on a queue per
  // direction. `behind`: an event that it waits for. Returns the event behind which it is done.
  std::uint32_t storage_io(InsertionPoint point, bool reads, Bytes bytes, const Storages& buffers, const Storages& far,
                           const AsynchronousIo& aio, std::optional<std::uint32_t> behind = {});
  // Python code of one hook, or as long as so many.
  void hook(InsertionPoint point, double hooks = 1);

  // The storage's memory comes back once what has been submitted to `user` by now is done (record_stream), at once
  // where it is of that stream's pool.
  void free_behind(InsertionPoint point, StorageId storage, std::uint16_t user);
  // As TraceEdit's.
  void wait_stream(InsertionPoint point, std::uint16_t waiting, std::uint16_t stream) {
    edit_.wait_stream(point, waiting, stream);
  }
  void synchronize_device(InsertionPoint point);
  void synchronize_stream(InsertionPoint point, std::uint16_t stream);
  void synchronize_event(InsertionPoint point, std::uint32_t event);

  // On the device, from the pool of `stream`; not allocated yet.
  StorageId device_storage(Bytes bytes, StorageKind kind, std::uint16_t stream, std::string_view label);
  // From before the step on, in the host's memory, not page-locked.
  StorageId pageable_storage(Bytes bytes, StorageKind kind, std::string_view label);
  // From before the step on; page-locked where it is the host's memory.
  StorageId host_storage(Bytes bytes, StorageKind kind, std::string_view label, std::string_view tier = "host");

  Bytes bytes_sent(CollectiveKind kind) const;  // by one rank, over the whole trace
  std::uint64_t collectives(CollectiveKind kind) const;
  Bytes copied_out() const { return copied_out_; }  // of the device
  Bytes copied_in() const { return copied_in_; }

 private:
  struct Group {
    std::uint16_t number = 0, stream = 0;
    ProcessGroup ranks;
  };

  StringId named(std::string_view name) const { return edit_.tables().strings.intern(prefix_ + std::string(name)); }
  Op launch(OpKind kind, std::uint16_t stream, std::string_view name) const;
  void insert_on(InsertionPoint point, Op op, std::optional<std::uint16_t> thread, const std::vector<Use>& uses);
  void synchronize(InsertionPoint point, WaitFor wait_for, std::uint16_t stream, std::uint32_t event);
  const Group& group(RankSet among);

  TraceEdit& edit_;
  const Machine& machine_;
  const Pricer& pricer_;
  std::uint32_t ranks_, parts_;
  Duration hook_;
  std::string prefix_;
  std::map<RankSet, Group> groups_;
  std::map<CollectiveKind, Bytes> bytes_sent_;
  std::map<CollectiveKind, std::uint64_t> collectives_;
  Bytes copied_out_ = 0, copied_in_ = 0;
};

}  // namespace memwall
