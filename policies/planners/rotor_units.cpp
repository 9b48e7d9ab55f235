#include "policies/planners/rotor_units.h"

#include <algorithm>
#include <utility>

#include "policies/trace/rerun_rules.h"

namespace memwall {

RotorUnitSearch::RotorUnitSearch(const StepProfile& profile, const ForwardChain& chain, std::size_t most)
    : p_(profile),
      t_(profile.trace()),
      flow_(profile.flow()),
      pass_(chain.pass),
      unit_of_(t_.storages.size(), kNoUnit),
      part_(t_.storages.size(), RotorPart::beside) {
  const std::size_t together = (chain.units.size() + most - 1) / most;
  for (std::size_t k = 0; k < chain.units.size(); k += together)
    if (begins_.empty() || chain.units[k].ops.front() > begins_.back()) begins_.push_back(chain.units[k].ops.front());
  for (const RecomputeUnit& unit : chain.units) end_ = std::max(end_, unit.ops.back() + 1);
}

std::vector<RotorUnit> RotorUnitSearch::run() {
  do {
    joined_.assign(begins_.size(), false);
    classify();
  } while (join() || (find_backwards(), join()));
  return std::move(units_);
}

int RotorUnitSearch::unit_at(OpId id) const {
  if (begins_.empty() || id < begins_.front() || id >= pass_.backward) return kNoUnit;
  if (id >= end_) return static_cast<int>(begins_.size());  // behind the last
  return static_cast<int>(std::upper_bound(begins_.begin(), begins_.end(), id) - begins_.begin()) - 1;
}

// Units from the first to the last become one.
void RotorUnitSearch::join_units(int first, int last) {
  for (int k = first + 1; k <= last; ++k) joined_[static_cast<std::size_t>(k)] = true;
}

bool RotorUnitSearch::join() {
  std::vector<OpId> begins;
  for (std::size_t k = 0; k < begins_.size(); ++k)
    if (!joined_[k]) begins.push_back(begins_[k]);
  const bool any = begins.size() < begins_.size();
  begins_ = std::move(begins);
  return any;
}

void RotorUnitSearch::classify() {
  const int behind = static_cast<int>(begins_.size());
  for (StorageId s = 0; s < t_.storages.size(); ++s) {
    part_[s] = RotorPart::beside;
    unit_of_[s] = kNoUnit;
    if (p_.held(s) == 0 || !is_forward_intermediate(t_, flow_, pass_, s)) continue;
    int first = behind, last = kNoUnit, furthest = kNoUnit;
    for (const Touch& touch : flow_.touches(s)) {
      if (touch.op >= pass_.backward) continue;
      const int unit = unit_at(touch.op);
      furthest = std::max(furthest, unit);
      if (!touch.writes) continue;
      first = std::min(first, unit);
      last = std::max(last, unit);
    }
    if (first == kNoUnit || last == behind || changes_in_backward(s)) continue;
    if (first < last) join_units(first, last);
    unit_of_[s] = first;
    if (furthest > first + 1) continue;
    const bool is_kept = is_saved_activation(t_, flow_, pass_, s);
    if (is_kept && flow_.touches(s).back().op >= pass_.backward)
      part_[s] = furthest > first ? RotorPart::output_saved : RotorPart::saved;
    else if (furthest > first && (is_kept || flow_.free(s) < pass_.backward))
      part_[s] = RotorPart::output_passed;
    else if (is_kept)
      part_[s] = RotorPart::idle;
  }
}

bool RotorUnitSearch::changes_in_backward(StorageId s) const {
  const auto touches = flow_.touches(s);
  return std::any_of(touches.begin(), touches.end(), [&](const Touch& touch) {
    return touch.op >= pass_.backward && (touch.writes || t_.ops[touch.op].phase == Phase::forward);
  });
}

void RotorUnitSearch::find_backwards() {
  joined_.assign(begins_.size(), false);
  units_.assign(begins_.size(), {});
  for (StorageId s = 0; s < t_.storages.size(); ++s) {
    if (part_[s] == RotorPart::beside) continue;
    RotorUnit& unit = units_[static_cast<std::size_t>(unit_of_[s])];
    if (part_[s] == RotorPart::saved || part_[s] == RotorPart::output_saved) unit.saved.push_back(s);
    if (part_[s] == RotorPart::idle) unit.idle.push_back(s);
    if (part_[s] == RotorPart::output_saved || part_[s] == RotorPart::output_passed) unit.output.push_back(s);
    if (part_[s] == RotorPart::output_passed || part_[s] == RotorPart::idle) continue;
    // Backward of a unit reads what it has saved, and what it started from.
    const auto reader = static_cast<std::size_t>(unit_of_[s] + (part_[s] == RotorPart::output_saved ? 1 : 0));
    if (reader == units_.size()) continue;
    for (const Touch& touch : flow_.touches(s))
      if (touch.op >= pass_.backward) units_[reader].backward = std::min(units_[reader].backward, touch.op);
  }
  const int count = static_cast<int>(units_.size());
  for (int k = 0; k < count; ++k) {
    RotorUnit& unit = units_[static_cast<std::size_t>(k)];
    unit.begin = begins_[static_cast<std::size_t>(k)];
    unit.end = k + 1 < count ? begins_[static_cast<std::size_t>(k) + 1] : end_;
    if (unit.backward == kNoOp)
      k + 1 < count ? join_units(k, k + 1) : join_units(k - 1, k);
    else
      unit.backward = insertion_point(t_, unit.backward);
  }
  for (int k = 1; k < count; ++k)
    if (units_[static_cast<std::size_t>(k)].backward >= units_[static_cast<std::size_t>(k) - 1].backward)
      join_units(k - 1, k);
  if (count == 1 && units_.front().backward == kNoOp) begins_.clear(), units_.clear(), joined_.clear();
}

}  // namespace memwall
