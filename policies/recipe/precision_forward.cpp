// Forward: which operands an op gets in another type, and what type its results have.
#include <algorithm>
#include <limits>
#include <set>

#include "policies/recipe/autocast_rules.h"
#include "policies/recipe/precision_change.h"
#include "policies/trace/call_begin.h"
#include "policies/trace/operator_name.h"

namespace memwall {
namespace {

bool is_attention(const Op& op) { return op.operator_class == OperatorClass::attention; }

}  // namespace

void PrecisionChange::change_forward(const Pass& pass) {
  cached_.clear();
  for (OpId id = pass.begin; id < pass.backward; ++id)
    if (t_.ops[id].kind == OpKind::kernel && t_.ops[id].phase == Phase::forward) change_forward_op(id);
}

void PrecisionChange::change_forward_op(OpId id) {
  const std::string name = name_of(id);
  const AutocastRule rule = target_.autocast ? autocast_rule(name) : AutocastRule::as_given;
  DataType to = DataType::unknown;
  if (rule == AutocastRule::low) to = target_.low;
  if (rule == AutocastRule::fp32) to = DataType::fp32;
  if (rule == AutocastRule::widest) to = widest_activation(id);
  if (to != DataType::unknown)
    for (const StorageId operand : operands_as_cast(id))
      if (types_.type(used(id, operand)) != to) cast_operand(id, operand, to);
  if (name == "log_softmax" && target_.loss_in_fp32)
    for (const StorageId operand : operands_as_cast(id))
      if (types_.type(used(id, operand)) != DataType::fp32) cast_operand(id, operand, DataType::fp32, true);
  if (!target_.autocast) {
    if (name == "pow") widen_normalization(id);
    narrow_normalized(id);
    cast_tables(id);
  }
  type_results(id);
}

// What a step computes from whole numbers alone (tables of a rotation) stays fp32; programs cast it to the type of what
// it is used with, as soon as it is made.
void PrecisionChange::cast_tables(OpId id) {
  bool low = false;
  std::set<StorageId> tables;
  for (const Use& use : t_.uses_of(t_.ops[id])) {
    if (use.access != Access::read || !types_.holds_numbers(use.storage) || used(id, use.storage) != use.storage)
      continue;
    const bool wide = types_.type(use.storage) == DataType::fp32 && !t_.storages[use.storage].preexisting;
    low = low || !wide;
    if (wide) tables.insert(use.storage);
  }
  if (!low) return;
  for (const StorageId table : tables) {
    const OpId made = flow_.writers(table).back();
    ListWriter writer(edit_, {made, true}, t_.ops[made], pricer_);
    const TensorList source{{table, types_.elements(table), DataType::fp32}};
    const TensorList cast{writer.make("aten::_to_copy", {table, types_.elements(table), target_.low})};
    writer.call({.name = "aten::_to_copy", .operator_class = OperatorClass::memory, .flops_per_element = 0, .lists = 0},
                {&source}, {&cast});
    writer.drop(source.front());
    types_.set(cast.front().storage, target_.low);
    for (const Touch& touch : flow_.touches(table))
      if (touch.op > made) use_instead(touch.op, table, cast.front().storage);
    if (const OpId freed = flow_.free(table); freed != kNoOp) edit_.repoint(freed, table, cast.front().storage);
  }
}

// In the order in which C++ compilers evaluate the casts of autocast's wrappers: from the last argument to the first.
// The arguments of linear and of a convolution are x, weight, bias. A trace names what autograd keeps in its order
// (saved), else in that of the arguments.
std::vector<StorageId> PrecisionChange::operands_as_cast(OpId id) const {
  std::vector<StorageId> numbers;
  bool told = false;
  for (const Use& use : t_.uses_of(t_.ops[id])) {
    if (use.access != Access::read || !types_.holds_numbers(use.storage)) continue;
    numbers.push_back(use.storage);
    told = told || use.saved;
  }
  const std::string name = name_of(id);
  if (is_attention(t_.ops[id])) {
    if (told && numbers.size() == 3) std::swap(numbers[0], numbers[1]);  // key, query, value
  } else if (told && (name == "bmm" || name == "baddbmm")) {
    return numbers;  // mat2, self
  }
  std::ranges::reverse(numbers);
  if (name == "addmm" || name == "mm" || name == "convolution") {
    const auto rank = [&](StorageId s) { return is_parameter(s) ? old_bytes(s) : std::numeric_limits<Bytes>::max(); };
    std::ranges::stable_sort(numbers, [&](StorageId a, StorageId b) { return rank(a) < rank(b); });
  }
  return numbers;
}

// Of a view as many as the op reads of it, where its shape says it.
std::int64_t PrecisionChange::operand_elements(OpId id, StorageId operand) const {
  const std::int64_t all = types_.elements(operand);
  const Shape& s = t_.shapes[t_.ops[id].shape];
  if (is_parameter(operand)) return all;
  std::int64_t most = all;
  if (t_.ops[id].operator_class == OperatorClass::gemm && s.size() == 4) {
    const std::int64_t a = s[0] * s[1] * s[3], b = s[0] * s[2] * s[3];
    if (all != b) most = a;
  } else if (is_attention(t_.ops[id]) && s.size() >= 7) {
    const std::int64_t q = s[0] * s[1] * s[3] * s[5], k = s[0] * s[2] * s[4] * s[5];
    if (all != k) most = q;
  } else if (s.size() == 2) {  // rows of a width
    most = s[0] * s[1];
  }
  return std::min(all, most);
}

// Of a concatenation: what no other operand gives.
std::int64_t PrecisionChange::part_of_result(OpId id, StorageId operand) const {
  std::int64_t part = types_.elements(main_result(id));
  for (const Use& use : t_.uses_of(t_.ops[id]))
    if (use.access == Access::read && use.storage != operand && types_.holds_numbers(use.storage))
      part -= types_.elements(use.storage);
  return std::max(part, types_.elements(operand));
}

// Parameters follow: programs cast them to the type of what they concatenate them with.
DataType PrecisionChange::widest_activation(OpId id) const {
  DataType widest = DataType::unknown;
  for (const Use& use : t_.uses_of(t_.ops[id]))
    if (use.access == Access::read && types_.holds_numbers(use.storage) && !is_parameter(use.storage) &&
        bytes_of(types_.type(used(id, use.storage))) > bytes_of(widest))
      widest = types_.type(used(id, use.storage));
  return widest == DataType::unknown ? widest_read(id) : widest;
}

// matmul is cast before it copies its operands for a batched product: the first such copy behind what makes the
// operand.
OpId PrecisionChange::first_of_call(OpId reader, StorageId operand) const {
  const std::string name = name_of(reader);
  if (name == "mm" || name == "addmm") {
    for (const Use& use : t_.uses_of(t_.ops[reader]))
      if (const OpId copy = copy_for(reader, use.storage); use.storage != operand && copy != kNoOp) return copy;
    return reader;
  }
  if (name != "bmm" && name != "baddbmm") return reader;
  const auto writers = flow_.writers(operand);
  const OpId made = writers.empty() ? kNoOp : writers.back();
  OpId first = reader;
  for (const Use& use : t_.uses_of(t_.ops[reader])) {
    if (use.access != Access::read || use.storage == operand) continue;
    const OpId copy = flow_.writer(use.storage, use.version);
    if (copy != kNoOp && name_of(copy) == "clone" && (made == kNoOp || copy > made)) first = std::min(first, copy);
  }
  return first;
}

// The copy that a layer makes of what it cannot read where it lies (a piece of several sequences), for its product
// alone: under autocast the cast is that copy. kNoOp: none.
OpId PrecisionChange::copy_for(OpId reader, StorageId operand) const {
  const auto writers = flow_.writers(operand);
  if (writers.size() != 1 || name_of(writers.front()) != "clone") return kNoOp;
  const OpId copy = writers.front();
  if (t_.ops[copy].phase != Phase::forward || t_.ops[copy].module != t_.ops[reader].module) return kNoOp;
  for (const Touch& touch : flow_.touches(operand))
    if (touch.reads && touch.op != reader && t_.ops[touch.op].phase == Phase::forward) return kNoOp;
  return copy;
}

void PrecisionChange::cast_copy(OpId reader, StorageId operand, DataType to) {
  const OpId copy = copy_for(reader, operand);
  const Storage of = t_.storages[operand];
  const StorageId low = edit_.builder().add_storage(types_.elements(operand) * bytes_of(to), of.kind,
                                                    t_.places[of.place], "aten::_to_copy");
  edit_.tables().storages[low].shape = of.shape;
  edit_.tables().storages[low].stream = of.stream;
  types_.set(low, to);
  use_instead(copy, operand, low);
  use_instead(reader, operand, low);
  for (const OpId lifetime : {flow_.alloc(operand), flow_.free(operand)})
    if (lifetime != kNoOp) edit_.repoint(lifetime, operand, low);
  cast_of_[{reader, operand}] = casts_.size();
  casts_.push_back({.from = operand,
                    .to = low,
                    .reader = reader,
                    .last_reader = reader,
                    .copy = true,
                    .pass = pass_number_,
                    .readers = {reader}});
  cast_copies_.insert(copy);
  dropped_.insert(operand);
}

void PrecisionChange::cast_operand(OpId reader, StorageId operand, DataType to, bool of_program) {
  const bool concatenated = is_parameter(operand) && autocast_rule(name_of(reader)) == AutocastRule::widest;
  const bool cached = to == target_.low && !concatenated && is_parameter(operand) && trained_.contains(operand);
  const bool linear = name_of(reader) == "mm" || name_of(reader) == "addmm";
  if (target_.autocast && linear && copy_for(reader, operand) != kNoOp) return cast_copy(reader, operand, to);
  if (const auto found = cached_.find(operand); cached && found != cached_.end()) {  // autocast's cache has it
    Cast& before = casts_[found->second];
    before.last_reader = reader;
    before.readers.push_back(reader);
    cast_of_[{reader, operand}] = found->second;
    use_instead(reader, operand, before.to);
    return;
  }
  const Op& like = t_.ops[reader];
  ListWriter writer(edit_, InsertionPoint{call_begin(t_, first_of_call(reader, operand)), false}, like, pricer_);
  const std::int64_t elements = operand_elements(reader, operand);
  const StorageId from = used(reader, operand);
  const TensorList source{{from, elements, types_.type(from)}};
  const TensorList made{
      writer.make("aten::_to_copy", {from, concatenated ? part_of_result(reader, operand) : elements, to})};
  writer.call({.name = "aten::_to_copy", .operator_class = OperatorClass::memory, .flops_per_element = 0, .lists = 0},
              {&source}, {&made});
  const StorageId result = made.front().storage;
  types_.set(result, to);
  if (cached) cached_[operand] = casts_.size();
  cast_of_[{reader, operand}] = casts_.size();
  casts_.push_back({.from = operand,
                    .to = result,
                    .reader = reader,
                    .last_reader = reader,
                    .of_program = of_program,
                    .concatenated = concatenated,
                    .cached = cached,
                    .pass = pass_number_,
                    .readers = {reader}});
  use_instead(reader, operand, result);
  if (!of_program) return;
  writer.drop(source.front());  // the program's variable is the cast now
  if (const OpId freed = flow_.free(operand); freed != kNoOp) edit_.repoint(freed, operand, result);
}

// The largest that it makes. kNoStorage: no numbers.
StorageId PrecisionChange::main_result(OpId id) const {
  StorageId main = kNoStorage;
  for (const Use& use : t_.uses_of(t_.ops[id]))
    if (use.access == Access::write && types_.holds_numbers(use.storage) && !t_.storages[use.storage].preexisting &&
        (main == kNoStorage || old_bytes(use.storage) > old_bytes(main)))
      main = use.storage;
  return main;
}

void PrecisionChange::type_results(OpId id) {
  const StorageId main = main_result(id);
  for (const Use& use : t_.uses_of(t_.ops[id])) {
    if (use.access != Access::write || !types_.holds_numbers(use.storage)) continue;
    if (t_.storages[use.storage].preexisting ||
        flow_.writer(use.storage, use.version) != flow_.writers(use.storage).front())
      continue;  // written in place: its type is that of what is there
    const DataType type = result_type(id, use.storage == main);
    if (type != DataType::unknown) types_.set(use.storage, type);  // else it is made of whole numbers, or of none
  }
}

// Means, deviations and sums of exponentials beside a result are fp32 whatever that is.
DataType PrecisionChange::result_type(OpId id, bool main) const {
  const Op& op = t_.ops[id];
  if (op.operator_class == OperatorClass::normalization || is_attention(op)) {
    if (!main) return DataType::fp32;
    for (const Use& use : t_.uses_of(op))
      if (use.access == Access::read && types_.holds_numbers(use.storage) && !is_parameter(use.storage))
        return types_.type(used(id, use.storage));
  }
  return widest_read(id);
}

}  // namespace memwall
