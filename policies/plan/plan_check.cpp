#include "policies/plan/plan_check.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "policies/plan/hand_over_points.h"
#include "policies/plan/plan_numbers.h"
#include "policies/trace/described.h"
#include "policies/trace/parameter_gathers.h"

namespace memwall {
namespace {

class PlanCheck {
 public:
  PlanCheck(const MemoryPlan& plan, const Trace& trace, const Dataflow& flow)
      : plan_(plan), t_(trace), flow_(flow), gathers_(trace, flow) {}

  std::vector<std::string> run() {
    gather();
    for (std::size_t e = 0; e < events_.size(); ++e) {
      play(e);
      if (problems_.size() >= kMostProblems) return problems_;
    }
    for (std::size_t j = 0; j < states_.size(); ++j) check_end(j);
    return problems_;
  }

 private:
  // What happens to planned storages, in the order of the host program. Uses by an op stand between what is planned
  // before it and after it.
  struct Event {
    enum class Kind : std::uint8_t { copy, drop, update, fetch, rerun, use, gone };
    OpId op = 0;
    int place = 0;  // 0 before the op, 1 the op itself, 2 after it
    std::uint32_t order = 0;
    Kind kind = Kind::use;
    std::size_t decision = 0, index = 0;  // rerun: index alone
    auto key() const { return std::tuple(op, place, order, kind, decision, index); }
  };
  struct State {
    bool present = false;
    std::uint32_t version = 0;                  // of the content in device memory
    std::map<std::uint8_t, std::uint32_t> far;  // by tier: the version of the copy there
    bool unwritten = false;                     // allocated again, and nothing has been written yet
  };
  // What a re-run starts from, with the op that reads it, and what it makes whose content is the newest then.
  struct Rerun {
    std::vector<std::pair<OpId, Use>> inputs;
    std::set<StorageId> made;
  };
  // Something that decides whether a storage that a re-run makes is kept.
  struct Happening {
    std::size_t event = 0;
    bool use = false;
  };

  std::string describe_op(OpId id) const { return described_op(t_, id); }
  std::string describe(StorageId id) const { return described_storage(t_, id); }
  std::string tier_name(std::uint8_t tier) const { return plan_.tiers[tier].tier; }
  void problem(std::string sentence) { problems_.push_back(std::move(sentence)); }

  // --- the plan, played

  void gather() {
    decision_of_.assign(t_.storages.size(), kNone);
    states_.resize(plan_.storages.size());
    for (std::size_t j = 0; j < plan_.storages.size(); ++j) {
      const StorageDecision& d = plan_.storages[j];
      decision_of_[d.storage] = j;
      states_[j].present = d.home == StorageDecision::kDevice;
      if (!states_[j].present) states_[j].far[d.home] = 0;
      if (d.held != StorageDecision::kDevice) states_[j].far[d.held] = 0;
      add(d.copies, Event::Kind::copy, j);
      add(d.drops, Event::Kind::drop, j);
      add(d.fetches, Event::Kind::fetch, j);
      for (std::size_t i = 0; i < d.updates.size(); ++i)
        events_.push_back({d.updates[i].op, 2, 0, Event::Kind::update, j, i});
      const std::span<const Touch> touches = flow_.touches(d.storage);
      for (std::size_t i = 0; i < touches.size(); ++i) events_.push_back({touches[i].op, 1, 0, Event::Kind::use, j, i});
      if (flow_.free(d.storage) != kNoOp) events_.push_back({flow_.free(d.storage), 1, 0, Event::Kind::gone, j, 0});
    }
    for (std::size_t r = 0; r < plan_.reruns.size(); ++r) {
      const PlanPoint& at = plan_.reruns[r].at;
      events_.push_back({at.op, at.after ? 2 : 0, at.order, Event::Kind::rerun, 0, r});
      gather_rerun(plan_.reruns[r]);
    }
    std::sort(events_.begin(), events_.end(), [](const Event& a, const Event& b) { return a.key() < b.key(); });
    gone_.assign(plan_.storages.size(), false);
    gather_happenings();
  }

  void gather_rerun(const PlannedRerun& rerun) {
    Rerun& touched = reruns_.emplace_back();
    const OpId behind = rerun.at.op + (rerun.at.after ? 1 : 0);
    for (const OpId id : rerun.ops)
      for (const Use& use : t_.uses_of(t_.ops[id])) {
        const OpId writer = flow_.writer(use.storage, use.version);
        if (use.access == Access::write) {
          if (use.version == flow_.version_before(use.storage, behind)) touched.made.insert(use.storage);
        } else if (writer == kNoOp || !std::binary_search(rerun.ops.begin(), rerun.ops.end(), writer)) {
          touched.inputs.emplace_back(id, use);
        }
      }
  }

