#include "tests/support/flow_program.h"

#include <algorithm>
#include <map>

namespace memwall {
namespace {

using Term = LinearProgram::Term;
constexpr double kInfinity = LinearProgram::kInfinity;
// Bytes are counted in these.
constexpr double kUnit = 1e9;

// A gap as the chosen slots see it. Slots and stretches are counted on over turns.
struct SeenGap {
  bool needs_copy = false, comes_back = false;
  int first = 0, last = 0;   // of the chosen slots in it, by their places
  int written = 0;           // the last chosen slot at or before its write
  int used = 0;              // the first chosen slot at or behind its use
  auto operator<=>(const SeenGap&) const = default;
};

// Stretches: 2 i is the chosen slot i itself, 2 i + 1 reaches from its end to the next one's start.
class FlowProgram {
 public:
  FlowProgram(const StepCycle& cycle, const CycleLinks& links, Bytes budget, const std::vector<std::uint32_t>& slots)
      : c_(cycle), slots_(slots), points_(static_cast<int>(slots.size())), links_(links) {
    out_.resize(2 * slots.size()), in_ = out_;
    away_.resize(slots.size());
    std::map<std::uint32_t, std::vector<SeenGap>> versions;
    std::map<std::uint32_t, double> bytes_of;
    for (const CycleGap& gap : c_.gaps())
      if (const std::optional<SeenGap> seen = seen_gap(gap)) {
        versions[gap.version].push_back(*seen);
        bytes_of[gap.version] = static_cast<double>(c_.storages()[gap.storage].moved) / kUnit;
      }
    std::map<std::vector<SeenGap>, double> groups;
    for (const auto& [version, gaps] : versions) groups[gaps] += bytes_of[version];
    for (const auto& [gaps, bytes] : groups) add_group(gaps, bytes);
    add_memory(budget);
    add_links();
  }

  FlowBound solve(const SolverLimits& limits) const {
    const SolverAnswer answer = lp_.relaxed(limits);
    FlowBound bound{answer.status, 0, 0, lp_.columns(), lp_.rows()};
    double work = 0;
    for (const CycleSlot& slot : c_.slots()) work += to_seconds(slot.work);
    if (answer.status != SolverStatus::optimal) return bound;
    bound.seconds = std::max(work + answer.objective, to_seconds(c_.turn()));
    for (const std::size_t row : memory_rows_) bound.per_byte -= answer.duals[row] / kUnit;
    return bound;
  }

 private:
  int turn() const { return static_cast<int>(c_.size()); }
  // The last chosen slot at or before, the first at or behind, counted on over turns.
  int at_or_before(int slot) const {
    const int turns = slot >= 0 ? slot / turn() : -((-slot + turn() - 1) / turn());
    const auto rest = static_cast<std::uint32_t>(slot - turns * turn());
    return static_cast<int>(std::upper_bound(slots_.begin(), slots_.end(), rest) - slots_.begin()) - 1 + turns * points_;
  }
  int at_or_behind(int slot) const { return at_or_before(slot - 1) + 1; }
  std::size_t place(int stretch) const { return static_cast<std::size_t>((stretch % (2 * points_) + 2 * points_) % (2 * points_)); }

  std::optional<SeenGap> seen_gap(const CycleGap& gap) const {
    SeenGap seen;
    seen.first = at_or_behind(gap.begin), seen.last = at_or_before(gap.end - 1);
    if (seen.first > seen.last) return std::nullopt;
    seen.needs_copy = gap.needs_copy, seen.comes_back = gap.needs_content && gap.returns;
    seen.written = at_or_before(gap.written), seen.used = at_or_behind(gap.end);
    return seen;
  }

  // Bytes that have flowed up to each of `many` stretches from `first` on, in the direction given.
  std::vector<std::size_t> flow(std::vector<std::vector<Term>>& link, int first, int many, int step, double bytes) {
    std::vector<std::size_t> sums;
    for (int i = 0; i < many; ++i) {
      const std::size_t moved = lp_.add_column(0, bytes, 0), sum = lp_.add_column(0, bytes, 0);
      link[place(first + step * i)].push_back({moved, 1});
      std::vector<Term> terms = {{sum, 1}, {moved, -1}};
      if (i > 0) terms.push_back({sums.back(), -1});
      lp_.add_row(terms, 0, 0);
      sums.push_back(sum);
    }
    return sums;
  }

