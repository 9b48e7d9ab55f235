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

#include <functional>
#include <map>
#include <span>
#include <string_view>
#include <unordered_map>
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
  void insert(InsertionPoint point, Op op, std::vector<Use> uses = {});
  // The same for an op that is complete but for its uses' versions. `op.source` names an op of the base.
  void insert_complete(InsertionPoint point, const Op& op, std::vector<Use> uses = {});
  void alloc(InsertionPoint point, StorageId storage) { lifetime(OpKind::alloc, point, storage); }
  void free(InsertionPoint point, StorageId storage) { lifetime(OpKind::free, point, storage); }
  void wait(InsertionPoint point, std::uint32_t event, std::uint16_t stream);
  std::uint32_t record(InsertionPoint point, std::uint16_t stream);  // a new event; returns its number

  // Its host time goes with it. An op that a hand-over names remains as a mark. What has `op` as its source
  // has `heir` as its source from now on.
  void remove(OpId op, OpId heir = kNoOp);
  bool removed(OpId op) const { return removed_[op]; }
  // `by` stands in the place of `op`: with its uses, or with others. `by.source` names an op of the base.
  void replace(OpId op, const Op& by);
  void replace(OpId op, const Op& by, std::vector<Use> uses);
  // Every version of the storage has this size from now on.
  void resize(StorageId storage, Bytes bytes) { tables().storages[storage].bytes = bytes; }
  // In op `op`, uses of storage `from` (and an alloc or free of it) become those of `to`.
  void repoint(OpId op, StorageId from, StorageId to);

  // `change`, if any, is called once per op of the base, in order: for what changes numbers of most ops.
  // REQUIRES: with it no op comes or goes.
  Trace apply(std::function<void(OpId, Op&)> change = {}) &&;

 private:
  struct NewOp {
    Op op;
    std::vector<Use> uses;
  };
  struct Repoint {
    StorageId from, to;
  };
  OpId anchor(InsertionPoint point) const;
  void lifetime(OpKind kind, InsertionPoint point, StorageId storage);
  void append_all(const std::map<OpId, std::vector<NewOp>>& list, OpId at);
  void append_base(OpId id);
  void append_fresh(const Op& op, std::span<const Use> uses);
  static void repoint_uses(std::vector<Use>& uses, std::span<const Repoint> repoints);
  void renumber();

  const Trace& base_;
  const HostCosts& costs_;
  TraceBuilder builder_;
  std::map<OpId, std::vector<NewOp>> before_, after_;
  std::unordered_map<OpId, NewOp> replaced_;
  std::map<OpId, std::vector<Repoint>> repoints_;
  std::vector<bool> removed_;
  std::unordered_map<OpId, OpId> heirs_;
  std::vector<OpId> new_id_;   // of a base op: its own, or where it would stand
  std::vector<OpId> last_id_;  // of a base op: the last one put behind it, or its own
  std::vector<Use> uses_;      // of the op at hand
  std::function<void(OpId, Op&)> change_;
};

}  // namespace memwall
