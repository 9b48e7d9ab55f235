#include "models/workload/memory/allocation_kinds.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace memwall {
namespace {

using Kind = StorageKind;
using Maker = StackFacts::Maker;

// cuBLAS keeps this per handle and stream: 2 x 4096 KiB + 8 x 16 KiB (aten/src/ATen/cuda/CublasHandlePool.cpp).
constexpr Bytes kBlasWorkspace = 8'519'680;

class KindFinder {
 public:
  KindFinder(AllocationTable& table, const std::vector<StackFacts>& facts, const EventPhases& events,
             const PhaseIntervals& runs)
      : table_(table), facts_(facts), events_(events), runs_(runs) {
    for (const PhaseInterval& run : runs.all()) seen_[static_cast<std::size_t>(run.phase)] = true;
  }

  void run() {
    made_in_the_window();
    cut_off_by_the_end();
    older_with_frames();
    older_and_freed();
    replaced_by_the_optimizer();
    older_by_size();
  }

 private:
  struct Life {
    Kind kind = Kind::unknown;
    bool cut = false;  // the recording ends before it could be told
  };

  struct SizeBudget {  // of old blocks of one size: how many there are, and how many are still to be told
    std::uint64_t blocks = 0, parameters = 0, states = 0;
  };
  struct OlderCounts {
    std::uint64_t parameters = 0, states = 0, by_life = 0, unknown = 0;
  };

  bool seen(Phase phase) const { return seen_[static_cast<std::size_t>(phase)]; }
  static bool ends_after(const Allocation& a, std::uint32_t event) {
    return a.end == Allocation::kAfter || a.end >= event;
  }
  bool replaced(const Allocation& a) const {  // its place is taken by another, in the optimizer's step
    return a.end != Allocation::kAfter && events_.replacing[a.end] && events_.phases[a.end] == Phase::optimizer;
  }
  bool last_run(std::uint32_t run) const { return run + 1 == runs_.all().size(); }

  void made_in_the_window();
  void cut_off_by_the_end();
  void older_with_frames();
  void older_and_freed();
  void replaced_by_the_optimizer();
  void older_by_size();
  Life kind_of(const Allocation& a) const;
  Life of_communication(const Allocation& a, const StackFacts& facts) const;
  Life of_backward(const Allocation& a, const StackFacts& facts) const;
  Life of_optimizer(const Allocation& a) const;
  Kind of_unknown_phase(const Allocation& a, const StackFacts& facts) const;
  Kind of_older_stack(const StackFacts& facts) const;
  Kind of_freed(std::uint32_t event) const;
  std::map<Bytes, std::uint64_t> gradient_sizes() const;
  static void budget_states(const std::map<Bytes, std::uint64_t>& gradients, std::map<Bytes, SizeBudget>& budgets);
  static Kind of_older_size(Bytes requested, SizeBudget& budget, bool only_forward, OlderCounts& counts);
  void add_notes(const OlderCounts& counts);

