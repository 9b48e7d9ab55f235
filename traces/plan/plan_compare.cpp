#include "traces/plan/plan_compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "sim/error.h"

namespace memwall {
namespace {

// The tier that its content comes back from, or lives in; nothing where it has none.
std::optional<std::uint8_t> tier_index_of(const StorageDecision& d) {
  for (const std::uint8_t tier : {d.home, d.held})
    if (tier != StorageDecision::kDevice) return tier;
  if (!d.copies.empty()) return d.copies.front().tier;
  for (const PlannedFetch& fetch : d.fetches)
    if (fetch.tier != PlannedFetch::kNoTier) return fetch.tier;
  return std::nullopt;
}

StorageFate fate_of(const StorageDecision& d, const DecisionNotes& notes) {
  if (tier_index_of(d)) return StorageFate::copied;
  return notes.made_again ? StorageFate::rerun : StorageFate::dropped;
}

std::string tier_of(const StorageDecision& d, const MemoryPlan& plan) {
  const std::optional<std::uint8_t> tier = tier_index_of(d);
  return tier ? plan.tiers[*tier].tier : "";
}

// The number under which `all` has the style; it is added where it lacks it.
std::uint8_t number_in(std::vector<TransferStyle>& all, const TransferStyle& style) {
  const auto found = std::find(all.begin(), all.end(), style);
  const auto number = static_cast<std::uint8_t>(found - all.begin());
  if (found == all.end()) all.push_back(style);
  return number;
}

// The decision with tiers numbered as in `all`, so that those of two plans can be compared.
StorageDecision numbered_in(std::vector<TransferStyle>& all, StorageDecision d, const MemoryPlan& plan) {
  for (std::uint8_t* tier : {&d.home, &d.held})
    if (*tier != StorageDecision::kDevice) *tier = number_in(all, plan.tiers[*tier]);
  for (PlannedCopy& copy : d.copies) copy.tier = number_in(all, plan.tiers[copy.tier]);
  for (PlannedFetch& fetch : d.fetches)
    if (fetch.tier != PlannedFetch::kNoTier) fetch.tier = number_in(all, plan.tiers[fetch.tier]);
  return d;
}

// A storage in one of the plans.
struct Decided {
  std::optional<StorageDecision> decision{};  // none: it is kept
  const DecisionNotes* notes = nullptr;
  StorageFate fate = StorageFate::kept;
  std::string tier;
};

// `all`: see numbered_in.
std::map<StorageId, Decided> decided_in(const PlanDocument& document, std::vector<TransferStyle>& all) {
  std::map<StorageId, Decided> found;
  for (std::size_t i = 0; i < document.plan.storages.size(); ++i) {
    const StorageDecision& d = document.plan.storages[i];
    found[d.storage] = {numbered_in(all, d, document.plan), &document.notes[i], fate_of(d, document.notes[i]),
                        tier_of(d, document.plan)};
  }
  return found;
}

// What either file says of the storage.
DecisionNotes notes_of(const Decided& a, const Decided& b) {
  DecisionNotes notes = a.notes != nullptr ? *a.notes : *b.notes;
  if (b.notes == nullptr) return notes;
  if (notes.module.empty()) notes.module = b.notes->module;
  if (notes.kind.empty()) notes.kind = b.notes->kind;
  if (!notes.bytes) notes.bytes = b.notes->bytes;
  return notes;
}

class PlanComparer {
 public:
  void add(const Decided& a, const Decided& b) {
    const DecisionNotes notes = notes_of(a, b);
    PlanModuleDifference& row = modules_[{notes.module, notes.kind}];
    row.module = notes.module;
    row.kind = notes.kind;
    if (!notes.bytes) ++result_.unknown_bytes;
    const Bytes bytes = notes.bytes.value_or(0);
    const auto base = static_cast<std::size_t>(a.fate), other = static_cast<std::size_t>(b.fate);
    ++row.base_storages[base];
    ++row.other_storages[other];
    row.base_bytes[base] += bytes;
    row.other_bytes[other] += bytes;
    row.only_in_base += b.decision ? 0 : 1;
    row.only_in_other += a.decision ? 0 : 1;
    if (a.fate == b.fate && a.tier == b.tier) {
      ++(a.decision == b.decision ? result_.alike : result_.rescheduled);
      return;
    }
    ++result_.different;
    ++row.different;
    row.different_bytes += bytes;
  }

