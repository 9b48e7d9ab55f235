#include "policies/recompute/recompute_notes.h"

#include <set>

#include <fmt/format.h>

#include "sim/human_text.h"

namespace memwall {
namespace {

constexpr std::size_t kMostNamed = 5;

// Units one by one: those that are left as they were, and those that were joined.
class UnitNotes {
 public:
  UnitNotes(const std::string& policy, std::vector<std::string>& notes) : begin_(policy + ": "), notes_(notes) {}

  void add(const UnitPlan& unit) {
    if (!unit.refusal.empty() && ++refused_ <= kMostNamed)
      notes_.push_back(begin_ + "unit " + unit.name + " is left as it was: " + unit.refusal + ".");
    if (!unit.joined.empty() && ++joined_ <= kMostNamed)
      notes_.push_back(begin_ + unit.name + " is one unit: " + unit.joined +
                       ", and PyTorch refuses to recompute them apart.");
  }

  void finish() {
    if (refused_ > kMostNamed)
      notes_.push_back(begin_ + "left as they were, too: " + counted_text(refused_ - kMostNamed, "further unit") + ".");
    if (joined_ > kMostNamed)
      notes_.push_back(begin_ + "joined for the same reason: " + counted_text(joined_ - kMostNamed, "further unit") +
                       ".");
  }

 private:
  std::string begin_;
  std::vector<std::string>& notes_;
  std::size_t refused_ = 0, joined_ = 0;
};

struct PlanSums {
  Bytes dropped = 0, kept = 0, remade = 0;
  Duration again{};
  std::size_t ops = 0, called = 0, idle = 0, unknown = 0, compiled = 0;
  std::set<std::string> random, statistics;
};

PlanSums sums_of(const Trace& trace, const RecomputePlan& plan) {
  PlanSums sums;
  for (const UnitPlan& unit : plan.units) {
    sums.dropped += unit.dropped_bytes;
    sums.kept += unit.kept_bytes;
    sums.remade += unit.remade_bytes;
    sums.ops += unit.rerun.size();
    sums.called += unit.kept_results;
    sums.idle += unit.dropped.empty() && unit.remade.empty() && unit.refusal.empty() ? 1 : 0;
    if (!unit.as_framework && !unit.rerun.empty()) ++(unit.compiled ? sums.compiled : sums.unknown);
    for (const OpId id : unit.rerun) sums.again += trace.ops[id].duration;
    sums.random.insert(unit.random.begin(), unit.random.end());
    sums.statistics.insert(unit.statistics.begin(), unit.statistics.end());
  }
  return sums;
}

void add_counts(const std::string& policy, const PlanSums& sums, std::vector<std::string>& notes) {
  if (sums.called > 0)
    notes.push_back(fmt::format("{}: the results of {} are kept; the host calls {} again, the device does nothing.",
                                policy, counted_text(sums.called, "op"), by_number(sums.called, "it", "them")));
  if (sums.remade > 0)
    notes.push_back(
        fmt::format("{}: {} of results that units hand on are made a second time, since the units keep them "
                    "for their own backward, too.",
                    policy, human_bytes(sums.remade)));
  if (sums.idle > 0)
    notes.push_back(policy + ": " + counted_text(sums.idle, "unit") + by_number(sums.idle, " has", " have") +
                    " nothing to drop and" + by_number(sums.idle, " is", " are") + " not re-run.");
}

void add_side_effects(const std::string& policy, const PlanSums& sums, std::vector<std::string>& notes) {
  for (const std::string& name : sums.random)
    notes.push_back(policy + ": " + name +
                    " draws random numbers; the re-run draws the same, from a saved generator "
                    "state (preserve_rng_state), whose saving is not charged.");
  for (const std::string& name : sums.statistics)
    notes.push_back(policy + ": " + name +
                    " updates what lives across steps (running statistics); the re-run updates it a second time, as "
                    "PyTorch does: gradients stay the same, what is evaluated with those statistics does not.");
}

// As the option is typed, in whole megabytes where it is more than one: "1B", "437MB".
std::string distance_text(Bytes distance) {
  constexpr Bytes kMB = 1'000'000;
  return distance <= kMB ? fmt::format("{}B", distance) : fmt::format("{}MB", (distance + kMB - 1) / kMB);
}

// Where a re-run starts from parameters that sharding has given back.
void add_gathers(const std::string& policy, const Trace& trace, const RecomputePlan& plan,
                 std::vector<std::string>& notes) {
  Bytes sent = 0, avoidable = 0, distance = 0;
  std::size_t gathers = 0;
  for (const UnitPlan& unit : plan.units)
    for (const RepeatedGather& repeated : unit.gathers) {
      ++gathers;
      sent += trace.ops[repeated.gather].bytes;
      if (repeated.distance > 0) avoidable += trace.ops[repeated.gather].bytes;
      distance = std::max(distance, repeated.distance);
    }
  if (gathers == 0) return;
  std::string note = fmt::format("{}: {} of parameters for re-runs, {} sent per rank besides those for backward",
                                 policy, counted_text(gathers, "gather"), human_bytes(sent));
  if (avoidable > 0)
    note += fmt::format("; with zero's reuse_distance={} backward finds what the re-run has gathered: {} fewer",
                        distance_text(distance), human_bytes(avoidable));
  notes.push_back(note + ".");
}

}  // namespace

std::string compiled_units(std::size_t count) {
  return fmt::format(
      "{} {} compiled: computed again is what backward needs, as torch.compile's partitioner finds it, not whole "
      "units.",
      counted_text(count, "unit"), by_number(count, "is", "are"));
}

std::vector<std::string> recompute_notes(const UnitChoice& choice, const RecomputeRules& rules, const Trace& trace,
                                         const RecomputePlan& plan, std::size_t forwards) {
  const std::string& policy = choice.policy;
  std::vector<std::string> notes;
  UnitNotes units(policy, notes);
  for (const UnitPlan& unit : plan.units) units.add(unit);
  units.finish();
  const PlanSums sums = sums_of(trace, plan);
  notes.push_back(fmt::format(
      "{}: mode={}, {} ({}), {} dropped in forward, {} kept longer to start from, {} of {} computed again{}.", policy,
      choice.mode, counted_text(plan.units.size(), "unit"),
      plan.units.size() == 1 ? plan.units.front().name : plan.units.front().name + " to " + plan.units.back().name,
      human_bytes(sums.dropped), human_bytes(sums.kept), counted_text(sums.ops, "op"), human_time(sums.again),
      forwards > 1 ? "; all of " + std::to_string(forwards) + " forwards together" : ""));
  add_gathers(policy, trace, plan, notes);
  add_counts(policy, sums, notes);
  if (rules.as_framework && sums.unknown > 0)
    notes.push_back(fmt::format(
        "{}: of {} the trace does not say what autograd keeps: computed again is {}. PyTorch repeats a unit from its "
        "beginning to the last tensor that it keeps, which may be more.",
        policy, counted_text(sums.unknown, "unit"),
        rules.kept_results.empty() && sums.called == 0 ? "what backward reads, and what that needs"
                                                       : "all up to the last result that backward reads"));
  if (sums.compiled > 0) notes.push_back(policy + ": " + compiled_units(sums.compiled));
  add_side_effects(policy, sums, notes);
  return notes;
}

}  // namespace memwall
