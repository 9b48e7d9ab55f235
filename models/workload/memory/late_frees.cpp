#include <algorithm>

#include "models/workload/memory/phase_intervals.h"
#include "models/workload/memory/memory_report.h"

namespace memwall {
namespace {

// Events in whose wake bytes are held in vain: [begin, end).
struct UnusedInterval {
  std::uint32_t begin = 0, end = 0;
  bool any() const { return begin < end; }
};

// Adds up what one rule finds, over the events.
class UnusedBytes {
 public:
  explicit UnusedBytes(std::size_t events) : changes_(events + 1) {}

  void add(UnusedInterval idle, Bytes bytes) {
    changes_[idle.begin] += bytes;
    changes_[idle.end] -= bytes;
  }
  void count() { ++blocks_; }
  // Nothing is in vain outside of these. REQUIRES: ascending, do not overlap.
  void only_within(const std::vector<UnusedInterval>& windows) {
    std::vector<Bytes> alive = changes_;
    for (std::size_t event = 1; event < alive.size(); ++event) alive[event] += alive[event - 1];
    std::fill(changes_.begin(), changes_.end(), 0);
    for (const UnusedInterval& window : windows)
      for (std::uint32_t event = window.begin; event < window.end; ++event) {
        changes_[event] += alive[event];
        changes_[event + 1] -= alive[event];
      }
  }
  LateFree result(std::string rule, std::uint32_t peak_event) const {
    LateFree held{std::move(rule), 0, 0, blocks_};
    Bytes now = 0;
    for (std::size_t event = 0; event + 1 < changes_.size(); ++event) {
      now += changes_[event];
      held.most = std::max(held.most, now);
      if (event == peak_event) held.at_peak = now;
    }
    return held;
  }

 private:
  std::vector<Bytes> changes_;
  std::uint64_t blocks_ = 0;
};

class LateFreeFinder {
 public:
  explicit LateFreeFinder(const AllocationTable& table)
      : table_(table), runs_(table.phases), events_(static_cast<std::uint32_t>(table.phases.size())) {
    find_gradient_windows();
  }

  std::vector<LateFree> find(std::uint32_t peak_event);

 private:
  using Rule = UnusedInterval (LateFreeFinder::*)(const Allocation&) const;

  void find_gradient_windows();
  UnusedBytes gradients() const;
  UnusedBytes by_rule(Rule rule) const;
  UnusedInterval result_of_forward(const Allocation& a) const;
  UnusedInterval input(const Allocation& a) const;
  UnusedInterval optimizer_temporary(const Allocation& a) const;
  UnusedInterval made_in_inference(const Allocation& a) const;
  UnusedInterval after_backward(const Allocation& a, std::uint32_t forward_begin) const;

  std::uint32_t end_of(const Allocation& a) const { return a.end == Allocation::kAfter ? events_ : a.end; }
  const PhaseInterval& run(std::uint32_t number) const { return runs_.all()[number]; }
  std::uint32_t next_begin(std::uint32_t event, Phase phase) const {
    const std::uint32_t number = runs_.next(event, phase);
    return number == PhaseIntervals::kNone ? events_ : run(number).begin;
  }

