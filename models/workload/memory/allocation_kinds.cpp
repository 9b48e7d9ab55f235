#include "models/workload/memory/allocation_kinds.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>

namespace memwall {
namespace {

using Kind = StorageKind;
using Maker = StackFacts::Maker;
constexpr std::uint32_t kAfter = Allocation::kAfter;
constexpr std::uint32_t kNone = PhaseRuns::kNone;

// cuBLAS keeps this per handle and stream: 2 x 4096 KiB + 8 x 16 KiB (aten/src/ATen/cuda/CublasHandlePool.cpp).
constexpr Bytes kBlasWorkspace = 8'519'680;

class KindFinder {
 public:
  KindFinder(AllocationTable& table, const std::vector<StackFacts>& facts, const EventPhases& events,
             const PhaseRuns& runs)
      : table_(table), facts_(facts), events_(events), runs_(runs) {
    for (const PhaseRun& run : runs.all()) seen_[static_cast<std::size_t>(run.phase)] = true;
  }

  void run() {
    made_in_the_window();
    cut_off_by_the_end();
    older_with_frames();
    older_and_freed();
    older_by_size();
  }

 private:
  struct Life {
    Kind kind = Kind::unknown;
    bool cut = false;  // the recording ends before it could be told
  };

  bool seen(Phase phase) const { return seen_[static_cast<std::size_t>(phase)]; }
  static bool ends_after(const Allocation& a, std::uint32_t event) { return a.end == kAfter || a.end >= event; }
  bool last_run(std::uint32_t run) const { return run + 1 == runs_.all().size(); }

  void made_in_the_window();
  void cut_off_by_the_end();
  void older_with_frames();
  void older_and_freed();
  void older_by_size();
  Life kind_of(const Allocation& a) const;
  Life of_communication(const Allocation& a, const StackFacts& facts) const;
  Life of_backward(const Allocation& a, const StackFacts& facts) const;
  Life of_optimizer(const Allocation& a) const;
  Kind of_unknown_phase(const Allocation& a, const StackFacts& facts) const;
  Kind of_older_stack(const StackFacts& facts) const;
  Kind of_freed(std::uint32_t event) const;
  std::map<Bytes, std::uint64_t> gradient_sizes() const;

