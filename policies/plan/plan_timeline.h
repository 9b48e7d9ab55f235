// A memory plan along the host program: what has to happen at which point, in order, with the waits that follow from
// it, and who uses a planned storage between two points. Internal to policies/plan.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "policies/trace/dataflow.h"
#include "policies/trace/parameter_gathers.h"
#include "policies/trace/trace_edit.h"
#include "sim/policy/memory_plan.h"

namespace memwall {

// What has to happen at a point; in this order where points are equal.
struct PlanAction {
  enum class Kind : std::uint8_t {
    release,  // the work of `stream` with a storage up to here is what its drop waits for
    copy,
    drop,
    update,
    fetch,
    arrive,  // `stream` waits for what was fetched, before its first use
    guard,   // `stream` waits for a copy, before it writes over what that takes away
    rerun,
    gone  // the program frees the storage
  };
  PlanPoint at;
  Kind kind = Kind::copy;
  std::uint32_t decision = 0, index = 0;  // of MemoryPlan::storages, and in its list; rerun: of MemoryPlan::reruns
  std::uint16_t stream = 0;

  InsertionPoint point() const { return {at.op, at.after}; }
  auto key() const { return std::tuple(at.op, at.after, at.order, kind, decision, index, stream); }
};

// Where something stands among all that happens: at one point what is moved before what is run again.
struct PlanPlace {
  OpId op = kNoOp;
  std::uint8_t side = 0;    // 0 before the op, 1 the op itself, 2 behind it
  std::uint32_t order = 0;  // PlanPoint::order
  std::uint32_t turn = 0;   // 0: a move; else 1 + an index into MemoryPlan::reruns

  auto operator<=>(const PlanPlace&) const = default;
};
inline PlanPlace place_of(const PlanPoint& at, std::uint32_t turn = 0) {
  return {at.op, static_cast<std::uint8_t>(at.after ? 2 : 0), at.order, turn};
}

// A re-run starts from a planned storage, or makes its newest content.
struct RerunTouch {
  std::uint32_t decision = 0;
  PlanPlace place;
  PlanPoint at;
  std::uint16_t stream = 0;
  bool on_device = true;  // else by work of the host: on no stream

  auto key() const { return std::tuple(decision, place, stream, on_device); }
};

class PlanTimeline {
 public:
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  // All must outlive it. Ops that `edit` has removed use nothing.
  PlanTimeline(const MemoryPlan& plan, const Dataflow& flow, const ParameterGathers& gathers, const TraceEdit& edit);

  const std::vector<PlanAction>& actions() const { return actions_; }
  // By storage of the base: the last re-run that reads it, or until when the plan keeps it; kNoOp: neither.
  const std::vector<PlanPoint>& kept_until() const { return kept_until_; }
  // The storage's decision in the plan; kNone: it has none.
  std::uint32_t decision_of(StorageId storage) const { return decision_of_[storage]; }

  // Below, an `end` of op kNoOp is the end of the program.
  // The first drop behind the point.
  PlanPoint next_drop(std::uint32_t decision, const PlanPoint& point) const;
  std::span<const Touch> touches(std::uint32_t decision, const PlanPoint& begin, const PlanPoint& end) const;
  // Re-runs that start from it; `begin` is a re-run's place, or of a move.
  std::span<const RerunTouch> reads(std::uint32_t decision, const PlanPlace& begin, const PlanPoint& end) const;
  // The streams that use the storage, ascending, with the last op of each. Re-runs left aside.
  std::map<std::uint16_t, OpId> users(std::uint32_t decision, const PlanPoint& begin, const PlanPoint& end) const;
  PlanPlace place_of_rerun(std::uint32_t rerun) const { return place_of(plan_.reruns[rerun].at, rerun + 1); }
  // The decisions about what the re-run makes, each once, ascending.
  std::vector<std::uint32_t> made_by(std::uint32_t rerun) const;
  // Is the next thing that happens to the storage behind the re-run a use: by an op, or by another re-run that starts
  // from it? No where it is fetched, dropped, freed or made again before that.
  bool is_awaited(std::uint32_t decision, std::uint32_t rerun) const;

 private:
  bool uses_device(OpId op) const { return runs_on_device(t_.ops[op].kind) && !edit_.removed(op); }
  void keep_until(StorageId storage, const PlanPoint& point);
  void gather_reruns(const ParameterGathers& gathers);
  void gather_rerun(std::uint32_t rerun, const ParameterGathers& gathers);
  void gather_moves();
  void gather_guards(std::uint32_t decision, std::uint32_t index);
  void gather_releases(std::uint32_t decision, std::uint32_t index);
  bool is_ordered(OpId op, std::uint16_t stream, const PlanPoint& point) const;
  void gather_arrivals(std::uint32_t decision, std::uint32_t index);

  const MemoryPlan& plan_;
  const Dataflow& flow_;
  const TraceEdit& edit_;
  const Trace& t_;
  std::vector<PlanAction> actions_;
  std::vector<RerunTouch> reads_, makes_;   // ascending by decision, place and stream
  std::vector<std::uint32_t> decision_of_;  // by storage of the base
  std::vector<PlanPoint> kept_until_;       // likewise
};

// Is the op behind the point?
inline bool is_behind(OpId op, const PlanPoint& point) { return op > point.op || (op == point.op && !point.after); }

// Do copies take the storage away and bring it back? Else the program drops it by itself, for a re-run or for good.
inline bool moves(const StorageDecision& d) {
  return d.home != StorageDecision::kDevice || d.taken_away || !d.copies.empty() || !d.fetches.empty();
}

}  // namespace memwall
