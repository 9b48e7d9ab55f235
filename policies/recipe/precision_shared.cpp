// Parameters that several products of a pass read (an output layer that makes its logits in pieces, a layer that runs
// twice). Autocast casts them once; what backward makes for each product are gradients of that cast: they meet in its
// type, and the sum is cast by the node of the cast, which runs behind that of the product it was made for.
#include <algorithm>

#include "policies/recipe/precision_change.h"
#include "policies/trace/described.h"
#include "sim/error.h"

namespace memwall {

// What of the node is the gradient of that operand; kNoStorage: nothing.
StorageId PrecisionChange::gradient_of(const BackwardNode& node, StorageId operand) const {
  for (const OpId id : node.ops) {
    std::size_t number = 0;
    for (const Use& use : t_.uses_of(t_.ops[id])) {
      if (use.access != Access::write) continue;
      const std::size_t at = number++;
      if (!is_read_again(node, id, use.storage) && operand_of_gradient(node, id, at) == operand) return use.storage;
    }
  }
  return kNoStorage;
}

void PrecisionChange::join_cast_gradients(const Pass&) {
  shared_.clear();
  part_of_.clear();
  for (const Cast& cast : casts_) {
    if (cast.pass != pass_number_ || cast.readers.size() < 2) continue;
    std::set<StorageId> gradients;
    for (const BackwardNode& node : nodes_)
      if (node.forward != kNoOp && std::ranges::find(cast.readers, node.forward) != cast.readers.end())
        if (const StorageId gradient = gradient_of(node, cast.from); gradient != kNoStorage) gradients.insert(gradient);
    if (gradients.size() > 1) share_gradient(cast, gradients);
  }
}

// Follows the sums in which all gradients of the cast meet; the last one's result is the gradient of the parameter.
void PrecisionChange::share_gradient(const Cast& cast, const std::set<StorageId>& gradients) {
  std::set<StorageId> parts = gradients;
  std::size_t sums = 0;
  OpId last = kNoOp;
  StorageId sum = kNoStorage;
  for (const BackwardNode& node : nodes_) {
    if (!node.sum || node.accumulates) continue;
    const auto uses = t_.uses_of(t_.ops[node.ops.front()]);
    if (!std::ranges::all_of(uses,
                             [&](const Use& u) { return u.access == Access::write || parts.contains(u.storage); }))
      continue;
    for (const Use& use : uses)
      if (use.access == Access::write) sum = use.storage;
    parts.insert(sum);
    last = node.ops.front();
    ++sums;
  }
  if (sums + 1 != gradients.size())
    throw UsageError("Policy 'precision' has no meaning for trace '" + t_.name + "': of " +
                     described_storage(t_, cast.from) +
                     ", which several products read, it is not told where the gradients meet.");
  const StorageId low =
      edit_.builder().add_storage(types_.elements(sum) * bytes_of(target_.low), StorageKind::workspace,
                                  t_.places[t_.storages[sum].place], t_.strings[t_.ops[last].operator_name]);
  edit_.tables().storages[low].shape = t_.storages[sum].shape;
  edit_.tables().storages[low].stream = t_.storages[sum].stream;
  types_.set(low, target_.low);
  for (const Touch& touch : flow_.touches(sum))
    if (touch.op <= last) use_instead(touch.op, sum, low);
  if (const OpId alloc = flow_.alloc(sum); alloc != kNoOp) edit_.repoint(alloc, sum, low);
  for (const StorageId part : parts) part_of_[part] = shared_.size();
  shared_.push_back({.first_reader = cast.readers.front(), .operand = cast.from, .sum = sum, .low = low});
}

// Of a gradient that meets others: its type, and, in the node of the product that the cast was made for, the cast of
// their sum behind it.
bool PrecisionChange::take_shared_gradient(const BackwardNode& node, OpId id, StorageId made) {
  const auto found = part_of_.find(made);
  if (found == part_of_.end()) return false;
  const SharedGradient& shared = shared_[found->second];
  if (made != shared.sum) types_.set(made, target_.low);
  if (node.forward == shared.first_reader) behind_node_.push_back({id, shared.low, shared.sum, shared.operand});
  return true;
}

}  // namespace memwall