  const AllocationTable& table_;
  PhaseIntervals runs_;
  std::uint32_t events_;
  std::vector<UnusedInterval> gradient_windows_;
};

// From the first forward pass after an optimizer's step to the next backward pass, nobody reads a gradient. Between
// the micro-batches of one step they are added up, and are needed.
void LateFreeFinder::find_gradient_windows() {
  bool used = true;  // those from before the recording
  for (const PhaseInterval& run : runs_.all()) {
    if (run.phase == Phase::backward) used = false;
    if (run.phase == Phase::optimizer) used = true;
    if (run.phase != Phase::forward || !used) continue;
    const UnusedInterval window{run.begin, next_begin(run.begin, Phase::backward)};
    if (gradient_windows_.empty() || gradient_windows_.back().end <= window.begin) gradient_windows_.push_back(window);
  }
}

UnusedBytes LateFreeFinder::gradients() const {
  UnusedBytes held(events_);
  for (const Allocation& a : table_.allocations) {
    if (a.kind != StorageKind::gradient) continue;
    const std::uint32_t begin = a.begin == Allocation::kBefore ? 0 : a.begin, end = end_of(a);
    const auto window = std::lower_bound(gradient_windows_.begin(), gradient_windows_.end(), begin,
                                         [](const UnusedInterval& w, std::uint32_t event) { return w.begin < event; });
    if (window == gradient_windows_.end() || window->begin >= end) continue;
    held.add({begin, end}, a.requested);
    held.count();
  }
  held.only_within(gradient_windows_);
  return held;
}

UnusedBytes LateFreeFinder::by_rule(Rule rule) const {
  UnusedBytes held(events_);
  for (const Allocation& a : table_.allocations) {
    const UnusedInterval idle = (this->*rule)(a);
    if (!idle.any()) continue;
    held.add(idle, a.requested);
    held.count();
  }
  return held;
}

// From the end of the backward pass that follows `forward_begin` on, where the next pass, the optimizer or another
// forward pass, begins before it is freed. What outlives the backward pass after that as well is a cache that is used
// again, or a leak, and not looked at here.
UnusedInterval LateFreeFinder::after_backward(const Allocation& a, std::uint32_t forward_begin) const {
  const std::uint32_t backward = runs_.next(forward_begin, Phase::backward);
  if (backward == PhaseIntervals::kNone) return {};
  const std::uint32_t from = run(backward).end, end = end_of(a);
  const std::uint32_t next_pass = std::min(next_begin(from, Phase::forward), next_begin(from, Phase::optimizer));
  if (next_pass >= end) return {};
  const std::uint32_t next_backward = runs_.next(from, Phase::backward);
  if (next_backward != PhaseIntervals::kNone && end >= run(next_backward).end) return {};
  return {from, end};
}

UnusedInterval LateFreeFinder::result_of_forward(const Allocation& a) const {
  if (a.kind != StorageKind::activation || a.inference) return {};
  if (a.end != Allocation::kAfter &&
      (table_.phases[a.end] == Phase::backward || table_.phases[a.end] == Phase::recompute))
    return {};  // a backward pass used it
  if (a.begin != Allocation::kBefore) return a.phase == Phase::forward ? after_backward(a, a.begin) : UnusedInterval{};
  // Of the step before the recording: in vain from its beginning, if that begins with the next step.
  if (a.end == Allocation::kAfter || runs_.all().empty() || run(0).phase != Phase::forward) return {};
  return run(0).begin < a.end ? UnusedInterval{0, a.end} : UnusedInterval{};
}

UnusedInterval LateFreeFinder::input(const Allocation& a) const {
  if (a.kind != StorageKind::input || a.begin == Allocation::kBefore) return {};
  return after_backward(a, a.begin);
}

UnusedInterval LateFreeFinder::optimizer_temporary(const Allocation& a) const {
  if (a.kind != StorageKind::workspace || a.phase != Phase::optimizer || a.begin == Allocation::kBefore) return {};
  const std::uint32_t own = runs_.at(a.begin);
  if (own + 1 >= runs_.all().size() || run(own + 1).begin >= end_of(a) || end_of(a) <= run(own).end) return {};
  return {run(own).end, end_of(a)};
}

UnusedInterval LateFreeFinder::made_in_inference(const Allocation& a) const {
  if (!a.inference || a.kind != StorageKind::activation || a.begin == Allocation::kBefore) return {};
  const std::uint32_t backward = next_begin(a.begin, Phase::backward);
  return backward < end_of(a) ? UnusedInterval{backward, end_of(a)} : UnusedInterval{};
}

std::vector<LateFree> LateFreeFinder::find(std::uint32_t peak_event) {
  // One after the other, for each has a number for every event.
  std::vector<LateFree> found;
  found.push_back(
      gradients().result("Gradients are kept during the next forward pass: call optimizer.zero_grad(set_to_none=True) "
                         "before it, not after.",
                         peak_event));
  found.push_back(
      by_rule(&LateFreeFinder::result_of_forward)
          .result("Results of a forward pass (outputs, loss) are kept after its backward pass: del them, or let the "
                  "function that computes them return, before the optimizer's step and the next forward pass.",
                  peak_event));
  found.push_back(
      by_rule(&LateFreeFinder::input)
          .result("Inputs are kept after the backward pass that they were for: del the batch before the optimizer's "
                  "step.",
                  peak_event));
  found.push_back(by_rule(&LateFreeFinder::optimizer_temporary)
                      .result("Temporaries of the optimizer outlive its step: drop the references to them at its end.",
                              peak_event));
  found.push_back(by_rule(&LateFreeFinder::made_in_inference)
                      .result("Results made without gradients are kept through the backward pass: del them before it.",
                              peak_event));
  std::erase_if(found, [](const LateFree& held) { return held.blocks == 0; });
  std::stable_sort(found.begin(), found.end(), [](const LateFree& a, const LateFree& b) {
    return a.at_peak != b.at_peak ? a.at_peak > b.at_peak : a.most > b.most;
  });
  return found;
}

}  // namespace

std::vector<LateFree> find_late_frees(const AllocationTable& table, std::uint32_t peak_event) {
  return LateFreeFinder(table).find(peak_event);
}

}  // namespace memwall