  PlanComparison result() {
    for (auto& [key, row] : modules_) result_.modules.push_back(std::move(row));
    std::stable_sort(result_.modules.begin(), result_.modules.end(),
                     [](const PlanModuleDifference& a, const PlanModuleDifference& b) {
                       return std::pair(a.different_bytes, a.different) > std::pair(b.different_bytes, b.different);
                     });
    return std::move(result_);
  }

 private:
  std::map<std::pair<std::string, std::string>, PlanModuleDifference> modules_;
  PlanComparison result_;
};

std::vector<PlanRerunDifference> rerun_differences(const PlanDocument& base, const PlanDocument& other) {
  std::map<std::string, PlanRerunDifference> rows;
  const auto add = [&](const PlanDocument& document, std::uint64_t PlanRerunDifference::*ops) {
    for (std::size_t r = 0; r < document.plan.reruns.size(); ++r) {
      if (document.rerun_modules[r].empty()) rows[""].*ops += document.plan.reruns[r].ops.size();
      for (const auto& [module, count] : document.rerun_modules[r]) rows[module].*ops += count;
    }
  };
  add(base, &PlanRerunDifference::base_ops);
  add(other, &PlanRerunDifference::other_ops);
  std::vector<PlanRerunDifference> list;
  for (auto& [module, row] : rows) {
    row.module = module;
    list.push_back(row);
  }
  return list;
}

}  // namespace

std::string_view to_string(StorageFate fate) {
  constexpr std::array<std::string_view, kStorageFates> kNames{"kept", "copied", "rerun", "dropped"};
  return kNames[static_cast<std::size_t>(fate)];
}

PlanModuleDifference PlanComparison::total() const {
  PlanModuleDifference sum;
  for (const PlanModuleDifference& row : modules) {
    for (std::size_t f = 0; f < kStorageFates; ++f) {
      sum.base_storages[f] += row.base_storages[f];
      sum.other_storages[f] += row.other_storages[f];
      sum.base_bytes[f] += row.base_bytes[f];
      sum.other_bytes[f] += row.other_bytes[f];
    }
    sum.only_in_base += row.only_in_base;
    sum.only_in_other += row.only_in_other;
    sum.different += row.different;
    sum.different_bytes += row.different_bytes;
  }
  return sum;
}

std::uint64_t PlanComparison::base_ops() const {
  std::uint64_t sum = 0;
  for (const PlanRerunDifference& row : reruns) sum += row.base_ops;
  return sum;
}

std::uint64_t PlanComparison::other_ops() const {
  std::uint64_t sum = 0;
  for (const PlanRerunDifference& row : reruns) sum += row.other_ops;
  return sum;
}

PlanComparison compare(const PlanDocument& base, const PlanDocument& other, const std::string& base_name,
                       const std::string& other_name) {
  if (base.fingerprint != other.fingerprint)
    throw UsageError(fmt::format(
        "{} is a plan for {} ({} ops, fingerprint {}), {} for {} ({} ops, {}): their numbers of "
        "storages and ops mean different things. Expected two plans for one program.",
        base_name, base.trace, base.ops, base.fingerprint, other_name, other.trace, other.ops, other.fingerprint));
  std::map<StorageId, std::pair<Decided, Decided>> both;
  std::vector<TransferStyle> tiers;
  for (auto& [storage, decided] : decided_in(base, tiers)) both[storage].first = decided;
  for (auto& [storage, decided] : decided_in(other, tiers)) both[storage].second = decided;
  PlanComparer comparer;
  for (const auto& [storage, decided] : both) comparer.add(decided.first, decided.second);
  PlanComparison result = comparer.result();
  result.trace = base.trace;
  result.base_made_by = base.made_by;
  result.other_made_by = other.made_by;
  result.reruns = rerun_differences(base, other);
  result.same_reruns = base.plan.reruns == other.plan.reruns && base.plan.keeps == other.plan.keeps;
  result.base_expected = base.expected;
  result.other_expected = other.expected;
  return result;
}

}  // namespace memwall
