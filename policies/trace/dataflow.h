// Who makes, reads, allocates and frees what: a trace's uses, turned round so that one can ask by
// storage. A snapshot: it does not follow later changes of the trace. O(uses) time and memory.
#pragma once

#include <span>
#include <vector>

#include "policies/trace/phases.h"
#include "sim/trace/trace.h"

namespace memwall {

// One op's touch of a storage. An op that reads and writes it appears once.
struct Touch {
  OpId op = kNoOp;
  bool reads = false, writes = false;
};

class Dataflow {
 public:
  // REQUIRES: check(trace) is empty, so versions of a storage are made in order, without a hole.
  explicit Dataflow(const Trace& trace);

  // Every op that uses the storage, in host order.
  std::span<const Touch> touches(StorageId storage) const;
  // The ops that make versions 1, 2, ... of the storage.
  std::span<const OpId> writers(StorageId storage) const;
  // The op that makes this version; kNoOp for version 0.
  OpId writer(StorageId storage, std::uint32_t version) const;
  // The newest version made by ops before `op` in host order.
  std::uint32_t version_before(StorageId storage, OpId op) const;
  // The storage's alloc and free op. kNoOp: preexisting, or outlives the trace.
  OpId alloc(StorageId storage) const { return alloc_[storage]; }
  OpId free(StorageId storage) const { return free_[storage]; }
  const PhaseRuns& phases() const { return phases_; }

 private:
  PhaseRuns phases_;
  std::vector<OpId> alloc_, free_;
  std::vector<std::uint32_t> first_touch_, first_writer_;  // per storage, and one past the end
  std::vector<Touch> touches_;
  std::vector<OpId> writers_;
};

// Was the storage made by the forward of `pass`, and is it given back by its backward? Parameters,
// inputs, gradients, optimizer states and communication buffers are not; nor is what forward frees, nor
// what the program itself holds on to (freed by another thread than backward's, after it).
bool is_saved_activation(const Trace& trace, const Dataflow& flow, const Pass& pass, StorageId storage);
// The same without the question of when it is freed: whatever flows from op to op in forward.
bool is_forward_intermediate(const Trace& trace, const Dataflow& flow, const Pass& pass, StorageId storage);

}  // namespace memwall
