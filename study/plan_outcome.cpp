#include "study/plan_outcome.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "policies/plan/plan_realization.h"
#include "sim/human_text.h"
#include "study/planned_step_facts.h"
#include "traces/plan/plan_document.h"
#include "traces/plan/plan_file.h"

namespace memwall {
namespace {

bool moves_between_tiers(const Op& op) {
  return (op.kind == OpKind::copy || op.kind == OpKind::storage_io) && op.added && op.from != op.to;
}

std::vector<ExpectedCopies> copies_of(const Trace& trace) {
  std::map<std::pair<std::uint8_t, std::uint8_t>, Bytes> bytes;
  for (const Op& op : trace.ops)
    if (moves_between_tiers(op)) bytes[{op.from, op.to}] += op.bytes;
  std::vector<ExpectedCopies> copies;
  for (const auto& [way, sum] : bytes) copies.push_back({trace.places[way.first], trace.places[way.second], sum});
  return copies;
}

Bytes bytes_between(const PlanExpectation& expected, const std::string& from, const std::string& to) {
  for (const ExpectedCopies& copies : expected.copies)
    if (copies.from == from && copies.to == to) return copies.bytes;
  return 0;
}

// "the most reserved is 6.2 GB instead of 6.0 GB (+3.3 %)"; nothing where they are equal.
void add_change(std::vector<std::string>& changes, const std::string& what, double expected, double here,
                const std::string& expected_text, const std::string& here_text) {
  if (expected == here) return;
  const double change = expected > 0 ? 100 * (here / expected - 1) : 0;
  changes.push_back(
      fmt::format("{} {} instead of {}{}", what, here_text, expected_text,
                  expected > 0 ? fmt::format(" ({:+.{}f} %)", change, std::abs(change) < 10 ? 1 : 0) : ""));
}

void add_bytes(std::vector<std::string>& changes, const std::string& what, Bytes expected, Bytes here) {
  const bool look_alike = human_bytes(expected) == human_bytes(here);
  const auto text = [&](Bytes bytes) { return look_alike ? fmt::format("{} B", bytes) : human_bytes(bytes); };
  add_change(changes, what, static_cast<double>(expected), static_cast<double>(here), text(expected), text(here));
}

void add_time(std::vector<std::string>& changes, const std::string& what, Duration expected, Duration here) {
  const bool look_alike = human_time(expected) == human_time(here);
  const auto text = [&](Duration time) { return look_alike ? fmt::format("{} ps", time.count()) : human_time(time); };
  add_change(changes, what, static_cast<double>(expected.count()), static_cast<double>(here.count()), text(expected),
             text(here));
}

std::vector<std::string> changes_of(const PlanExpectation& expected, const PlanExpectation& here) {
  std::vector<std::string> changes;
  if (expected.fits != here.fits) changes.emplace_back(here.fits ? "it fits" : "it does not fit");
  add_time(changes, "a step takes", expected.step_time, here.step_time);
  add_bytes(changes, "the peak is", expected.peak_requested, here.peak_requested);
  add_bytes(changes, "the most reserved is", expected.peak_reserved, here.peak_reserved);
  add_change(changes, "the ops run again are", static_cast<double>(expected.recomputed_ops),
             static_cast<double>(here.recomputed_ops), std::to_string(expected.recomputed_ops),
             std::to_string(here.recomputed_ops));
  add_time(changes, "the time run again is", expected.recompute_time, here.recompute_time);
  std::vector<ExpectedCopies> ways = expected.copies;
  for (const ExpectedCopies& copies : here.copies)
    if (bytes_between(expected, copies.from, copies.to) == 0) ways.push_back(copies);
  for (const ExpectedCopies& way : ways)
    add_bytes(changes, fmt::format("from {} to {} go", way.from, way.to), bytes_between(expected, way.from, way.to),
              bytes_between(here, way.from, way.to));
  return changes;
}

// Both, one after the other in forward's order of what they run again.
void add(const PlanRealization& later, PlanRealization& all) {
  std::uint64_t units = 0;
  for (const ModuleRecompute& recompute : all.recompute) units += recompute.units.size();
  for (NamedRerunOps again : later.runs_again) {
    if (again.unit) *again.unit += units;
    if (again.lazy) *again.lazy += all.lazy_operators.size();
    all.runs_again.push_back(std::move(again));
  }
  const auto append = [](const auto& from, auto& to) { to.insert(to.end(), from.begin(), from.end()); };
  append(later.recompute, all.recompute);
  append(later.lazy_operators, all.lazy_operators);
  append(later.offload, all.offload);
  append(later.homes, all.homes);
  append(later.unnamed, all.unnamed);
}

// Tiers that the realization of an earlier plan names, by their places among those of the last.
void name_tiers(const MemoryPlan& earlier, PlanRealization& names, std::vector<TransferStyle>& tiers) {
  const auto place = [&](std::uint8_t tier) {
    const auto found = std::find(tiers.begin(), tiers.end(), earlier.tiers[tier]);
    if (found != tiers.end()) return static_cast<std::uint8_t>(found - tiers.begin());
    tiers.push_back(earlier.tiers[tier]);
    return static_cast<std::uint8_t>(tiers.size() - 1);
  };
  for (NamedOffload& offload : names.offload) offload.tier = place(offload.tier);
  for (NamedHome& home : names.homes) home.tier = place(home.tier);
}

}  // namespace

PlanExpectation expectation_of(const Run& run) {
  PlanExpectation figures;
  figures.machine = machine_text(run.machine.name, run.changes.overrides);
  figures.allocator = run.allocator + (run.allocator_settings.empty() ? "" : " " + run.allocator_settings);
  figures.fits = run.result.fits;
  for (const MemoryBudget& budget : run.trace->budgets)
    figures.over_budget = std::max(figures.over_budget, budget.over);
  if (const int hbm = run.machine.tier("hbm"); hbm >= 0) {
    const TierResult& device = run.result.tiers[static_cast<std::size_t>(hbm)];
    figures.peak_requested = device.peak_usage.requested;
    figures.peak_reserved = device.peak_reserved;
  }
  figures.step_time = mean_step(run);
  const Trace& trace = run.trace;
  for (OpId id = 0; id < trace.ops.size(); ++id) {
    if (trace.ops[id].phase != Phase::recompute || !runs_on_device(trace.ops[id].kind)) continue;
    ++figures.recomputed_ops;
    figures.recompute_time += run.result.records[id].end - run.result.records[id].start;
  }
  figures.copies = copies_of(trace);
  return figures;
}

std::string plan_text(const PlannedStep& planned, const Run& run) {
  MemoryPlan plan = planned.plan;
  PlanRealization all;
  for (const EarlierPlan& earlier : planned.earlier) {
    PlanRealization names = realization_of(earlier.plan, earlier.trace, Dataflow(earlier.trace));
    name_tiers(earlier.plan, names, plan.tiers);
    add(names, all);
  }
  const PlanRealization last = realization_of(planned.plan, planned.trace, Dataflow(planned.trace));
  all.forwards = last.forwards;
  all.parameters = last.parameters;
  add(last, all);
  all.optimizer = planned.optimizer;
  return to_json(plan, planned.trace, planned.made_by,
                 {std::move(all), expectation_of(run), planned.policies, plan_step_of(planned.trace)});
}

std::string plan_difference(const std::filesystem::path& plan, const Run& run) {
  const PlanDocument document = read_plan_document(plan);
  if (!document.expected) return "";
  const PlanExpectation &expected = *document.expected, here = expectation_of(run);
  const std::vector<std::string> changes = changes_of(expected, here);
  if (changes.empty()) return "";
  std::string where;
  if (expected.machine != here.machine) where = fmt::format(" on {}", expected.machine);
  if (expected.allocator != here.allocator) where += fmt::format(" with allocator {}", expected.allocator);
  return fmt::format("plan {}: it gives other figures than its file expects{}: {}.", plan.filename().string(), where,
                     fmt::join(changes, ", "));
}

}  // namespace memwall
