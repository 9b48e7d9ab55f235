#include "policies/offload/offload_transfer_schedule.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <tuple>

#include "policies/plan/plan_writer.h"
#include "policies/trace/parameter_casts.h"
#include "policies/trace/passes_in_turn.h"
#include "sim/human_text.h"

namespace memwall {
namespace {

// What has to happen at a point; in this order where points are equal.
struct Action {
  enum class Kind : std::uint8_t { leave, refresh, fetch };
  InsertionPoint point;
  Kind kind = Kind::leave;
  std::uint32_t schedule = 0, interval = 0;  // refresh: index of the refresh

  auto key() const { return std::tuple(point.op, point.after, kind, schedule, interval); }
};

// Turns schedules into a memory plan: whose copies leave when, when memory is given up, when fetches are issued.
class TransferPlanner {
 public:
  TransferPlanner(const TraceEdit& edit, const OffloadSettings& settings, const Dataflow& flow,
                  const std::vector<TransferSchedule>& schedules, bool keep_last, const SavedStorages* saved)
      : edit_(edit),
        settings_(settings),
        flow_(flow),
        schedules_(schedules),
        keep_last_(keep_last),
        saved_(saved),
        states_(schedules_.size()) {
    if (saved_ == nullptr) return;
    for (const Pass& pass : passes_in_turn(edit_.base()))
      for (const OpId end : cast_ends(edit_.base(), flow_, pass)) cast_ends_.push_back(end);
  }

  MemoryPlan run(ScheduledTransfers& summary) {
    plan_offloads();
    plan_fetches();
    for (std::uint32_t j = 0; j < schedules_.size(); ++j)
      for (std::uint32_t i = 0; i < schedules_[j].refreshes.size(); ++i)
        actions_.push_back({{schedules_[j].refreshes[i].op, true}, Action::Kind::refresh, j, i});
    std::sort(actions_.begin(), actions_.end(), [](const Action& a, const Action& b) { return a.key() < b.key(); });
    begin();
    for (const Action& action : actions_) perform(action);
    MemoryPlan plan;
    plan.tiers.push_back(settings_.style());
    for (std::uint32_t j = 0; j < schedules_.size(); ++j)
      if (!states_[j].kept) plan.storages.push_back(std::move(decisions_[j]));
    count(summary);
    return plan;
  }

 private:
  struct State {
    bool kept = false;
    bool far_valid = false;  // what lies far is the newest content
  };

  std::span<const Touch> touches(std::uint32_t j) const { return flow_.touches(schedules_[j].storage); }
  OpId first_op(std::uint32_t j, std::size_t v) const { return touches(j)[schedules_[j].intervals[v].first].op; }
  OpId last_op(std::uint32_t j, std::size_t v) const { return touches(j)[schedules_[j].intervals[v].last].op; }
  InsertionPoint last_use(std::uint32_t j, std::size_t v) const { return {last_op(j, v), true}; }
  InsertionPoint leaves_at(std::uint32_t j, std::size_t v) const {
    return v == 0 && schedules_[j].saved ? schedules_[j].saved->at : last_use(j, v);
  }
  // Who asks for what `op` uses.
  OpId asker(OpId op) const { return saved_ != nullptr ? saved_->first_of_node(op) : op; }
  bool offloads_after(std::uint32_t j, std::size_t v) const {
    return schedules_[j].home != Home::device || v + 1 < schedules_[j].intervals.size();
  }

  void plan_offloads() {
    for (std::uint32_t j = 0; j < schedules_.size(); ++j)
      for (std::uint32_t v = 0; v < schedules_[j].intervals.size(); ++v)
        if (offloads_after(j, v)) actions_.push_back({leaves_at(j, v), Action::Kind::leave, j, v});
    std::sort(actions_.begin(), actions_.end(), [](const Action& a, const Action& b) { return a.key() < b.key(); });
    for (std::size_t i = 0; i < actions_.size(); ++i) {
      const std::uint32_t run = flow_.phases().of(actions_[i].point.op);
      const std::size_t ahead = i + settings_.buffers;  // whose departure completes this one's
      const bool in_flight = ahead >= actions_.size() || flow_.phases().of(actions_[ahead].point.op) != run;
      if (i + 1 == actions_.size() || flow_.phases().of(actions_[i + 1].point.op) != run)
        last_offload_.insert(actions_[i].key());
      if (in_flight && keep_last_) states_[actions_[i].schedule].kept = true;
    }
  }