  void gather_happenings() {
    happenings_.resize(plan_.storages.size());
    for (std::size_t e = 0; e < events_.size(); ++e) {
      const Event& event = events_[e];
      if (event.kind == Event::Kind::copy || event.kind == Event::Kind::update) continue;
      if (event.kind != Event::Kind::rerun) {
        happenings_[event.decision].push_back({e, event.kind == Event::Kind::use});
        continue;
      }
      for (const auto& [id, use] : reruns_[event.index].inputs)
        if (const StorageId read = read_by(plan_.reruns[event.index], use); decision_of_[read] != kNone)
          happenings_[decision_of_[read]].push_back({e, true});
      for (const StorageId storage : reruns_[event.index].made)
        if (decision_of_[storage] != kNone) happenings_[decision_of_[storage]].push_back({e, false});
    }
  }

  // Is a use the next that happens to it behind the event?
  bool is_used_next(std::size_t j, std::size_t e) const {
    const std::vector<Happening>& all = happenings_[j];
    const auto next = std::upper_bound(all.begin(), all.end(), e,
                                       [](std::size_t event, const Happening& h) { return event < h.event; });
    return next != all.end() && next->use;
  }

  template <typename Item>
  void add(const std::vector<Item>& items, Event::Kind kind, std::size_t j) {
    for (std::size_t i = 0; i < items.size(); ++i)
      events_.push_back({items[i].at.op, items[i].at.after ? 2 : 0, items[i].at.order, kind, j, i});
  }

  void play(std::size_t e) {
    const Event& event = events_[e];
    if (event.kind == Event::Kind::rerun) return rerun(e);
    const StorageDecision& d = plan_.storages[event.decision];
    State& s = states_[event.decision];
    switch (event.kind) {
      case Event::Kind::copy:
        if (!lives(event, d))
          return problem(
              fmt::format("{} is copied at {}, where it does not live.", describe(d.storage), describe_op(event.op)));
        if (!s.present || s.unwritten)
          return problem(fmt::format("{} is copied at {}, where it is not in device memory.", describe(d.storage),
                                     describe_op(event.op)));
        if (s.version == 0 && !t_.storages[d.storage].preexisting)
          return problem(fmt::format("{} is copied at {}, before anything is written to it.", describe(d.storage),
                                     describe_op(event.op)));
        s.far[d.copies[event.index].tier] = s.version;
        return;
      case Event::Kind::drop:
        if (!s.present || !is_allocated(event, d))
          return problem(fmt::format("{} is dropped at {}, where it is not in device memory.", describe(d.storage),
                                     describe_op(event.op)));
        s.present = false;
        return;
      case Event::Kind::update:
        if (d.home != StorageDecision::kDevice)
          s.far[d.home] = flow_.version_before(d.storage, d.updates[event.index].op + 1);
        return;
      case Event::Kind::fetch:
        return fetch(event, d, s);
      case Event::Kind::use:
        return use(flow_.touches(d.storage)[event.index], d, s);
      case Event::Kind::gone:
        gone_[event.decision] = true;
        s.present = false;
        return;
      case Event::Kind::rerun:
        return;
    }
  }

  bool lives(const Event& event, const StorageDecision& d) const {
    return !gone_[event.decision] && is_allocated(event, d);
  }

  bool is_allocated(const Event& event, const StorageDecision& d) const {
    const OpId alloc = flow_.alloc(d.storage);
    return alloc == kNoOp || alloc < event.op || (alloc == event.op && event.place == 2);
  }

  void fetch(const Event& event, const StorageDecision& d, State& s) {
    const std::uint8_t tier = d.fetches[event.index].tier;
    if (s.present)
      return problem(fmt::format("{} is fetched at {}, where it is in device memory already.", describe(d.storage),
                                 describe_op(event.op)));
    if (!lives(event, d))
      return problem(
          fmt::format("{} is fetched at {}, where it does not live.", describe(d.storage), describe_op(event.op)));
    s.present = true;
    s.unwritten = tier == PlannedFetch::kNoTier;
    if (s.unwritten) return;
    const auto copy = s.far.find(tier);
    const std::uint32_t wanted = version_at(d.storage, event);
    if (copy == s.far.end() || copy->second != wanted)
      return problem(fmt::format("{} is fetched from {} at {}, which does not have its newest content.",
                                 describe(d.storage), tier_name(tier), describe_op(event.op)));
    s.version = copy->second;
  }

  // The newest content that ops before the event have made.
  std::uint32_t version_at(StorageId storage, const Event& event) const {
    return flow_.version_before(storage, event.place == 0 ? event.op : event.op + 1);
  }

  void use(const Touch& touch, const StorageDecision& d, State& s) {
    if (!s.present)
      return problem(
          fmt::format("{} uses {}, which the plan has dropped.", describe_op(touch.op), describe(d.storage)));
    if (touch.reads && s.unwritten)
      return problem(
          fmt::format("{} reads {}, which was only allocated again.", describe_op(touch.op), describe(d.storage)));
    if (!touch.writes) return;
    s.version = flow_.version_before(d.storage, touch.op + 1);
    s.unwritten = false;
  }

