#include "policies/planners/room_in_one_piece.h"

#include <algorithm>
#include <functional>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "policies/plan/plan_check.h"
#include "policies/planners/host_transfer.h"
#include "sim/memory/allocator_settings.h"
#include "sim/memory/pytorch_allocator.h"

namespace memwall {
namespace {

// What the allocator asks the device for. Source: c10/cuda/CUDACachingAllocator.cpp, kSmallBuffer, kLargeBuffer,
// kMinLargeAlloc, kRoundLarge, kSmallSize.
constexpr Bytes kSmallRequest = MiB(1), kSmallSegment = MiB(2), kLargeSegment = MiB(20), kLargeRequest = MiB(10),
                kSegmentUnit = MiB(2);
constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);

Bytes segment_for(Bytes request) {
  if (request <= kSmallRequest) return kSmallSegment;
  return request < kLargeRequest ? kLargeSegment : (request + kSegmentUnit - 1) / kSegmentUnit * kSegmentUnit;
}

// A block of a segment; `storage`: of the step, kNoStorage: none.
struct Piece {
  Bytes size = 0;
  bool is_free = false;
  StorageId storage = kNoStorage;
};

struct Refusal {
  std::size_t at = kNowhere;  // op of the planned trace
  Bytes request = 0;
  Bytes missing = 0;  // of whole segments, that have to go back to the device for another one
  std::vector<std::vector<Piece>> segments{};
  std::vector<bool> could_serve{};  // by segment: requests like this one come from its pool
};

// The allocs and frees of a trace in the order of the host, up to the first request that is refused.
class AllocatorReplay {
 public:
  // `base`: storages of the step; `stand_ins`: others that stand for one of these.
  AllocatorReplay(const SimulatedPlan& simulated, std::size_t base, const Machine& machine,
                  const AllocatorSettings& settings)
      : t_(simulated.trace),
        base_(base),
        stand_ins_(simulated.written.stand_ins.begin(), simulated.written.stand_ins.end()),
        capacity_(machine.tiers[static_cast<std::size_t>(machine.tier("hbm"))].holds() - t_.untracked_bytes),
        allocator_(capacity_, nullptr, settings) {}

  // Nothing is refused, or what is there before the first op: at == kNowhere.
  Refusal run() {
    for (StorageId s = 0; s < t_.storages.size(); ++s)
      if (t_.storages[s].preexisting && !place(s)) return {};
    for (std::size_t at = 0; at < t_.ops.size(); ++at) {
      const Op& op = t_.ops[at];
      if (op.kind == OpKind::alloc && !place(op.target)) return refusal(at);
      if (op.kind == OpKind::free) remove(op.target);
    }
    return {};
  }

 private:
  bool place(StorageId s) {
    if (t_.places[t_.storages[s].place] != "hbm") return true;
    const auto address = allocator_.allocate(t_.storages[s].bytes, t_.storages[s].stream);
    if (address && *address != 0) at_[*address] = s, address_of_[s] = *address;
    return address.has_value();
  }

  void remove(StorageId s) {
    const auto there = address_of_.find(s);
    if (there == address_of_.end()) return;
    allocator_.free(there->second);
    at_.erase(there->second);
    address_of_.erase(there);
  }

  StorageId of_step(StorageId s) const {
    if (s < base_) return s;
    const auto found = stand_ins_.find(s);
    return found == stand_ins_.end() ? kNoStorage : found->second;
  }

  Refusal refusal(std::size_t at) const {
    const Storage& storage = t_.storages[t_.ops[at].target];
    Refusal refused{at, storage.bytes};
    refused.missing = segment_for(storage.bytes) - (capacity_ - allocator_.usage().reserved);
    for (const SegmentState& state : allocator_.segments()) {
      std::vector<Piece> pieces;
      for (const BlockState& block : state.blocks) {
        const auto there = at_.find(block.address);
        const bool is_free = block.use == BlockState::Use::free;
        pieces.push_back({block.size, is_free, is_free || there == at_.end() ? kNoStorage : of_step(there->second)});
      }
      refused.segments.push_back(std::move(pieces));
      refused.could_serve.push_back(state.stream == storage.stream &&
                                    state.small_pool == (storage.bytes <= kSmallRequest));
    }
    return refused;
  }

