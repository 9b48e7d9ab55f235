#include "policies/plan/plan_writer.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <memory>
#include <set>

#include "policies/plan/rerun_writer.h"
#include "policies/plan/staging_copies.h"

namespace memwall {
namespace {

constexpr std::uint32_t kLast = std::numeric_limits<std::uint32_t>::max();

// What has to happen at a point; in this order where points are equal.
struct Action {
  enum class Kind : std::uint8_t { release, copy, drop, update, fetch, arrive, guard, rerun };
  PlanPoint at;
  Kind kind = Kind::copy;
  std::uint32_t decision = 0, index = 0;  // of MemoryPlan::storages, and in its list; rerun: of MemoryPlan::reruns
  std::uint16_t stream = 0;               // arrive, guard: who waits; release: whose work is waited for

  InsertionPoint point() const { return {at.op, at.after}; }
  auto key() const { return std::tuple(at.op, at.after, at.order, kind, decision, index, stream); }
};

// Is the op behind the point?
bool is_behind(OpId op, const PlanPoint& point) { return op > point.op || (op == point.op && !point.after); }

class PlanWriter {
 public:
  PlanWriter(const MemoryPlan& plan, const Dataflow& flow, const Pricer& pricer, TraceEdit& edit)
      : plan_(plan), flow_(flow), edit_(edit), t_(edit.base()), reruns_(edit, flow), states_(plan.storages.size()) {
    Bytes largest = 0;
    for (const StorageDecision& d : plan.storages) largest = std::max(largest, t_.storages[d.storage].bytes);
    for (const TransferStyle& style : plan.tiers)
      copies_.push_back(std::make_unique<StagingCopies>(edit, pricer, style, largest));
    present_.resize(t_.storages.size());
    for (StorageId s = 0; s < present_.size(); ++s) present_[s] = s;
    decision_of_.assign(t_.storages.size(), kLast);
    for (std::uint32_t j = 0; j < plan.storages.size(); ++j) decision_of_[plan.storages[j].storage] = j;
  }

  WrittenPlan run() {
    gather_reruns();
    gather_moves();
    std::sort(actions_.begin(), actions_.end(), [](const Action& a, const Action& b) { return a.key() < b.key(); });
    for (std::uint32_t j = 0; j < states_.size(); ++j) begin(j);
    for (const Action& action : actions_) perform(action);
    for (std::uint32_t j = 0; j < states_.size(); ++j) finish(j);
    put_off_frees();
    WrittenPlan written;
    for (const auto& copies : copies_) {
      written.bytes_out += copies->bytes_out();
      written.bytes_in += copies->bytes_in();
    }
    return written;
  }

 private:
  struct State {
    StorageId device = kNoStorage;            // the present device storage, while there is one
    PlanPoint since;                          // it stands since then
    std::vector<StorageId> far;               // by tier: the copy there
    std::vector<bool> unread;                 // by tier: no fetch has waited for the newest copy there
    std::vector<std::uint32_t> left_by_copy;  // event behind which a copy has left
    std::uint32_t left = kNone;               // event of the newest copy that took from it
    std::uint32_t fetched = kNone;            // event of the copy that filled it
    std::vector<std::uint32_t> releases;      // events behind the last work of other streams with it
  };
  static constexpr std::uint32_t kNone = StagingCopies::kNone;

  StorageId storage(std::uint32_t j) const { return plan_.storages[j].storage; }
  std::span<const Touch> touches(std::uint32_t j) const { return flow_.touches(storage(j)); }