  bool has_fetch(std::uint32_t j, std::size_t v) const {
    return !states_[j].kept && (v > 0 || schedules_[j].home == Home::far);
  }

  // The ops that are first in their run to need one of the storages again, those that stayed included.
  std::set<OpId> consuming_units() const {
    std::set<OpId> units;
    for (std::uint32_t j = 0; j < schedules_.size(); ++j)
      for (std::uint32_t v = schedules_[j].home == Home::far ? 0 : 1; v < schedules_[j].intervals.size(); ++v) {
        const ResidencyInterval& interval = schedules_[j].intervals[v];
        for (std::size_t i = interval.first; i <= interval.last; ++i)
          if (i == interval.first || flow_.phases().of(touches(j)[i].op) != flow_.phases().of(touches(j)[i - 1].op))
            units.insert(asker(touches(j)[i].op));
      }
    return units;
  }

  // Each return is issued before the consuming unit that stands `prefetch` places before its own,
  // but not before its storage has left, nor (if made in this step) before its own run begins.
  void plan_fetches() {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> returns;
    for (std::uint32_t j = 0; j < schedules_.size(); ++j)
      for (std::uint32_t v = 0; v < schedules_[j].intervals.size(); ++v)
        if (has_fetch(j, v)) returns.emplace_back(j, v);
    const std::set<OpId> units = consuming_units();
    const std::vector<OpId> order(units.begin(), units.end());
    for (const auto& [j, v] : returns) {
      const OpId needed = asker(first_op(j, v));
      const auto unit = static_cast<std::size_t>(std::lower_bound(order.begin(), order.end(), needed) - order.begin());
      const OpId run_begin = entry(flow_.phases().run(needed));
      InsertionPoint point{unit >= settings_.prefetch ? order[unit - settings_.prefetch] : run_begin, false};
      // The first node that asks for anything saved begins the fetches of all that many nodes ahead.
      if (saved_ != nullptr && unit <= settings_.prefetch) point.op = saved_->first_node_from(run_begin, order[0]);
      if (schedules_[j].home == Home::device && point.op < run_begin) point.op = run_begin;
      point = clamp(point, j, v, needed);
      actions_.push_back({point, Action::Kind::fetch, j, v});
    }
  }

  // Where new ops may stand at the beginning of a run: behind the step's mark and the hand-over
  // that lets the run's thread go on.
  OpId entry(const PhaseRun& run) const {
    OpId id = run.first;
    while (id < run.last &&
           (edit_.base().ops[id].kind == OpKind::mark || edit_.base().ops[id].kind == OpKind::hand_over))
      ++id;
    return id;
  }

  // Not before the storage has left, nor before its home has got content from elsewhere.
  InsertionPoint clamp(InsertionPoint point, std::uint32_t j, std::uint32_t v, OpId needed) const {
    const auto later = [&](InsertionPoint bound) {
      if (std::tuple(point.op, point.after) < std::tuple(bound.op, bound.after)) point = bound;
    };
    if (v > 0) {
      later({last_op(j, v - 1), true});
      const std::span<const Touch> all = touches(j);
      for (std::size_t i = schedules_[j].intervals[v - 1].last + 1; i < schedules_[j].intervals[v].first; ++i)
        later({all[i].op, true});
    } else {
      for (std::size_t i = 0; i < schedules_[j].intervals[0].first; ++i) later({touches(j)[i].op, true});
      if (const OpId alloc = flow_.alloc(schedules_[j].storage); alloc != kNoOp) later({alloc, true});
    }
    if (point.op > needed || (point.op == needed && point.after)) point = {needed, false};
    return point;
  }

  void begin() {
    decisions_.resize(schedules_.size());
    for (std::uint32_t j = 0; j < schedules_.size(); ++j) {
      StorageDecision& d = decisions_[j];
      d.storage = schedules_[j].storage;
      d.taken_away = schedules_[j].home == Home::gone;
      if (schedules_[j].home == Home::far) d.home = 0;
      states_[j].far_valid = schedules_[j].home == Home::far;
    }
  }