  const Trace& t_;
  const std::size_t base_;
  const std::unordered_map<StorageId, StorageId> stand_ins_;
  const Bytes capacity_;
  PytorchAllocator allocator_;
  std::unordered_map<Address, StorageId> at_;
  std::unordered_map<StorageId, Address> address_of_;
};

// Between two ops of the step on the device.
struct Moment {
  OpId behind = kNoOp, before = kNoOp;
};

// Where in the step an op of the planned trace stands; nothing where that cannot be told, or before the first or behind
// the last op on the device.
std::optional<Moment> moment_of(std::size_t at, const Trace& planned, const Trace& step) {
  const auto is_own = [](const Op& op) { return runs_on_device(op.kind) && !op.added && op.phase != Phase::recompute; };
  const auto own_until = [&](std::size_t end) {
    return std::count_if(planned.ops.begin(), planned.ops.begin() + static_cast<std::ptrdiff_t>(end), is_own);
  };
  std::vector<OpId> own;
  for (OpId op = 0; op < step.ops.size(); ++op)
    if (is_own(step.ops[op])) own.push_back(op);
  if (own_until(planned.ops.size()) != static_cast<std::ptrdiff_t>(own.size())) return std::nullopt;
  const auto number = static_cast<std::size_t>(own_until(at));
  if (number == 0 || number == own.size()) return std::nullopt;
  return Moment{own[number - 1], own[number]};
}

// What may leave at a moment, beside what a plan moves by then.
class Leaving {
 public:
  Leaving(const MemoryPlan& plan, const StepProfile& profile, const Moment& moment)
      : p_(profile), moment_(moment), decisions_(storages(), nullptr), kept_(storages(), false), reruns_(storages()) {
    for (const StorageDecision& d : plan.storages) decisions_[d.storage] = &d;
    for (const PlannedKeep& keep : plan.keeps) kept_[keep.storage] = true;
    for (const PlannedRerun& rerun : plan.reruns)
      for (const std::vector<OpId>* ops : {&rerun.ops, &rerun.called})
        for (const OpId op : *ops)
          for (const Use& use : p_.trace().uses_of(p_.trace().ops[op]))
            reruns_[use.storage].push_back({rerun.at.op, use.access == Access::write});
  }

  // From its last use to its next, by ops and by re-runs, with everything that it takes to leave; nothing: it is used
  // then, or the plan has decided about this gap.
  std::optional<StorageDecision> away(StorageId s, std::uint8_t tier) const {
    if (s == kNoStorage || kept_[s]) return std::nullopt;
    for (const Gap& gap : p_.gaps(s)) {
      if (gap.before <= moment_.before || !(gap.wraps || gap.after <= moment_.behind)) continue;
      const std::optional<OpId> next = next_use(gap);
      if (!next || is_decided(gap, *next)) return std::nullopt;
      return away(gap, *next, tier);
    }
    return std::nullopt;
  }

 private:
  struct RerunUse {
    OpId at = kNoOp;
    bool writes = false;
  };

  std::size_t storages() const { return p_.trace().storages.size(); }

  std::optional<OpId> next_use(const Gap& gap) const {
    OpId next = gap.before;
    for (const RerunUse& use : reruns_[gap.storage]) {
      const bool is_then = use.at >= moment_.behind && use.at <= moment_.before;
      const bool is_within = use.at <= gap.before && (gap.wraps || use.at >= gap.after);
      if (is_then || (use.writes && is_within)) return std::nullopt;
      if (use.at > moment_.before) next = std::min(next, use.at);
    }
    return next;
  }

  bool is_decided(const Gap& gap, OpId next) const {
    const StorageDecision* d = decisions_[gap.storage];
    if (d == nullptr) return false;
    if (gap.wraps || d->home != StorageDecision::kDevice || d->held != StorageDecision::kDevice) return true;
    const auto here = [&](const auto& one) { return one.at.op >= gap.after && one.at.op <= next; };
    return std::ranges::any_of(d->copies, here) || std::ranges::any_of(d->drops, here) ||
           std::ranges::any_of(d->fetches, here);
  }

  StorageDecision away(const Gap& gap, OpId next, std::uint8_t tier) const {
    StorageDecision d;
    d.storage = gap.storage;
    const bool needs_content = gap.needs_content || next < gap.before;
    if (needs_content) {
      d.copies.push_back({{gap.after, true, 0}, tier});
      if (gap.wraps) d.held = tier;  // it leaves in the turn before, for this one
    }
    d.drops.push_back({{moment_.behind, true, 0}});
    d.fetches.push_back({{next, false, 0}, needs_content ? tier : PlannedFetch::kNoTier, needs_content});
    return d;
  }

  const StepProfile& p_;
  const Moment moment_;
  std::vector<const StorageDecision*> decisions_;  // by storage
  std::vector<bool> kept_;
  std::vector<std::vector<RerunUse>> reruns_;
};

// Storages to leave, and their bytes.
struct Choice {
  std::vector<StorageId> storages{};
  Bytes bytes = 0;

