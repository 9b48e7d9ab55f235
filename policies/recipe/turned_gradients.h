// Gradients of queries, keys and values that lie head by head, where backward reads them token by token: PyTorch copies
// them before the product of the layer that made queries, keys and values, or before it joins the three.
#pragma once

#include <array>
#include <vector>

#include "policies/recipe/backward_nodes.h"
#include "policies/recipe/program_writer.h"
#include "policies/trace/dataflow.h"
#include "policies/trace/trace_edit.h"

namespace memwall {

class TurnedGradients {
 public:
  // All must outlive it.
  TurnedGradients(const Trace& trace, const Dataflow& flow, TraceEdit& edit, ProgramWriter& writer);

  struct Heads {
    std::int64_t batch = 0, heads = 0, key_heads = 0;
  };
  // Of queries, keys and values, made by `backward`: [batch, heads, length, size]; of keys [.., size, length], where
  // their heads are not shared.
  void copy(const std::array<StorageId, 3>& gradients, OpId backward, const Heads& of, DataType type);
  // The end of the node of backward that the op is of.
  OpId end_of_node(OpId op) const;

 private:
  // Where a gradient, or what elementwise operators make of it, is read by a product or joined with the others.
  struct Consumer {
    OpId op = kNoOp;
    StorageId storage = kNoStorage;
    bool joined = false;
  };
  Consumer consumer_of(StorageId gradient, OpId backward) const;
  void copy_for(OpId reader, StorageId storage, DataType type);

  const Trace& t_;
  const Dataflow& flow_;
  TraceEdit& edit_;
  ProgramWriter& writer_;
  std::vector<BackwardNode> nodes_;  // of all passes
};

}  // namespace memwall
