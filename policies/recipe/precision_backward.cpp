// Backward: what nodes read instead of what they had kept, and where gradients are cast.
//
// A gradient has the type of what it is the gradient of. Where a node computes in another, its results are cast: at the
// end of the node if its operator promotes (torch/csrc/autograd/engine.cpp, validate_outputs), behind it, by the node
// of the cast, if forward has cast the operand. The node of the operand that was cast last runs first.
#include <algorithm>

#include "policies/recipe/modelled_op.h"
#include "policies/recipe/precision_change.h"
#include "policies/trace/call_begin.h"
#include "policies/trace/operator_name.h"

namespace memwall {

void PrecisionChange::change_backward(const Pass& pass) {
  nodes_ = backward_nodes(t_, flow_, pass);
  fitted_.clear();
  find_last_nodes(pass);
  join_normalized_gradients(pass);
  join_cast_gradients(pass);
  for (std::size_t i = 0; i < nodes_.size(); ++i) change_node(i, pass);
}

void PrecisionChange::find_last_nodes(const Pass& pass) {
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    for (const OpId id : nodes_[i].ops)
      for (const Use& use : t_.uses_of(t_.ops[id]))
        if (use.access == Access::read && nodes_[i].forward != kNoOp && is_kept_value(flow_, pass, use))
          if (const auto found = cast_of_.find({nodes_[i].forward, use.storage}); found != cast_of_.end())
            casts_[found->second].last_node = i;
}

void PrecisionChange::change_node(std::size_t index, const Pass& pass) {
  const BackwardNode& node = nodes_[index];
  if (node.sum && joined_sums_.contains(node.ops.front())) return;
  behind_ops_.clear();
  behind_node_.clear();
  sum_of_cast_parameter(node);
  for (const OpId id : node.ops) {
    read_as_kept(node, id, pass);
    fit_gradients(node, id, pass);
    type_gradients(node, id);
  }
  end_node(index);
}

void PrecisionChange::read_as_kept(const BackwardNode& node, OpId id, const Pass& pass) {
  if (node.forward == kNoOp) return;
  for (const Use& use : t_.uses_of(t_.ops[id])) {
    if (use.access != Access::read || !is_kept_value(flow_, pass, use)) continue;
    if (const auto found = cast_of_.find({node.forward, use.storage}); found != cast_of_.end())
      use_instead(id, use.storage, casts_[found->second].to);
  }
}

// In which type a node gets its gradient: that of its operator's result. kNone where it is not told.
DataType PrecisionChange::expected_type(const BackwardNode& node) const {
  if (node.forward == kNoOp) return DataType::unknown;
  const StorageId result = main_result(node.forward);
  return result == kNoStorage ? DataType::unknown : types_.type(result);
}

// Where a gradient has met another type behind the node, without a kernel (a sum of residuals), it is cast once it is
// there: before the node, and before all others that read it.
void PrecisionChange::fit_gradients(const BackwardNode& node, OpId id, const Pass& pass) {
  const DataType expected = expected_type(node);
  if (expected == DataType::unknown) return;
  for (const Use& use : t_.uses_of(t_.ops[id])) {
    if (use.access != Access::read || !types_.holds_numbers(use.storage) || is_kept_value(flow_, pass, use)) continue;
    if (used(id, use.storage) != use.storage) continue;  // cast already
    const OpId made = maker_before(use.storage, id);
    const bool own = std::ranges::find(node.ops, made) != node.ops.end();
    if (!own && types_.type(use.storage) != expected) use_instead(id, use.storage, fitted_gradient(made, use.storage));
  }
}

// The last op before `id` that writes the storage.
OpId PrecisionChange::maker_before(StorageId storage, OpId id) const {
  OpId made = kNoOp;
  for (const Touch& touch : flow_.touches(storage))
    if (touch.op < id && touch.writes) made = touch.op;
  return made;
}

// The module of the op of forward in which a result of `forward`, or what is made of it in the same type, meets
// another.
StringId PrecisionChange::module_of_meeting(OpId forward) const {
  const DataType type = types_.type(main_result(forward));
  for (OpId id = forward; id != kNoOp;) {
    OpId reader = kNoOp;
    for (const Touch& touch : flow_.touches(main_result(id)))
      if (reader == kNoOp && touch.op > id && touch.reads && t_.ops[touch.op].phase == Phase::forward)
        reader = touch.op;
    if (reader == kNoOp || main_result(reader) == kNoStorage) return 0;
    if (types_.type(main_result(reader)) != type) return t_.ops[reader].module;
    id = reader;
  }
  return 0;
}

StorageId PrecisionChange::fitted_gradient(OpId made, StorageId gradient) {
  if (const auto found = fitted_.find({gradient, made}); found != fitted_.end()) return found->second;
  const DataType from = types_.type(gradient), to = from == DataType::fp32 ? target_.low : DataType::fp32;
  OpId last_fitted = kNoOp, last_plain = kNoOp;
  Op like = t_.ops[made];
  like.module = 0;
  for (const Touch& touch : flow_.touches(gradient)) {
    if (touch.op <= made) continue;
    const BackwardNode* node = node_of(touch.op);
    const bool fits = node != nullptr && (expected_type(*node) == to || is_of_cast_parameter(*node));
    (fits ? last_fitted : last_plain) = touch.op;
    if (fits && node->forward != kNoOp && like.module == 0) like.module = module_of_meeting(node->forward);
    if (touch.writes) break;  // another sum from here on
  }
  ListWriter writer(edit_, {behind_accumulation(made), true}, like, pricer_);
  const std::int64_t elements = types_.elements(gradient);
  const TensorList source{{gradient, elements, from}};
  const TensorList cast{writer.make("aten::_to_copy", {gradient, elements, to})};
  writer.call({.name = "aten::_to_copy", .operator_class = OperatorClass::memory, .flops_per_element = 0, .lists = 0},
              {&source}, {&cast});
  const StorageId fitted = cast.front().storage;
  types_.set(fitted, to);
  fitted_[{gradient, made}] = fitted;
  const OpId freed = flow_.free(gradient);
  if (last_plain != kNoOp && last_plain > last_fitted) {
    free_behind({end_of_node(last_fitted), true}, last_fitted, fitted);
    return fitted;
  }
  if (last_plain == kNoOp)
    writer.drop(source.front());
  else
    free_behind({end_of_node(last_plain), true}, last_plain, gradient);
  if (freed != kNoOp) edit_.repoint(freed, gradient, fitted);
  return fitted;
}

// The end of the op's node, or of what adds its gradients to others of the same (a parameter's of earlier passes, or of
// another product that reads it): that goes before all else.
OpId PrecisionChange::behind_accumulation(OpId id) const {
  std::size_t i = 0;
  while (i < nodes_.size() && std::ranges::find(nodes_[i].ops, id) == nodes_[i].ops.end()) ++i;
  if (i >= nodes_.size()) return id;
  std::size_t last = i;
  while (last + 1 < nodes_.size() && nodes_[last + 1].sum) ++last;
  return end_of_nodes(i, last);
}

// Of a node and the sums of its gradients: what it has made goes behind them, as far as they have taken it up.
OpId PrecisionChange::end_of_nodes(std::size_t first, std::size_t last) const {
  OpId end = nodes_[last].end;
  std::set<StorageId> own;
  for (std::size_t i = first; i <= last; ++i)
    for (const OpId id : nodes_[i].ops)
      for (const Use& use : t_.uses_of(t_.ops[id])) own.insert(use.storage);
  while (end + 1 < t_.ops.size() && t_.ops[end + 1].kind == OpKind::free && own.contains(t_.ops[end + 1].target)) ++end;
  return end;
}

const BackwardNode* PrecisionChange::node_of(OpId id) const {
  for (const BackwardNode& node : nodes_)
    if (std::ranges::find(node.ops, id) != node.ops.end()) return &node;
  return nullptr;
}

// Does the node sum up the gradient of a parameter that the program casts before it concatenates it?
bool PrecisionChange::is_of_cast_parameter(const BackwardNode& node) const {
  return cast_of_parameter(node) != nullptr;
}

// Itself, or by being added to what earlier passes have made.
bool PrecisionChange::becomes_gradient_of(StorageId storage, StorageId parameter) const {
  const std::string name = t_.strings[t_.storages[parameter].label] + ".grad";
  if (t_.strings[t_.storages[storage].label] == name) return true;
  for (const Touch& touch : flow_.touches(storage))
    for (const Use& use : t_.uses_of(t_.ops[touch.op]))
      if (touch.reads && use.access == Access::write && t_.strings[t_.storages[use.storage].label] == name) return true;
  return false;
}

const PrecisionChange::Cast* PrecisionChange::cast_of_parameter(const BackwardNode& node) const {
  if (node.forward != kNoOp || node.sum || name_of(node.ops.front()) != "sum") return nullptr;
  for (const Use& use : t_.uses_of(t_.ops[node.ops.front()]))
    for (const Cast& cast : casts_)
      if (use.access == Access::write && cast.concatenated && cast.pass == pass_number_ &&
          becomes_gradient_of(use.storage, cast.from))
        return &cast;
  return nullptr;
}

// Its part of the gradient is cast, then summed up.
void PrecisionChange::sum_of_cast_parameter(const BackwardNode& node) {
  const Cast* const cast = cast_of_parameter(node);
  if (cast == nullptr) return;
  const OpId id = node.ops.front();
  for (const Use& use : t_.uses_of(t_.ops[id])) {
    if (use.access != Access::read || !types_.holds_numbers(use.storage)) continue;
    const StorageId low = types_.type(use.storage) == target_.low
                              ? use.storage
                              : fitted_gradient(maker_before(use.storage, id), use.storage);
    ListWriter writer(edit_, InsertionPoint{call_begin(t_, id), false}, t_.ops[id], pricer_);
    const std::int64_t elements = edit_.tables().storages[cast->to].bytes / bytes_of(target_.low);
    const TensorList source{{low, elements, target_.low}};
    const TensorList wide{writer.make("aten::_to_copy", {low, elements, DataType::fp32})};
    writer.call({.name = "aten::_to_copy", .operator_class = OperatorClass::memory, .flops_per_element = 0, .lists = 0},
                {&source}, {&wide});
    types_.set(wide.front().storage, DataType::fp32);
    use_instead(id, use.storage, wide.front().storage);
    free_behind({node.end, true}, id, wide.front().storage);
    return;
  }
}

bool PrecisionChange::is_read_again(const BackwardNode& node, OpId id, StorageId storage) const {
  for (const OpId later : node.ops) {
    if (later <= id) continue;
    for (const Use& use : t_.uses_of(t_.ops[later]))
      if (use.storage == storage && use.access == Access::read) return true;
  }
  return false;
}

// Of what the op multiplies with what it reads: the other factor of forward's product.
StorageId PrecisionChange::other_operand(OpId forward, OpId id) const {
  StorageId other = kNoStorage;
  const bool with_bias = name_of(forward) == "addmm";
  for (const Use& operand : t_.uses_of(t_.ops[forward])) {
    if (operand.access != Access::read || !types_.holds_numbers(operand.storage)) continue;
    bool read = false;
    for (const Use& use : t_.uses_of(t_.ops[id]))
      read = read || (use.access == Access::read && use.storage == operand.storage);
    if (read) continue;
    const bool bias = with_bias && other != kNoStorage && is_parameter(operand.storage) &&
                      old_bytes(operand.storage) < old_bytes(other);
    if (!bias) other = operand.storage;
  }
  return other;
}

// Of what is not taken; kNoStorage if there are several. (A view's gradient is smaller than its storage.)
StorageId PrecisionChange::only_activation(const std::vector<StorageId>& operands,
                                           const std::set<StorageId>& taken) const {
  StorageId only = kNoStorage;
  for (const StorageId operand : operands) {
    if (is_parameter(operand) || taken.contains(operand)) continue;
    if (only != kNoStorage) return kNoStorage;
    only = operand;
  }
  return only;
}

// What of forward's operands the op's `number`th result is the gradient of; kNoStorage: not told.
StorageId PrecisionChange::operand_of_gradient(const BackwardNode& node, OpId id, std::size_t number) const {
  if (node.forward == kNoOp) return kNoStorage;
  const std::string name = name_of(id);
  if (name == "mm" || name == "bmm" || name == "mul") return other_operand(node.forward, id);
  std::vector<StorageId> results, operands;
  for (const Use& use : t_.uses_of(t_.ops[id]))
    if (use.access == Access::write) results.push_back(use.storage);
  bool told = false;
  for (const Use& use : t_.uses_of(t_.ops[node.forward]))
    if (use.access == Access::read && types_.holds_numbers(use.storage)) {
      operands.push_back(use.storage);
      told = told || use.saved;
    }
  if (t_.ops[id].operator_class == OperatorClass::attention) {  // of query, key, value
    if (told && operands.size() == 3) std::swap(operands[0], operands[1]);
    return operands.empty() ? kNoStorage : operands[std::min(number, operands.size() - 1)];
  }
  std::set<StorageId> taken;
  for (std::size_t i = 0; i <= number; ++i) {
    StorageId found = kNoStorage;
    for (const StorageId operand : operands)
      if (found == kNoStorage && !taken.contains(operand) && old_bytes(operand) == old_bytes(results[i]))
        found = operand;
    if (i == number) return found != kNoStorage ? found : only_activation(operands, taken);
    taken.insert(found);
  }
  return kNoStorage;
}

// Some operators compute gradients that nobody asks for.
bool PrecisionChange::is_wanted(OpId id, StorageId gradient) const {
  return t_.storages[gradient].kind == StorageKind::gradient || flow_.free(gradient) == kNoOp ||
         flow_.touches(gradient).back().op > id;
}

void PrecisionChange::type_gradients(const BackwardNode& node, OpId id) {
  std::size_t number = 0;
  for (const Use& use : t_.uses_of(t_.ops[id])) {
    if (use.access != Access::write) continue;
    const std::size_t at = number++;
    if (!types_.holds_numbers(use.storage) ||
        flow_.writer(use.storage, use.version) != flow_.writers(use.storage).front() ||
        take_shared_gradient(node, id, use.storage))
      continue;
    const bool last = !is_read_again(node, id, use.storage);
    const StorageId operand = last && !node.sum ? operand_of_gradient(node, id, at) : kNoStorage;
    const OperatorClass work = t_.ops[id].operator_class;
    const bool as_operand =
        work == OperatorClass::normalization || work == OperatorClass::attention;  // statistics are fp32
    DataType made = widest_read(id);
    if (made == DataType::unknown) made = target_.autocast || target_.loss_in_fp32 ? DataType::fp32 : target_.low;
    if (as_operand && operand != kNoStorage) made = types_.type(used(node.forward, operand));
    if (operand == kNoStorage || !is_wanted(id, use.storage)) {
      types_.set(use.storage, made);
      continue;
    }
    const auto cast = cast_of_.find({node.forward, operand});
    const DataType wanted = types_.type(used_before_cast(node.forward, operand));
    const bool joined = cast != cast_of_.end() && casts_[cast->second].shared;  // with another, before it is cast
    types_.set(use.storage, joined ? made : wanted);
    if (made == wanted || joined) continue;
    const StorageId low =
        edit_.builder().add_storage(types_.elements(use.storage) * bytes_of(made), StorageKind::workspace,
                                    t_.places[t_.storages[use.storage].place], t_.strings[t_.ops[id].operator_name]);
    edit_.tables().storages[low].shape = t_.storages[use.storage].shape;
    edit_.tables().storages[low].stream = t_.storages[use.storage].stream;
    types_.set(low, made);
    for (const Touch& touch : flow_.touches(use.storage))  // several kernels of one call may fill it
      if (std::ranges::find(node.ops, touch.op) != node.ops.end()) use_instead(touch.op, use.storage, low);
    if (const OpId alloc = flow_.alloc(use.storage); alloc != kNoOp) edit_.repoint(alloc, use.storage, low);
    (cast != cast_of_.end() ? behind_node_ : behind_ops_).push_back({id, low, use.storage, operand});
  }
}

void PrecisionChange::cast_gradient(InsertionPoint point, const Op& like, StorageId low, StorageId gradient) {
  Op alloc = modelled_op(OpKind::alloc, like);
  alloc.target = gradient;
  alloc.stream = t_.storages[gradient].stream;
  alloc.host_cost = edit_.costs().allocator_call;
  edit_.insert_complete(point, alloc);
  if (t_.storages[gradient].kind != StorageKind::gradient)
    edit_.tables().storages[gradient].label = edit_.tables().strings.intern("aten::_to_copy");
  ListWriter writer(edit_, point, like, pricer_);
  const std::int64_t elements = types_.elements(gradient);
  const TensorList source{{low, elements, types_.type(low)}}, made{{gradient, elements, types_.type(gradient)}};
  writer.call({.name = "aten::_to_copy", .operator_class = OperatorClass::memory, .flops_per_element = 0, .lists = 0},
              {&source}, {&made});
  writer.drop(source.front());
}

// Casts of nodes whose turn comes behind this one: the last cast of forward first. Where the first gradient meets
// another one, they are added before the next cast.
void PrecisionChange::end_node(std::size_t index) {
  const BackwardNode& node = nodes_[index];
  for (const LateCast& late : behind_ops_)
    cast_gradient({node.ops.back(), true}, t_.ops[late.op], late.low, late.gradient);
  for (const Cast& cast : casts_)
    if (cast.last_node == index && cast.pass == pass_number_ && !cast.copy)
      free_behind({node.end, true}, node.ops.back(), cast.to);
  std::ranges::stable_sort(behind_node_, [&](const LateCast& a, const LateCast& b) {
    return cast_of_.at({node.forward, a.operand}) > cast_of_.at({node.forward, b.operand});
  });
  std::set<StorageId> given_on;  // as they are
  for (const OpId id : node.ops)
    for (const Use& use : t_.uses_of(t_.ops[id]))
      if (use.access == Access::write) given_on.insert(use.storage);
  for (const LateCast& late : behind_node_) given_on.erase(late.gradient);
  OpId end = node.end;
  std::size_t next = index + 1;
  while (is_sum_of(next, given_on)) end = end_of_nodes(index, next++);
  for (const LateCast& late : behind_node_) {
    cast_gradient({end, true}, t_.ops[late.op], late.low, late.gradient);
    if (is_sum_of(next, {late.gradient}) && !nodes_[next].accumulates) end = nodes_[next++].end;
    accumulate_behind({end, true}, index, late.gradient);
  }
}

bool PrecisionChange::is_sum_of(std::size_t index, const std::set<StorageId>& gradients) const {
  if (index >= nodes_.size() || !nodes_[index].sum) return false;
  return std::ranges::any_of(t_.uses_of(t_.ops[nodes_[index].ops.front()]), [&](const Use& use) {
    return use.access == Access::read && gradients.contains(use.storage);
  });
}

// The gradient of a parameter is added to that of earlier passes as soon as it is cast.
void PrecisionChange::accumulate_behind(InsertionPoint point, std::size_t index, StorageId gradient) {
  for (std::size_t i = index + 1; i < nodes_.size() && nodes_[i].sum; ++i) {
    if (!nodes_[i].accumulates || !is_sum_of(i, {gradient})) continue;
    const OpId id = nodes_[i].ops.front();
    edit_.remove(id);
    edit_.insert_complete(point, t_.ops[id], t_.uses_of(t_.ops[id]));
    if (const OpId freed = flow_.free(gradient); freed != kNoOp) {
      edit_.remove(freed);
      free_behind(point, id, gradient);
    }
    return;
  }
}

}  // namespace memwall
