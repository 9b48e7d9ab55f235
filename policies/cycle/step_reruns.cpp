#include "policies/cycle/step_reruns.h"

#include <algorithm>
#include <map>
#include <ranges>
#include <set>

#include "policies/cycle/cycle_memory_plan.h"
#include "policies/profile/rerun_ops.h"
#include "sim/trace/step_count.h"

namespace memwall {
namespace {

constexpr std::size_t kMostOps = 1024;  // of one re-run
constexpr int kMostRefusals = 8;        // rounds in which candidates are found not to be possible
// A result is worth its memory where making it takes so many times as long as its bytes take out and back, and at least
// such a part of the step: without the latter many tiny ones would stay, for nothing but pieces of memory.
constexpr double kDear = 4, kLeastPart = 1e-4;

bool nothing(StorageId) { return false; }

// Candidates that can all be given up, each made again by few ops from what stays.
class Acceptance {
 public:
  Acceptance(const StepProfile& profile, const CycledStep& step, const RerunLimits& limits)
      : p_(profile),
        kept_(step.kept),
        limits_(limits),
        gaps_of_(profile.trace().storages.size()),
        users_(gaps_of_.size()) {}

  bool accept(const Gap& gap) {
    const std::size_t mine = accepted_.size();
    accepted_.push_back({gap, {}});
    gaps_of_[gap.storage].push_back(mine);
    std::vector<std::pair<std::size_t, RerunOps>> changed;
    bool possible = renew(mine, changed);
    for (const std::size_t user : users_[gap.storage])
      if (possible && covers(gap, accepted_[user].gap.before)) possible = renew(user, changed);
    if (!possible) {
      gaps_of_[gap.storage].pop_back();
      accepted_.pop_back();
      return false;
    }
    for (auto& [index, ops] : changed) {
      for (const StorageId input : ops.inputs)
        if (std::vector<std::size_t>& users = users_[input];
            std::find(users.begin(), users.end(), index) == users.end())
          users.push_back(index);
      accepted_[index].ops = std::move(ops);
    }
    return true;
  }

 private:
  struct Accepted {
    Gap gap;
    RerunOps ops;
  };

  static bool covers(const Gap& gap, OpId at) { return gap.after < at && at <= gap.before; }

  bool renew(std::size_t index, std::vector<std::pair<std::size_t, RerunOps>>& changed) const {
    const Gap& gap = accepted_[index].gap;
    const auto absent = [&](StorageId s) {
      return std::any_of(gaps_of_[s].begin(), gaps_of_[s].end(),
                         [&](std::size_t other) { return covers(accepted_[other].gap, gap.before); });
    };
    auto ops = rerun_ops(p_, gap.storage, gap.before, absent, limits_.ops, kept_);
    if (!ops) return false;
    Bytes written = 0;
    for (const StorageId s : ops->outputs) written += p_.held(s);
    if (written > limits_.written) return false;
    changed.emplace_back(index, std::move(*ops));
    return true;
  }

  const StepProfile& p_;
  const std::vector<bool>& kept_;
  const RerunLimits& limits_;
  std::vector<Accepted> accepted_;
  std::vector<std::vector<std::size_t>> gaps_of_, users_;  // by storage: its gaps; whose re-runs start from it
};

// Slots of one re-run, and what it makes that is kept.
struct Made {
  std::size_t gap = 0;  // index of the candidate for whose use it runs
  RerunOps ops;
  std::vector<std::size_t> regained;  // candidates
};

// Content that is given up behind op `after`, and made again in the slot for op `before`.
struct Regained {
  OpId after = 0, before = 0;
  std::uint32_t slot = 0;
};

class Insertion {
 public:
  Insertion(const StepProfile& profile, const CycledStep& step, const std::vector<RerunCandidate>& candidates,
            std::size_t many)
      : p_(profile), base_(step) {
    for (std::size_t i = 0; i < std::min(many, candidates.size()); ++i) gaps_.push_back(candidates[i].gap);
    std::sort(gaps_.begin(), gaps_.end(), [](const Gap& a, const Gap& b) {
      return std::pair(a.before, a.storage) < std::pair(b.before, b.storage);
    });
  }

