#include "policies/recipe/loss_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

#include "policies/trace/described.h"
#include "policies/trace/operator_name.h"
#include "policies/trace/parameter_casts.h"
#include "sim/error.h"

namespace memwall {
namespace {

constexpr Bytes kBytesOfNumber = 8;  // at most

// What stands in the place of the program that is looked for.
struct NoLoss {
  std::string why;
};

class LossSearch {
 public:
  LossSearch(const Trace& trace, const Dataflow& flow, const Pass& pass) : t_(trace), flow_(flow), pass_(pass) {}

  LossProgram run() {
    find_loss();
    find_forward();
    find_backward();
    find_sizes();
    require_alone();
    return std::move(p_);
  }

 private:
  std::string name(OpId id) const { return plain_operator_name(operator_of(t_, t_.ops[id])); }
  bool is_named(OpId id, std::string_view wanted) const { return id != kNoOp && name(id) == wanted; }
  bool is_cast(OpId id) const { return is_named(id, "to_copy"); }

  std::vector<StorageId> used(OpId id, Access access) const {
    std::vector<StorageId> all;
    for (const Use& use : t_.uses_of(t_.ops[id]))
      if (use.access == access) all.push_back(use.storage);
    return all;
  }

  StorageId one(OpId id, Access access) const {
    const std::vector<StorageId> all = used(id, access);
    if (all.size() != 1)
      throw NoLoss{fmt::format("{} {} {} storages; expected one.", described_op(t_, id),
                               access == Access::read ? "reads" : "writes", all.size())};
    return all.front();
  }

  void find_loss() {
    auto& f = p_.forward;
    for (OpId id = pass_.begin; id < pass_.backward; ++id)
      if (t_.ops[id].kind == OpKind::kernel && is_named(id, "nll_loss_forward")) {
        if (f.loss != kNoOp) throw NoLoss{"it takes several cross entropies in a pass; expected one, of all tokens."};
        f.loss = id;
      }
    if (f.loss == kNoOp)
      throw NoLoss{"no cross entropy of its logits (aten::_log_softmax, aten::nll_loss_forward) ends its forward."};
    const std::vector<StorageId> read = used(f.loss, Access::read), written = used(f.loss, Access::write);
    if (read.size() != 2 || written.size() != 2)
      throw NoLoss{described_op(t_, f.loss) +
                   " uses other tensors than logits, targets, a loss and the number of targets."};
    // In whatever order: logits are made in the step, and backward reads the number of targets, not the loss.
    const bool logits_first = maker(read[0]) != kNoOp && !t_.storages[read[0]].preexisting;
    p_.wide_logs = read[logits_first ? 0 : 1], p_.targets = read[logits_first ? 1 : 0];
    const bool loss_first = reader(written[0], "nll_loss_backward") == kNoOp;
    p_.value = written[loss_first ? 0 : 1], p_.counted = written[loss_first ? 1 : 0];
  }

  OpId maker(StorageId storage) const {
    const auto writers = flow_.writers(storage);
    return writers.size() == 1 ? writers.front() : kNoOp;
  }

  // What makes `storage`; of a cast, what it casts: then `cast` is set. Else the storage itself.
  StorageId before_cast(StorageId storage, OpId& cast) const {
    const OpId made = maker(storage);
    if (made == kNoOp || !is_cast(made) || used(made, Access::read).size() != 1) return storage;
    cast = made;
    return one(made, Access::read);
  }

