#include "study/sweep/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "sim/error.h"
#include "study/sweep/axis_check.h"
#include "study/sweep/axis_target.h"
#include "study/sweep/outcome_fields.h"
#include "study/sweep/point_outcome.h"
#include "study/sweep/scenario_points.h"

namespace memwall {
namespace {

class Sweeper {
 public:
  // `study`: null = points run elsewhere, where they were checked.
  Sweeper(Study* study, const SweepRequest& request, SweepJournal* journal, const SweepWatch& watch)
      : study_(study),
        request_(request),
        journal_(journal),
        watch_(watch),
        goal_(request.space.axes, request.conditions, request.objective, request.fields) {
    for (const Axis& axis : axes()) {
      result_.axes.push_back(axis.name);
      targets_.push_back(axis_target(axis.name, request.base, axes()));
    }
    require_separate(axes(), targets_, request.base);
    result_.conditions = request.conditions;
    result_.objective = goal_.objective_text();
    result_.minimizes = goal_.minimizes();
    result_.objective_unit = goal_.objective_unit();
  }

  SweepResult run() {
    make_points();
    run_points();
    if (journal_ != nullptr) result_.journal_failure = journal_->failure();
    if (!request_.shard) require_fields();  // another shard's points may have it
    judge_all();
    return std::move(result_);
  }

  SweepResult run_elsewhere(std::vector<PointRecord> records) {
    make_points();
    if (records.size() != result_.points.size())
      throw UsageError(fmt::format("The study has {} points, and the shards hold {}; expected as many.",
                                   result_.points.size(), records.size()));
    for (std::size_t i = 0; i < records.size(); ++i)
      if (result_.points[i].ran()) result_.points[i].record = std::move(records[i]);
    require_fields();
    judge_all();
    return std::move(result_);
  }

  std::string fingerprint() {
    make_points();
    PointKeys keys;
    std::string text;
    for (const SweepPoint& point : result_.points)
      text += keys.key(point.scenario, request_.accept_gaps) + point.record.error + "\n";
    return keys.hash(text + (goal_.needs_all() ? "all" : folds() ? "folded" : "quick"));
  }

 private:
  const std::vector<Axis>& axes() const { return request_.space.axes; }
  bool folds() const { return !request_.written_out && std::ranges::all_of(goal_.fields(), is_folded_field); }

  // --- points ---
  void make_points() {
    std::vector<PointValues> all = points_of(request_.space);
    if (study_ != nullptr) require_values(*study_, axes(), targets_, request_.base, all);
    if (request_.shard) {
      std::size_t number = 0;
      std::erase_if(all, [&](const PointValues&) { return !request_.shard->has(number++); });
    }
    for (PointValues& values : all) {
      SweepPoint point;
      try {
        point.scenario = scenario_at(values, request_.base, targets_);
      } catch (const UsageError& error) {
        point.scenario = request_.base;
        point.record = failed_point("usage", error);
      }
      point.values = std::move(values);
      result_.points.push_back(std::move(point));
    }
    progress_.of = result_.points.size();
  }

  void run_points() {
    std::vector<std::size_t> left;
    for (std::size_t i = 0; i < result_.points.size(); ++i)
      if (result_.points[i].ran())
        left.push_back(i);
      else
        note(i);
    tell();
    if (left.empty()) return;
    run_at({left.front()});
    require_step(result_.points[left.front()].record);
    require_first_fields();
    left.erase(left.begin());
    run_at(left);
  }

  void run_at(const std::vector<std::size_t>& indices) {
    std::vector<const Scenario*> scenarios;
    for (const std::size_t i : indices) scenarios.push_back(&result_.points[i].scenario);
    if (!runner_) runner_.emplace(*study_, journal_, request_.jobs, PointWatch{}, request_.accept_gaps, folds());
    runner_->take_each(scenarios, goal_.needs_all(), [&](std::size_t i, PointRecord record, bool is_kept) {
      SweepPoint& point = result_.points[indices[i]];
      point.record = std::move(record);
      point.is_kept = is_kept;
      note(indices[i]);
      tell();
    });
  }