  void rerun(std::size_t e) {
    const PlannedRerun& rerun = plan_.reruns[events_[e].index];
    const Rerun& touched = reruns_[events_[e].index];
    for (const auto& [id, use] : touched.inputs) check_input(events_[e], rerun, id, use);
    for (const StorageId storage : touched.made) {
      const std::size_t j = decision_of_[storage];
      if (j != kNone && t_.storages[storage].preexisting)
        problem(fmt::format("The re-run at {} writes {} a second time, which the plan moves.", describe_op(rerun.at.op),
                            describe(storage)));
      if (j == kNone || states_[j].present || !is_used_next(j, e)) continue;
      states_[j].present = true;
      states_[j].unwritten = false;
      states_[j].version = version_at(storage, events_[e]);
    }
  }

  // Gathered parameters: what stands in for them.
  StorageId read_by(const PlannedRerun& rerun, const Use& use) const {
    return gathers_.read_at(use.storage, rerun.at.op + (rerun.at.after ? 1 : 0));
  }

  void check_input(const Event& event, const PlannedRerun& rerun, OpId id, const Use& use) {
    const StorageId read = read_by(rerun, use);
    const bool is_other = read != use.storage;
    const std::string head =
        fmt::format("The re-run at {} of {} reads {}", describe_op(rerun.at.op), describe_op(id), describe(read));
    if (is_other && !gathers_.lives(read, rerun.at.op + (rerun.at.after ? 1 : 0))) {  // that is gathered earlier
      for (const Use& slice : t_.uses_of(t_.ops[gathers_.gather_of(read)]))
        if (decision_of_[slice.storage] != kNone && !states_[decision_of_[slice.storage]].present &&
            slice.access == Access::read)
          return problem(head + ", of which " + describe(slice.storage) + " is not in device memory then.");
      return;
    }
    const std::size_t j = decision_of_[read];
    if (j != kNone && !states_[j].present) return problem(head + ", which is not in device memory then.");
    if (j != kNone && states_[j].unwritten) return problem(head + ", which was only allocated again.");
    if (is_other) return;
    // Running statistics: on top of what is there.
    const bool updates_itself = t_.storages[use.storage].preexisting && writes(id, use.storage);
    if (!updates_itself && version_at(use.storage, event) != use.version)
      return problem(head + ", which is overwritten before.");
  }

  bool writes(OpId id, StorageId storage) const {
    const auto uses = t_.uses_of(t_.ops[id]);
    return std::any_of(uses.begin(), uses.end(),
                       [&](const Use& u) { return u.storage == storage && u.access == Access::write; });
  }

  // What lives on behind the trace must be where the next step expects it.
  void check_end(std::size_t j) {
    const StorageDecision& d = plan_.storages[j];
    const State& s = states_[j];
    if (gone_[j] && s.present)
      problem(describe(d.storage) + " is made again behind the program's free of it, and never dropped.");
    if (flow_.free(d.storage) != kNoOp) return;
    const std::uint32_t newest = static_cast<std::uint32_t>(flow_.writers(d.storage).size());
    if (d.home == StorageDecision::kDevice && !s.present)
      return problem(describe(d.storage) + " is not in device memory at the end, where the next step expects it.");
    const std::uint8_t tier = d.home == StorageDecision::kDevice ? d.held : d.home;
    if (tier == StorageDecision::kDevice) return;
    // Sums that begin at zero: the next step writes all of it before it reads any.
    const auto touches = flow_.touches(d.storage);
    if (tier == d.home && !touches.empty() && !touches.front().reads) return;
    const auto copy = s.far.find(tier);
    if (d.updates.empty() && (copy == s.far.end() || copy->second != newest))
      problem(
          fmt::format("{} does not have its newest content in {} at the end.", describe(d.storage), tier_name(tier)));
  }

  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  const MemoryPlan& plan_;
  const Trace& t_;
  const Dataflow& flow_;
  const ParameterGathers gathers_;
  std::vector<Event> events_;
  std::vector<Rerun> reruns_;                       // as MemoryPlan::reruns
  std::vector<std::vector<Happening>> happenings_;  // by decision, ascending
  std::vector<State> states_;             // by decision
  std::vector<bool> gone_;                // by decision: the program has freed it
  std::vector<std::size_t> decision_of_;  // by storage
  std::vector<std::string> problems_;
};

}  // namespace

std::vector<std::string> check_plan(const MemoryPlan& plan, const Trace& trace, const Dataflow& flow) {
  const MemoryPlan placed = behind_hand_overs(plan, trace);
  std::vector<std::string> problems = problems_of_numbers(placed, trace, flow);
  return problems.empty() ? PlanCheck(placed, trace, flow).run() : problems;
}

}  // namespace memwall