  void find_forward() {
    auto& f = p_.forward;
    p_.logs = before_cast(p_.wide_logs, f.cast_logs);
    f.log_softmax = maker(p_.logs);
    if (!is_named(f.log_softmax, "log_softmax"))
      throw NoLoss{described_storage(t_, p_.logs) + ", of which the loss is taken, is made by no aten::_log_softmax."};
    p_.wide = one(f.log_softmax, Access::read);
    p_.logits = before_cast(p_.wide, f.cast_logits);
    f.product = maker(p_.logits);
    if (is_named(f.product, "addmm")) throw NoLoss{"its output layer has a bias, which is not implemented."};
    if (!is_named(f.product, "mm"))
      throw NoLoss{"its logits (" + described_storage(t_, p_.logits) +
                   ") are no product of one matrix with a weight (aten::mm)."};
    const std::vector<StorageId> factors = used(f.product, Access::read);
    if (factors.size() != 2) throw NoLoss{described_op(t_, f.product) + " reads no two matrices."};
    const auto is_weight = [&](StorageId id) {
      return t_.storages[id].kind == StorageKind::parameter || is_cast_of_parameter(t_, flow_, id);
    };
    if (is_weight(factors[0]) == is_weight(factors[1]))
      throw NoLoss{described_op(t_, f.product) + " multiplies no activation by a parameter."};
    p_.weight = factors[is_weight(factors[0]) ? 0 : 1], p_.x_low = factors[is_weight(factors[0]) ? 1 : 0];
    p_.x = before_cast(p_.x_low, f.cast_x);
  }

  // The only op of backward that reads the storage, of that name; kNoOp where there is none.
  OpId reader(StorageId storage, std::string_view wanted) const {
    for (const Touch& touch : flow_.touches(storage))
      if (touch.op >= pass_.backward && touch.op < pass_.end && touch.reads && is_named(touch.op, wanted))
        return touch.op;
    return kNoOp;
  }

  OpId expected(OpId id, std::string_view what) const {
    if (id == kNoOp) throw NoLoss{fmt::format("its backward has no {} of the logits.", what)};
    return id;
  }

  // Behind `storage`: a cast of it back to another type, if that is what reads it.
  StorageId behind_cast(StorageId storage, OpId& cast) const {
    cast = reader(storage, "to_copy");
    return cast == kNoOp ? storage : one(cast, Access::write);
  }

  void find_backward() {
    auto& b = p_.backward;
    b.loss = expected(reader(p_.wide_logs, "nll_loss_backward"), "aten::nll_loss_backward");
    for (const StorageId id : used(b.loss, Access::read))
      if (id != p_.counted && t_.storages[id].bytes <= kBytesOfNumber) p_.seed = id;
    if (p_.seed == kNoStorage) throw NoLoss{described_op(t_, b.loss) + " reads no number that backward begins with."};
    b.seed = maker(p_.seed);
    if (b.seed == kNoOp || b.seed < pass_.backward || b.seed > b.loss)
      throw NoLoss{"the number that its backward begins with (" + described_storage(t_, p_.seed) +
                   ") is not made there."};
    b.log_softmax = expected(reader(p_.logs, "log_softmax_backward_data"), "aten::_log_softmax_backward_data");
    const StorageId of_loss = one(b.loss, Access::write);
    gradients_ = {of_loss};
    if (p_.forward.cast_logs != kNoOp) gradients_.push_back(behind_cast(of_loss, b.cast_logs));
    const StorageId of_wide = one(b.log_softmax, Access::write);
    StorageId of_logits = of_wide;
    gradients_.push_back(of_wide);
    if (p_.forward.cast_logits != kNoOp) gradients_.push_back(of_logits = behind_cast(of_wide, b.cast_logits));
    for (const Touch& touch : flow_.touches(of_logits)) {
      if (touch.writes || !is_named(touch.op, "mm")) continue;
      const std::vector<StorageId> factors = used(touch.op, Access::read);
      (std::ranges::find(factors, p_.weight) != factors.end() ? b.input : b.weight) = touch.op;
    }
    expected(b.input, "product with the gradient");
    if (b.weight != kNoOp) p_.of_weight = one(b.weight, Access::write);
    p_.of_x = one(b.input, Access::write);
    if (p_.forward.cast_x == kNoOp) return;
    gradients_.push_back(p_.of_x);
    p_.of_x = behind_cast(p_.of_x, b.cast_x);
    if (b.cast_x == kNoOp) throw NoLoss{"the gradient of what its output layer reads is not cast back."};
  }

  DataType type_by_width(StorageId storage, std::int64_t elements, DataType low) const {
    const Bytes width = elements == 0 ? 0 : t_.storages[storage].bytes / elements;
    return width == 4 ? DataType::fp32 : low;
  }