  // Which re-run reads what, and until when what a re-run reads must live.
  void gather_reruns() {
    kept_until_.assign(t_.storages.size(), {});
    for (std::uint32_t r = 0; r < plan_.reruns.size(); ++r) {
      const PlannedRerun& rerun = plan_.reruns[r];
      actions_.push_back({{rerun.at.op, rerun.at.after, kLast}, Action::Kind::rerun, 0, r, 0});
      for (const OpId id : rerun.ops)
        for (const Use& use : t_.uses_of(t_.ops[id])) {
          if (use.access == Access::write) continue;
          const OpId writer = flow_.writer(use.storage, use.version);
          if (writer != kNoOp && std::binary_search(rerun.ops.begin(), rerun.ops.end(), writer)) continue;
          PlanPoint& until = kept_until_[use.storage];
          if (until.op == kNoOp || until < rerun.at) until = rerun.at;
          if (const std::uint32_t j = decision_of_[use.storage]; j != kLast && runs_on_device(t_.ops[id].kind))
            reads_.push_back({j, rerun.at, t_.ops[id].stream});
        }
    }
    std::sort(reads_.begin(), reads_.end(), [](const RerunRead& a, const RerunRead& b) {
      return std::tuple(a.decision, a.at.op, a.at.after, a.stream) <
             std::tuple(b.decision, b.at.op, b.at.after, b.stream);
    });
  }

  void gather_moves() {
    for (std::uint32_t j = 0; j < plan_.storages.size(); ++j) {
      const StorageDecision& d = plan_.storages[j];
      for (std::uint32_t i = 0; i < d.copies.size(); ++i) {
        actions_.push_back({d.copies[i].at, Action::Kind::copy, j, i, 0});
        gather_guards(j, i);
      }
      for (std::uint32_t i = 0; i < d.drops.size(); ++i) {
        actions_.push_back({d.drops[i].at, Action::Kind::drop, j, i, 0});
        if (moves(d)) gather_releases(j, i);
      }
      for (std::uint32_t i = 0; i < d.updates.size(); ++i)
        actions_.push_back({{d.updates[i].op, true, 0}, Action::Kind::update, j, i, 0});
      for (std::uint32_t i = 0; i < d.fetches.size(); ++i) {
        actions_.push_back({d.fetches[i].at, Action::Kind::fetch, j, i, 0});
        if (d.fetches[i].tier != PlannedFetch::kNoTier) gather_arrivals(j, i);
      }
    }
  }

  // The first drop behind the point; `none` has the op kNoOp.
  PlanPoint next_drop(std::uint32_t j, const PlanPoint& point) const {
    const std::vector<PlannedDrop>& drops = plan_.storages[j].drops;
    const auto next = std::upper_bound(drops.begin(), drops.end(), point,
                                       [](const PlanPoint& p, const PlannedDrop& d) { return p < d.at; });
    return next == drops.end() ? PlanPoint{} : next->at;
  }

  // Calls `take` with each touch of the storage between two points. `end.op` kNoOp: until the end.
  template <typename Take>
  void each_touch(std::uint32_t j, const PlanPoint& begin, const PlanPoint& end, Take take) const {
    const std::span<const Touch> all = touches(j);
    auto touch = std::partition_point(all.begin(), all.end(), [&](const Touch& t) { return !is_behind(t.op, begin); });
    for (; touch != all.end() && (end.op == kNoOp || !is_behind(touch->op, end)); ++touch) take(*touch);
  }

  // Nobody writes over what a copy is still taking away.
  void gather_guards(std::uint32_t j, std::uint32_t index) {
    const PlanPoint& copied = plan_.storages[j].copies[index].at;
    std::set<std::uint16_t> guarded;
    each_touch(j, copied, next_drop(j, copied), [&](const Touch& touch) {
      const Op& op = t_.ops[touch.op];
      if (touch.writes && !edit_.removed(touch.op) && runs_on_device(op.kind) && guarded.insert(op.stream).second)
        actions_.push_back({{touch.op, false, kLast}, Action::Kind::guard, j, index, op.stream});
    });
  }

  // Memory is given up behind what streams other than its pool's do with it last: after the newest copy, which waited
  // for what was before.
  void gather_releases(std::uint32_t j, std::uint32_t index) {
    const StorageDecision& d = plan_.storages[j];
    const PlanPoint& dropped = d.drops[index].at;
    PlanPoint known = index > 0 ? d.drops[index - 1].at : PlanPoint{0, false, 0};
    for (const PlannedCopy& copy : d.copies)
      if (known < copy.at && copy.at < dropped) known = copy.at;
    for (const auto& [stream, last] : users(j, known, dropped))
      if (stream != t_.storages[d.storage].stream)
        actions_.push_back({{last, true, 0}, Action::Kind::release, j, index, stream});
  }

