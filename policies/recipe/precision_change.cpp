// What the parts of the change share: lifetimes, and what each op then is.
#include "policies/recipe/precision_change.h"

#include <algorithm>

#include "policies/recipe/dropped_storages.h"
#include "policies/recipe/modelled_op.h"
#include "policies/trace/call_begin.h"
#include "policies/trace/operator_name.h"
#include "policies/trace/optimizer_step.h"

namespace memwall {

PrecisionChange::PrecisionChange(const Trace& trace, const Machine& machine, const Pricer& pricer,
                                 PrecisionTarget target)
    : t_(trace),
      flow_(trace),
      pricer_(pricer),
      target_(target),
      has_passes_(passes_per_step(trace) > 1),
      edit_(trace, machine.host),
      types_(trace, flow_) {
  for (const OptimizerStep& step : find_optimizer(trace, flow_).steps)
    trained_.insert(step.parameters.begin(), step.parameters.end());
}

Trace PrecisionChange::apply() && {
  if (!target_.autocast) lower_what_lives_before();
  for (const Pass& pass : passes(t_)) {
    change_forward(pass);
    change_backward(pass);
    end_casts(pass);
    shorten_lives(pass);
    ++pass_number_;
  }
  if (!target_.autocast) change_optimizer();
  for (StorageId id = 0; id < t_.storages.size(); ++id)
    if (types_.holds_numbers(id)) edit_.resize(id, types_.elements(id) * bytes_of(types_.type(id)));
  change_ops();
  return without_storages(std::move(edit_).apply(), dropped_);
}

// Parameters, buffers, inputs; states of the optimizer where they are as large as parameters: not its counters.
void PrecisionChange::lower_what_lives_before() {
  for (StorageId id = 0; id < t_.storages.size(); ++id) {
    const Storage& storage = t_.storages[id];
    if (!storage.preexisting || !types_.holds_numbers(id)) continue;
    const std::string& label = t_.strings[storage.label];
    const bool state = storage.kind == StorageKind::optimizer_state;
    const bool moment =
        label.ends_with(".exp_avg") || label.ends_with(".exp_avg_sq") || label.ends_with(".momentum_buffer");
    if (!state || moment) types_.set(id, target_.low);
  }
}

std::string PrecisionChange::name_of(OpId id) const { return plain_operator_name(operator_of(t_, t_.ops[id])); }

StorageId PrecisionChange::used(OpId id, StorageId storage) const {
  const auto found = replaced_.find(id);
  if (found != replaced_.end())
    for (const auto& [from, to] : found->second)
      if (from == storage) return to;
  return storage;
}

// As forward's op reads it where nothing is cast for it.
StorageId PrecisionChange::used_before_cast(OpId id, StorageId storage) const {
  return cast_of_.contains({id, storage}) ? storage : used(id, storage);
}

void PrecisionChange::use_instead(OpId id, StorageId storage, StorageId by) {
  replaced_[id].emplace_back(storage, by);
  edit_.repoint(id, storage, by);
}

DataType PrecisionChange::widest_read(OpId id) const {
  DataType widest = DataType::unknown;
  for (const Use& use : t_.uses_of(t_.ops[id]))
    if (use.access == Access::read && types_.holds_numbers(use.storage)) {
      const DataType type = types_.type(used(id, use.storage));
      if (bytes_of(type) > bytes_of(widest)) widest = type;
    }
  return widest;
}

DataType PrecisionChange::narrowest_read(OpId id) const {
  DataType narrowest = DataType::fp32;
  for (const Use& use : t_.uses_of(t_.ops[id]))
    if (use.access == Access::read && types_.holds_numbers(use.storage) &&
        bytes_of(types_.type(use.storage)) < bytes_of(narrowest))
      narrowest = types_.type(use.storage);
  return narrowest;
}

void PrecisionChange::free_behind(InsertionPoint point, OpId like, StorageId storage) {
  Op op = modelled_op(OpKind::free, t_.ops[like]);
  op.target = storage;
  op.stream = edit_.tables().storages[storage].stream;
  op.host_cost = edit_.costs().allocator_call;
  edit_.insert_complete(point, op);
}

// Before the loss is divided by the number of passes, if there are several.
InsertionPoint PrecisionChange::end_of_autocast(const Pass& pass) const {
  const InsertionPoint end{pass.backward, false};
  if (!has_passes_) return end;
  const auto is_number = [&](const Use& use) { return t_.storages[use.storage].bytes <= bytes_of(DataType::fp64); };
  for (OpId id = pass.backward; id-- > pass.begin;)
    if (t_.ops[id].kind == OpKind::kernel)
      return std::ranges::all_of(t_.uses_of(t_.ops[id]), is_number) ? InsertionPoint{call_begin(t_, id), false} : end;
  return end;
}

// Those that no node reads: with the call that they were made for, or, of parameters, when autocast ends.
void PrecisionChange::end_casts(const Pass& pass) {
  for (const Cast& cast : casts_) {
    if (cast.pass != pass_number_ || cast.last_node != kNone || cast.of_program || cast.copy) continue;
    free_behind(cast.cached ? end_of_autocast(pass) : InsertionPoint{cast.last_reader, true}, cast.reader, cast.to);
  }
}

// What autograd kept of an operand that is cast now is the cast: the operand itself goes with who else holds it.
void PrecisionChange::shorten_lives(const Pass& pass) {
  std::set<StorageId> operands;
  for (const Cast& cast : casts_)
    if (cast.pass == pass_number_ && !cast.of_program && !cast.copy) operands.insert(cast.from);
  for (const StorageId id : operands) {
    const OpId freed = flow_.free(id);
    if (freed == kNoOp || freed < pass.backward) continue;
    OpId last = kNoOp;  // that still reads it in backward
    for (const Touch& touch : flow_.touches(id))
      if (touch.op >= pass.backward && used(touch.op, id) == id) last = touch.op;
    const OpId until = last == kNoOp ? referred_until(id, pass) : end_of_node(last);
    if (until == kNoOp || until >= freed) continue;
    edit_.remove(freed);
    free_behind({until, true}, until, id);
  }
}

// The op behind which the program does not refer to the storage any more. Where the trace does not say, the last of
// forward that reads it.
OpId PrecisionChange::referred_until(StorageId storage, const Pass& pass) const {
  const OpId said = t_.storages[storage].last_referenced;
  OpId read = kNoOp;
  for (const Touch& touch : flow_.touches(storage))
    if (touch.op < pass.backward) read = touch.op;
  return said != kNoOp && read != kNoOp ? std::max(said, read) : read;
}

OpId PrecisionChange::end_of_node(OpId id) const {
  for (const BackwardNode& node : nodes_)
    if (std::ranges::find(node.ops, id) != node.ops.end()) return node.end;
  return id;
}

void PrecisionChange::change_optimizer() {
  for (OpId id = 0; id < t_.ops.size(); ++id) {
    if (t_.ops[id].kind != OpKind::kernel || t_.ops[id].phase != Phase::optimizer) continue;
    for (const Use& use : t_.uses_of(t_.ops[id]))
      if (use.access == Access::write && types_.holds_numbers(use.storage) && !t_.storages[use.storage].preexisting)
        types_.set(use.storage, narrowest_read(id));
  }
}

void PrecisionChange::change_ops() {
  for (OpId id = 0; id < t_.ops.size(); ++id) {
    if (t_.ops[id].kind != OpKind::kernel) continue;
    bool changes = false;
    for (const Use& use : t_.uses_of(t_.ops[id]))
      changes = changes || (types_.holds_numbers(use.storage) && types_.type(used(id, use.storage)) != DataType::fp32);
    if (changes) edit_.replace(id, changed_op(id));
  }
}

Op PrecisionChange::changed_op(OpId id) {
  const Op& before = t_.ops[id];
  Op op = before;
  op.data_type = arithmetic_type(id);
  op.bytes = changed_bytes(id);
  rename_normalization(op);
  if (cast_copies_.contains(id)) {
    if (op.name == op.operator_name) op.name = edit_.tables().strings.intern("aten::_to_copy");
    op.operator_name = edit_.tables().strings.intern("aten::_to_copy");
  }
  const Shape& shape = t_.shapes[op.shape];
  op.duration =
      before.origin == Origin::modelled ? pricer_.kernel(op, shape) : pricer_.scaled(before, shape, op, shape);
  if (op.origin == Origin::measured) op.origin = Origin::transferred;
  return op;
}

// cuDNN's batch normalization takes no bf16 (ATen/native/Normalization.cpp, use_cudnn).
void PrecisionChange::rename_normalization(Op& op) {
  const std::string name = t_.strings[op.operator_name];
  const std::size_t at = name.find("cudnn_batch_norm");
  if (at == std::string::npos || op.data_type != DataType::bf16) return;
  const StringId native = edit_.tables().strings.intern("aten::native_batch_norm" + name.substr(at + 16));
  for (const Use& use : t_.uses_of(op)) {
    StringId& label = edit_.tables().storages[use.storage].label;
    if (use.access == Access::write && t_.strings[t_.storages[use.storage].label] == name) label = native;
  }
  if (op.name == op.operator_name) op.name = native;
  op.operator_name = native;
}

// Of the largest operand, of the first among equals; of the first result where nothing is read.
DataType PrecisionChange::arithmetic_type(OpId id) const {
  const DataType before = t_.ops[id].data_type;
  if (before != DataType::fp32 && before != DataType::tf32) return before;
  for (const Access access : {Access::read, Access::write}) {
    StorageId largest = kNoStorage;
    for (const Use& use : t_.uses_of(t_.ops[id]))
      if (use.access == access && types_.holds_numbers(use.storage) &&
          (largest == kNoStorage || old_bytes(use.storage) > old_bytes(largest)))
        largest = use.storage;
    if (largest == kNoStorage) continue;
    const DataType type = types_.type(used(id, largest));
    return type == DataType::fp32 ? before : type;
  }
  return before;
}

// Each storage as much as its type has become narrower. Where the op touches more or less than its storages (a view,
// the rows of a table, a tensor twice): all numbers alike if they change alike, else the largest operand is taken for
// it.
Bytes PrecisionChange::changed_bytes(OpId id) {
  const Op& op = t_.ops[id];
  Bytes rest = 0, numbers = 0, changed = 0, results = 0, changed_results = 0;
  const Use* largest = nullptr;
  std::set<Bytes> widths;
  const auto width = [&](const Use& use) { return bytes_of(types_.type(used(id, use.storage))); };
  const auto as_changed = [&](Bytes bytes, const Use& use) { return bytes / bytes_of(DataType::fp32) * width(use); };
  for (const Use& use : t_.uses_of(op)) {
    const Bytes old = old_bytes(use.storage);
    if (!types_.holds_numbers(use.storage)) {
      rest += old;
      continue;
    }
    const StorageId now = used(id, use.storage);
    const Bytes made = now == use.storage ? as_changed(old, use) : edit_.tables().storages[now].bytes;
    numbers += now == use.storage ? old : std::min(old, made / width(use) * bytes_of(DataType::fp32));
    changed += made;
    widths.insert(width(use));
    if (use.access == Access::write) {
      results += old;
      changed_results += made;
    }
    if (largest == nullptr || old > old_bytes(largest->storage)) largest = &use;
  }
  if (name_of(id) == "nll_loss_forward") return op.bytes - results + changed_results;  // numbers of the rows alone
  const Bytes more = op.bytes - rest - numbers;
  if (more == 0) return rest + changed;
  if (widths.size() == 1 && op.bytes >= rest)
    return rest + (op.bytes - rest) / bytes_of(DataType::fp32) * *widths.begin();
  return std::max<Bytes>(0, rest + changed + (largest == nullptr ? more : as_changed(more, *largest)));
}

}  // namespace memwall