  void find_sizes() {
    const Op& product = t_.ops[p_.forward.product];
    const Shape &extents = t_.shapes[product.shape], &x = t_.shapes[t_.storages[p_.x].shape];
    if (extents.size() != 4 || x.size() != 3 || elements_of(x) != extents[1] * extents[3] || extents[0] != 1)
      throw NoLoss{"what its output layer reads (" + described_storage(t_, p_.x) +
                   ") is not told as [sequences, tokens, width]."};
    p_.sequences = x[0], p_.tokens = x[1], p_.width = extents[3], p_.vocabulary = extents[2];
    const std::int64_t numbers = p_.sequences * p_.tokens * p_.vocabulary;
    p_.type = product.data_type;
    p_.x_type = type_by_width(p_.x, elements_of(x), p_.type);
    p_.wide_type = type_by_width(p_.wide, numbers, p_.type);
    p_.logs_type = type_by_width(p_.logs, numbers, p_.type);
    p_.loss_type = type_by_width(p_.wide_logs, numbers, p_.type);
    if (t_.storages[p_.logits].bytes != numbers * bytes_of(p_.type) ||
        t_.storages[p_.logs].bytes != numbers * bytes_of(p_.logs_type))
      throw NoLoss{"its loss is not taken of all logits, as where a model shifts its targets itself."};
    if (t_.storages[p_.targets].bytes != p_.sequences * p_.tokens * bytes_of(DataType::int64))
      throw NoLoss{"its targets (" + described_storage(t_, p_.targets) +
                   ") are not one number of 8 bytes for each token."};
  }

  // Nothing else uses what is going to be made otherwise.
  void require_alone() {
    const auto& f = p_.forward;
    const auto& b = p_.backward;
    const std::vector<OpId> own{f.cast_x,    f.product,     f.cast_logits, f.log_softmax, f.cast_logs, f.loss,  b.loss,
                                b.cast_logs, b.log_softmax, b.cast_logits, b.input,       b.weight,    b.cast_x};
    std::vector<StorageId> inner{p_.logits, p_.wide, p_.logs, p_.wide_logs, p_.counted};
    if (f.cast_x != kNoOp) inner.push_back(p_.x_low);
    inner.insert(inner.end(), gradients_.begin(), gradients_.end());
    std::ranges::sort(inner);
    inner.erase(std::unique(inner.begin(), inner.end()), inner.end());
    for (const StorageId storage : inner) {
      for (const Touch& touch : flow_.touches(storage))
        if (std::ranges::find(own, touch.op) == own.end())
          throw NoLoss{described_op(t_, touch.op) + " uses " + described_storage(t_, storage) +
                       " of the loss as well."};
      if (t_.storages[storage].preexisting || flow_.alloc(storage) == kNoOp || flow_.free(storage) == kNoOp)
        throw NoLoss{described_storage(t_, storage) + " of the loss is kept by the program behind it."};
    }
    for (const StorageId storage : {p_.logits, p_.wide})
      if (flow_.free(storage) >= pass_.backward)
        throw NoLoss{"its program keeps all logits (" + described_storage(t_, storage) + ") beside the loss."};
    if (f.cast_x == kNoOp)
      for (const Touch& touch : flow_.touches(p_.x))
        if (touch.reads && touch.op != f.product && touch.op != b.weight)
          throw NoLoss{described_op(t_, touch.op) + " reads what the output layer reads, " +
                       described_storage(t_, p_.x) + ", which is not implemented."};
    for (const OpId id : own)
      if (id != kNoOp && (t_.ops[id].graph_member || t_.ops[id].dispatch == Dispatch::compiled))
        throw NoLoss{described_op(t_, id) + " of its loss is compiled, or in a CUDA graph."};
    if (flow_.free(p_.x) == kNoOp) throw NoLoss{described_storage(t_, p_.x) + " is kept by the program."};
    p_.made = std::move(inner);
  }

  const Trace& t_;
  const Dataflow& flow_;
  const Pass& pass_;
  LossProgram p_;
  std::vector<StorageId> gradients_;
};

}  // namespace

FoundLoss loss_program(const Trace& trace, const Dataflow& flow, const Pass& pass) {
  try {
    return {LossSearch(trace, flow, pass).run(), ""};
  } catch (const NoLoss& none) {
    return {std::nullopt, none.why};
  }
}

}  // namespace memwall