  // Every stream waits for the copy before its first use of what was fetched.
  void gather_arrivals(std::uint32_t j, std::uint32_t index) {
    const PlanPoint fetched = plan_.storages[j].fetches[index].at, dropped = next_drop(j, fetched);
    std::map<std::uint16_t, PlanPoint> first;
    const auto uses = [&](std::uint16_t stream, PlanPoint point) {
      const auto [at, is_new] = first.try_emplace(stream, point);
      if (!is_new && point < at->second) at->second = point;
    };
    each_touch(j, fetched, dropped, [&](const Touch& touch) {
      const Op& op = t_.ops[touch.op];
      if (!edit_.removed(touch.op) && runs_on_device(op.kind)) uses(op.stream, {touch.op, false, kLast});
    });
    each_read(j, fetched, dropped, [&](const RerunRead& read) {
      uses(read.stream, {read.at.op, read.at.after, kLast});
    });
    for (auto& [stream, point] : first) {
      if (std::tuple(point.op, point.after) < std::tuple(fetched.op, fetched.after))
        point = {fetched.op, fetched.after, kLast};
      actions_.push_back({point, Action::Kind::arrive, j, index, stream});
    }
  }

  struct RerunRead {
    std::uint32_t decision;
    PlanPoint at;
    std::uint16_t stream;
  };

  template <typename Take>
  void each_read(std::uint32_t j, const PlanPoint& begin, const PlanPoint& end, Take take) const {
    auto read = std::partition_point(reads_.begin(), reads_.end(), [&](const RerunRead& r) { return r.decision < j; });
    for (; read != reads_.end() && read->decision == j; ++read) {
      const auto at = std::tuple(read->at.op, read->at.after);
      if (at < std::tuple(begin.op, begin.after)) continue;
      if (end.op != kNoOp && std::tuple(end.op, end.after) < at) break;
      take(*read);
    }
  }

  void begin(std::uint32_t j) {
    const StorageDecision& d = plan_.storages[j];
    State& s = states_[j];
    s.far.assign(plan_.tiers.size(), kNoStorage);
    s.unread.assign(plan_.tiers.size(), false);
    s.left_by_copy.assign(d.copies.size(), kNone);
    s.since = {0, false, 0};
    if (d.home == StorageDecision::kDevice) {
      s.device = d.storage;
      return;
    }
    copies_[d.home]->move_to_far_tier(d.storage);
    s.far[d.home] = d.storage;
    present_[d.storage] = kNoStorage;
  }

  void perform(const Action& action) {
    const StorageDecision* const d = plan_.storages.empty() ? nullptr : &plan_.storages[action.decision];
    switch (action.kind) {
      case Action::Kind::release:
        return states_[action.decision].releases.push_back(edit_.record(action.point(), action.stream));
      case Action::Kind::copy:
        return copy(action);
      case Action::Kind::drop:
        return drop(action);
      case Action::Kind::update:
        return copies_[d->home]->write_from_staging(action.point(), d->updates[action.index].host, d->storage);
      case Action::Kind::fetch:
        return fetch(action, d->fetches[action.index].tier);
      case Action::Kind::arrive:
        return arrive(action, d->fetches[action.index].tier);
      case Action::Kind::guard:
        return guard(action, d->copies[action.index].tier);
      case Action::Kind::rerun:
        return rerun(action);
    }
  }

  // The streams that use the storage between two points, ascending, with the last op of each.
  std::map<std::uint16_t, OpId> users(std::uint32_t j, const PlanPoint& begin, const PlanPoint& end) const {
    std::map<std::uint16_t, OpId> last;
    each_touch(j, begin, end, [&](const Touch& touch) {
      const Op& op = t_.ops[touch.op];
      if (runs_on_device(op.kind) && !edit_.removed(touch.op)) last[op.stream] = touch.op;
    });
    return last;
  }

