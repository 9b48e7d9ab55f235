// What of an operator's results grows with the batch, by operator class: the rules of policies/batch/batch_analysis.h.
#include <algorithm>

#include "policies/batch/batch_analysis.h"
#include "policies/trace/operator_name.h"
#include "policies/trace/shapes.h"

namespace memwall {
namespace {

constexpr Bytes kGeneratorState = 16;  // of the random numbers: seed and offset

// Which extents of `whole` are left in `part`, found from the left? False where `part` has others.
bool kept_extents(const Shape& whole, const Shape& part, std::vector<bool>& kept) {
  kept.assign(whole.size(), false);
  std::size_t at = 0;
  for (const std::int64_t extent : part) {
    while (at < whole.size() && whole[at] != extent) ++at;
    if (at == whole.size()) return false;
    kept[at++] = true;
  }
  return true;
}

}  // namespace

BatchAnalysis::Growth BatchAnalysis::result(const Op& op, StorageId s) const {
  const bool backward = op.phase == Phase::backward;
  switch (op.operator_class) {
    case OperatorClass::gemm:
      return of_product(op, s);
    case OperatorClass::convolution:
      return backward && shaped_like_parameter(s) ? Growth::no : Growth::yes;
    case OperatorClass::attention:
      return of_attention(op, s);
    case OperatorClass::normalization:
      return of_normalization(op, s);
    case OperatorClass::embedding:
      return backward ? Growth::no : Growth::yes;
    case OperatorClass::reduction:
      return of_reduction(op, s);
    case OperatorClass::optimizer:
      return Growth::no;
    default:
      return of_movement(s, op.phase);
  }
}

// Can it be a whole operand, not a bias? The operands have batch x m x k and batch x k x n elements; a weight that is
// used for the whole batch has one of them without the batch.
bool BatchAnalysis::is_weight_operand(const Op& op, StorageId s) const {
  const Shape& work = t_.shapes[op.shape];
  if (work.size() != 4) return t_.storages[s].bytes > kGeneratorState && shape(s).size() != 1;
  const auto amount = static_cast<double>(elements(s) != 0 ? elements(s) : t_.storages[s].bytes);
  const auto bias = static_cast<double>(work[2]);
  return amount != bias && amount >= static_cast<double>(work[3]) * static_cast<double>(std::min(work[1], work[2]));
}

BatchAnalysis::Growth BatchAnalysis::of_product(const Op& op, StorageId s) const {
  if (std::any_of(other_reads_.begin(), other_reads_.end(), [&](StorageId r) { return is_weight_operand(op, r); }))
    return Growth::yes;
  if (op.phase != Phase::backward) return Growth::yes;
  if (shaped_like_parameter(s)) return Growth::no;
  const Shape& work = t_.shapes[op.shape];
  const bool batched = work.size() == 4 && work[0] > 1 && work[0] % size_.samples == 0;
  if (batched) return Growth::yes;
  return work.size() == 4 && size_.samples > 1 ? Growth::guessed_no : Growth::guessed_yes;
}

BatchAnalysis::Growth BatchAnalysis::of_attention(const Op& op, StorageId s) const {
  const Shape& work = t_.shapes[op.shape];
  if (work.size() < 7 || elements(s) == 0) return t_.storages[s].bytes > kGeneratorState ? Growth::yes : Growth::no;
  const double queries = static_cast<double>(work[0]) * static_cast<double>(work[1]) * static_cast<double>(work[3]);
  return static_cast<double>(elements(s)) >= queries ? Growth::yes : Growth::no;
}

bool BatchAnalysis::as_large_as_a_read(StorageId s) const {
  const std::int64_t amount = elements(s) != 0 ? elements(s) : t_.storages[s].bytes;
  return std::binary_search(growing_amounts_.begin(), growing_amounts_.end(), amount);
}

bool BatchAnalysis::as_large_as_reads_together(StorageId s) const {
  double all = 0;
  for (const std::int64_t amount : growing_amounts_) all += static_cast<double>(amount);
  return growing_amounts_.size() > 1 && all == static_cast<double>(elements(s));
}

BatchAnalysis::Growth BatchAnalysis::of_normalization(const Op& op, StorageId s) const {
  if (as_large_as_a_read(s)) return Growth::yes;
  if (op.phase == Phase::backward && shaped_like_parameter(s)) return Growth::no;
  if (is_batch_norm(op)) return Growth::no;
  if (elements(s) == 0) return Growth::yes;
  const Shape& work = t_.shapes[op.shape];
  if (work.size() == 2 && elements(s) == work[0]) return Growth::yes;
  const bool same_front = std::any_of(growing_reads_.begin(), growing_reads_.end(),
                                      [&](StorageId r) { return !shape(r).empty() && shape(r)[0] == shape(s)[0]; });
  return same_front ? Growth::yes : Growth::guessed_no;
}

// A reduction keeps some extents of what it reads. Where the batch is one sample, its extent cannot be told from a
// reduced one: then the first larger extent, whose sums over samples are sums over positions too, speaks for it.
BatchAnalysis::Growth BatchAnalysis::of_reduction(const Op& op, StorageId s) const {
  const Shape& work = t_.shapes[op.shape];
  const bool over_one = work.size() == 2 && work[1] == 1 && op.phase == Phase::backward;  // sample: the same size
  if (as_large_as_a_read(s)) return over_one ? Growth::no : Growth::yes;
  if (elements(s) == 0)
    return op.phase == Phase::backward && shaped_like_parameter(s) ? Growth::no : Growth::guessed_yes;
  const Shape part = squeezed(shape(s));
  for (const StorageId r : growing_reads_) {
    const Shape whole = size_.samples == 1 ? squeezed(shape(r)) : shape(r);
    const auto held = size_.samples == 1 ? std::optional<std::size_t>(0) : batch_extent(whole, size_);
    if (whole.empty() || !held) continue;
    if (size_.samples > 1 && shape(s).size() == whole.size())
      return shape(s)[*held] == whole[*held] ? Growth::yes : Growth::no;
    std::vector<bool> kept;
    if (!kept_extents(whole, part, kept)) continue;
    return kept[*held] ? Growth::yes : Growth::no;
  }
  return of_movement(s, op.phase);
}

BatchAnalysis::Growth BatchAnalysis::of_movement(StorageId s, Phase phase) const {
  if (as_large_as_a_read(s) || as_large_as_reads_together(s)) return Growth::yes;
  const bool backward = phase == Phase::backward;
  if (elements(s) == 0) return Growth::yes;  // of unknown shape: with what it is made from
  const Shape& own = shape(s);
  const bool like_parameter = backward && exact_parameter_shapes_.contains(own);
  for (const StorageId r : growing_reads_) {
    const auto held = batch_extent(shape(r), size_);
    if (!held || shape(r)[*held] == 1) continue;
    if (own[0] == shape(r)[*held]) return Growth::yes;
    if (!like_parameter && std::find(own.begin(), own.end(), shape(r)[*held]) != own.end()) return Growth::yes;
  }
  if (size_.tokens > 0 && own[0] == size_.tokens) return Growth::yes;
  if (like_parameter) return Growth::no;
  if (own[0] == size_.samples) return Growth::yes;
  return batch_extent(own, size_) ? Growth::guessed_yes : Growth::guessed_no;
}

// Does it write something of that many elements?
bool BatchAnalysis::has_result(const Op& op, std::int64_t amount) const {
  const auto uses = t_.uses_of(op);
  return std::any_of(uses.begin(), uses.end(),
                     [&](const Use& use) { return use.access == Access::write && elements(use.storage) == amount; });
}

bool BatchAnalysis::is_batch_norm(const Op& op) const {
  return operator_of(t_, op).find("batch_norm") != std::string::npos;
}

bool BatchAnalysis::touches_growing(const Op& op) const {
  const auto uses = t_.uses_of(op);
  return std::any_of(uses.begin(), uses.end(), [&](const Use& use) { return grows_[use.storage]; });
}

std::optional<std::size_t> BatchAnalysis::extent_of_work(const Op& op) const {
  const Shape& work = t_.shapes[op.shape];
  const auto fits = [&](std::size_t i) { return i < work.size() && work[i] > 0 && work[i] % size_.samples == 0; };
  const auto only = [&](std::size_t i) { return fits(i) ? std::optional<std::size_t>(i) : std::nullopt; };
  const auto uses = t_.uses_of(op);
  const bool result_grows = std::any_of(
      uses.begin(), uses.end(), [&](const Use& use) { return use.access == Access::write && grows_[use.storage]; });
  if (op.operator_class == OperatorClass::gemm && work.size() == 4) return extent_of_product(op, result_grows);
  if (work.size() == 2) {
    const std::string& name = operator_of(t_, op);
    const bool row_per_result = op.operator_class == OperatorClass::reduction && !result_grows &&
                                has_result(op, work[0]) && name.find("loss") == std::string::npos;
    const bool row_per_channel = op.operator_class == OperatorClass::normalization && is_batch_norm(op);
    if (row_per_result || row_per_channel) return only(1);
  }
  return only(0);
}

// {batch, m, n, k}: of a weight's gradient k; of a product of two that grow the batch; else m or n, whichever the
// weight (k x n, or m x k) does not have.
std::optional<std::size_t> BatchAnalysis::extent_of_product(const Op& op, bool result_grows) const {
  const Shape& work = t_.shapes[op.shape];
  const auto fits = [&](std::size_t i) { return work[i] > 0 && work[i] % size_.samples == 0; };
  const auto is_product = [&](StorageId s, std::size_t i) {
    return static_cast<double>(elements(s)) == static_cast<double>(work[i]) * static_cast<double>(work[3]);
  };
  if (!result_grows) return fits(3) ? std::optional<std::size_t>(3) : std::nullopt;
  bool weight = false;
  for (const Use& use : t_.uses_of(op)) {
    if (use.access != Access::read || grows_[use.storage] || !is_weight_operand(op, use.storage)) continue;
    weight = true;
    if (fits(1) && is_product(use.storage, 2)) return 1;
    if (fits(2) && is_product(use.storage, 1)) return 2;
  }
  if (!weight && work[0] > 1 && fits(0)) return 0;
  for (const std::size_t i : {std::size_t{1}, std::size_t{2}})
    if (work[i] == size_.tokens || work[i] == size_.samples) return i;
  for (const std::size_t i : {std::size_t{1}, std::size_t{2}, std::size_t{0}})
    if (fits(i)) return i;
  return std::nullopt;
}

}  // namespace memwall
