#include "study/explain/explanation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/error.h"
#include "study/sweep/axis_target.h"
#include "study/sweep/outcome_fields.h"
#include "traces/run/analysis/accounting.h"
#include "traces/run/analysis/energy.h"

namespace memwall {
namespace {

void require_sound(const ExplanationRequest& request) {
  if (!(request.share > 0) || request.share > 0.5)
    throw UsageError(fmt::format("--by {:.6g}: expected a share above 0 % and up to 50 %.", request.share));
}

std::vector<std::pair<TimeClass, Duration>> path_of(const Run& run) {
  ClassTimes times;
  for (const PathSegment& segment : critical_path(run)) times[segment.time_class] += segment.end - segment.begin;
  std::vector<std::pair<TimeClass, Duration>> path;
  for (int c = 0; c < kTimeClasses; ++c)
    if (const auto of = static_cast<TimeClass>(c); times[of].count() > 0) path.emplace_back(of, times[of]);
  std::ranges::stable_sort(path, std::greater{}, &std::pair<TimeClass, Duration>::second);
  return path;
}

double strength(const Sensitivity& s) {
  const auto size = [](const std::optional<double>& e) { return std::abs(e.value_or(0)); };
  return size(s.step_time.central);
}

class Explaining {
 public:
  Explaining(Study& study, const ExplanationRequest& request, SweepJournal* journal, Watch* watch)
      : request_(request),
        journal_(journal),
        watch_(watch),
        points_(
            study, journal, request.jobs,
            [this](auto done, auto of) { tell(static_cast<double>(done) / static_cast<double>(of)); },
            request.accept_gaps, true),
        written_out_(study, journal, request.jobs, {}, request.accept_gaps) {}

  Explanation run() {
    require_sound(request_);
    const VariedNumbers every = varied_numbers(points_.study(), request_.scenario);
    const VariedNumbers numbers = selected(every, request_.only);
    for (const Axis& axis : request_.curves) (void)axis_target(axis.name, request_.scenario, {axis});
    const Run run = points_.study().run(request_.scenario, {}).run;
    describe(run);
    set_varied_from();
    add_sensitivities(numbers);
    const double dollars = step_energy_price(run).price.value_or(0);
    result_.prices = shadow_prices(points_, request_.scenario, varied_from_,
                                   resources_of(run, request_.only.empty() ? every.numbers : numbers.numbers),
                                   request_.share, result_.here.step_time > 0 ? dollars / result_.here.step_time : 0);
    result_.next = next_bounds(points_, request_.scenario, result_.sensitivities, request_.share);
    if (request_.regret) result_.regret = policy_regret(points_, request_.scenario, run, request_.share, watch_);
    for (const Axis& axis : request_.curves)
      result_.curves.push_back(break_even_curve(written_out_, request_.scenario, axis, [this](const SweepProgress& p) {
        tell(static_cast<double>(p.done) / static_cast<double>(std::max<std::size_t>(1, p.of)));
      }));
    result_.simulated = points_.simulated() + written_out_.simulated();
    result_.kept = points_.kept() + written_out_.kept();
    if (journal_ != nullptr) result_.journal_failure = journal_->failure();
    return std::move(result_);
  }

 private:
  void tell(double share) {
    if (watch_ != nullptr) watch_->searched(share);
  }

  void describe(const Run& run) {
    result_.scenario = request_.scenario;
    result_.step = run.trace->name;
    result_.machine = machine_text(run.machine.name, request_.scenario.settings);
    result_.share = request_.share;
    result_.here = *figures_of({.fields = quick_fields(run).all()});
    result_.memory_recorded = run.trace->knowledge.allocations;
    const auto add_missing = [&](Bytes bytes, const std::string& where) {
      if (bytes <= result_.missing) return;
      result_.missing = bytes;
      result_.missing_in = where;
    };
    for (const MemoryBudget& budget : run.trace->budgets) add_missing(budget.over, "budget");
    for (std::size_t t = 0; t < run.result.tiers.size(); ++t)
      add_missing(run.result.tiers[t].missing, run.machine.tiers[t].name);
    result_.path = path_of(run);
    result_.peak = peak_binding(run);
  }

  // A job over many GPUs is varied folded, and compared with itself folded.
  void set_varied_from() {
    varied_from_ = result_.here;
    if (!FoldedScenarios::takes(points_.study(), request_.scenario)) return;
    const PointRecord record = points_.run(request_.scenario);
    if (!record.find("folded")) return;
    varied_from_ = *figures_of(record);
    result_.folded_step_time = varied_from_.step_time;
  }

  void add_sensitivities(const VariedNumbers& numbers) {
    result_.fixed = numbers.fixed;
    for (Sensitivity& s : sensitivities(points_, request_.scenario, varied_from_, numbers.numbers, request_.share)) {
      if (!s.lower.figures && !s.upper.figures)
        result_.refused.emplace_back(s.number.name, s.upper.refusal);
      else if (s.changes_anything())
        result_.sensitivities.push_back(std::move(s));
      else
        result_.idle.push_back(s.number.name);
    }
    std::ranges::stable_sort(result_.sensitivities, std::greater{}, strength);
  }

  const ExplanationRequest& request_;
  SweepJournal* journal_;
  Watch* watch_;
  ScenarioPoints points_;       // jobs over many GPUs folded
  ScenarioPoints written_out_;  // whose points are compared with other policies
  PointFigures varied_from_{};
  Explanation result_;
};

}  // namespace

Explanation explain(Study& study, const ExplanationRequest& request, SweepJournal* journal, Watch* watch) {
  return Explaining(study, request, journal, watch).run();
}

}  // namespace memwall
