#include "policies/offload/offload_journey.h"

#include <algorithm>
#include <cassert>
#include <cstdio>
#include <deque>
#include <set>
#include <tuple>

namespace memwall {
namespace {

constexpr std::uint32_t kNone = Ferry::kNone;

// What has to happen at a spot; in this order where spots are equal.
struct Action {
  enum class Kind : std::uint8_t { leave, refresh, fetch, arrive };
  Spot spot;
  Kind kind = Kind::leave;
  std::uint32_t journey = 0, visit = 0;  // refresh: index of the refresh
  std::uint16_t stream = 0;              // arrive: who waits

  auto key() const { return std::tuple(spot.op, spot.after, kind, journey, visit, stream); }
};

class JourneyWriter {
 public:
  JourneyWriter(TraceEdit& edit, const Pricer& pricer, const OffloadSettings& settings,
                const std::vector<StorageHistory>& histories, const PhaseRuns& runs, std::vector<Journey> journeys,
                bool keep_last)
      : edit_(edit),
        settings_(settings),
        histories_(histories),
        runs_(runs),
        journeys_(std::move(journeys)),
        keep_last_(keep_last),
        states_(journeys_.size()),
        ferry_(edit, pricer, settings, largest()) {}

  JourneySummary run() {
    plan_departures();
    plan_returns();
    for (std::uint32_t j = 0; j < journeys_.size(); ++j)
      for (std::uint32_t i = 0; i < journeys_[j].refreshes.size(); ++i)
        actions_.push_back({{journeys_[j].refreshes[i].op, true}, Action::Kind::refresh, j, i, 0});
    std::sort(actions_.begin(), actions_.end(), [](const Action& a, const Action& b) { return a.key() < b.key(); });
    for (std::uint32_t j = 0; j < journeys_.size(); ++j) begin(j);
    for (const Action& action : actions_) perform(action);
    for (std::uint32_t j = 0; j < journeys_.size(); ++j) finish(j);
    return summary();
  }

 private:
  struct State {
    bool kept = false;
    StorageId device = kNoStorage;  // the present device storage, while one exists
    StorageId far = kNoStorage;
    bool far_valid = false;        // its content is the newest
    std::uint32_t landed = kNone;  // event of the last fetch
  };
  // Device memory that is given up once `events` have happened.
  struct Leaving {
    StorageId storage = kNoStorage;
    std::vector<std::uint32_t> events;
  };

  Bytes largest() const {
    Bytes bytes = 0;
    for (const Journey& j : journeys_) bytes = std::max(bytes, edit_.base().storages[j.storage].bytes);
    return bytes;
  }

  const std::vector<Touch>& touches(std::uint32_t j) const { return histories_[journeys_[j].storage].touches; }
  OpId first_op(std::uint32_t j, std::size_t v) const { return touches(j)[journeys_[j].visits[v].first].op; }
  OpId last_op(std::uint32_t j, std::size_t v) const { return touches(j)[journeys_[j].visits[v].last].op; }
  bool leaves_after(std::uint32_t j, std::size_t v) const {
    return journeys_[j].home != Home::device || v + 1 < journeys_[j].visits.size();
  }

  void plan_departures() {
    for (std::uint32_t j = 0; j < journeys_.size(); ++j)
      for (std::uint32_t v = 0; v < journeys_[j].visits.size(); ++v)
        if (leaves_after(j, v)) actions_.push_back({{last_op(j, v), true}, Action::Kind::leave, j, v, 0});
    std::sort(actions_.begin(), actions_.end(), [](const Action& a, const Action& b) { return a.key() < b.key(); });
    for (std::size_t i = 0; i < actions_.size(); ++i) {
      const std::uint32_t run = runs_.run_of[actions_[i].spot.op];
      const std::size_t ahead = i + settings_.buffers;  // whose departure completes this one's
      const bool in_flight = ahead >= actions_.size() || runs_.run_of[actions_[ahead].spot.op] != run;
      if (i + 1 == actions_.size() || runs_.run_of[actions_[i + 1].spot.op] != run)
        last_departure_.insert(actions_[i].key());
      if (in_flight && keep_last_) states_[actions_[i].journey].kept = true;
    }
  }

  bool has_return(std::uint32_t j, std::size_t v) const {
    return !states_[j].kept && (v > 0 || journeys_[j].home == Home::far);
  }

  // The ops that are first in their run to need one of the storages again, those that stayed included.
  std::set<OpId> consuming_units() const {
    std::set<OpId> units;
    for (std::uint32_t j = 0; j < journeys_.size(); ++j)
      for (std::uint32_t v = journeys_[j].home == Home::far ? 0 : 1; v < journeys_[j].visits.size(); ++v) {
        const Visit& visit = journeys_[j].visits[v];
        for (std::size_t i = visit.first; i <= visit.last; ++i)
          if (i == visit.first || runs_.run_of[touches(j)[i].op] != runs_.run_of[touches(j)[i - 1].op])
            units.insert(touches(j)[i].op);
      }
    return units;
  }