  void copy(const Action& action) {
    const std::uint8_t tier = plan_.storages[action.decision].copies[action.index].tier;
    State& s = states_[action.decision];
    StagingCopies& copies = *copies_[tier];
    std::vector<std::uint16_t> streams;
    for (const auto& [stream, last] : users(action.decision, s.since, action.at)) streams.push_back(stream);
    if (streams.empty() && s.fetched != kNone)  // nobody has waited for its content yet
      edit_.wait(action.point(), s.fetched, copies.out_stream(s.device));
    if (s.far[tier] == kNoStorage) {
      s.far[tier] = copies.new_far_storage(storage(action.decision), false);
      edit_.alloc(action.point(), s.far[tier]);
      // What had that memory before is ordered by the pool's stream.
      if (std::find(streams.begin(), streams.end(), pool_of(s)) == streams.end()) streams.push_back(pool_of(s));
    }
    s.unread[tier] = true;
    const std::uint32_t left = copies.send(action.point(), s.device, s.far[tier], streams);
    s.left_by_copy[action.index] = left;
    if (copies.out_stream(s.device) != pool_of(s)) s.left = left;
  }

  std::uint16_t pool_of(const State& s) const { return edit_.tables().storages[s.device].stream; }

  // Do copies take the storage away and bring it back? Else the program drops it by itself, for a re-run or for good.
  static bool moves(const StorageDecision& d) {
    return d.home != StorageDecision::kDevice || d.taken_away || !d.copies.empty() || !d.fetches.empty();
  }

  void drop(const Action& action) {
    State& s = states_[action.decision];
    const StorageId original = storage(action.decision);
    if (moves(plan_.storages[action.decision])) {
      wait_for_copies(action.decision, action.at);
      for (const std::uint32_t event : s.releases) edit_.wait(action.point(), event, pool_of(s));
      edit_.free(action.point(), s.device);
    } else {
      reruns_.free(original, s.device, action.point());
    }
    s.device = present_[original] = kNoStorage;
    s.left = s.fetched = kNone;
    s.releases.clear();
  }

  // Memory is given back behind the newest copy out of it, or the one that filled it where nobody has waited for that.
  void wait_for_copies(std::uint32_t j, const PlanPoint& at) {
    const State& s = states_[j];
    if (s.left != kNone)
      edit_.wait({at.op, at.after}, s.left, pool_of(s));
    else if (s.fetched != kNone && users(j, s.since, at).empty())
      edit_.wait({at.op, at.after}, s.fetched, pool_of(s));
  }

  void fetch(const Action& action, std::uint8_t tier) {
    const StorageId device = new_device_storage(storage(action.decision));
    edit_.alloc(action.point(), device);
    bring(action.decision, device, action.at);
    if (tier == PlannedFetch::kNoTier) return;
    State& s = states_[action.decision];
    s.unread[tier] = false;
    s.fetched = copies_[tier]->fetch(action.point(), s.far[tier], device);
  }

  StorageId new_device_storage(StorageId model) {
    const Storage like = t_.storages[model];
    const StorageId replica = edit_.builder().add_storage(like.bytes, like.kind, t_.places[like.place], "");
    edit_.tables().storages[replica].label = like.label;
    edit_.tables().storages[replica].stream = like.stream;
    return replica;
  }

  // From the point on `device` stands for the storage.
  void bring(std::uint32_t j, StorageId device, const PlanPoint& at) {
    State& s = states_[j];
    s.device = present_[storage(j)] = device;
    s.since = at;
    s.left = s.fetched = kNone;
    each_touch(j, at, next_drop(j, at), [&](const Touch& t) { edit_.repoint(t.op, storage(j), device); });
  }

  void guard(const Action& action, std::uint8_t tier) {
    const State& s = states_[action.decision];
    if (action.stream != copies_[tier]->out_stream(s.device))
      edit_.wait(action.point(), s.left_by_copy[action.index], action.stream);
  }