  CycleWithReruns run() {
    for (int round = 0; round < kMostRefusals && !find_reruns(); ++round) {
    }
    insert_slots();
    insert_storages();
    return std::move(result_);
  }

 private:
  // Ahead of what the host allocates for the slot that uses it, behind what it frees before that.
  OpId point_of(const Gap& gap) const {
    const std::uint32_t slot = base_.slot_of[gap.before];
    for (OpId id = slot == 0 ? 0 : base_.places[slot - 1].op + 1; id < gap.before; ++id) {
      const Op& op = p_.trace().ops[id];
      if (op.kind == OpKind::alloc && p_.on_device(op.target)) return id;
    }
    return gap.before;
  }

  // Each use in turn: is its content there, or what makes it? False where a candidate cannot be made: it is left out,
  // and all is asked again.
  bool find_reruns() {
    made_.clear();
    std::vector<bool> there(gaps_.size(), false);
    std::map<StorageId, std::vector<std::size_t>> of_storage;
    for (std::size_t i = 0; i < gaps_.size(); ++i) of_storage[gaps_[i].storage].push_back(i);
    const auto covering = [&](StorageId s, OpId at) {
      const auto found = of_storage.find(s);
      if (found != of_storage.end())
        for (const std::size_t i : found->second)
          if (!there[i] && gaps_[i].after < at && at <= gaps_[i].before) return i;
      return gaps_.size();
    };
    std::vector<bool> refused(gaps_.size(), false);
    for (std::size_t i = 0; i < gaps_.size(); ++i) {
      if (there[i]) continue;
      const OpId at = point_of(gaps_[i]);
      auto ops = rerun_ops(
          p_, gaps_[i].storage, at, [&](StorageId s) { return covering(s, at) < gaps_.size(); }, kMostOps, base_.kept);
      if (!ops) {
        refused[i] = true;
        continue;
      }
      Made made{i, std::move(*ops), {}};
      for (const StorageId s : made.ops.outputs)
        if (const std::size_t other = covering(s, at); other < gaps_.size()) {
          there[other] = true;
          made.regained.push_back(other);
        }
      made_.push_back(std::move(made));
    }
    if (std::find(refused.begin(), refused.end(), true) == refused.end()) return true;
    std::vector<Gap> left;
    for (std::size_t i = 0; i < gaps_.size(); ++i)
      if (!refused[i]) left.push_back(gaps_[i]);
    gaps_ = std::move(left);
    return gaps_.empty() ? find_reruns() : false;
  }

  // Re-runs stand before the slot of the op that uses what they make.
  void insert_slots() {
    CycledStep& step = result_.step;
    moved_to_.resize(base_.places.size() + 1);
    std::size_t next = 0;
    std::map<OpId, std::uint32_t> at_op;  // re-runs so far
    for (std::size_t slot = 0; slot <= base_.places.size(); ++slot) {
      for (; next < made_.size() && base_.slot_of[gaps_[made_[next].gap].before] == slot; ++next)
        insert_rerun(made_[next], at_op[point_of(gaps_[made_[next].gap])]++);
      moved_to_[slot] = static_cast<std::uint32_t>(step.places.size());
      if (slot == base_.places.size()) break;
      step.places.push_back(base_.places[slot]);
      const auto reruns = at_op.find(base_.places[slot].op);
      step.places.back().reruns = reruns == at_op.end() ? 0 : reruns->second;
      step.program.slots.push_back(base_.program.slots[slot]);
    }
    for (const std::uint32_t slot : base_.slot_of) step.slot_of.push_back(moved_to_[slot]);
  }

  void insert_rerun(const Made& made, std::uint32_t others) {
    const OpId at = point_of(gaps_[made.gap]);
    slot_of_rerun_.push_back(static_cast<std::uint32_t>(result_.step.places.size()));
    result_.step.places.push_back({at, others, true});
    result_.step.program.slots.push_back({made.ops.time, made.ops.time});
    result_.reruns.push_back({{at, false, rerun_order(others)}, made.ops.ops});
  }

