// What a program with saved-tensor hooks does with a storage: when it could send it (as autograd saves it), and which
// op of backward begins the node of autograd's graph that asks for it back. For traces that say what autograd saves.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "policies/trace/dataflow.h"
#include "policies/trace/trace_edit.h"

namespace memwall {

// PyTorch saves what an operator reads before it runs it, and its result behind it; in the order of the operator's
// arguments.
struct SavePoint {
  InsertionPoint at;
  std::size_t argument = 0;

  friend bool operator<(const SavePoint& a, const SavePoint& b) {
    return std::tuple(a.at.op, a.at.after, a.argument) < std::tuple(b.at.op, b.at.after, b.argument);
  }
};

// Which node an op of backward belongs to the trace says (Op::source); where it does not, a node is told by what its
// operator has saved: ops of backward, one behind the other, in its module, that read any of it. Ops that are run again
// are one node, which asks for what they start from; a unit saves that before its first op.
class SavedStorages {
 public:
  // Both must outlive it.
  SavedStorages(const Trace& trace, const Dataflow& flow);

  // Does the trace say what autograd saves?
  bool known() const { return known_; }
  // Does it say which node each op of backward belongs to?
  bool says_nodes() const { return says_nodes_; }
  // Of a storage that is saved: where, and not before its last write in forward. Else nothing.
  std::optional<SavePoint> saved_at(StorageId storage) const;
  // The first op of the node of `op`; `op` itself where it is of none.
  OpId first_of_node(OpId op) const;
  // The first op of a node from `op` on, `end` where there is none before that.
  OpId first_node_from(OpId op, OpId end) const;
  // The last op that the node of `op` runs, but for sums of gradients of what was broadcast; kNoOp: it has saved
  // nothing, or the trace does not say.
  OpId node_end(OpId op) const;
  // The last op that the node of `op` runs: what its hooks hold goes then. kNoOp: as above.
  OpId node_released(OpId op) const;
  // What has come back is handed to its node, which gives it back when it has run. That op, where the program itself
  // gives back what nodes hold later: behind the sums of gradients of what was broadcast; and what only a re-run starts
  // from, behind the unit's backward.
  std::optional<OpId> handed_until(StorageId storage) const;

 private:
  void find_saves();
  void find_nodes();
  void add_reruns(OpId first, OpId end);
  void save(StorageId storage, SavePoint point);
  OpId saver_for(OpId op, OpId current) const;
  OpId owner_of(OpId op, OpId current) const;
  OpId end_of_nodes(StorageId storage, OpId last) const;
  bool sums_gradients(OpId op) const;

  const Trace& t_;
  const Dataflow& flow_;
  bool known_ = false, says_nodes_ = false;
  std::map<StorageId, SavePoint> saved_at_;
  std::map<StorageId, std::vector<OpId>> savers_;  // ascending
  std::set<OpId> saving_;                          // ops that save anything
  std::map<OpId, OpId> node_end_;                  // of an op of forward: the last op of its node, but for such sums
  std::map<OpId, OpId> node_released_;             // likewise, with them
  std::set<OpId> over_;                            // operators whose nodes have run
  std::map<OpId, OpId> first_of_node_;
  std::map<OpId, OpId> last_of_rerun_;  // by its first op
};

}  // namespace memwall
