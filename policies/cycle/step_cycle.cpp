#include "policies/cycle/step_cycle.h"

#include <algorithm>

namespace memwall {

StepCycle::StepCycle(CycleProgram program) : program_(std::move(program)) {
  starts_.assign(1, Time{});
  for (const CycleSlot& slot : program_.slots) starts_.push_back(starts_.back() + slot.time);
  std::vector<Bytes> change(program_.slots.size() + 1, 0);
  for (std::uint32_t s = 0; s < program_.storages.size(); ++s) {
    const CycleStorage& storage = program_.storages[s];
    change[storage.first] += storage.held;
    change[storage.last + 1] -= storage.held;
    if (!storage.fixed && storage.held > 0) find_gaps(s);
  }
  live_.resize(program_.slots.size());
  Bytes live = 0;
  for (std::size_t k = 0; k < live_.size(); ++k) live_[k] = live += change[k];
}

// Content is that of the last write before the gap. Of what lives across turns and is never written it is always the
// same: a copy is made once, and not in every turn.
void StepCycle::find_gaps(std::uint32_t storage) {
  const CycleStorage& s = program_.storages[storage];
  const auto turn = static_cast<std::int32_t>(size());
  const std::size_t n = s.touches.size(), first_gap = gaps_.size();
  if (n == 0 && s.across) return;
  // Of what is there when the turn begins. What is read and was never written has some content from its first slot on.
  std::int32_t written = s.from_before ? -1 : static_cast<std::int32_t>(s.first);
  bool constant = false;
  if (s.across) {
    constant = std::none_of(s.touches.begin(), s.touches.end(), [](const CycleTouch& t) { return t.writes; });
    for (const CycleTouch& touch : s.touches)
      if (touch.writes) written = static_cast<std::int32_t>(touch.slot) - turn;
  }
  std::uint32_t version = versions_++;
  const std::uint32_t first_version = version;
  const auto add = [&](std::uint32_t touch, std::int32_t begin, std::int32_t end, const CycleTouch* next) {
    if (begin >= end) return;
    const bool needs_content = next == nullptr || next->reads;
    gaps_.push_back({storage, touch, version, written, begin, end, needs_content && !constant, needs_content, true});
  };
  const auto add_last = [&](std::uint32_t touch, std::int32_t begin) {
    if (begin <= static_cast<std::int32_t>(s.last))
      gaps_.push_back({storage, touch, version, written, begin, static_cast<std::int32_t>(s.last) + 1, false, false, false});
  };
  if (s.from_before && !s.across && n > 0)
    add(CycleGap::kBeforeAll, 0, static_cast<std::int32_t>(s.touches[0].slot), &s.touches[0]);
  else if (s.from_before && !s.across)
    add_last(CycleGap::kBeforeAll, 0);
  for (std::size_t i = 0; i < n; ++i) {
    const CycleTouch& touch = s.touches[i];
    const auto slot = static_cast<std::int32_t>(touch.slot);
    if (touch.writes) written = slot, version = versions_++;
    const auto index = static_cast<std::uint32_t>(i);
    if (i + 1 < n) {
      add(index, slot + 1, static_cast<std::int32_t>(s.touches[i + 1].slot), &s.touches[i + 1]);
    } else if (s.across) {
      // The gap wraps: it begins in this turn or, behind the last slot, at the start of the next.
      const std::int32_t end = static_cast<std::int32_t>(s.touches[0].slot) + turn;
      const std::int32_t back = slot + 1 == turn ? turn : 0;
      written -= back;
      add(index, slot + 1 - back, end - back, &s.touches[0]);
    } else if (s.to_next) {
      add(index, slot + 1, turn, nullptr);
    } else {
      add_last(index, slot + 1);
    }
  }
  // What the turn ends with is what the next begins with.
  if (s.across)
    for (std::size_t g = first_gap; g < gaps_.size(); ++g)
      if (gaps_[g].version == first_version) gaps_[g].version = version;
}

Bytes StepCycle::peak() const { return *std::max_element(live_.begin(), live_.end()); }

std::vector<Bytes> StepCycle::least() const {
  return live_without([](const CycleGap&) { return true; });
}

std::vector<Bytes> StepCycle::live_without(const std::function<bool(const CycleGap&)>& is_away) const {
  std::vector<Bytes> change(live_.size() + 1, 0);
  for (const CycleGap& gap : gaps_) {
    if (!is_away(gap)) continue;
    const Bytes held = program_.storages[gap.storage].held;
    const auto turn = static_cast<std::int32_t>(live_.size());
    change[static_cast<std::size_t>(gap.begin)] -= held;
    change[static_cast<std::size_t>(std::min(gap.end, turn))] += held;
    if (gap.end > turn) change[0] -= held, change[static_cast<std::size_t>(gap.end - turn)] += held;
  }
  std::vector<Bytes> all = live_;
  Bytes away = 0;
  for (std::size_t k = 0; k < all.size(); ++k) all[k] += away += change[k];
  return all;
}

Time StepCycle::start(std::int64_t slot) const {
  const auto turn = static_cast<std::int64_t>(size());
  std::int64_t turns = slot / turn, rest = slot % turn;
  if (rest < 0) --turns, rest += turn;
  return this->turn() * turns + starts_[static_cast<std::size_t>(rest)];
}

}  // namespace memwall