  // The next place of its own at the point.
  PlanPoint next_at(InsertionPoint point) { return {point.op, point.after, ++orders_[{point.op, point.after}]}; }

  void perform(const Action& action) {
    const std::uint32_t j = action.schedule;
    switch (action.kind) {
      case Action::Kind::leave:
        return leave(action);
      case Action::Kind::refresh: {
        const Refresh& refresh = schedules_[j].refreshes[action.interval];
        decisions_[j].updates.push_back({refresh.op, refresh.host});
        return;
      }
      case Action::Kind::fetch: {
        if (stays(j)) return;
        const bool fresh = schedules_[j].intervals[action.interval].fresh;
        decisions_[j].fetches.push_back({next_at(action.point), fresh ? PlannedFetch::kNoTier : std::uint8_t{0}});
        if (saved_ == nullptr || !schedules_[j].saved) return;
        if (const auto last = saved_->handed_until(schedules_[j].storage))
          decisions_[j].drops.push_back({next_at({*last, true})});
        return;
      }
    }
  }

  // Needed again before its memory was to be given up: then it is not.
  bool stays(std::uint32_t j) {
    const auto leaving = std::find(leaving_.begin(), leaving_.end(), j);
    if (leaving == leaving_.end()) return false;
    *leaving = kStays;
    return true;
  }

  std::set<std::uint16_t> users(std::uint32_t j, std::uint32_t v) const {
    std::set<std::uint16_t> streams;
    const ResidencyInterval& interval = schedules_[j].intervals[v];
    for (std::size_t i = interval.first; i <= interval.last; ++i) {
      const OpId id = touches(j)[i].op;
      if (runs_on_device(edit_.base().ops[id].kind) && !edit_.removed(id)) streams.insert(edit_.base().ops[id].stream);
    }
    return streams;
  }

  bool writes(std::uint32_t j, std::uint32_t v) const {
    const ResidencyInterval& interval = schedules_[j].intervals[v];
    for (std::size_t i = interval.first; i <= interval.last; ++i)
      if (touches(j)[i].writes && !edit_.removed(touches(j)[i].op)) return true;
    return false;
  }

  // Is the content wanted after the interval?
  bool wanted(std::uint32_t j, std::uint32_t v) const {
    const TransferSchedule& schedule = schedules_[j];
    if (v + 1 < schedule.intervals.size()) return !schedule.intervals[v + 1].fresh;
    return schedule.home == Home::far;
  }

  // Memory is given up when so many later storages have left: those that stay count, too.
  void leave(const Action& action) {
    if (states_[action.schedule].kept)
      leaving_.push_back(kStays);
    else
      start_offload(action);
    while (leaving_.size() > settings_.buffers) drop_oldest(action.point);
    if (!keep_last_ && last_offload_.contains(action.key()))
      while (!leaving_.empty()) drop_oldest(action.point);
  }

  void start_offload(const Action& action) {
    const std::uint32_t j = action.schedule;
    State& s = states_[j];
    if (writes(j, action.interval)) s.far_valid = false;
    const bool copies = wanted(j, action.interval) && !s.far_valid;
    if (copies) {
      decisions_[j].copies.push_back({next_at(action.point), 0});
      s.far_valid = true;
    }
    // In its pool's order the memory is reusable at once.
    const std::uint16_t pool = edit_.base().storages[schedules_[j].storage].stream;
    const std::set<std::uint16_t> streams = users(j, action.interval);
    const bool elsewhere =
        copies ? settings_.side_streams
               : std::any_of(streams.begin(), streams.end(), [&](auto stream) { return stream != pool; });
    if (elsewhere)
      leaving_.push_back(j);
    else
      drop(j, action.point);
  }

  // Of a cast of a parameter: until autocast's context ends, its cache holds it.
  InsertionPoint held_until(std::uint32_t j) const {
    const InsertionPoint used = last_use(j, 0);
    if (!is_cast_of_parameter(edit_.base(), flow_, schedules_[j].storage)) return used;
    const auto end = std::upper_bound(cast_ends_.begin(), cast_ends_.end(), used.op);
    const bool in_this_run = end != cast_ends_.end() && flow_.phases().of(*end) == flow_.phases().of(used.op);
    return in_this_run ? InsertionPoint{*end, true} : used;
  }

