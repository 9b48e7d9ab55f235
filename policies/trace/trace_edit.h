// Changes to a trace, collected first and applied at once.
//
// A rewriter says what stands before or after which op of the base trace, what is removed or replaced,
// which op works on another storage and which storage has another size; `apply` writes the new trace,
// renumbers ops, and derives the versions of every use anew (in a sound trace an op reads the newest
// version). New ops take the thread and the phase of the op they stand beside (backward for recompute),
// and the machine's host costs.
//
// An event stands for a position in its stream, waits included that no op has followed yet: to CUDA and to the engine
// alike. One wait for it is therefore enough, whatever its stream was told to wait for.
//
// A node of a CUDA graph has no host part: what is put before (after) it goes before the launch
// (after the last node).
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "sim/machine/machine.h"
#include "sim/trace/trace.h"
#include "sim/trace/trace_builder.h"

namespace memwall {

// A place in the host program: just before or just after an op of the base trace.
struct InsertionPoint {
  OpId op = 0;
  bool after = false;
};

class TraceEdit {
 public:
  // `base` and `costs` must outlive it.
  TraceEdit(const Trace& base, const HostCosts& costs);

  const Trace& base() const { return base_; }
  // The new trace's tables: add storages, streams, events, places, notes here.
  TraceBuilder& builder() { return builder_; }
  Trace& tables() { return builder_.trace(); }
  const HostCosts& costs() const { return costs_; }

  // A stream of the device by name; made if absent.
  std::uint16_t stream(std::string_view name, StreamRole role, std::uint16_t device = 0);

  // Puts `op` at the point, behind what was put there before. Sets thread, phase, added and origin
  // (modelled). Reads mean the newest version there, writes make the next. Throws UsageError for more
  // uses than kMostUsesOfAnOp.
  void insert(InsertionPoint point, Op op, std::span<const Use> uses = {});
  // The same for an op that is complete but for its uses' versions. `op.source` names an op of the base.
  void insert_complete(InsertionPoint point, const Op& op, std::span<const Use> uses = {});
  void insert_complete(InsertionPoint point, const Op& op, std::initializer_list<Use> uses) {
    insert_complete(point, op, std::span<const Use>(uses.begin(), uses.size()));
  }
  void alloc(InsertionPoint point, StorageId storage) { lifetime(OpKind::alloc, point, storage); }
  void free(InsertionPoint point, StorageId storage) { lifetime(OpKind::free, point, storage); }
  void wait(InsertionPoint point, std::uint32_t event, std::uint16_t stream);
  std::uint32_t record(InsertionPoint point, std::uint16_t stream);  // a new event; returns its number
  // `waiter` goes on once everything submitted to `other` by then is done. Nothing where both are one.
  void wait_stream(InsertionPoint point, std::uint16_t waiter, std::uint16_t other);
  // PyTorch's record_stream: the storage's memory comes back once what was submitted to `user` by then is done.
  void free_behind(InsertionPoint point, StorageId storage, std::uint16_t user);

  // Its host time goes with it. An op that a hand-over names remains as a mark. What has `op` as its source
  // has `heir` as its source from now on.
  void remove(OpId op, OpId heir = kNoOp);
  bool removed(OpId op) const { return (changes_[op] & kRemoved) != 0; }
  // `by` stands in the place of `op`: with its uses, or with others. `by.source` names an op of the base.
  void replace(OpId op, const Op& by);
  void replace(OpId op, const Op& by, std::span<const Use> uses);
  void replace(OpId op, const Op& by, std::initializer_list<Use> uses) {
    replace(op, by, std::span<const Use>(uses.begin(), uses.size()));
  }
  // Every version of the storage has this size from now on.
  void resize(StorageId storage, Bytes bytes) { tables().storages[storage].bytes = bytes; }
  // In op `op`, uses of storage `from` (and an alloc or free of it) become those of `to`.
  void repoint(OpId op, StorageId from, StorageId to);

  // `change`, if any, is called once per op of the base, in order: for what changes numbers of most ops.
  // REQUIRES: with it no op comes or goes.
  Trace apply(std::function<void(OpId, Op&)> change = {}) &&;

 private:
  // What is to happen to an op of the base, as bits.
  enum Change : std::uint8_t { kRemoved = 1, kReplaced = 2, kRepointed = 4, kNamed = 8 };  // named: by a hand-over
  // Pieces of one array.
  struct Piece {
    std::uint32_t first = 0, count = 0;
  };
  struct NewOp {
    std::uint64_t place = 0;  // twice the op of the base, and 1 behind it
    Op op;
    Piece uses;  // of new_uses_
  };
  struct Replacement {
    OpId at;
    Op op;
    Piece uses;  // of new_uses_
  };
  struct Repoint {
    OpId at;
    StorageId from, to;
  };
  OpId anchor(InsertionPoint point) const;
  void lifetime(OpKind kind, InsertionPoint point, StorageId storage);
  Piece keep(std::span<const Use> uses);
  std::span<const Use> kept(Piece piece) const { return {new_uses_.data() + piece.first, piece.count}; }
  void put(OpId op, const Op& by, Piece uses);
  void survey_base();
  void sort_changes();
  void append_new(std::uint64_t place);
  void append_base(OpId id);
  void append_changed(OpId id, Op op);
  void append_fresh(const Op& op, std::span<const Use> uses);
  static void repoint_uses(std::vector<Use>& uses, std::span<const Repoint> repoints);
  void renumber();

  const Trace& base_;
  const HostCosts& costs_;
  TraceBuilder builder_;
  std::deque<NewOp> new_ops_;         // as they were put
  std::vector<std::uint64_t> order_;  // of new_ops_: the place, then (32 bits) the number; filled by apply
  std::size_t next_new_ = 0;          // into order_
  std::vector<Use> new_uses_;
  std::deque<Replacement> replaced_;  // as they were given; of one op the last counts. Ordered by apply, as repoints_
  std::size_t next_replaced_ = 0;
  std::vector<Repoint> repoints_;  // as they were given
  std::size_t next_repoint_ = 0;
  std::vector<std::uint8_t> changes_;  // by op of the base
  std::vector<OpId> heirs_;            // by op of the base; empty where there are none
  std::vector<OpId> new_id_;     // of a base op: its own, or where it would stand
  std::vector<OpId> last_id_;    // of a base op: the last one put behind it, or its own
  std::vector<OpId> naming_;     // new ops that name other ops
  std::function<void(OpId, Op&)> change_;
};

}  // namespace memwall
