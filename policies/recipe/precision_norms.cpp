// Normalizations that a program writes in parts and computes in fp32, of a step in 16 bit throughout:
//   y = x.float(); y = y * rsqrt(mean(y^2) + epsilon); weight * y.to(x.dtype)
// A step in fp32 shows neither cast. Both readers of the wide x add up their gradients in fp32, which are cast once.
#include <algorithm>
#include <ranges>

#include "policies/recipe/modelled_op.h"
#include "policies/recipe/precision_change.h"
#include "policies/trace/call_begin.h"

namespace memwall {

// The one op of forward that reads what `id` makes, if its name is that; else kNoOp.
OpId PrecisionChange::next_in_forward(OpId id, const char* name) const {
  const StorageId made = main_result(id);
  OpId reader = kNoOp;
  if (made == kNoStorage) return kNoOp;
  for (const Touch& touch : flow_.touches(made)) {
    if (!touch.reads || t_.ops[touch.op].phase != Phase::forward) continue;
    if (reader != kNoOp) return kNoOp;
    reader = touch.op;
  }
  return reader != kNoOp && name_of(reader) == name ? reader : kNoOp;
}

// Of a power that begins such a normalization: the product that ends it; else kNoOp.
OpId PrecisionChange::end_of_normalization(OpId power) const {
  OpId id = power;
  for (const char* const name : {"mean", "add", "rsqrt", "mul"})
    if (id = next_in_forward(id, name); id == kNoOp) return kNoOp;
  for (const Use& of_power : t_.uses_of(t_.ops[power]))
    for (const Use& of_end : t_.uses_of(t_.ops[id]))
      if (of_power.access == Access::read && of_end.access == Access::read && of_power.storage == of_end.storage)
        return id;
  return kNoOp;
}

void PrecisionChange::widen_normalization(OpId power) {
  const OpId end = end_of_normalization(power);
  if (end == kNoOp) return;
  for (const Use& use : t_.uses_of(t_.ops[power])) {
    if (use.access != Access::read || types_.type(used(power, use.storage)) != target_.low) continue;
    cast_operand(power, use.storage, DataType::fp32);
    const std::size_t cast = casts_.size() - 1;
    casts_[cast].shared = true;
    casts_[cast].last_reader = end;
    cast_of_[{end, use.storage}] = cast;
    use_instead(end, use.storage, casts_[cast].to);
    norms_.push_back({power, end, use.storage});
    return;
  }
}

// The product behind it reads its result in 16 bit.
void PrecisionChange::narrow_normalized(OpId id) {
  for (const Norm& norm : norms_) {
    const StorageId result = main_result(norm.end);
    for (const Use& use : t_.uses_of(t_.ops[id]))
      if (use.access == Access::read && use.storage == result && id > norm.end) {
        cast_operand(id, result, target_.low);
        return;
      }
  }
}

// What of a node is the gradient of the normalized values: what it makes last and does not read itself, of their size.
StorageId PrecisionChange::gradient_in(const BackwardNode& node, StorageId operand) const {
  StorageId found = kNoStorage;
  for (const OpId id : node.ops)
    for (const Use& use : t_.uses_of(t_.ops[id]))
      if (use.access == Access::write && old_bytes(use.storage) == old_bytes(operand) &&
          !is_read_again(node, id, use.storage))
        found = use.storage;
  return found;
}

const BackwardNode* PrecisionChange::sum_that_reads(StorageId gradient) const {
  for (const BackwardNode& node : nodes_)
    if (node.sum)
      for (const Use& use : t_.uses_of(t_.ops[node.ops.front()]))
        if (use.access == Access::read && use.storage == gradient) return &node;
  return nullptr;
}

// In fp32 the step adds the gradients of both readers to that of the residual, one after the other. With casts they are
// added up in fp32, cast, and then added to it.
void PrecisionChange::join_normalized_gradients(const Pass& pass) {
  for (const Norm& norm : std::views::reverse(norms_)) {  // as backward meets them
    if (norm.power < pass.begin || norm.power >= pass.backward) continue;
    const auto node_for = [&](OpId forward) {
      const auto found = std::ranges::find(nodes_, forward, &BackwardNode::forward);
      return found == nodes_.end() ? nullptr : &*found;
    };
    const BackwardNode *const of_power = node_for(norm.power), *const of_end = node_for(norm.end);
    if (of_power == nullptr || of_end == nullptr) continue;
    const StorageId first = gradient_in(*of_end, norm.operand), second = gradient_in(*of_power, norm.operand);
    if (first == kNoStorage || second == kNoStorage) continue;
    const BackwardNode *const sum1 = sum_that_reads(first), *const sum2 = sum_that_reads(second);
    if (sum2 == nullptr || sum1 == nullptr) continue;
    if (sum1 == sum2)
      cast_sum(*sum2, norm);
    else
      reorder_sums(*sum1, *sum2, first, second, norm);
  }
}

// Without a residual: the sum of both, then cast; what reads the sum reads the cast.
void PrecisionChange::cast_sum(const BackwardNode& sum, const Norm& norm) {
  const OpId id = sum.ops.front();
  const StorageId wide = main_result(id);
  joined_sums_.insert(id);
  Op like = t_.ops[norm.power];
  like.phase = Phase::backward;
  like.thread = t_.ops[id].thread;
  ListWriter writer(edit_, {sum.end, true}, like, pricer_);
  const TensorList source{{wide, types_.elements(wide), DataType::fp32}};
  const TensorList narrow{writer.make("aten::_to_copy", {wide, types_.elements(wide), target_.low})};
  writer.call({.name = "aten::_to_copy", .operator_class = OperatorClass::memory, .flops_per_element = 0, .lists = 0},
              {&source}, {&narrow});
  writer.drop(source.front());
  const StorageId cast = narrow.front().storage;
  types_.set(cast, target_.low);
  for (const Touch& touch : flow_.touches(wide))
    if (touch.op > id) use_instead(touch.op, wide, cast);
  if (const OpId freed = flow_.free(wide); freed != kNoOp) edit_.repoint(freed, wide, cast);
}

void PrecisionChange::reorder_sums(const BackwardNode& sum1, const BackwardNode& sum2, StorageId first,
                                   StorageId second, const Norm& norm) {
  const OpId early = sum1.ops.front(), late = sum2.ops.front();
  const StorageId between = main_result(early);
  StorageId residual = kNoStorage;
  for (const Use& use : t_.uses_of(t_.ops[early]))
    if (use.access == Access::read && use.storage != first) residual = use.storage;
  const bool in_place = between == residual;
  const StorageId now = used(early, residual);
  const InsertionPoint point = InsertionPoint{call_begin(t_, late), false};
  Op like = t_.ops[norm.power];
  like.phase = Phase::backward;
  like.thread = t_.ops[late].thread;
  ListWriter writer(edit_, point, like, pricer_);
  const std::int64_t elements = types_.elements(norm.operand);
  edit_.remove(early);
  joined_sums_.insert(early);
  if (const OpId freed = flow_.free(first); freed != kNoOp) edit_.remove(freed);
  const TensorList a{{first, elements, DataType::fp32}}, b{{second, elements, DataType::fp32}};
  TensorList sum = a;
  if (!in_place) {
    if (const OpId alloc = flow_.alloc(between); alloc != kNoOp) edit_.remove(alloc);
    if (const OpId freed = flow_.free(residual); freed != kNoOp) edit_.remove(freed);
    if (const OpId freed = flow_.free(between); freed != kNoOp) edit_.repoint(freed, between, now);
    use_instead(late, between, now);
    dropped_.insert(between);
    sum = {writer.make("aten::add", {first, elements, DataType::fp32})};
  }
  const ListCall add{
      .name = in_place ? "aten::add_" : "aten::add", .operator_class = OperatorClass::elementwise, .lists = 0};
  writer.call(add, {&a, &b}, {&sum});
  if (!in_place) writer.drop(a.front());
  writer.drop(b.front());
  const TensorList narrow{writer.make("aten::_to_copy", {first, elements, target_.low})};
  writer.call({.name = "aten::_to_copy", .operator_class = OperatorClass::memory, .flops_per_element = 0, .lists = 0},
              {&sum}, {&narrow});
  writer.drop(sum.front());
  types_.set(narrow.front().storage, target_.low);
  use_instead(late, second, narrow.front().storage);
  if (const OpId freed = flow_.free(second); freed != kNoOp) edit_.repoint(freed, second, narrow.front().storage);
}

}  // namespace memwall
