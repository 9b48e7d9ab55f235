#include "policies/plan/plan_writer.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "policies/plan/hand_over_points.h"
#include "policies/plan/plan_timeline.h"
#include "policies/plan/rerun_writer.h"
#include "policies/plan/staging_copies.h"

namespace memwall {
namespace {

class PlanWriter {
 public:
  PlanWriter(const MemoryPlan& plan, const Dataflow& flow, const Pricer& pricer, TraceEdit& edit)
      : plan_(plan),
        flow_(flow),
        edit_(edit),
        t_(edit.base()),
        gathers_(edit.base(), flow),
        timeline_(plan, flow, gathers_, edit),
        reruns_(edit, flow, gathers_),
        states_(plan.storages.size()) {
    Bytes largest = 0;
    for (const StorageDecision& d : plan.storages) largest = std::max(largest, t_.storages[d.storage].bytes);
    for (const TransferStyle& style : plan.tiers)
      copies_.push_back(std::make_unique<StagingCopies>(edit, pricer, style, largest));
    present_.resize(t_.storages.size());
    for (StorageId s = 0; s < present_.size(); ++s) present_[s] = s;
    find_last_reruns();
  }

  WrittenPlan run() {
    for (std::uint32_t j = 0; j < states_.size(); ++j) begin(j);
    for (const PlanAction& action : timeline_.actions()) perform(action);
    for (std::uint32_t j = 0; j < states_.size(); ++j) finish(j);
    put_off_frees();
    WrittenPlan written;
    written.stand_ins = std::move(stand_ins_);
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
    std::uint32_t made_by = kNone;            // the re-run that made it
  };
  static constexpr std::uint32_t kNone = StagingCopies::kNone;

  StorageId storage(std::uint32_t j) const { return plan_.storages[j].storage; }

  void begin(std::uint32_t j) {
    const StorageDecision& d = plan_.storages[j];
    State& s = states_[j];
    s.far.assign(plan_.tiers.size(), kNoStorage);
    s.unread.assign(plan_.tiers.size(), false);
    s.left_by_copy.assign(d.copies.size(), kNone);
    s.since = {0, false, 0};
    if (d.home == StorageDecision::kDevice) {
      s.device = d.storage;
      if (d.held != StorageDecision::kDevice) {
        s.far[d.held] = copies_[d.held]->new_far_storage(d.storage, true);
        edit_.tables().held_copies.push_back({s.far[d.held], d.storage});
      }
      return;
    }
    copies_[d.home]->move_to_far_tier(d.storage);
    s.far[d.home] = d.storage;
    present_[d.storage] = kNoStorage;
  }

  void perform(const PlanAction& action) {
    const StorageDecision* const d = plan_.storages.empty() ? nullptr : &plan_.storages[action.decision];
    switch (action.kind) {
      case PlanAction::Kind::release:
        return states_[action.decision].releases.push_back(edit_.record(action.point(), action.stream));
      case PlanAction::Kind::copy:
        return copy(action);
      case PlanAction::Kind::drop:
        return drop(action);
      case PlanAction::Kind::update:
        return copies_[d->home]->write_from_staging(action.point(), d->updates[action.index].host, d->storage);
      case PlanAction::Kind::fetch:
        return fetch(action, d->fetches[action.index].tier);
      case PlanAction::Kind::arrive:
        return arrive(action, d->fetches[action.index].tier);
      case PlanAction::Kind::guard:
        return guard(action, d->copies[action.index].tier);
      case PlanAction::Kind::rerun:
        return rerun(action);
      case PlanAction::Kind::gone:
        return gone(action);
    }
  }