  void arrive(const Action& action, std::uint8_t tier) {
    const State& s = states_[action.decision];
    if (action.stream != copies_[tier]->in_stream(s.device)) edit_.wait(action.point(), s.fetched, action.stream);
  }

  void rerun(const Action& action) {
    const PlannedRerun& rerun = plan_.reruns[action.index];
    std::set<StorageId> awaited;
    for (const OpId id : rerun.ops)
      for (const Use& use : t_.uses_of(t_.ops[id]))
        if (use.access == Access::write && is_awaited(use.storage, rerun.at)) awaited.insert(use.storage);
    const std::vector<StorageId> list(awaited.begin(), awaited.end());
    for (const BroughtBack& back : reruns_.write(rerun, present_, list))
      bring(decision_of_[back.storage], back.device, rerun.at);
  }

  // Is the storage absent, and used again before it is fetched?
  bool is_awaited(StorageId id, const PlanPoint& at) const {
    const std::uint32_t j = decision_of_[id];
    if (j == kLast || states_[j].device != kNoStorage) return false;
    const std::vector<PlannedFetch>& fetches = plan_.storages[j].fetches;
    const auto next = std::upper_bound(fetches.begin(), fetches.end(), at,
                                       [](const PlanPoint& p, const PlannedFetch& f) { return p < f.at; });
    const PlanPoint end = next == fetches.end() ? PlanPoint{} : next->at;
    bool used = false;
    each_touch(j, at, end, [&](const Touch& touch) { used = used || !edit_.removed(touch.op); });
    each_read(j, at, end, [&](const RerunRead& read) { used = used || at < read.at; });
    return used;
  }

  // What the base trace frees at the end.
  void finish(std::uint32_t j) {
    const StorageDecision& d = plan_.storages[j];
    const State& s = states_[j];
    if (d.home != StorageDecision::kDevice) return;
    const OpId freed = flow_.free(d.storage);
    const InsertionPoint end{freed != kNoOp ? freed : touches(j).back().op, true};
    if (freed != kNoOp && s.device == kNoStorage) {
      d.taken_away ? edit_.remove(freed) : reruns_.leave_out(freed);
    } else if (freed != kNoOp) {
      wait_for_copies(j, {freed, false, kLast});
      if (s.device != d.storage) edit_.repoint(freed, d.storage, s.device);
    }
    for (std::size_t tier = 0; tier < s.far.size(); ++tier) {
      if (s.far[tier] == kNoStorage) continue;
      if (s.unread[tier]) edit_.wait(end, copies_[tier]->arrival(s.far[tier]), t_.storages[d.storage].stream);
      edit_.free(end, s.far[tier]);
    }
  }

  // What a re-run starts from lives until then, where the program frees it before.
  void put_off_frees() {
    for (StorageId s = 0; s < kept_until_.size(); ++s) {
      const PlanPoint& until = kept_until_[s];
      const OpId freed = flow_.free(s);
      if (until.op == kNoOp || freed == kNoOp || is_behind(freed, until) || decision_of_[s] != kLast) continue;
      reruns_.leave_out(freed);
      reruns_.free(s, s, {until.op, until.after});
    }
  }

  const MemoryPlan& plan_;
  const Dataflow& flow_;
  TraceEdit& edit_;
  const Trace& t_;
  RerunWriter reruns_;
  std::vector<std::unique_ptr<StagingCopies>> copies_;  // by tier of the plan
  std::vector<Action> actions_;
  std::vector<State> states_;               // by decision
  std::vector<RerunRead> reads_;            // ascending by decision, point and stream
  std::vector<StorageId> present_;          // by storage of the base: what stands for it
  std::vector<std::uint32_t> decision_of_;  // by storage of the base; kLast: none
  std::vector<PlanPoint> kept_until_;       // by storage of the base: the last re-run that reads it; kNoOp: none
};

}  // namespace

WrittenPlan write_plan(const MemoryPlan& plan, const Dataflow& flow, const Pricer& pricer, TraceEdit& edit) {
  return PlanWriter(plan, flow, pricer, edit).run();
}

}  // namespace memwall