  void insert_storages() {
    std::map<StorageId, std::vector<std::pair<std::uint32_t, bool>>> touched;  // by re-runs: slot, does it write
    std::map<StorageId, std::vector<Regained>> regained;
    std::map<StorageId, PlanPoint> kept;                                       // until when
    for (std::size_t r = 0; r < made_.size(); ++r) {
      const std::uint32_t slot = slot_of_rerun_[r];
      for (const StorageId s : made_[r].ops.inputs) {
        touched[s].emplace_back(slot, false);
        const PlanPoint& at = result_.reruns[r].at;
        if (const OpId freed = p_.flow().free(s); freed != kNoOp && freed < at.op) kept[s] = at;
      }
      for (const StorageId s : made_[r].ops.outputs)
        if (p_.trace().storages[s].preexisting) stays_.insert(s);
      std::vector<StorageId> stay;
      for (const std::size_t i : made_[r].regained) {
        regained[gaps_[i].storage].push_back({gaps_[i].after, gaps_[i].before, slot});
        stay.push_back(gaps_[i].storage);
      }
      Bytes beside = 0;
      for (const StorageId s : made_[r].ops.outputs)
        if (std::find(stay.begin(), stay.end(), s) == stay.end()) beside += p_.held(s);
      if (beside > 0) add_beside(beside, slot);
    }
    for (const auto& [storage, until] : kept) result_.keeps.push_back({storage, until});
    std::map<StorageId, std::vector<OpId>> dropped;  // behind which ops
    for (const auto& [storage, gaps] : regained)
      for (const Regained& one : gaps) dropped[storage].push_back(one.after);
    for (auto& [storage, ops] : dropped) add_decision(storage, std::move(ops));
    std::vector<bool> involved(p_.trace().storages.size(), false);
    for (const auto& [storage, slots] : touched) involved[storage] = true;
    for (const auto& [storage, gaps] : regained) involved[storage] = true;
    result_.step.storages.reserve(base_.storages.size() + 2 * made_.size());
    result_.step.program.storages.reserve(base_.storages.size() + 2 * made_.size());
    for (std::size_t c = 0; c < base_.storages.size(); ++c) {
      const StorageId storage = base_.storages[c];
      if (storage != kNoStorage && involved[storage])
        add_storage(c, touched[storage], regained[storage]);
      else
        add_storage(c);
    }
  }

  // What a re-run makes and gives back at its end.
  void add_beside(Bytes bytes, std::uint32_t slot) {
    CycleStorage beside;
    beside.held = beside.moved = bytes;
    beside.first = beside.last = slot;
    beside.fixed = true;
    result_.step.storages.push_back(kNoStorage);
    result_.step.program.storages.push_back(std::move(beside));
  }

  // Of a touch that goes on those of the re-runs behind it, too: the other stream's work may stand before them.
  std::ranges::iota_view<std::uint32_t, std::uint32_t> slots_of(const CycleTouch& touch) const {
    return {moved_to_[touch.slot], touch.goes_on ? moved_to_[touch.slot + 1] : moved_to_[touch.slot] + 1};
  }

  CycleTouch touch_in(std::uint32_t slot, const CycleTouch& touch) const {
    if (slot == moved_to_[touch.slot]) return {slot, touch.reads, touch.writes};
    return {slot, true, false};
  }

  // That no re-run touches.
  void add_storage(std::size_t c) {
    result_.step.storages.push_back(base_.storages[c]);
    CycleStorage& storage = result_.step.program.storages.emplace_back();
    const auto& [held, moved, first, last, from_before, to_next, across, fixed, touches] = base_.program.storages[c];
    storage = {held, moved, first, last, from_before, to_next, across, fixed, {}};
    place(c, storage);
    storage.touches.reserve(touches.size());
    for (const CycleTouch& touch : touches)
      for (const std::uint32_t slot : slots_of(touch)) storage.touches.push_back(touch_in(slot, touch));
  }