  AllocationTable& table_;
  const std::vector<StackFacts>& facts_;
  const EventPhases& events_;
  const PhaseRuns& runs_;
  std::array<bool, 5> seen_{};      // by Phase
  std::vector<std::uint32_t> cut_;  // allocations
};

void KindFinder::made_in_the_window() {
  for (std::uint32_t i = 0; i < table_.allocations.size(); ++i) {
    Allocation& a = table_.allocations[i];
    if (a.begin == Allocation::kBefore) continue;
    const Life life = kind_of(a);
    a.kind = life.kind;
    if (life.cut) cut_.push_back(i);
  }
}

KindFinder::Life KindFinder::kind_of(const Allocation& a) const {
  const StackFacts& facts = facts_[a.stack];
  if (facts.library_workspace) return {Kind::workspace};
  if (facts.communication) return of_communication(a, facts);
  switch (a.phase) {
    case Phase::forward:
      return {ends_after(a, runs_.all()[runs_.at(a.begin)].end) ? Kind::activation : Kind::workspace};
    case Phase::recompute:
      return {ends_after(a, runs_.recompute_end(a.begin)) ? Kind::activation : Kind::workspace};
    case Phase::backward:
      return of_backward(a, facts);
    case Phase::optimizer:
      return of_optimizer(a);
    default:
      return {of_unknown_phase(a, facts)};
  }
}

// The result of a reduce-scatter that outlives the backward pass is a shard's gradient.
KindFinder::Life KindFinder::of_communication(const Allocation& a, const StackFacts& facts) const {
  if (facts.reducer || a.phase != Phase::backward) return {Kind::communication_buffer};
  const std::uint32_t run = runs_.at(a.begin);
  const bool kept = ends_after(a, runs_.all()[run].end) && !(a.end == kAfter && last_run(run));
  return {kept ? Kind::gradient : Kind::communication_buffer};
}

KindFinder::Life KindFinder::of_backward(const Allocation& a, const StackFacts& facts) const {
  if (facts.accumulates) return {Kind::gradient};
  const std::uint32_t run = runs_.at(a.begin);
  if (a.end == kAfter && last_run(run)) return {Kind::gradient, true};
  return {ends_after(a, runs_.all()[run].end) ? Kind::gradient : Kind::workspace};
}

// A state is there for the optimizer's next step.
KindFinder::Life KindFinder::of_optimizer(const Allocation& a) const {
  const std::uint32_t run = runs_.at(a.begin);
  if (!ends_after(a, runs_.all()[run].end)) return {Kind::workspace};
  if (a.end == kAfter) return {Kind::optimizer_state, last_run(run)};
  const std::uint32_t next = runs_.next(runs_.all()[run].end, Phase::optimizer);
  return {next != kNone && a.end >= runs_.all()[next].begin ? Kind::optimizer_state : Kind::workspace};
}

Kind KindFinder::of_unknown_phase(const Allocation& a, const StackFacts& facts) const {
  if (facts.zero_grad) return Kind::gradient;
  const std::uint32_t next = runs_.next_known(a.begin);
  const bool stays = next == kNone ? a.end == kAfter : ends_after(a, next);
  if (!stays) return Kind::workspace;
  if (facts.maker == Maker::module) return Kind::parameter;
  if (facts.maker == Maker::optimizer) return Kind::optimizer_state;
  if (facts.from_host) return Kind::input;
  if (a.end != kAfter && events_.phases[a.end] == Phase::backward) return Kind::activation;
  return next != kNone && events_.phases[next] == Phase::forward ? Kind::input : Kind::unknown;
}

// What the end of the recording cuts off is what its stack made before; with no example, a block that backward leaves
// is a gradient if it has the size of something that was there before.
void KindFinder::cut_off_by_the_end() {
  std::unordered_map<StackId, std::array<std::uint32_t, kStorageKinds>> examples;
  std::unordered_map<Bytes, bool> parameter_sizes;
  for (const std::uint32_t i : cut_) examples[table_.allocations[i].stack] = {};
  std::size_t next_cut = 0;
  for (std::uint32_t i = 0; i < table_.allocations.size(); ++i) {
    const Allocation& a = table_.allocations[i];
    const bool is_cut = next_cut < cut_.size() && cut_[next_cut] == i;
    if (is_cut) ++next_cut;
    if (a.kind == Kind::parameter || (a.begin == Allocation::kBefore && a.end == kAfter))
      parameter_sizes[a.requested] = true;
    if (is_cut || a.begin == Allocation::kBefore) continue;
    const auto found = examples.find(a.stack);
    if (found != examples.end()) ++found->second[static_cast<std::size_t>(a.kind)];
  }
  for (const std::uint32_t i : cut_) {
    Allocation& a = table_.allocations[i];
    const auto& counts = examples[a.stack];
    const auto most = std::max_element(counts.begin(), counts.end());
    if (*most > 0)
      a.kind = static_cast<Kind>(most - counts.begin());
    else if (a.kind == Kind::gradient && parameter_sizes.count(a.requested) == 0)
      a.kind = Kind::workspace;
  }
}

void KindFinder::older_with_frames() {
  for (Allocation& a : table_.allocations) {
    if (a.begin != Allocation::kBefore) break;
    if (a.stack != 0) a.kind = of_older_stack(facts_[a.stack]);
  }
}

// It was made before the recording's window and lives to its end.
Kind KindFinder::of_older_stack(const StackFacts& facts) const {
  if (facts.library_workspace) return Kind::workspace;
  if (facts.communication) return Kind::communication_buffer;
  if (facts.zero_grad || facts.phase == Phase::backward) return Kind::gradient;
  if (facts.phase == Phase::optimizer || facts.maker == Maker::optimizer) return Kind::optimizer_state;
  if (facts.maker == Maker::module) return Kind::parameter;
  if (facts.phase == Phase::forward || facts.phase == Phase::recompute) return Kind::activation;
  return facts.from_host ? Kind::input : Kind::unknown;
}

void KindFinder::older_and_freed() {
  for (Allocation& a : table_.allocations) {
    if (a.begin != Allocation::kBefore) break;
    if (a.stack == 0 && a.end != kAfter) a.kind = of_freed(a.end);
  }
}

Kind KindFinder::of_freed(std::uint32_t event) const {
  if (events_.dropping[event]) return Kind::gradient;
  switch (events_.phases[event]) {
    case Phase::optimizer:
      return Kind::optimizer_state;
    case Phase::unknown:
      return Kind::unknown;
    default:
      return Kind::activation;
  }
}

// How many gradients of each size a backward pass makes: of the pass that makes the most, or of the one before the
// window. A parameter has one gradient of its own size.
std::map<Bytes, std::uint64_t> KindFinder::gradient_sizes() const {
  std::map<std::uint32_t, std::map<Bytes, std::uint64_t>> passes;
  std::map<std::uint32_t, std::uint64_t> totals;
  for (const Allocation& a : table_.allocations) {
    if (a.kind != Kind::gradient) continue;
    const std::uint32_t pass = a.begin == Allocation::kBefore ? kNone : runs_.at(a.begin);
    ++passes[pass][a.requested];
    ++totals[pass];
  }
  const auto most =
      std::max_element(totals.begin(), totals.end(), [](const auto& x, const auto& y) { return x.second < y.second; });
  return most == totals.end() ? std::map<Bytes, std::uint64_t>{} : passes[most->first];
}

void KindFinder::older_by_size() {
  const std::map<Bytes, std::uint64_t> gradients = gradient_sizes();
  std::map<Bytes, std::uint64_t> left = gradients;
  const bool only_forward = seen(Phase::forward) && !seen(Phase::backward) && !seen(Phase::optimizer);
  std::uint64_t matched = 0, states = 0, by_life = 0, unknown = 0;
  for (Allocation& a : table_.allocations) {
    if (a.begin != Allocation::kBefore) break;
    if (a.stack != 0 || a.end != kAfter) continue;
    const auto same = left.find(a.requested);
    if (same != left.end() && same->second > 0) {
      --same->second;
      a.kind = Kind::parameter;
      ++matched;
    } else if (a.requested == kBlasWorkspace) {
      a.kind = Kind::workspace;
    } else if (seen(Phase::optimizer) &&
               (same != left.end() || (a.requested % 2 == 0 && gradients.count(a.requested / 2) > 0))) {
      a.kind = Kind::optimizer_state;
      ++states;
    } else if (only_forward) {
      a.kind = Kind::parameter;
      ++by_life;
    } else {
      ++unknown;
    }
  }
  if (matched > 0)
    table_.notes.push_back(fmt::format(
        "{} older blocks without frames are taken as parameters: each has a gradient of its size.", matched));
  if (states > 0)
    table_.notes.push_back(fmt::format(
        "{} older blocks without frames are taken as optimizer states: they have the size of a gradient, or twice it.",
        states));
  if (by_life > 0)
    table_.notes.push_back(
        fmt::format("{} older blocks without frames are taken as parameters because they live throughout; no gradients "
                    "were recorded to compare with.",
                    by_life));
  if (unknown > 0)
    table_.notes.push_back(
        fmt::format("{} older blocks without frames live throughout and are of unknown kind.", unknown));
}

}  // namespace

void find_kinds(AllocationTable& table, const std::vector<StackFacts>& facts, const EventPhases& events,
                const PhaseRuns& runs) {
  KindFinder(table, facts, events, runs).run();
}

}  // namespace memwall
