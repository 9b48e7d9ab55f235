#include "policies/plan/plan_timeline.h"

#include <algorithm>
#include <set>

namespace memwall {
namespace {

constexpr std::uint32_t kLast = PlanTimeline::kNone;  // behind everything else at its point

}  // namespace

PlanTimeline::PlanTimeline(const MemoryPlan& plan, const Dataflow& flow, const ParameterGathers& gathers,
                           const TraceEdit& edit)
    : plan_(plan),
      flow_(flow),
      edit_(edit),
      t_(edit.base()),
      decision_of_(t_.storages.size(), kNone),
      kept_until_(t_.storages.size()) {
  for (std::uint32_t j = 0; j < plan.storages.size(); ++j) decision_of_[plan.storages[j].storage] = j;
  gather_reruns(gathers);
  gather_moves();
  std::sort(actions_.begin(), actions_.end(),
            [](const PlanAction& a, const PlanAction& b) { return a.key() < b.key(); });
}

PlanPoint PlanTimeline::next_drop(std::uint32_t j, const PlanPoint& point) const {
  const std::vector<PlannedDrop>& drops = plan_.storages[j].drops;
  const auto next = std::upper_bound(drops.begin(), drops.end(), point,
                                     [](const PlanPoint& p, const PlannedDrop& d) { return p < d.at; });
  return next == drops.end() ? PlanPoint{} : next->at;
}

std::span<const Touch> PlanTimeline::touches(std::uint32_t j, const PlanPoint& begin, const PlanPoint& end) const {
  const std::span<const Touch> all = flow_.touches(plan_.storages[j].storage);
  const auto first =
      std::partition_point(all.begin(), all.end(), [&](const Touch& t) { return !is_behind(t.op, begin); });
  const auto last = end.op == kNoOp
                        ? all.end()
                        : std::partition_point(first, all.end(), [&](const Touch& t) { return !is_behind(t.op, end); });
  return {first, last};
}

std::span<const RerunTouch> PlanTimeline::reads(std::uint32_t j, const PlanPlace& begin, const PlanPoint& end) const {
  const auto first = std::partition_point(reads_.begin(), reads_.end(), [&](const RerunTouch& r) {
    return std::tuple(r.decision, r.place) <= std::tuple(j, begin);
  });
  const PlanPlace last_place = place_of(end);  // kNoOp is the highest
  const auto last = std::partition_point(first, reads_.end(), [&](const RerunTouch& r) {
    return std::tuple(r.decision, r.place) < std::tuple(j, last_place);
  });
  return {first, last};
}

std::map<std::uint16_t, OpId> PlanTimeline::users(std::uint32_t j, const PlanPoint& begin, const PlanPoint& end) const {
  std::map<std::uint16_t, OpId> last;
  for (const Touch& touch : touches(j, begin, end))
    if (uses_device(touch.op)) last[t_.ops[touch.op].stream] = touch.op;
  return last;
}

namespace {

// The first of them behind the place; `otherwise` where that is nearer.
PlanPlace next_of(const std::vector<RerunTouch>& touches, std::uint32_t j, const PlanPlace& here, PlanPlace otherwise) {
  const auto next = std::partition_point(touches.begin(), touches.end(), [&](const RerunTouch& r) {
    return std::tuple(r.decision, r.place) <= std::tuple(j, here);
  });
  return next != touches.end() && next->decision == j ? std::min(otherwise, next->place) : otherwise;
}

template <typename Move>
PlanPlace next_of(const std::vector<Move>& moves, const PlanPlace& here, PlanPlace otherwise) {
  const auto next =
      std::partition_point(moves.begin(), moves.end(), [&](const Move& move) { return place_of(move.at) <= here; });
  return next != moves.end() ? std::min(otherwise, place_of(next->at)) : otherwise;
}

}  // namespace

bool PlanTimeline::is_awaited(std::uint32_t j, std::uint32_t rerun) const {
  const StorageDecision& d = plan_.storages[j];
  const PlanPlace here = place_of_rerun(rerun), never{kNoOp, 2, kLast, kLast};
  PlanPlace used = next_of(reads_, j, here, never);
  for (const Touch& touch : touches(j, plan_.reruns[rerun].at, {})) {
    if (edit_.removed(touch.op)) continue;
    used = std::min(used, {touch.op, 1, 0, 0});
    break;
  }
  PlanPlace ended = next_of(d.fetches, here, next_of(d.drops, here, next_of(makes_, j, here, never)));
  if (const PlanPlace freed{flow_.free(d.storage), 1, 0, 0}; freed > here) ended = std::min(ended, freed);
  return used != never && used <= ended;
}

std::vector<std::uint32_t> PlanTimeline::made_by(std::uint32_t rerun) const {
  const PlannedRerun& planned = plan_.reruns[rerun];
  const OpId behind = planned.at.op + (planned.at.after ? 1 : 0);
  std::set<std::uint32_t> made;
  for (const OpId id : planned.ops)
    for (const Use& use : t_.uses_of(t_.ops[id]))
      if (use.access == Access::write && decision_of_[use.storage] != kNone &&
          use.version == flow_.version_before(use.storage, behind))
        made.insert(decision_of_[use.storage]);
  return {made.begin(), made.end()};
}

void PlanTimeline::keep_until(StorageId storage, const PlanPoint& point) {
  PlanPoint& until = kept_until_[storage];
  if (until.op == kNoOp || until < point) until = point;
}

// Which re-run reads what, and until when what it reads must live.
void PlanTimeline::gather_reruns(const ParameterGathers& gathers) {
  for (const PlannedKeep& keep : plan_.keeps) keep_until(keep.storage, keep.until);
  for (std::uint32_t r = 0; r < plan_.reruns.size(); ++r) gather_rerun(r, gathers);
  for (std::vector<RerunTouch>* touches : {&reads_, &makes_})
    std::sort(touches->begin(), touches->end(),
              [](const RerunTouch& a, const RerunTouch& b) { return a.key() < b.key(); });
}

void PlanTimeline::gather_rerun(std::uint32_t r, const ParameterGathers& gathers) {
  const PlannedRerun& rerun = plan_.reruns[r];
  actions_.push_back({rerun.at, PlanAction::Kind::rerun, 0, r, 0});
  for (const std::uint32_t j : made_by(r)) makes_.push_back({j, place_of_rerun(r), rerun.at, 0, true});
  for (const OpId id : rerun.ops)
    for (const Use& use : t_.uses_of(t_.ops[id])) {
      if (use.access == Access::write) continue;
      const OpId writer = flow_.writer(use.storage, use.version);
      if (writer != kNoOp && std::binary_search(rerun.ops.begin(), rerun.ops.end(), writer)) continue;
      const StorageId read = gathers.read_at(use.storage, rerun.at.op + (rerun.at.after ? 1 : 0));
      if (read == use.storage) keep_until(read, rerun.at);
      if (const std::uint32_t j = decision_of_[read]; j != kNone)
        reads_.push_back({j, place_of_rerun(r), rerun.at, t_.ops[id].stream, runs_on_device(t_.ops[id].kind)});
    }
}

void PlanTimeline::gather_moves() {
  for (std::uint32_t j = 0; j < plan_.storages.size(); ++j) {
    const StorageDecision& d = plan_.storages[j];
    for (std::uint32_t i = 0; i < d.copies.size(); ++i) {
      actions_.push_back({d.copies[i].at, PlanAction::Kind::copy, j, i, 0});
      gather_guards(j, i);
    }
    for (std::uint32_t i = 0; i < d.drops.size(); ++i) {
      actions_.push_back({d.drops[i].at, PlanAction::Kind::drop, j, i, 0});
      gather_releases(j, i);
    }
    if (const OpId freed = flow_.free(d.storage); freed != kNoOp && d.home == StorageDecision::kDevice && !d.taken_away)
      actions_.push_back({{freed, false, kLast}, PlanAction::Kind::gone, j, 0, 0});
    for (std::uint32_t i = 0; i < d.updates.size(); ++i)
      actions_.push_back({{d.updates[i].op, true, 0}, PlanAction::Kind::update, j, i, 0});
    for (std::uint32_t i = 0; i < d.fetches.size(); ++i) {
      actions_.push_back({d.fetches[i].at, PlanAction::Kind::fetch, j, i, 0});
      if (d.fetches[i].tier != PlannedFetch::kNoTier) gather_arrivals(j, i);
    }
  }
}

void PlanTimeline::gather_guards(std::uint32_t j, std::uint32_t index) {
  const PlanPoint& copied = plan_.storages[j].copies[index].at;
  std::set<std::uint16_t> guarded;
  for (const Touch& touch : touches(j, copied, next_drop(j, copied)))
    if (touch.writes && uses_device(touch.op) && guarded.insert(t_.ops[touch.op].stream).second)
      actions_.push_back({{touch.op, false, kLast}, PlanAction::Kind::guard, j, index, t_.ops[touch.op].stream});
}

// What streams other than the pool's do with it last: after the newest copy, which waited for what was before.
void PlanTimeline::gather_releases(std::uint32_t j, std::uint32_t index) {
  const StorageDecision& d = plan_.storages[j];
  const PlanPoint& dropped = d.drops[index].at;
  PlanPoint known = index > 0 ? d.drops[index - 1].at : PlanPoint{0, false, 0};
  for (const PlannedCopy& copy : d.copies)
    if (known < copy.at && copy.at < dropped) known = copy.at;
  const std::uint16_t pool = t_.storages[d.storage].stream;
  for (const auto& [stream, last] : users(j, known, dropped))
    if (stream != pool && (moves(d) || !is_ordered(last, pool, dropped)))
      actions_.push_back({{last, true, 0}, PlanAction::Kind::release, j, index, stream});
}

// Does the program itself make the stream wait for what the op does, before the point?
bool PlanTimeline::is_ordered(OpId id, std::uint16_t stream, const PlanPoint& point) const {
  std::set<std::uint32_t> behind;  // events recorded behind the op
  for (OpId next = id + 1; next < t_.ops.size() && !is_behind(next, point); ++next) {
    const Op& op = t_.ops[next];
    if (op.kind == OpKind::event_wait && op.stream == stream && behind.contains(op.target)) return true;
    if (op.kind != OpKind::event_record) continue;
    if (op.stream == t_.ops[id].stream)
      behind.insert(op.target);
    else
      behind.erase(op.target);
  }
  return false;
}

void PlanTimeline::gather_arrivals(std::uint32_t j, std::uint32_t index) {
  const PlanPoint fetched = plan_.storages[j].fetches[index].at, dropped = next_drop(j, fetched);
  std::map<std::uint16_t, PlanPoint> first;
  const auto uses = [&](std::uint16_t stream, PlanPoint point) {
    const auto [at, is_new] = first.try_emplace(stream, point);
    if (!is_new && point < at->second) at->second = point;
  };
  for (const Touch& touch : touches(j, fetched, dropped))
    if (uses_device(touch.op)) uses(t_.ops[touch.op].stream, {touch.op, false, kLast});
  for (const RerunTouch& read : reads(j, place_of(fetched), dropped))
    if (read.on_device) uses(read.stream, read.at);
  for (const auto& [stream, point] : first) actions_.push_back({point, PlanAction::Kind::arrive, j, index, stream});
}

}  // namespace memwall
