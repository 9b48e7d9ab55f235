#include "policies/offload/offload_transfer_schedule.h"

#include <algorithm>
#include <cassert>
#include <deque>
#include <set>
#include <tuple>

#include "sim/human_text.h"

namespace memwall {
namespace {

constexpr std::uint32_t kNone = StagingCopies::kNone;

// What has to happen at a point; in this order where spots are equal.
struct Action {
  enum class Kind : std::uint8_t { leave, refresh, fetch, arrive };
  InsertionPoint point;
  Kind kind = Kind::leave;
  std::uint32_t schedule = 0, interval = 0;  // refresh: index of the refresh
  std::uint16_t stream = 0;                  // arrive: who waits

  auto key() const { return std::tuple(point.op, point.after, kind, schedule, interval, stream); }
};

class TransferScheduler {
 public:
  TransferScheduler(TraceEdit& edit, const Pricer& pricer, const OffloadSettings& settings, const Dataflow& flow,
                    std::vector<TransferSchedule> schedules, bool keep_last)
      : edit_(edit),
        settings_(settings),
        flow_(flow),
        schedules_(std::move(schedules)),
        keep_last_(keep_last),
        states_(schedules_.size()),
        staging_copies_(edit, pricer, settings, largest()) {}

  ScheduledTransfers run() {
    plan_offloads();
    plan_fetches();
    for (std::uint32_t j = 0; j < schedules_.size(); ++j)
      for (std::uint32_t i = 0; i < schedules_[j].refreshes.size(); ++i)
        actions_.push_back({{schedules_[j].refreshes[i].op, true}, Action::Kind::refresh, j, i, 0});
    std::sort(actions_.begin(), actions_.end(), [](const Action& a, const Action& b) { return a.key() < b.key(); });
    for (std::uint32_t j = 0; j < schedules_.size(); ++j) begin(j);
    for (const Action& action : actions_) perform(action);
    for (std::uint32_t j = 0; j < schedules_.size(); ++j) finish(j);
    return summary();
  }

 private:
  struct State {
    bool kept = false;
    StorageId device = kNoStorage;  // the present device storage, while one exists
    StorageId far = kNoStorage;
    bool far_valid = false;            // its content is the newest
    std::uint32_t fetch_done = kNone;  // event of the last fetch
  };
  // Device memory that is given up once `events` have happened.
  struct PendingFree {
    StorageId storage = kNoStorage;
    std::vector<std::uint32_t> events;
  };

  Bytes largest() const {
    Bytes bytes = 0;
    for (const TransferSchedule& j : schedules_) bytes = std::max(bytes, edit_.base().storages[j.storage].bytes);
    return bytes;
  }

  std::span<const Touch> touches(std::uint32_t j) const { return flow_.touches(schedules_[j].storage); }
  OpId first_op(std::uint32_t j, std::size_t v) const { return touches(j)[schedules_[j].intervals[v].first].op; }
  OpId last_op(std::uint32_t j, std::size_t v) const { return touches(j)[schedules_[j].intervals[v].last].op; }
  bool offloads_after(std::uint32_t j, std::size_t v) const {
    return schedules_[j].home != Home::device || v + 1 < schedules_[j].intervals.size();
  }

