#include "policies/recipe/turned_gradients.h"

#include <algorithm>
#include <set>
#include <string>

#include "policies/trace/call_begin.h"
#include "policies/trace/operator_name.h"

namespace memwall {

TurnedGradients::TurnedGradients(const Trace& trace, const Dataflow& flow, TraceEdit& edit, ProgramWriter& writer)
    : t_(trace), flow_(flow), edit_(edit), writer_(writer) {
  for (const Pass& pass : passes(trace))
    for (BackwardNode& node : backward_nodes(trace, flow, pass)) nodes_.push_back(std::move(node));
}

OpId TurnedGradients::end_of_node(OpId op) const {
  for (const BackwardNode& node : nodes_)
    if (std::ranges::find(node.ops, op) != node.ops.end()) return node.end;
  return op;
}

TurnedGradients::Consumer TurnedGradients::consumer_of(StorageId gradient, OpId backward) const {
  std::set<StorageId> line{gradient};
  for (OpId id = backward + 1; id < t_.ops.size() && t_.ops[id].phase == Phase::backward; ++id) {
    const Op& op = t_.ops[id];
    if (op.kind != OpKind::kernel) continue;
    StorageId read = kNoStorage;
    Bytes written = 0;
    for (const Use& use : t_.uses_of(op)) {
      if (use.access == Access::read && line.contains(use.storage) &&
          (read == kNoStorage || t_.storages[use.storage].bytes > t_.storages[read].bytes))
        read = use.storage;
      if (use.access == Access::write) written += t_.storages[use.storage].bytes;
    }
    if (read == kNoStorage) continue;
    if (is_matrix_product(t_, t_.ops[id])) return {.op = id, .storage = read};
    if (op.operator_class != OperatorClass::elementwise && op.operator_class != OperatorClass::memory) return {};
    const bool joins = plain_operator_name(operator_of(t_, op)) == "cat" && written > t_.storages[read].bytes;
    if (joins) return {.op = id, .storage = read, .joined = true};
    for (const Use& use : t_.uses_of(op))
      if (use.access == Access::write) line.insert(use.storage);
  }
  return {};
}

// Autograd runs the node of what was turned last first: values, keys, queries. Keys that are not shared were turned
// once more for their product, so that theirs lie in a row, sequence by sequence.
void TurnedGradients::copy(const std::array<StorageId, 3>& gradients, OpId backward, const Heads& of, DataType type) {
  constexpr std::size_t kQueries = 0, kKeys = 1;
  const bool shared = of.heads != of.key_heads;
  for (const std::size_t i : {2, 1, 0}) {
    const Consumer consumer = consumer_of(gradients[i], backward);
    if (consumer.op == kNoOp) continue;
    const bool lies_apart = (i == kQueries ? of.heads : of.key_heads) > 1;
    const bool copied = i == kKeys && !shared ? !consumer.joined && of.batch > 1 : lies_apart;
    if (copied) copy_for(consumer.op, consumer.storage, type);
  }
}

// All that reads the storage from there on reads the copy.
void TurnedGradients::copy_for(OpId reader, StorageId storage, DataType type) {
  writer_.move_to({call_begin(t_, reader), false}, t_.ops[reader]);
  writer_.in_module(0);
  const Bytes width = bytes_of(type);
  const WrittenTensor x{storage, {t_.storages[storage].bytes / width}, type};
  const WrittenTensor y = writer_.make("aten::clone", x.shape, type);
  edit_.tables().storages[y.storage].shape = t_.storages[storage].shape;
  writer_.kernel(memory_work("aten::clone", type, x.elements()), {&x}, {&y});
  for (const Touch& touch : flow_.touches(storage))
    if (touch.op >= reader) edit_.repoint(touch.op, storage, y.storage);
  if (const OpId freed = flow_.free(storage); freed != kNoOp) {
    edit_.repoint(freed, storage, y.storage);
    writer_.free(storage);
  }
}

}  // namespace memwall