  // In the slots of the cycle with re-runs, but for its touches.
  void place(std::size_t c, CycleStorage& storage) const {
    storage.fixed = storage.fixed || stays_.contains(base_.storages[c]);
    storage.first = moved_to_[storage.first];
    storage.last = moved_to_[storage.last];
    if (storage.to_next) storage.last = static_cast<std::uint32_t>(result_.step.places.size() - 1);
  }

  // Nothing uses it there: what another stream uses counts as used in the slot before, too, and what it has used there
  // last counts as used in the next slot, even if it is made again ahead of that.
  bool is_within(std::uint32_t slot, const Regained& gap) const {
    const std::uint32_t begin = base_.slot_of[gap.after], end = base_.slot_of[gap.before];
    return begin <= slot && slot < end && (slot > begin || moved_to_[slot] > gap.slot);
  }

  // Cut where its content is given up: a storage of its own for each time that it is made.
  void add_storage(std::size_t c, const std::vector<std::pair<std::uint32_t, bool>>& reruns,
                   const std::vector<Regained>& regained) {
    const CycleStorage& base = base_.program.storages[c];
    CycleStorage next = base;
    place(c, next);
    next.touches.clear();
    std::map<std::uint32_t, CycleTouch> touches;
    for (const CycleTouch& touch : base.touches)
      if (std::ranges::none_of(regained, [&](const Regained& gap) { return is_within(touch.slot, gap); }))
        for (const std::uint32_t slot : slots_of(touch)) touches[slot] = touch_in(slot, touch);
    for (const auto& [slot, writes] : reruns) touches.insert({slot, {slot, true, writes}});
    if (!touches.empty() && touches.rbegin()->first > next.last) {  // kept for re-runs
      next.last = touches.rbegin()->first;
      next.fixed = true;
    }
    std::vector<std::uint32_t> cuts;
    for (const Regained& gap : regained) {
      cuts.push_back(gap.slot);
      touches[gap.slot] = {gap.slot, false, true};
    }
    std::sort(cuts.begin(), cuts.end());
    std::size_t cut = 0;
    for (const auto& [slot, touch] : touches) {
      if (cut < cuts.size() && cuts[cut] == slot) {
        CycleStorage before = next;
        before.last = before.touches.empty() ? before.first : before.touches.back().slot;
        before.to_next = false;
        push(c, std::move(before));
        next.touches.clear();
        next.first = slot;
        next.last = std::max(next.last, slot);  // of what another stream uses last, and the program frees at once
        next.from_before = false;
        ++cut;
      } else if (cut > 0 && cuts[cut - 1] == next.first && next.touches.size() == 1) {
        push_made(c, next, touch);
        continue;
      }
      next.touches.push_back(touch);
    }
    push(c, std::move(next));
  }

  // What a re-run makes for a later use stays until that: given up before, a plan takes it to be given back by the
  // re-run. `next` begins with the re-run, and goes on with the use.
  void push_made(std::size_t c, CycleStorage& next, const CycleTouch& use) {
    CycleStorage made = next;
    made.last = use.slot - 1;
    made.to_next = false;
    made.fixed = true;
    push(c, std::move(made));
    next.first = use.slot;
    next.touches = {{use.slot, use.reads, true}};  // its content is there from then on
  }

  void push(std::size_t c, CycleStorage storage) {
    result_.step.storages.push_back(base_.storages[c]);
    result_.step.program.storages.push_back(std::move(storage));
  }

  void add_decision(StorageId storage, std::vector<OpId> dropped_behind) {
    std::ranges::sort(dropped_behind);
    StorageDecision d;
    d.storage = storage;
    for (const OpId op : dropped_behind) d.drops.push_back({{op, true, 0}});
    result_.decisions.push_back(std::move(d));
  }

