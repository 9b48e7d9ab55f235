#include "policies/recipe/loss_division.h"

#include <algorithm>

#include "policies/recipe/list_writer.h"
#include "policies/trace/operator_name.h"
#include "policies/trace/trace_edit.h"

namespace memwall {
namespace {

constexpr Bytes kNumber = 8;  // at most

bool is_number(const Trace& t, StorageId id) { return t.storages[id].bytes > 0 && t.storages[id].bytes <= kNumber; }

// The number that the op makes; kNoStorage if none.
StorageId number_made(const Trace& t, const Op& op) {
  if (op.kind != OpKind::kernel && op.kind != OpKind::memset) return kNoStorage;
  for (const Use& use : t.uses_of(op))
    if (use.access == Access::write && !t.storages[use.storage].preexisting && is_number(t, use.storage))
      return use.storage;
  return kNoStorage;
}

// Of a product of a number with one that lives before the step (a scaler's scale): the other factor.
StorageId scaled_number(const Trace& t, const Op& op) {
  if (plain_operator_name(operator_of(t, op)) != "mul") return kNoStorage;
  StorageId other = kNoStorage;
  bool scale = false;
  for (const Use& use : t.uses_of(op)) {
    if (use.access != Access::read || !is_number(t, use.storage)) continue;
    if (t.storages[use.storage].preexisting)
      scale = true;
    else
      other = use.storage;
  }
  return scale ? other : kNoStorage;
}

Loss made_by_forward(const Trace& t, const Dataflow& flow, const Pass& pass) {
  for (OpId id = pass.backward; id-- > pass.begin;) {
    const Op& op = t.ops[id];
    const StorageId number = op.phase == Phase::forward ? number_made(t, op) : kNoStorage;
    if (number == kNoStorage) continue;
    Loss loss;
    loss.value = scaled_number(t, op) == kNoStorage ? number : scaled_number(t, op);
    loss.made = flow.writer(loss.value, flow.version_before(loss.value, id + 1));
    return loss;
  }
  return {};
}

void find_seed(const Trace& t, const Pass& pass, Loss& loss) {
  for (OpId id = pass.backward; id < pass.end && t.ops[id].phase != Phase::optimizer; ++id) {
    const Op& op = t.ops[id];
    if (op.kind != OpKind::kernel && op.kind != OpKind::memset) continue;
    const StorageId number = number_made(t, op);
    if (number == kNoStorage || (loss.seed != kNoStorage && scaled_number(t, op) != loss.seed)) return;
    loss.seed = number;
    loss.seeded = id;
  }
}

class LossDivision {
 public:
  LossDivision(const Trace& trace, const Dataflow& flow, const Machine& machine, const Pricer& pricer)
      : t_(trace), flow_(flow), pricer_(pricer), edit_(trace, machine.host) {}

  void divide(const Loss& loss) {
    divide_value(loss);
    divide_gradient(loss);
  }
  Trace apply() && { return std::move(edit_).apply(); }

 private:
  // Outside of all modules.
  Op like(OpId id) const {
    Op op = t_.ops[id];
    op.module = 0;
    return op;
  }

  ListedTensor number(StorageId id) const {
    const DataType type = t_.storages[id].bytes >= 4 ? DataType::fp32 : DataType::bf16;
    return {id, t_.storages[id].bytes / bytes_of(type), type};
  }

  void divide_value(const Loss& loss) {
    const InsertionPoint behind = behind_locals(loss);
    const Op beside = like(loss.made);
    ListWriter writer(edit_, behind, beside, pricer_);
    const TensorList from{number(loss.value)}, to{writer.make("aten::div", from.front())};
    writer.call({.name = "aten::div", .operator_class = OperatorClass::elementwise, .lists = 0}, {&from}, {&to});
    writer.drop(from.front());
    for (const Touch& touch : flow_.touches(loss.value))
      if (touch.op > loss.made) edit_.repoint(touch.op, loss.value, to.front().storage);
    if (const OpId freed = flow_.free(loss.value); freed != kNoOp) edit_.repoint(freed, loss.value, to.front().storage);
  }

  // Before what comes next once the functions that made the loss have given back what they held.
  InsertionPoint behind_locals(const Loss& loss) const {
    OpId id = loss.made;
    while (id + 1 < t_.ops.size() && t_.ops[id + 1].kind == OpKind::free && t_.ops[id + 1].target != loss.value) ++id;
    return {id, true};
  }

  void divide_gradient(const Loss& loss) {
    OpId last = kNoOp;
    for (const Touch& touch : flow_.touches(loss.seed))
      if (touch.op > loss.seeded) last = touch.op;
    if (last == kNoOp) return;
    const Op beside = like(loss.seeded);
    ListWriter writer(edit_, {loss.seeded, true}, beside, pricer_);
    const TensorList from{number(loss.seed)}, to{writer.make("aten::div", from.front())};
    writer.call({.name = "aten::div", .operator_class = OperatorClass::elementwise, .lists = 0}, {&from}, {&to});
    for (const Touch& touch : flow_.touches(loss.seed))
      if (touch.op > loss.seeded) edit_.repoint(touch.op, loss.seed, to.front().storage);
    if (number_made(t_, t_.ops[last]) != kNoStorage && plain_operator_name(operator_of(t_, t_.ops[last])) == "div") {
      const Op behind = like(last);  // a division has kept nothing
      return ListWriter(edit_, {last, true}, behind, pricer_).drop(to.front());
    }
    OpId next_free = last;
    while (next_free < t_.ops.size() && t_.ops[next_free].kind != OpKind::free) ++next_free;
    OpId end = next_free;
    while (end < t_.ops.size() && t_.ops[end].kind == OpKind::free && t_.ops[end].target != loss.seed) ++end;
    const bool goes_with_its_reader = end < t_.ops.size() && t_.ops[end].kind == OpKind::free;
    if (goes_with_its_reader) {
      writer.drop(from.front());
      edit_.repoint(end, loss.seed, to.front().storage);
    } else if (next_free < t_.ops.size()) {
      const Op of_free = like(last);
      ListWriter(edit_, {next_free, false}, of_free, pricer_).drop(to.front());
    }
  }

  const Trace& t_;
  const Dataflow& flow_;
  const Pricer& pricer_;
  TraceEdit edit_;
};

}  // namespace

std::optional<Loss> loss_of(const Trace& trace, const Dataflow& flow, const Pass& pass) {
  Loss loss = made_by_forward(trace, flow, pass);
  if (loss.made != kNoOp) find_seed(trace, pass, loss);
  if (loss.made == kNoOp || loss.seed == kNoStorage) return std::nullopt;
  return loss;
}

Trace with_divided_losses(const Trace& trace, const Dataflow& flow, const std::vector<Loss>& losses,
                          const Machine& machine, const Pricer& pricer) {
  LossDivision division(trace, flow, machine, pricer);
  for (const Loss& loss : losses) division.divide(loss);
  return std::move(division).apply();
}

}  // namespace memwall
