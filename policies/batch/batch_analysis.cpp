#include "policies/batch/batch_analysis.h"

#include <algorithm>

#include "policies/trace/operator_name.h"
#include "policies/trace/shapes.h"

namespace memwall {
namespace {

constexpr Bytes kScalar = 8;  // no larger than one number: a loss, a count, a seed

bool is_model_state(StorageKind kind) {
  return kind == StorageKind::parameter || kind == StorageKind::gradient || kind == StorageKind::optimizer_state;
}

bool moves_data(const Op& op) {
  switch (op.operator_class) {
    case OperatorClass::elementwise:
    case OperatorClass::memory:
    case OperatorClass::other:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::optional<std::size_t> batch_extent(const Shape& shape, const BatchSize& size) {
  if (shape.empty()) return std::nullopt;
  const bool tokens_known = size.tokens > size.samples;
  const auto first = [&](auto&& matches) -> std::optional<std::size_t> {
    const auto found = std::find_if(shape.begin(), shape.end(), matches);
    if (found == shape.end()) return std::nullopt;
    return static_cast<std::size_t>(found - shape.begin());
  };
  if (shape[0] == size.samples) return 0;
  if (tokens_known && shape[0] > 0 && shape[0] % size.tokens == 0) return 0;
  if (size.samples == 1) return 0;  // any extent is a multiple of one; the batch stands first
  const bool length_first =
      tokens_known && shape.size() > 1 && shape[1] == size.samples && shape[0] == size.tokens / size.samples;
  if (length_first) return 1;
  if (shape[0] > 0 && shape[0] % size.samples == 0) return 0;  // samples x heads
  if (const auto exact = first([&](std::int64_t e) { return e == size.samples; })) return exact;
  if (tokens_known)
    if (const auto exact = first([&](std::int64_t e) { return e == size.tokens; })) return exact;
  return first([&](std::int64_t e) { return e > 0 && e % size.samples == 0; });
}

BatchAnalysis::BatchAnalysis(const Trace& trace, const BatchSize& size)
    : t_(trace),
      size_(size),
      grows_(trace.storages.size(), false),
      feeds_gradient_(trace.storages.size(), false),
      elements_(trace.storages.size(), 0) {
  for (StorageId s = 0; s < t_.storages.size(); ++s) elements_[s] = known_elements(shape(s));
  find_parameters();
  find_gradient_feeders();
  seed_inputs();
  // What is found later can only make more grow, so this ends; three passes do for what frameworks write.
  for (bool changed = true; changed;) {
    changed = false;
    for (const Op& op : t_.ops)
      if (op.use_count > 0) changed |= analyze_op(op);
  }
}

bool BatchAnalysis::any() const { return std::find(grows_.begin(), grows_.end(), true) != grows_.end(); }

std::set<StorageId> BatchAnalysis::parameters_that_hold_the_batch() const {
  std::set<StorageId> found;
  if (size_.samples == 1) return found;
  for (const Op& op : t_.ops) {
    if (op.phase != Phase::forward || op.operator_class != OperatorClass::elementwise) continue;
    const auto uses = t_.uses_of(op);
    for (const Use& use : uses) {
      const Storage& own = t_.storages[use.storage];
      if (own.kind != StorageKind::parameter || elements(use.storage) != 0 || own.bytes <= kScalar) continue;
      if (std::any_of(uses.begin(), uses.end(), [&](const Use& other) {
            return grows_[other.storage] && t_.storages[other.storage].bytes == own.bytes;
          }))
        found.insert(use.storage);
    }
  }
  return found;
}

void BatchAnalysis::find_parameters() {
  for (StorageId s = 0; s < t_.storages.size(); ++s) {
    const StorageKind kind = t_.storages[s].kind;
    if (kind != StorageKind::parameter && kind != StorageKind::gradient) continue;
    exact_parameter_shapes_.insert(shape(s));
    Shape own = squeezed(shape(s));
    if (own.empty()) continue;
    parameter_shapes_.insert(own);
    std::reverse(own.begin(), own.end());
    if (own.size() == 2) parameter_shapes_.insert(own);
  }
}

// A gradient in another data type, or one of two that are added up, is no storage of kind gradient; what is moved
// into one, element by element, is. Of unknown shapes only a copy or a cast is told by its sizes.
void BatchAnalysis::find_gradient_feeders() {
  const auto as_many = [&](const Op& op, StorageId from, StorageId to) {
    if (elements(from) != 0 && elements(to) != 0) return elements(from) == elements(to);
    const Bytes a = t_.storages[from].bytes, b = t_.storages[to].bytes;
    return op.use_count == 2 && (a == b || (a % 2 == 0 && a / 2 == b) || (b % 2 == 0 && b / 2 == a));
  };
  for (std::size_t i = t_.ops.size(); i-- > 0;) {
    const Op& op = t_.ops[i];
    if (!moves_data(op)) continue;
    for (const Use& to : t_.uses_of(op)) {
      const bool gradient = t_.storages[to.storage].kind == StorageKind::gradient || feeds_gradient_[to.storage];
      if (to.access != Access::write || !gradient) continue;
      for (const Use& from : t_.uses_of(op))
        if (from.access == Access::read && t_.storages[from.storage].kind != StorageKind::input &&
            as_many(op, from.storage, to.storage))
          feeds_gradient_[from.storage] = true;
    }
  }
}

void BatchAnalysis::seed_inputs() {
  for (StorageId s = 0; s < t_.storages.size(); ++s) {
    const Storage& storage = t_.storages[s];
    if (storage.kind != StorageKind::input || storage.bytes == 0 || storage.bytes % size_.samples != 0) continue;
    // A table that is handed in beside the batch has no batch in front.
    grows_[s] = storage.shape == 0 || batch_extent(shape(s), size_).has_value();
  }
}

bool BatchAnalysis::may_grow(StorageId s) const {
  const Storage& storage = t_.storages[s];
  if (is_model_state(storage.kind) || feeds_gradient_[s]) return false;
  if (storage.kind == StorageKind::input) return storage.bytes % size_.samples == 0;
  if (storage.preexisting || storage.bytes % size_.samples != 0) return false;
  if (elements(s) == 0) return storage.bytes > kScalar;
  return elements(s) != 1 && elements(s) % size_.samples == 0;
}

bool BatchAnalysis::shaped_like_parameter(StorageId s) const {
  return elements(s) != 0 && parameter_shapes_.contains(squeezed(shape(s)));
}

void BatchAnalysis::gather_reads(const Op& op) {
  growing_reads_.clear();
  other_reads_.clear();
  growing_amounts_.clear();
  for (const Use& use : t_.uses_of(op)) {
    // What comes from outside counts as written by the op that first reads it, where nothing says how it came.
    const bool arrives = use.access == Access::write && t_.storages[use.storage].kind == StorageKind::input;
    if (use.access != Access::read && !(arrives && op.kind == OpKind::kernel)) continue;
    (grows_[use.storage] ? growing_reads_ : other_reads_).push_back(use.storage);
    if (grows_[use.storage])
      growing_amounts_.push_back(elements(use.storage) != 0 ? elements(use.storage) : t_.storages[use.storage].bytes);
  }
  std::sort(growing_amounts_.begin(), growing_amounts_.end());
}

bool BatchAnalysis::mark(StorageId s, Growth growth) {
  if (grows_[s]) return false;
  if (growth == Growth::guessed_no || growth == Growth::guessed_yes) guessed_.insert(s);
  if (growth != Growth::yes && growth != Growth::guessed_yes) return false;
  grows_[s] = true;
  if (growth == Growth::yes) guessed_.erase(s);
  return true;
}

bool BatchAnalysis::analyze_op(const Op& op) {
  bool changed = false;
  gather_reads(op);
  if (!growing_reads_.empty())
    for (const Use& use : t_.uses_of(op))
      if (use.access == Access::write && !grows_[use.storage] && may_grow(use.storage))
        changed |= mark(use.storage, result(op, use.storage));
  if (moves_data(op)) {
    changed |= unify_shapes(op);
    changed |= unify_concatenation(op);
  }
  if (op.operator_class == OperatorClass::embedding) changed |= unify_indices(op);
  return changed;
}

// Zeros that are added to, a mask that is multiplied: of one shape with what grows.
bool BatchAnalysis::unify_shapes(const Op& op) {
  std::set<ShapeId> growing, made;
  for (const Use& use : t_.uses_of(op)) {
    if (!grows_[use.storage] || t_.storages[use.storage].shape == 0) continue;
    growing.insert(t_.storages[use.storage].shape);
    if (use.access == Access::write) made.insert(t_.storages[use.storage].shape);
  }
  if (growing.empty()) return false;
  bool changed = false;
  for (const Use& use : t_.uses_of(op)) {
    const ShapeId own = t_.storages[use.storage].shape;
    if (grows_[use.storage] || !growing.contains(own) || !may_grow(use.storage)) continue;
    const bool may_be_gradient = op.phase == Phase::backward && shaped_like_parameter(use.storage);
    if (!may_be_gradient || made.contains(own)) changed |= mark(use.storage, Growth::yes);
  }
  return changed;
}

// aten::cat: an operand is like the result in all extents but one, which is not the batch's.
bool BatchAnalysis::unify_concatenation(const Op& op) {
  if (size_.samples == 1 || growing_reads_.empty() || other_reads_.empty()) return false;
  if (operator_of(t_, op).find("cat") == std::string::npos) return false;
  bool changed = false;
  for (const Use& use : t_.uses_of(op)) {
    if (use.access != Access::write || !grows_[use.storage]) continue;
    const Shape& whole = shape(use.storage);
    const auto held = batch_extent(whole, size_);
    for (const StorageId s : other_reads_) {
      const Shape& own = shape(s);
      if (!held || !may_grow(s) || own.size() != whole.size() || own[*held] != whole[*held]) continue;
      std::size_t different = 0;
      for (std::size_t i = 0; i < own.size(); ++i) different += own[i] != whole[i] ? 1 : 0;
      if (different == 1) changed |= mark(s, Growth::yes);
    }
  }
  return changed;
}

// Indices without values of the input (all zero: token types) grow with the rows that they fetch.
bool BatchAnalysis::unify_indices(const Op& op) {
  std::int64_t fetched = 0;
  for (const Use& use : t_.uses_of(op))
    if (use.access == Access::write && grows_[use.storage]) fetched = elements(use.storage);
  const Shape& work = t_.shapes[op.shape];
  if (fetched == 0 || work.size() != 3) return false;
  bool changed = false;
  for (const StorageId s : other_reads_)
    if (may_grow(s) && elements(s) == work[0] && elements(s) > 0 && fetched / elements(s) == work[1])
      changed |= mark(s, Growth::yes);
  return changed;
}

}  // namespace memwall