  void plan_offloads() {
    for (std::uint32_t j = 0; j < schedules_.size(); ++j)
      for (std::uint32_t v = 0; v < schedules_[j].intervals.size(); ++v)
        if (offloads_after(j, v)) actions_.push_back({{last_op(j, v), true}, Action::Kind::leave, j, v, 0});
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
            units.insert(touches(j)[i].op);
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
      const OpId needed = first_op(j, v);
      const auto unit = static_cast<std::size_t>(std::lower_bound(order.begin(), order.end(), needed) - order.begin());
      const OpId run_begin = entry(flow_.phases().run(needed));
      InsertionPoint point{unit >= settings_.prefetch ? order[unit - settings_.prefetch] : run_begin, false};
      if (schedules_[j].home == Home::device && point.op < run_begin) point.op = run_begin;
      point = clamp(point, j, v, needed);
      actions_.push_back({point, Action::Kind::fetch, j, v, 0});
      plan_waits(j, v, point);
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

  void plan_waits(std::uint32_t j, std::uint32_t v, InsertionPoint fetched) {
    std::set<std::uint16_t> seen;
    const ResidencyInterval& interval = schedules_[j].intervals[v];
    for (std::size_t i = interval.first; i <= interval.last; ++i) {
      const Op& op = edit_.base().ops[touches(j)[i].op];
      if (edit_.removed(touches(j)[i].op) || !runs_on_device(op.kind) || !seen.insert(op.stream).second) continue;
      InsertionPoint point{touches(j)[i].op, false};
      if (point.op < fetched.op) point = fetched;
      actions_.push_back({point, Action::Kind::arrive, j, v, op.stream});
    }
  }

  void begin(std::uint32_t j) {
    State& s = states_[j];
    const StorageId storage = schedules_[j].storage;
    if (schedules_[j].home == Home::far) {
      staging_copies_.move_to_far_tier(storage);
      s.far = storage;
      s.far_valid = true;
    } else {
      s.device = storage;
    }
  }

  void perform(const Action& action) {
    switch (action.kind) {
      case Action::Kind::fetch:
        fetch(action);
        break;
      case Action::Kind::arrive:
        arrive(action);
        break;
      case Action::Kind::leave:
        leave(action);
        break;
      case Action::Kind::refresh:
        staging_copies_.write_from_staging(action.point, schedules_[action.schedule].refreshes[action.interval].host,
                                           schedules_[action.schedule].storage);
        break;
    }
  }

  void fetch(const Action& action) {
    State& s = states_[action.schedule];
    const TransferSchedule& schedule = schedules_[action.schedule];
    const ResidencyInterval& interval = schedule.intervals[action.interval];
    s.device = new_device_storage(schedule.storage);
    edit_.alloc(action.point, s.device);
    s.fetch_done = interval.fresh ? kNone : staging_copies_.fetch(action.point, s.far, s.device);
    for (std::size_t i = interval.first; i <= interval.last; ++i)
      edit_.repoint(touches(action.schedule)[i].op, schedule.storage, s.device);
  }

  StorageId new_device_storage(StorageId model) {
    const Storage like = edit_.base().storages[model];
    const StorageId replica = edit_.builder().add_storage(like.bytes, like.kind, edit_.base().places[like.place], "");
    edit_.tables().storages[replica].label = like.label;
    edit_.tables().storages[replica].stream = like.stream;
    return replica;
  }

  void arrive(const Action& action) {
    const State& s = states_[action.schedule];
    if (s.fetch_done != kNone && action.stream != staging_copies_.in_stream(s.device))
      edit_.wait(action.point, s.fetch_done, action.stream);
  }

  std::vector<std::uint16_t> users(std::uint32_t j, std::uint32_t v) const {
    std::set<std::uint16_t> streams;
    const ResidencyInterval& interval = schedules_[j].intervals[v];
    for (std::size_t i = interval.first; i <= interval.last; ++i) {
      const OpId id = touches(j)[i].op;
      if (runs_on_device(edit_.base().ops[id].kind) && !edit_.removed(id)) streams.insert(edit_.base().ops[id].stream);
    }
    return {streams.begin(), streams.end()};
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

  void leave(const Action& action) {
    State& s = states_[action.schedule];
    if (s.kept) {
      pending_frees_.push_back({});
    } else {
      start_offload(action, s);
    }
    while (pending_frees_.size() > settings_.buffers) free_oldest_pending(action.point);
    if (!keep_last_ && last_offload_.contains(action.key()))
      while (!pending_frees_.empty()) free_oldest_pending(action.point);
  }

  void start_offload(const Action& action, State& s) {
    const std::vector<std::uint16_t> streams = users(action.schedule, action.interval);
    const std::uint16_t pool = edit_.tables().storages[s.device].stream;
    if (writes(action.schedule, action.interval)) s.far_valid = false;
    PendingFree pending_free{s.device, {}};
    if (wanted(action.schedule, action.interval) && !s.far_valid) {
      if (s.far == kNoStorage) {
        s.far = staging_copies_.new_far_storage(schedules_[action.schedule].storage, false);
        edit_.alloc(action.point, s.far);
      }
      const std::uint32_t left = staging_copies_.send(action.point, s.device, s.far, streams);
      if (staging_copies_.out_stream(s.device) != pool) pending_free.events.push_back(left);
      s.far_valid = true;
    } else {
      for (const std::uint16_t stream : streams)
        if (stream != pool) pending_free.events.push_back(edit_.record(action.point, stream));
    }
    s.device = kNoStorage;
    if (pending_free.events.empty())
      return edit_.free(action.point, pending_free.storage);  // reusable at once, in its pool's order
    pending_frees_.push_back(std::move(pending_free));
  }

  void free_oldest_pending(InsertionPoint point) {
    const PendingFree oldest = std::move(pending_frees_.front());
    pending_frees_.pop_front();
    if (oldest.storage == kNoStorage) return;
    for (const std::uint32_t event : oldest.events)
      edit_.wait(point, event, edit_.tables().storages[oldest.storage].stream);
    edit_.free(point, oldest.storage);
  }

  // What the base trace frees at the end of the schedule.
  void finish(std::uint32_t j) {
    const State& s = states_[j];
    const TransferSchedule& schedule = schedules_[j];
    if (s.kept || schedule.home == Home::far) return;
    const OpId freed = flow_.free(schedule.storage);
    const InsertionPoint end{freed != kNoOp ? freed : touches(j).back().op, true};
    if (schedule.home == Home::gone) {
      if (freed != kNoOp) edit_.remove(freed);
    } else if (freed != kNoOp && s.device != schedule.storage) {
      edit_.repoint(freed, schedule.storage, s.device);
    }
    if (s.far != kNoStorage) edit_.free(end, s.far);
  }

  ScheduledTransfers summary() const {
    ScheduledTransfers result;
    for (std::uint32_t j = 0; j < schedules_.size(); ++j) {
      const Bytes bytes = edit_.base().storages[schedules_[j].storage].bytes;
      (states_[j].kept ? result.kept : result.storages) += 1;
      (states_[j].kept ? result.kept_bytes : result.bytes) += bytes;
      result.sent_before += schedules_[j].home == Home::gone ? 1 : 0;
    }
    result.bytes_out = staging_copies_.bytes_out();
    result.bytes_in = staging_copies_.bytes_in();
    return result;
  }

  TraceEdit& edit_;
  const OffloadSettings& settings_;
  const Dataflow& flow_;
  std::vector<TransferSchedule> schedules_;
  bool keep_last_;
  std::vector<State> states_;
  StagingCopies staging_copies_;
  std::vector<Action> actions_;
  std::set<std::tuple<OpId, bool, Action::Kind, std::uint32_t, std::uint32_t, std::uint16_t>> last_offload_;
  std::deque<PendingFree> pending_frees_;
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
            (kept == 1 ? " stays, as it" : " stay, as they") + " would still be in flight when backward begins";
  return text + end;
}

ScheduledTransfers insert_transfers(TraceEdit& edit, const Pricer& pricer, const OffloadSettings& settings,
                                    const Dataflow& flow, std::vector<TransferSchedule> schedules, bool keep_last) {
  return TransferScheduler(edit, pricer, settings, flow, std::move(schedules), keep_last).run();
}

}  // namespace memwall