  void copy(const PlanAction& action) {
    const std::uint8_t tier = plan_.storages[action.decision].copies[action.index].tier;
    State& s = states_[action.decision];
    StagingCopies& copies = *copies_[tier];
    std::vector<std::uint16_t> streams;
    for (const auto& [stream, last] : timeline_.users(action.decision, s.since, action.at)) streams.push_back(stream);
    for (const std::uint16_t writer : makers(action.decision))
      if (std::find(streams.begin(), streams.end(), writer) == streams.end()) streams.push_back(writer);
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

  // The streams on which a re-run has made what is there.
  std::set<std::uint16_t> makers(std::uint32_t j) const {
    std::set<std::uint16_t> streams;
    if (states_[j].made_by == kNone) return streams;
    for (const OpId id : plan_.reruns[states_[j].made_by].ops)
      for (const Use& use : t_.uses_of(t_.ops[id]))
        if (use.storage == storage(j) && use.access == Access::write && runs_on_device(t_.ops[id].kind))
          streams.insert(t_.ops[id].stream);
    return streams;
  }

  // The memory's next owner in its pool comes behind what other streams do with it, re-runs among them.
  void wait_for_reruns(std::uint32_t j, const PlanPoint& at) {
    const State& s = states_[j];
    std::set<std::uint16_t> streams;
    for (const RerunTouch& read : timeline_.reads(j, place_of(s.since, turn_of(s)), at))
      if (read.on_device) streams.insert(read.stream);
    for (const std::uint16_t stream : streams) wait_for(stream, j, at);
  }

  // Of what a re-run made, and the plan drops again: no free of the program's own orders its uses.
  void wait_for_makers(std::uint32_t j, const PlanPoint& at) {
    for (const std::uint16_t stream : makers(j)) wait_for(stream, j, at);
  }

  void wait_for(std::uint16_t stream, std::uint32_t j, const PlanPoint& at) {
    const InsertionPoint point{at.op, at.after};
    if (stream != pool_of(states_[j])) edit_.wait(point, edit_.record(point, stream), pool_of(states_[j]));
  }

  std::uint32_t turn_of(const State& s) const { return s.made_by == kNone ? 0 : s.made_by + 1; }

  void drop(const PlanAction& action) {
    State& s = states_[action.decision];
    const StorageId original = storage(action.decision);
    wait_for_reruns(action.decision, action.at);
    if (s.made_by != kNone) wait_for_makers(action.decision, action.at);
    const bool is_moved = moves(plan_.storages[action.decision]);
    if (is_moved) wait_for_copies(action.decision, action.at);
    for (const std::uint32_t event : s.releases) edit_.wait(action.point(), event, pool_of(s));
    if (is_moved) {
      edit_.free(action.point(), s.device);
    } else {
      reruns_.free(original, s.device, action.point());
    }
    is_away(s, original);
  }

  void is_away(State& s, StorageId original) {
    s.device = present_[original] = kNoStorage;
    s.left = s.fetched = s.made_by = kNone;
    s.releases.clear();
  }

  // What is taken away may be dropped behind the program's own free.
  void gone_at_the_end(std::uint32_t j, OpId freed) {
    if (states_[j].device == kNoStorage)
      edit_.remove(freed);
    else
      gone({{freed, false, kNone}, PlanAction::Kind::gone, j, 0, 0});
  }

  // The program's own free: of what stands for the storage, if anything does.
  void gone(const PlanAction& action) {
    const StorageDecision& d = plan_.storages[action.decision];
    State& s = states_[action.decision];
    const OpId freed = action.at.op;
    if (s.device == kNoStorage) {
      reruns_.leave_out(freed);
    } else {
      wait_for_copies(action.decision, action.at);
      wait_for_reruns(action.decision, action.at);
      if (s.device != d.storage) edit_.repoint(freed, d.storage, s.device);
    }
    is_away(s, d.storage);
  }

  // Memory is given back behind the newest copy out of it, or the one that filled it where nobody has waited for that.
  void wait_for_copies(std::uint32_t j, const PlanPoint& at) {
    const State& s = states_[j];
    if (s.left != kNone)
      edit_.wait({at.op, at.after}, s.left, pool_of(s));
    else if (s.fetched != kNone && timeline_.users(j, s.since, at).empty())
      edit_.wait({at.op, at.after}, s.fetched, pool_of(s));
  }

  void fetch(const PlanAction& action, std::uint8_t tier) {
    const StorageId device = new_device_storage(storage(action.decision));
    edit_.alloc(action.point(), device);
    bring(action.decision, device, action.at);
    if (tier == PlannedFetch::kNoTier) return order_users(action);
    // The pool of what is gathered has memory whose readers its own stream has not waited for.
    if (gathers_.gather_of(storage(action.decision)) != kNoOp)
      for (const std::uint16_t reader : gathers_.reading_streams())
        edit_.wait(action.point(), edit_.record(action.point(), reader), copies_[tier]->in_stream(device));
    State& s = states_[action.decision];
    s.unread[tier] = false;
    s.fetched = copies_[tier]->fetch(action.point(), s.far[tier], device);
  }

  // Of memory into which nothing is copied: other streams' first work with it comes behind what its pool's stream did.
  void order_users(const PlanAction& action) {
    const std::uint16_t pool = pool_of(states_[action.decision]);
    std::set<std::uint16_t> ordered{pool};
    for (const Touch& touch :
         timeline_.touches(action.decision, action.at, timeline_.next_drop(action.decision, action.at)))
      if (const Op& op = t_.ops[touch.op]; runs_on_device(op.kind) && ordered.insert(op.stream).second)
        edit_.wait({touch.op, false}, edit_.record(action.point(), pool), op.stream);
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
    stand_ins_.emplace_back(device, storage(j));
    s.since = at;
    s.left = s.fetched = s.made_by = kNone;
    for (const Touch& touch : timeline_.touches(j, at, timeline_.next_drop(j, at)))
      edit_.repoint(touch.op, storage(j), device);
  }

  void guard(const PlanAction& action, std::uint8_t tier) {
    const State& s = states_[action.decision];
    if (action.stream != copies_[tier]->out_stream(s.device))
      edit_.wait(action.point(), s.left_by_copy[action.index], action.stream);
  }

  void arrive(const PlanAction& action, std::uint8_t tier) {
    const State& s = states_[action.decision];
    if (action.stream != copies_[tier]->in_stream(s.device)) edit_.wait(action.point(), s.fetched, action.stream);
  }

  void rerun(const PlanAction& action) {
    const PlannedRerun& rerun = plan_.reruns[action.index];
    std::vector<StorageId> awaited;
    std::set<std::uint16_t> readers;
    for (const std::uint32_t j : timeline_.made_by(action.index)) {
      if (states_[j].device != kNoStorage || !timeline_.is_awaited(j, action.index)) continue;
      awaited.push_back(storage(j));
      const PlanPlace here = timeline_.place_of_rerun(action.index);
      for (const RerunTouch& read : timeline_.reads(j, here, timeline_.next_drop(j, rerun.at)))
        if (read.on_device) readers.insert(read.stream);
    }
    std::sort(awaited.begin(), awaited.end());
    std::vector<StorageId> leaving;
    for (const auto& [s, last] : last_rerun_)
      if (last == action.index) leaving.push_back(s);
    for (const BroughtBack& back : reruns_.write(rerun, present_, awaited, readers, leaving)) {
      bring(timeline_.decision_of(back.storage), back.device, rerun.at);
      states_[timeline_.decision_of(back.storage)].made_by = action.index;
    }
  }

  // The storage's end, or the last that the program or the plan does with it.
  OpId last_event(const StorageDecision& d) const {
    if (const OpId freed = flow_.free(d.storage); freed != kNoOp) return freed;
    const std::span<const Touch> touches = flow_.touches(d.storage);
    OpId last = touches.empty() ? 0 : touches.back().op;
    for (const PlannedCopy& copy : d.copies) last = std::max(last, copy.at.op);
    for (const PlannedFetch& fetch : d.fetches) last = std::max(last, fetch.at.op);
    return last;
  }

  // Copies that are left.
  void finish(std::uint32_t j) {
    const StorageDecision& d = plan_.storages[j];
    const State& s = states_[j];
    if (d.home != StorageDecision::kDevice) return;
    const OpId freed = flow_.free(d.storage);
    const InsertionPoint end{last_event(d), true};
    if (freed != kNoOp && d.taken_away) gone_at_the_end(j, freed);
    for (std::size_t tier = 0; tier < s.far.size(); ++tier) {
      if (s.far[tier] == kNoStorage || tier == d.held) continue;  // the next step's
      if (s.unread[tier]) edit_.wait(end, copies_[tier]->arrival(s.far[tier]), t_.storages[d.storage].stream);
      edit_.free(end, s.far[tier]);
    }
  }

  // What the program frees before, and nothing but a re-run needs any more: that gives it back.
  void find_last_reruns() {
    for (std::uint32_t r = 0; r < plan_.reruns.size(); ++r) {
      const PlannedRerun& rerun = plan_.reruns[r];
      for (const std::vector<OpId>* ops : {&rerun.ops, &rerun.called})
        for (const OpId id : *ops)
          for (const Use& use : t_.uses_of(t_.ops[id])) {
            const OpId freed = flow_.free(use.storage);
            if (use.access == Access::read && timeline_.decision_of(use.storage) == PlanTimeline::kNone &&
                timeline_.kept_until()[use.storage] == rerun.at && freed != kNoOp && !is_behind(freed, rerun.at))
              last_rerun_[use.storage] = r;
          }
    }
  }

  // What a re-run starts from lives until then, where the program frees it before.
  void put_off_frees() {
    for (StorageId s = 0; s < t_.storages.size(); ++s) {
      const PlanPoint& until = timeline_.kept_until()[s];
      const OpId freed = flow_.free(s);
      if (until.op == kNoOp || freed == kNoOp || is_behind(freed, until) ||
          timeline_.decision_of(s) != PlanTimeline::kNone)
        continue;
      reruns_.leave_out(freed);
      if (!last_rerun_.contains(s)) reruns_.free(s, s, {until.op, until.after});
    }
  }

  const MemoryPlan& plan_;
  const Dataflow& flow_;
  TraceEdit& edit_;
  const Trace& t_;
  const ParameterGathers gathers_;
  const PlanTimeline timeline_;
  RerunWriter reruns_;
  std::vector<std::unique_ptr<StagingCopies>> copies_;  // by tier of the plan
  std::vector<State> states_;                           // by decision
  std::vector<StorageId> present_;                      // by storage of the base: what stands for it
  std::map<StorageId, std::uint32_t> last_rerun_;       // of what a re-run gives back: that re-run
  std::vector<std::pair<StorageId, StorageId>> stand_ins_;  // WrittenPlan::stand_ins
};

}  // namespace

WrittenPlan write_plan(const MemoryPlan& plan, const Dataflow& flow, const Pricer& pricer, TraceEdit& edit) {
  const MemoryPlan placed = behind_hand_overs(plan, edit.base());
  return PlanWriter(placed, flow, pricer, edit).run();
}

}  // namespace memwall