  const StepProfile& p_;
  const CycledStep& base_;
  std::vector<Gap> gaps_;
  std::vector<Made> made_;
  std::vector<std::uint32_t> moved_to_, slot_of_rerun_;
  std::set<StorageId> stays_;  // what lived before the step, and is written again
  CycleWithReruns result_;
};

}  // namespace

std::vector<RerunCandidate> rerun_candidates(const StepProfile& profile, const CycledStep& step, Bytes budget,
                                             const RerunLimits& limits) {
  const StepCycle cycle(step.program);
  // By slot: how many slots before it are over the budget.
  std::vector<std::uint32_t> over(1, 0);
  for (const Bytes live : cycle.live()) over.push_back(over.back() + (live > budget ? 1 : 0));
  const Trace& trace = profile.trace();
  std::vector<RerunCandidate> candidates;
  for (const Gap& gap : profile.gaps()) {
    if (gap.wraps || !gap.needs_content || trace.storages[gap.storage].preexisting) continue;
    if (trace.ops[gap.before].phase == Phase::forward) continue;
    const std::uint32_t first = step.slot_of[gap.after] + 1, end = step.slot_of[gap.before];
    if (first >= end || over[end] == over[first]) continue;
    const auto ops = rerun_ops(profile, gap.storage, gap.before, nothing, limits.ops, step.kept);
    if (ops) candidates.push_back({gap, to_seconds(ops->time) / static_cast<double>(profile.held(gap.storage))});
  }
  std::stable_sort(candidates.begin(), candidates.end(), [](const RerunCandidate& a, const RerunCandidate& b) {
    return a.seconds_per_byte < b.seconds_per_byte;
  });
  Acceptance acceptance(profile, step, limits);
  std::erase_if(candidates, [&](const RerunCandidate& c) { return !acceptance.accept(c.gap); });
  return candidates;
}

std::vector<bool> results_worth_keeping(const StepProfile& profile, const CycleLinks& links) {
  const Trace& t = profile.trace();
  const auto is_forward = [&](const Touch& touch) { return t.ops[touch.op].phase == Phase::forward; };
  const double least = kLeastPart * to_seconds(profile.step_time()) / static_cast<double>(step_count(t));
  std::vector<bool> worth(t.storages.size(), false);
  for (StorageId s = 0; s < t.storages.size(); ++s) {
    const auto writers = profile.flow().writers(s);
    if (t.storages[s].preexisting || !profile.on_device(s) || writers.size() != 1) continue;
    if (profile.gathers().gather_of(s) != kNoOp) continue;  // a re-run reads what backward has gathered
    if (profile.flow().free(s) == kNoOp || !std::ranges::all_of(profile.flow().touches(s), is_forward)) continue;
    double written = 0;
    for (const Use& use : t.uses_of(t.ops[writers[0]]))
      if (use.access == Access::write) written += static_cast<double>(profile.held(use.storage));
    const double moved = written * (1 / links.total_out + 1 / links.total_in);
    worth[s] = written > 0 && to_seconds(t.ops[writers[0]].duration) >= std::max(kDear * moved, least);
  }
  return worth;
}

std::vector<RerunCandidate> candidates_of_plan(const StepProfile& profile, const MemoryPlan& plan) {
  std::vector<RerunCandidate> candidates;
  for (const StorageDecision& decision : plan.storages) {
    if (!decision.copies.empty() || !decision.fetches.empty()) continue;
    for (const Gap& gap : profile.gaps(decision.storage)) {
      if (gap.wraps || !gap.needs_content) continue;
      const bool is_dropped = std::ranges::any_of(
          decision.drops, [&](const PlannedDrop& drop) { return gap.after <= drop.at.op && drop.at.op < gap.before; });
      if (!is_dropped) continue;
      const auto ops = rerun_ops(profile, gap.storage, gap.before, nothing, kMostOps);
      if (ops) candidates.push_back({gap, to_seconds(ops->time) / static_cast<double>(profile.held(gap.storage))});
    }
  }
  std::ranges::stable_sort(candidates, {}, [](const RerunCandidate& c) { return c.gap.after; });
  return candidates;
}

CycleWithReruns cycle_with_reruns(const StepProfile& profile, const CycledStep& step,
                                  const std::vector<RerunCandidate>& candidates, std::size_t many) {
  return Insertion(profile, step, candidates, many).run();
}

}  // namespace memwall
