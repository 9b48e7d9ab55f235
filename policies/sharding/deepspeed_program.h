// What DeepSpeed's host program issues besides the network's own ops: kernels on a stream, collectives, copies, work of
// the CPU, waits. Each is priced and goes into a TraceEdit.
//
// Collectives run on a stream of their process group, as PyTorch's do: it waits for the stream that calls, which then
// waits for it; those of one group are first in, first out, whoever calls them. Source: pytorch/pytorch,
// torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp (async_op=False).
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "policies/trace/trace_edit.h"
#include "sim/machine/machine.h"
#include "sim/machine/pricer.h"

namespace memwall {

using Storages = std::vector<StorageId>;

class DeepSpeedProgram {
 public:
  // All must outlive it.
  DeepSpeedProgram(TraceEdit& edit, const Pricer& pricer, std::uint32_t ranks, Duration hook);

  TraceEdit& edit() { return edit_; }
  const Trace& base() const { return edit_.base(); }
  std::uint32_t ranks() const { return ranks_; }

  // On `stream`, bound by memory: reads and writes `bytes` in all.
  void kernel(InsertionPoint point, std::uint16_t stream, std::string_view name, Bytes bytes, const Storages& reads,
              const Storages& writes);
  // `message`: bytes of the whole, gathered tensor; of the first `among` ranks (of a node), 0 = of all. `stream` calls.
  void collective(InsertionPoint point, std::uint16_t stream, CollectiveKind kind, Bytes message, const Storages& reads,
                  const Storages& writes, std::uint32_t among = 0);
  // Between places; the host goes on at once, or with `blocks` when the copy is done. REQUIRES: `to` is not empty, and
  // all of it is in one place.
  void copy(InsertionPoint point, std::uint16_t stream, Bytes bytes, StorageId from, const Storages& to,
            bool blocks = false);
  // The thread computes, bound by the host's DRAM.
  void host_work(InsertionPoint point, std::string_view name, Bytes dram_bytes, const Storages& reads,
                 const Storages& writes);
  // Python code of one hook.
  void hook(InsertionPoint point);

  // `waiting` goes on behind what was submitted to `stream` so far.
  void wait_stream(InsertionPoint point, std::uint16_t waiting, std::uint16_t stream);
  void synchronize_device(InsertionPoint point);
  void synchronize_stream(InsertionPoint point, std::uint16_t stream);
  void synchronize_event(InsertionPoint point, std::uint32_t event);

  // On the device, from the pool of `stream`; not allocated yet.
  StorageId device_storage(Bytes bytes, StorageKind kind, std::uint16_t stream, std::string_view label);
  // Page-locked, from before the step on.
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

  Op launch(OpKind kind, std::uint16_t stream, std::string_view name) const;
  void synchronize(InsertionPoint point, WaitFor wait_for, std::uint16_t stream, std::uint32_t event);
  const Group& group(std::uint32_t among);

  TraceEdit& edit_;
  const Pricer& pricer_;
  std::uint32_t ranks_;
  Duration hook_;
  std::map<std::uint32_t, Group> groups_;  // by number of members
  std::map<CollectiveKind, Bytes> bytes_sent_;
  std::map<CollectiveKind, std::uint64_t> collectives_;
  Bytes copied_out_ = 0, copied_in_ = 0;
};

}  // namespace memwall