  // A step that cannot be read fails once, not at every point, where all have the same.
  void require_step(const PointRecord& first) const {
    if (first.cause != "input" || std::ranges::find(result_.axes, "step") != result_.axes.end()) return;
    if (std::ranges::any_of(request_.base.step, [&](const std::string& s) { return first.error.starts_with(s); }))
      throw InputError(first.error);
  }

  // A mistyped field is told behind one point, not behind all of them.
  void require_first_fields() const {
    for (const SweepPoint& point : result_.points) {
      if (point.record.fields.empty()) continue;
      // Of other steps, machines and policies others are known; a word that is near one that all have is mistyped.
      const auto unknown = goal_.unknown_field({&point.record});
      if (unknown && (all_are_alike() || seems_mistyped(*unknown, axes()))) refuse_field(*unknown, {&point.record});
      return;
    }
  }

  // Do all points have the same fields?
  bool all_are_alike() const {
    return std::ranges::none_of(result_.axes, [](const std::string& name) {
      return name == "step" || name == "machine" || name == "policy" || name == "pager" || name == "plan";
    });
  }

  // --- what comes of it ---
  void note(std::size_t index) {
    SweepPoint& point = result_.points[index];
    ++progress_.done;
    progress_.failed += point.ran() ? 0 : 1;
    progress_.kept += point.is_kept ? 1 : 0;
    goal_.judge(point);
    const bool is_first = progress_.best == nullptr && point.meets && point.objective.has_value();
    if (is_first || (progress_.best != nullptr && goal_.is_better(point, *progress_.best))) progress_.best = &point;
  }

  void tell() const {
    if (watch_) watch_(progress_);
  }

  // In the order of points, whatever the order in which they finished: of equals the first.
  void judge_all() {
    for (std::size_t i = 0; i < result_.points.size(); ++i) {
      SweepPoint& point = result_.points[i];
      goal_.judge(point);
      if (!point.meets || !point.objective) continue;
      if (!result_.best || goal_.is_better(point, result_.points[*result_.best])) result_.best = i;
    }
  }

  // A name that no point has is a mistake; one that some lack is not known there.
  void require_fields() const {
    std::vector<const PointRecord*> known;
    for (const SweepPoint& point : result_.points)
      if (!point.record.fields.empty()) known.push_back(&point.record);
    if (known.empty()) return;
    if (const auto unknown = goal_.unknown_field(known)) refuse_field(*unknown, known);
  }

  [[noreturn]] void refuse_field(const std::string& name, const std::vector<const PointRecord*>& known) const {
    if (is_known_name(name))
      throw UsageError(fmt::format(
          "No point knows {}: what it takes for it is not there (samples or tokens per step, allocations and "
          "how long they live, a memory, drives with a write cache); expected a field that memwall run "
          "prints for this step.",
          name));
    throw UsageError(fmt::format("No point has a field \"{}\"; expected one of docs/run_json.md, or an axis.{}", name,
                                 nearest_field(name, axes(), known)));
  }

  Study* study_;
  const SweepRequest& request_;
  SweepJournal* journal_;
  const SweepWatch& watch_;
  std::optional<ScenarioPoints> runner_;
  const SweepGoal goal_;
  AxisTargets targets_;
  SweepProgress progress_;
  SweepResult result_;
};

}  // namespace

SweepResult sweep(Study& study, const SweepRequest& request, SweepJournal* journal, const SweepWatch& watch) {
  return Sweeper(&study, request, journal, watch).run();
}

SweepResult assembled(const SweepRequest& request, std::vector<PointRecord> records) {
  return Sweeper(nullptr, request, nullptr, {}).run_elsewhere(std::move(records));
}

std::string fingerprint_of(const SweepRequest& request) {
  SweepRequest whole = request;
  whole.shard.reset();
  return Sweeper(nullptr, whole, nullptr, {}).fingerprint();
}

}  // namespace memwall