  void add_group(const std::vector<SeenGap>& gaps, double bytes) {
    int longest = 0;
    for (const SeenGap& gap : gaps)
      if (gap.needs_copy) longest = std::max(longest, 2 * (gap.last - gap.written) - 1);
    const int written = gaps.front().written;
    const std::vector<std::size_t> left = flow(out_, 2 * written + 1, longest, 1, bytes);
    for (const SeenGap& gap : gaps) {
      const int last = 2 * gap.used - 1;
      const std::vector<std::size_t> back =
          gap.comes_back ? flow(in_, last, last - 2 * gap.first, -1, bytes) : std::vector<std::size_t>{};
      for (int i = gap.first; i <= gap.last; ++i) {
        const std::size_t away = lp_.add_column(0, bytes, 0);
        away_[static_cast<std::size_t>((i % points_ + points_) % points_)].push_back({away, 1});
        if (gap.needs_copy)
          lp_.add_row({{left[static_cast<std::size_t>(2 * (i - gap.written) - 2)], 1}, {away, -1}}, 0, kInfinity);
        if (gap.comes_back) lp_.add_row({{back[static_cast<std::size_t>(last - 2 * i - 1)], 1}, {away, -1}}, 0, kInfinity);
      }
    }
  }

  // What has to be there, or away by a gap: as moves_bound.h says, not what could be elsewhere for nothing.
  void add_memory(Bytes budget) {
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      Bytes live = 0;
      for (const CycleStorage& s : c_.storages()) {
        const bool is_there = s.first <= slots_[i] && slots_[i] <= s.last;
        const bool is_touched = std::any_of(s.touches.begin(), s.touches.end(), [&](const CycleTouch& t) { return t.slot == slots_[i]; });
        const bool is_made = s.from_before || (!s.touches.empty() && s.touches.front().slot <= slots_[i]);
        const bool is_idle = s.across && s.touches.empty();
        const bool counts = s.fixed ? is_touched || s.first == s.last : is_made && !is_idle;
        if (is_there && counts) live += s.moved;
      }
      if (live > budget)
        memory_rows_.push_back(lp_.add_row(away_[i], static_cast<double>(live - budget) / kUnit, kInfinity));
    }
  }

  double work_between(int from, int to) const {
    double sum = 0;
    for (int k = from; k < to; ++k) sum += to_seconds(c_.slots()[static_cast<std::size_t>(k % turn())].work);
    return sum;
  }

  void add_links() {
    for (int i = 0; i < points_; ++i) {
      const int slot = static_cast<int>(slots_[static_cast<std::size_t>(i)]);
      const int next = i + 1 < points_ ? static_cast<int>(slots_[static_cast<std::size_t>(i) + 1]) : static_cast<int>(slots_[0]) + turn();
      const std::size_t wait = lp_.add_column(0, kInfinity, 1);
      for (const bool out : {true, false}) {
        auto& link = out ? out_ : in_;
        const double rate = (out ? links_.total_out : links_.total_in) / kUnit;
        lp_.add_row(link[place(2 * i)], -kInfinity, rate * work_between(slot, slot + 1));
        std::vector<Term>& between = link[place(2 * i + 1)];
        between.push_back({wait, -rate});
        lp_.add_row(between, -kInfinity, rate * work_between(slot + 1, next));
      }
    }
  }

  const StepCycle& c_;
  const std::vector<std::uint32_t>& slots_;
  const int points_;
  const CycleLinks& links_;
  LinearProgram lp_;
  std::vector<std::vector<Term>> out_, in_;  // by stretch
  std::vector<std::vector<Term>> away_;      // by chosen slot
  std::vector<std::size_t> memory_rows_;
};

}  // namespace

FlowBound flow_bound(const StepCycle& cycle, const CycleLinks& links, Bytes budget,
                     const std::vector<std::uint32_t>& slots, const SolverLimits& limits) {
  return FlowProgram(cycle, links, budget, slots).solve(limits);
}

std::vector<std::uint32_t> highest_slots(const StepCycle& cycle, std::size_t parts) {
  std::vector<std::uint32_t> slots;
  const auto& live = cycle.live();
  parts = std::min(parts, live.size());
  for (std::size_t part = 0; part < parts; ++part) {
    const auto first = live.begin() + static_cast<std::ptrdiff_t>(part * live.size() / parts);
    const auto last = live.begin() + static_cast<std::ptrdiff_t>((part + 1) * live.size() / parts);
    slots.push_back(static_cast<std::uint32_t>(std::max_element(first, last) - live.begin()));
  }
  return slots;
}

}  // namespace memwall