  // Not before its last use, where its copy has left before that.
  void drop(std::uint32_t j, InsertionPoint point) {
    const InsertionPoint used = schedules_[j].saved ? held_until(j) : point;
    const bool is_in_use = std::tuple(point.op, point.after) < std::tuple(used.op, used.after);
    decisions_[j].drops.push_back({next_at(is_in_use ? used : point)});
  }

  void drop_oldest(InsertionPoint point) {
    const std::uint32_t j = leaving_.front();
    leaving_.pop_front();
    if (j != kStays) drop(j, point);
  }

  void count(ScheduledTransfers& result) const {
    for (std::uint32_t j = 0; j < schedules_.size(); ++j) {
      const Bytes bytes = edit_.base().storages[schedules_[j].storage].bytes;
      (states_[j].kept ? result.kept : result.storages) += 1;
      (states_[j].kept ? result.kept_bytes : result.bytes) += bytes;
      result.sent_before += schedules_[j].home == Home::gone ? 1 : 0;
    }
  }

  const TraceEdit& edit_;
  const OffloadSettings& settings_;
  const Dataflow& flow_;
  const std::vector<TransferSchedule>& schedules_;
  bool keep_last_;
  const SavedStorages* saved_;  // null: what comes back is asked for by single ops
  std::vector<OpId> cast_ends_;  // where autocast gives back casts of parameters; ascending
  std::vector<State> states_;
  std::vector<StorageDecision> decisions_;  // by schedule
  std::vector<Action> actions_;
  std::set<std::tuple<OpId, bool, Action::Kind, std::uint32_t, std::uint32_t>> last_offload_;
  static constexpr std::uint32_t kStays = 0xffffffff;
  std::deque<std::uint32_t> leaving_;  // schedules whose memory is to be given up; kStays: not after all
  std::map<std::pair<OpId, bool>, std::uint32_t> orders_;  // by point: places that are taken
};

}  // namespace

std::string ScheduledTransfers::sentence(const std::string& what, const std::string& to, std::size_t steps) const {
  const std::string end = steps > 1 ? "; all of " + std::to_string(steps) + " steps together." : ".";
  const std::string singular = what.substr(0, what.size() - 1);
  const std::string moved = "offload: " + counted_text(storages, singular, what) + " of " + human_bytes(bytes);
  const bool one = storages == 1;
  if (sent_before > 0 && sent_before == storages)
    return moved + (one ? " leaves the GPU once its copy has" : " leave the GPU once their copies have") + " arrived" +
           end;
  std::string text = moved + (one ? " goes to " : " go to ") + to + "; " + human_bytes(bytes_out) +
                     " are copied out, " + human_bytes(bytes_in) + " back";
  if (kept > 0)
    text += "; the last " + std::to_string(kept) + " (" + human_bytes(kept_bytes) + ")" +
            (kept == 1 ? " stays: only a later copy frees its buffer" : " stay: only later copies free their buffers");
  return text + end;
}

MemoryPlan transfer_plan(const TraceEdit& edit, const OffloadSettings& settings, const Dataflow& flow,
                         const std::vector<TransferSchedule>& schedules, bool keep_last, const SavedStorages* saved) {
  ScheduledTransfers summary;
  return TransferPlanner(edit, settings, flow, schedules, keep_last, saved).run(summary);
}

ScheduledTransfers insert_transfers(TraceEdit& edit, const Pricer& pricer, const OffloadSettings& settings,
                                    const Dataflow& flow, const std::vector<TransferSchedule>& schedules,
                                    bool keep_last, const SavedStorages* saved) {
  ScheduledTransfers summary;
  summary.plan = TransferPlanner(edit, settings, flow, schedules, keep_last, saved).run(summary);
  const WrittenPlan written = write_plan(summary.plan, flow, pricer, edit);
  summary.bytes_out = written.bytes_out;
  summary.bytes_in = written.bytes_in;
  return summary;
}

}  // namespace memwall