  AllocationTable& table_;
  const std::vector<StackFacts>& facts_;
  const EventPhases& events_;
  const PhaseIntervals& runs_;
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
  const bool kept = ends_after(a, runs_.all()[run].end) && !(a.end == Allocation::kAfter && last_run(run));
  return {kept ? Kind::gradient : Kind::communication_buffer};
}

KindFinder::Life KindFinder::of_backward(const Allocation& a, const StackFacts& facts) const {
  if (facts.accumulates) return {Kind::gradient};
  const std::uint32_t run = runs_.at(a.begin);
  if (a.end == Allocation::kAfter && last_run(run)) return {Kind::gradient, true};
  return {ends_after(a, runs_.all()[run].end) ? Kind::gradient : Kind::workspace};
}

// A state is there for the optimizer's next step.
KindFinder::Life KindFinder::of_optimizer(const Allocation& a) const {
  const std::uint32_t run = runs_.at(a.begin);
  if (!ends_after(a, runs_.all()[run].end)) return {Kind::workspace};
  if (a.end == Allocation::kAfter) return {Kind::optimizer_state, last_run(run)};
  const std::uint32_t next = runs_.next(runs_.all()[run].end, Phase::optimizer);
  return {next != PhaseIntervals::kNone && a.end >= runs_.all()[next].begin ? Kind::optimizer_state : Kind::workspace};
}

Kind KindFinder::of_unknown_phase(const Allocation& a, const StackFacts& facts) const {
  if (facts.zero_grad) return Kind::gradient;
  const std::uint32_t next = runs_.next_known(a.begin);
  const bool retained = next == PhaseIntervals::kNone ? a.end == Allocation::kAfter : ends_after(a, next);
  if (!retained) return Kind::workspace;
  if (facts.maker == Maker::module) return Kind::parameter;
  if (facts.maker == Maker::optimizer) return Kind::optimizer_state;
  if (facts.from_host) return Kind::input;
  if (a.end != Allocation::kAfter && events_.phases[a.end] == Phase::backward) return Kind::activation;
  return next != PhaseIntervals::kNone && events_.phases[next] == Phase::forward ? Kind::input : Kind::unknown;
}

// What the end of the recording cuts off is what its stack made before, in that phase; with no example, a block that
// backward leaves is a gradient if it has the size of something that was there before.
void KindFinder::cut_off_by_the_end() {
  std::map<std::pair<StackId, Phase>, std::array<std::uint32_t, kStorageKinds>> examples;
  std::unordered_set<Bytes> parameter_sizes;
  for (const std::uint32_t i : cut_) examples[{table_.allocations[i].stack, table_.allocations[i].phase}] = {};
  std::size_t next_cut = 0;
  for (std::uint32_t i = 0; i < table_.allocations.size(); ++i) {
    const Allocation& a = table_.allocations[i];
    const bool is_cut = next_cut < cut_.size() && cut_[next_cut] == i;
    if (is_cut) ++next_cut;
    if (a.kind == Kind::parameter || (a.begin == Allocation::kBefore && a.end == Allocation::kAfter))
      parameter_sizes.insert(a.requested);
    if (is_cut || a.begin == Allocation::kBefore) continue;
    const auto found = examples.find({a.stack, a.phase});
    if (found != examples.end()) ++found->second[static_cast<std::size_t>(a.kind)];
  }
  for (const std::uint32_t i : cut_) {
    Allocation& a = table_.allocations[i];
    const auto& counts = examples[{a.stack, a.phase}];
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
    if (a.stack == 0 && a.end != Allocation::kAfter) a.kind = replaced(a) ? Kind::parameter : of_freed(a.end);
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

// An optimizer that computes `parameter.data = ...` makes a new block for each parameter. What takes a block's place is
// the newest of its size that the same step has made and that still lives; it may be replaced again at once.
void KindFinder::replaced_by_the_optimizer() {
  std::vector<Allocation>& all = table_.allocations;
  std::vector<std::uint32_t> by_end;
  for (std::uint32_t i = 0; i < all.size(); ++i)
    if (replaced(all[i])) by_end.push_back(i);
  std::sort(by_end.begin(), by_end.end(), [&](std::uint32_t a, std::uint32_t b) { return all[a].end < all[b].end; });
  std::unordered_map<Bytes, std::vector<std::uint32_t>> made;  // by size: those that may live, newest last
  std::unordered_map<std::uint32_t, Kind> stands_for;
  std::uint32_t next = 0;
  for (const std::uint32_t old : by_end) {
    const std::uint32_t event = all[old].end, run_begin = runs_.all()[runs_.at(event)].begin;
    for (; next < all.size() && (all[next].begin == Allocation::kBefore || all[next].begin < event); ++next)
      if (all[next].phase == Phase::optimizer) made[all[next].requested].push_back(next);
    std::vector<std::uint32_t>& candidates = made[all[old].requested];
    while (!candidates.empty() && all[candidates.back()].end <= event) candidates.pop_back();
    const auto stood = stands_for.find(old);
    const Kind kind = stood != stands_for.end() ? stood->second : all[old].kind;
    if (candidates.empty() || all[candidates.back()].begin < run_begin) continue;
    if (kind != Kind::parameter && kind != Kind::gradient) continue;
    Allocation& successor = all[candidates.back()];
    stands_for[candidates.back()] = kind;
    if (successor.kind == Kind::optimizer_state) successor.kind = kind;
  }
}

// How many gradients of each size a backward pass makes: of the pass that makes the most, or of the one before the
// window. A parameter has one gradient of its own size.
std::map<Bytes, std::uint64_t> KindFinder::gradient_sizes() const {
  std::map<std::uint32_t, std::map<Bytes, std::uint64_t>> passes;
  std::map<std::uint32_t, std::uint64_t> totals;
  for (const Allocation& a : table_.allocations) {
    if (a.kind != Kind::gradient) continue;
    const std::uint32_t pass = a.begin == Allocation::kBefore ? PhaseIntervals::kNone : runs_.at(a.begin);
    ++passes[pass][a.requested];
    ++totals[pass];
  }
  const auto most =
      std::max_element(totals.begin(), totals.end(), [](const auto& x, const auto& y) { return x.second < y.second; });
  return most == totals.end() ? std::map<Bytes, std::uint64_t>{} : passes[most->first];
}

// Old blocks without frames that live throughout, by size: as many parameters as there are gradients, then optimizer
// states, of which there is at least one for each gradient; what is left over is something else.
void KindFinder::older_by_size() {
  const std::map<Bytes, std::uint64_t> gradients = gradient_sizes();
  std::map<Bytes, SizeBudget> budgets;
  for (const auto& [size, count] : gradients) budgets[size].parameters = count;
  std::vector<Allocation*> older;
  for (Allocation& a : table_.allocations) {
    if (a.begin != Allocation::kBefore) break;
    const auto budget = budgets.find(a.requested);
    if (a.kind == Kind::parameter && budget != budgets.end() && budget->second.parameters > 0)
      --budget->second.parameters;
    if (a.stack != 0 || a.end != Allocation::kAfter) continue;
    older.push_back(&a);
    ++budgets[a.requested].blocks;
  }
  if (seen(Phase::optimizer)) budget_states(gradients, budgets);
  const bool only_forward = seen(Phase::forward) && !seen(Phase::backward) && !seen(Phase::optimizer);
  OlderCounts counts;
  for (Allocation* a : older) a->kind = of_older_size(a->requested, budgets[a->requested], only_forward, counts);
  add_notes(counts);
}

// Of gradients in 16 bits the states are often in 32: twice the size.
void KindFinder::budget_states(const std::map<Bytes, std::uint64_t>& gradients, std::map<Bytes, SizeBudget>& budgets) {
  for (auto& [size, budget] : budgets) {
    const auto same = gradients.find(size), half = size % 2 == 0 ? gradients.find(size / 2) : gradients.end();
    const std::uint64_t each = same != gradients.end() ? same->second : half != gradients.end() ? half->second : 0;
    const std::uint64_t left = budget.blocks - std::min(budget.blocks, budget.parameters);
    budget.states = each == 0 ? 0 : left / each * each;
  }
}

Kind KindFinder::of_older_size(Bytes requested, SizeBudget& budget, bool only_forward, OlderCounts& counts) {
  if (budget.parameters > 0) {
    --budget.parameters;
    ++counts.parameters;
    return Kind::parameter;
  }
  if (budget.states > 0) {
    --budget.states;
    ++counts.states;
    return Kind::optimizer_state;
  }
  if (requested == kBlasWorkspace) return Kind::workspace;
  ++(only_forward ? counts.by_life : counts.unknown);
  return only_forward ? Kind::parameter : Kind::unknown;
}

void KindFinder::add_notes(const OlderCounts& counts) {
  const auto note = [&](std::uint64_t count, std::string_view rest) {
    if (count > 0)
      table_.notes.push_back(
          fmt::format("Blocks older than the recording, without frames, alive throughout: {} {}", count, rest));
  };
  note(counts.parameters, "are taken as parameters, for each has a gradient of its size.");
  note(counts.states, "are taken as optimizer states, for they have the size of a gradient or twice it.");
  note(counts.by_life,
       "are taken as parameters because they live so long: no gradients were recorded to compare with.");
  note(counts.unknown, "are of unknown kind.");
}

}  // namespace

void find_kinds(AllocationTable& table, const std::vector<StackFacts>& facts, const EventPhases& events,
                const PhaseIntervals& runs) {
  KindFinder(table, facts, events, runs).run();
}

}  // namespace memwall