  void add(const Piece& piece) {
    if (piece.is_free) return;
    storages.push_back(piece.storage);
    bytes += piece.size;
  }
};

using MayLeave = std::function<bool(const Piece&)>;

// Of whole segments, which go back to the device for another one: the least used first.
std::optional<Choice> whole_segments(const Refusal& refused, Bytes spare, const MayLeave& may_leave) {
  struct Segment {
    Choice choice;
    Bytes size = 0;
  };
  std::vector<Segment> all;
  for (const std::vector<Piece>& pieces : refused.segments) {
    if (!std::ranges::all_of(pieces, may_leave)) continue;
    Segment one;
    for (const Piece& piece : pieces) one.choice.add(piece), one.size += piece.size;
    all.push_back(std::move(one));
  }
  std::ranges::stable_sort(all, {}, [](const Segment& one) {
    return static_cast<double>(one.choice.bytes) / static_cast<double>(one.size);
  });
  Bytes missing = refused.missing + spare;
  std::size_t many = 0;
  for (; many < all.size() && missing > 0; ++many) missing -= all[many].size;
  if (missing > 0) return std::nullopt;
  Choice choice;
  for (std::size_t i = 0; i < many; ++i) {
    if (missing + all[i].size <= 0) {  // the others are enough
      missing += all[i].size;
      continue;
    }
    choice.storages.insert(choice.storages.end(), all[i].choice.storages.begin(), all[i].choice.storages.end());
    choice.bytes += all[i].choice.bytes;
  }
  return choice;
}

// Of neighbours within one segment, whose place the request takes.
std::optional<Choice> neighbours(const Refusal& refused, const MayLeave& may_leave) {
  std::optional<Choice> best;
  for (std::size_t segment = 0; segment < refused.segments.size(); ++segment) {
    const std::vector<Piece>& pieces = refused.segments[segment];
    for (std::size_t first = 0; refused.could_serve[segment] && first < pieces.size(); ++first) {
      Choice choice;
      Bytes room = 0;
      for (std::size_t i = first; i < pieces.size() && room < refused.request && may_leave(pieces[i]); ++i)
        choice.add(pieces[i]), room += pieces[i].size;
      if (room >= refused.request && (!best || choice.bytes < best->bytes)) best = std::move(choice);
    }
  }
  return best;
}

// What leaves so that the request finds a place; empty: nothing can be done.
std::vector<StorageDecision> cleared(const Leaving& leaving, const Refusal& refused, Bytes spare, std::uint8_t tier) {
  const MayLeave may_leave = [&](const Piece& piece) {
    return piece.is_free || leaving.away(piece.storage, tier).has_value();
  };
  const std::optional<Choice> whole = whole_segments(refused, spare, may_leave), within = neighbours(refused, may_leave);
  if (!whole && !within) return {};
  const bool takes_place = within && (!whole || (spare == 0 && within->bytes < whole->bytes));
  const Choice& choice = takes_place ? *within : *whole;
  std::vector<StorageDecision> decisions;
  for (const StorageId s : choice.storages) decisions.push_back(*leaving.away(s, tier));
  return decisions;
}

void join(StorageDecision more, MemoryPlan& plan) {
  const auto there = std::ranges::find(plan.storages, more.storage, &StorageDecision::storage);
  if (there == plan.storages.end()) return plan.storages.push_back(std::move(more));
  const auto add = [](const auto& from, auto& to) {
    to.insert(to.end(), from.begin(), from.end());
    std::ranges::stable_sort(to, {}, [](const auto& one) { return std::tuple(one.at.op, one.at.after, one.at.order); });
  };
  add(more.copies, there->copies);
  add(more.drops, there->drops);
  add(more.fetches, there->fetches);
}

}  // namespace

std::optional<MemoryPlan> with_room_in_one_piece(const MemoryPlan& plan, const SimulatedPlan& simulated,
                                                 const StepProfile& profile, const Machine& machine,
                                                 const PlanAllocator& allocator, Bytes spare) {
  const AllocatorSettings settings = parse_allocator_settings(allocator.settings);
  if (allocator.name != "pytorch" || settings.expandable_segments || machine.tier("host") < 0) return std::nullopt;
  const Refusal refused = AllocatorReplay(simulated, profile.trace().storages.size(), machine, settings).run();
  if (refused.at == kNowhere) return std::nullopt;
  const auto moment = moment_of(refused.at, simulated.trace, profile.trace());
  if (!moment) return std::nullopt;
  MemoryPlan with_room = plan;
  if (with_room.tiers.empty()) with_room.tiers.push_back(to_host());
  std::vector<StorageDecision> more = cleared(Leaving(plan, profile, *moment), refused, spare, 0);
  if (more.empty()) return std::nullopt;
  for (StorageDecision& one : more) join(std::move(one), with_room);
  if (!check_plan(with_room, profile.trace(), profile.flow()).empty()) return std::nullopt;
  return with_room;
}

}  // namespace memwall