  // Each return is issued before the consuming unit that stands `prefetch` places before its own,
  // but not before its storage has left, nor (if made in this step) before its own run begins.
  void plan_returns() {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> returns;
    for (std::uint32_t j = 0; j < journeys_.size(); ++j)
      for (std::uint32_t v = 0; v < journeys_[j].visits.size(); ++v)
        if (has_return(j, v)) returns.emplace_back(j, v);
    const std::set<OpId> units = consuming_units();
    const std::vector<OpId> order(units.begin(), units.end());
    for (const auto& [j, v] : returns) {
      const OpId needed = first_op(j, v);
      const auto unit = static_cast<std::size_t>(std::lower_bound(order.begin(), order.end(), needed) - order.begin());
      const OpId run_begin = entry(runs_.runs[runs_.run_of[needed]]);
      Spot spot{unit >= settings_.prefetch ? order[unit - settings_.prefetch] : run_begin, false};
      if (journeys_[j].home == Home::device && spot.op < run_begin) spot.op = run_begin;
      spot = clamp(spot, j, v, needed);
      actions_.push_back({spot, Action::Kind::fetch, j, v, 0});
      plan_arrivals(j, v, spot);
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
  Spot clamp(Spot spot, std::uint32_t j, std::uint32_t v, OpId needed) const {
    const auto later = [&](Spot bound) {
      if (std::tuple(spot.op, spot.after) < std::tuple(bound.op, bound.after)) spot = bound;
    };
    if (v > 0) {
      later({last_op(j, v - 1), true});
      const std::vector<Touch>& all = touches(j);
      for (std::size_t i = journeys_[j].visits[v - 1].last + 1; i < journeys_[j].visits[v].first; ++i)
        later({all[i].op, true});
    } else {
      for (std::size_t i = 0; i < journeys_[j].visits[0].first; ++i) later({touches(j)[i].op, true});
      if (histories_[journeys_[j].storage].alloc != kNoOp) later({histories_[journeys_[j].storage].alloc, true});
    }
    if (spot.op > needed || (spot.op == needed && spot.after)) spot = {needed, false};
    return spot;
  }

  void plan_arrivals(std::uint32_t j, std::uint32_t v, Spot fetched) {
    std::set<std::uint16_t> seen;
    const Visit& visit = journeys_[j].visits[v];
    for (std::size_t i = visit.first; i <= visit.last; ++i) {
      const Op& op = edit_.base().ops[touches(j)[i].op];
      if (edit_.removed(touches(j)[i].op) || !runs_on_device(op.kind) || !seen.insert(op.stream).second) continue;
      Spot spot{touches(j)[i].op, false};
      if (spot.op < fetched.op) spot = fetched;
      actions_.push_back({spot, Action::Kind::arrive, j, v, op.stream});
    }
  }

  void begin(std::uint32_t j) {
    State& s = states_[j];
    const StorageId storage = journeys_[j].storage;
    if (journeys_[j].home == Home::far) {
      ferry_.settle(storage);
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
        ferry_.settle_from_stage(action.spot, journeys_[action.journey].refreshes[action.visit].host,
                                 journeys_[action.journey].storage);
        break;
    }
  }

  void fetch(const Action& action) {
    State& s = states_[action.journey];
    const Journey& journey = journeys_[action.journey];
    const Visit& visit = journey.visits[action.visit];
    s.device = device_twin(journey.storage);
    edit_.alloc(action.spot, s.device);
    s.landed = visit.fresh ? kNone : ferry_.fetch(action.spot, s.far, s.device);
    for (std::size_t i = visit.first; i <= visit.last; ++i)
      edit_.repoint(touches(action.journey)[i].op, journey.storage, s.device);
  }

  StorageId device_twin(StorageId model) {
    const Storage like = edit_.base().storages[model];
    const StorageId twin = edit_.builder().add_storage(like.bytes, like.kind, edit_.base().places[like.place], "");
    edit_.tables().storages[twin].label = like.label;
    edit_.tables().storages[twin].stream = like.stream;
    return twin;
  }

  void arrive(const Action& action) {
    const State& s = states_[action.journey];
    if (s.landed != kNone && action.stream != ferry_.in_stream(s.device))
      edit_.wait(action.spot, s.landed, action.stream);
  }

  std::vector<std::uint16_t> users(std::uint32_t j, std::uint32_t v) const {
    std::set<std::uint16_t> streams;
    const Visit& visit = journeys_[j].visits[v];
    for (std::size_t i = visit.first; i <= visit.last; ++i) {
      const OpId id = touches(j)[i].op;
      if (runs_on_device(edit_.base().ops[id].kind) && !edit_.removed(id)) streams.insert(edit_.base().ops[id].stream);
    }
    return {streams.begin(), streams.end()};
  }

  bool writes(std::uint32_t j, std::uint32_t v) const {
    const Visit& visit = journeys_[j].visits[v];
    for (std::size_t i = visit.first; i <= visit.last; ++i)
      if (touches(j)[i].writes && !edit_.removed(touches(j)[i].op)) return true;
    return false;
  }

  // Is the content wanted after the visit?
  bool wanted(std::uint32_t j, std::uint32_t v) const {
    const Journey& journey = journeys_[j];
    if (v + 1 < journey.visits.size()) return !journey.visits[v + 1].fresh;
    return journey.home == Home::far;
  }

  void leave(const Action& action) {
    State& s = states_[action.journey];
    if (s.kept) {
      leaving_.push_back({});
    } else {
      depart(action, s);
    }
    while (leaving_.size() > settings_.buffers) give_up(action.spot);
    if (!keep_last_ && last_departure_.contains(action.key()))
      while (!leaving_.empty()) give_up(action.spot);
  }

  void depart(const Action& action, State& s) {
    const std::vector<std::uint16_t> streams = users(action.journey, action.visit);
    const std::uint16_t pool = edit_.tables().storages[s.device].stream;
    if (writes(action.journey, action.visit)) s.far_valid = false;
    Leaving leaving{s.device, {}};
    if (wanted(action.journey, action.visit) && !s.far_valid) {
      if (s.far == kNoStorage) {
        s.far = ferry_.far_twin(journeys_[action.journey].storage, false);
        edit_.alloc(action.spot, s.far);
      }
      const std::uint32_t left = ferry_.send(action.spot, s.device, s.far, streams);
      if (ferry_.out_stream(s.device) != pool) leaving.events.push_back(left);
      s.far_valid = true;
    } else {
      for (const std::uint16_t stream : streams)
        if (stream != pool) leaving.events.push_back(edit_.record(action.spot, stream));
    }
    s.device = kNoStorage;
    if (leaving.events.empty())
      return edit_.free(action.spot, leaving.storage);  // reusable at once, in its pool's order
    leaving_.push_back(std::move(leaving));
  }

  void give_up(Spot spot) {
    const Leaving oldest = std::move(leaving_.front());
    leaving_.pop_front();
    if (oldest.storage == kNoStorage) return;
    for (const std::uint32_t event : oldest.events)
      edit_.wait(spot, event, edit_.tables().storages[oldest.storage].stream);
    edit_.free(spot, oldest.storage);
  }

  // What the base trace frees at the end of the journey.
  void finish(std::uint32_t j) {
    const State& s = states_[j];
    const Journey& journey = journeys_[j];
    if (s.kept || journey.home == Home::far) return;
    const OpId freed = histories_[journey.storage].free;
    const Spot end{freed != kNoOp ? freed : touches(j).back().op, true};
    if (journey.home == Home::gone) {
      if (freed != kNoOp) edit_.remove(freed);
    } else if (freed != kNoOp && s.device != journey.storage) {
      edit_.repoint(freed, journey.storage, s.device);
    }
    if (s.far != kNoStorage) edit_.free(end, s.far);
  }

  JourneySummary summary() const {
    JourneySummary result;
    for (std::uint32_t j = 0; j < journeys_.size(); ++j) {
      const Bytes bytes = edit_.base().storages[journeys_[j].storage].bytes;
      (states_[j].kept ? result.kept : result.storages) += 1;
      (states_[j].kept ? result.kept_bytes : result.bytes) += bytes;
    }
    result.bytes_out = ferry_.bytes_out();
    result.bytes_in = ferry_.bytes_in();
    return result;
  }

  TraceEdit& edit_;
  const OffloadSettings& settings_;
  const std::vector<StorageHistory>& histories_;
  const PhaseRuns& runs_;
  std::vector<Journey> journeys_;
  bool keep_last_;
  std::vector<State> states_;
  Ferry ferry_;
  std::vector<Action> actions_;
  std::set<std::tuple<OpId, bool, Action::Kind, std::uint32_t, std::uint32_t, std::uint16_t>> last_departure_;
  std::deque<Leaving> leaving_;
};

std::string megabytes(Bytes bytes) {
  char text[40];
  std::snprintf(text, sizeof text, "%.1f MB", static_cast<double>(bytes) / 1e6);
  return text;
}

}  // namespace

std::string JourneySummary::sentence(const std::string& what, const std::string& to) const {
  std::string text = "offload: " + std::to_string(storages) + " " + what + " of " + megabytes(bytes) + " go to " + to +
                     "; " + megabytes(bytes_out) + " are copied out, " + megabytes(bytes_in) + " back";
  if (kept > 0)
    text += "; the last " + std::to_string(kept) + " (" + megabytes(kept_bytes) +
            ") stay, as they would still be in flight when backward begins";
  return text + ".";
}

JourneySummary offload_journeys(TraceEdit& edit, const Pricer& pricer, const OffloadSettings& settings,
                                const std::vector<StorageHistory>& histories, const PhaseRuns& runs,
                                std::vector<Journey> journeys, bool keep_last) {
  return JourneyWriter(edit, pricer, settings, histories, runs, std::move(journeys), keep_last).run();
}

}  // namespace memwall
