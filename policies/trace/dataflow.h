// Who makes, reads, allocates and frees what: a trace's uses, turned round so that one can ask by
// storage. Rewriters that change lifetimes or re-run ops need it. A snapshot: it does not follow
// later changes of the trace.
#pragma once

#include <span>
#include <vector>

#include "sim/trace/trace.h"

namespace memwall {

class Dataflow {
 public:
  struct Touch {
    OpId op = kNoOp;
    std::uint32_t version = 0;
    Access access = Access::read;
  };

  // REQUIRES: check(trace) is empty, so versions of a storage are made in order, without a hole.
  explicit Dataflow(const Trace& trace);

  // Every use of the storage, in host order.
  std::span<const Touch> touches(StorageId storage) const;
  // The ops that make versions 1, 2, ... of the storage.
  std::span<const OpId> writers(StorageId storage) const;
  // The op that makes this version; kNoOp for version 0.
  OpId writer(StorageId storage, std::uint32_t version) const;
  // The newest version made by ops before `op` in host order.
  std::uint32_t version_before(StorageId storage, OpId op) const;
  // The storage's alloc and free op, kNoOp if there is none.
  OpId alloc(StorageId storage) const { return alloc_[storage]; }
  OpId free(StorageId storage) const { return free_[storage]; }

 private:
  std::vector<OpId> alloc_, free_;
  std::vector<std::uint32_t> first_touch_, first_writer_;  // per storage, and one past the end
  std::vector<Touch> touches_;
  std::vector<OpId> writers_;
};

// One forward pass and what follows it until the next: backward and, mostly, the optimizer. With
// gradient accumulation a step has several.
struct Pass {
  OpId begin = 0;     // first op of the phase forward
  OpId backward = 0;  // first op of the phase backward
  OpId end = 0;       // one past the last op
};

// The passes that have a backward, in host order.
std::vector<Pass> passes(const Trace& trace);
// Forward passes of one step, which share its samples evenly; 1 where that cannot be told.
std::int64_t passes_per_step(const Trace& trace);

// Was the storage made by the forward of `pass`, and is it given back by its backward? Parameters,
// inputs, gradients, optimizer states and communication buffers are not; nor is what forward frees, nor
// what the program itself holds on to (freed by another thread than backward's, after it).
bool is_saved_activation(const Trace& trace, const Dataflow& flow, const Pass& pass, StorageId storage);
// The same without the question of when it is freed: whatever flows from op to op in forward.
bool is_forward_intermediate(const Trace& trace, const Dataflow& flow, const Pass& pass, StorageId storage);

}  // namespace memwall
