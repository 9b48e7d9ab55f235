#include "study/python/binding/plan_object.h"

#include <pybind11/stl.h>

#include <optional>
#include <thread>

#include "cli/print/advice_tables.h"
#include "cli/print/batch_advice_tables.h"
#include "cli/print/given_size.h"
#include "cli/print/observation_table.h"
#include "cli/print/screen.h"
#include "sim/error.h"
#include "study/base_step.h"
#include "study/batch_advice.h"
#include "study/plan_outcome.h"
#include "study/python/binding/scenario_words.h"
#include "study/replay_check.h"
#include "study/step_advice.h"

namespace memwall {
namespace {

namespace py = pybind11;

// What Python shows of an answer, beside the JSON of `memwall plan`.
struct AnsweredPlan {
  AdviceRequest request;
  std::vector<Table> tables;
  Scenario scenario;                    // that the plan is for
  std::vector<std::string> policies{};  // beside those of the scenario; the last makes the plan
  bool fits = false, has_plan = false;
  std::optional<double> step_time{};
  Bytes budget = 0, missing = 0;
  std::int64_t samples = 0;  // of the largest batch, where that was asked for
};

AdviceRequest request_of(const py::dict& words) {
  AdviceRequest request;
  request.scenario = scenario_of(words["scenario"]);
  request.budget = py::cast<std::string>(words["budget"]);
  request.tiers = py::cast<std::string>(words["tiers"]);
  request.settings = py::cast<std::string>(words["settings"]);
  request.ranks = py::cast<std::uint32_t>(words["ranks"]);
  request.smallest = py::cast<bool>(words["smallest"]);
  const auto jobs = py::cast<unsigned>(words["jobs"]);
  request.jobs = jobs > 0 ? jobs : std::max(1u, std::thread::hardware_concurrency());
  return request;
}

void take_batch(AnsweredPlan& answer, const BatchAdvice& advice) {
  answer.tables = batch_advice_tables(advice);
  answer.budget = advice.budget;
  answer.fits = answer.has_plan = advice.largest.probe.samples > 0;
  answer.scenario = answer.fits ? advice.largest.scenario : answer.request.scenario;
  answer.samples = advice.largest.probe.samples;
  if (!answer.fits) return;
  answer.policies = {advice.largest.policy};
  answer.step_time = to_seconds(advice.largest.probe.step_time);
}

void take_step(AnsweredPlan& answer, const StepAdvice& advice) {
  const AdvisedPlan& best = advice.plans.front();
  answer.tables = advice_tables(advice);
  answer.budget = advice.budget;
  answer.fits = best.fits;
  answer.has_plan = true;
  answer.missing = best.missing;
  answer.scenario = advice.scenario;
  // A step that fits as it is has a plan, too: an empty one.
  answer.policies = best.policies;
  answer.step_time = to_seconds(best.step_time);
}

std::shared_ptr<AnsweredPlan> make_plan(StudyWithWatch& study, const py::dict& words) {
  const bool is_batch = py::cast<bool>(words["batch"]), accept_gaps = py::cast<bool>(words["accept_gaps"]);
  const auto observed = py::cast<std::string>(words["observed"]);
  const auto robust = py::cast<std::string>(words["robust"]);
  auto answer =
      std::make_shared<AnsweredPlan>(AnsweredPlan{.request = request_of(words), .tables = {}, .scenario = {}});
  const py::gil_scoped_release free_of_lock;
  AdviceRequest& request = answer->request;
  require_plan_words(request.budget, robust);
  require_plannable(request.scenario.policies);
  require_replay(name_of_step(request.scenario), *study.study.load(request.scenario).trace, accept_gaps);
  std::vector<std::string> sentences;
  std::optional<Table> measured;
  if (!observed.empty()) {
    const Observation observation = observe(study.study, request.scenario, observed, &study.watch);
    const std::string asked = given_size(request.budget, budget_bytes(study.study, request));
    request = corrected(study.study, request, observation);
    sentences = observation_sentences(observation, asked, budget_bytes(study.study, request));
    measured = observation_table(observation);
  }
  if (is_batch)
    take_batch(*answer, advise_batch(study.study, request, &study.watch));
  else
    take_step(*answer, advise(study.study, request, &study.watch));
  for (const std::string& sentence : sentences)
    if (!sentence.empty()) answer->tables.front().rows.push_back({cell(sentence)});
  if (measured) answer->tables.insert(answer->tables.begin() + 1, *measured);
  return answer;
}

// The plan's file, as `memwall plan -o` writes it.
std::string plan_file_of(StudyWithWatch& study, const AnsweredPlan& answer) {
  if (!answer.has_plan) throw UsageError("No plan was found; there is none to write.");
  Scenario scenario = answer.scenario;
  const std::vector<std::string> own{own_policy(answer.request, answer.request.budget)};
  const std::vector<std::string>& policies = answer.policies.empty() ? own : answer.policies;
  scenario.policies.insert(scenario.policies.end(), policies.begin(), policies.end());
  const PlannedStep planned = study.study.plan(scenario);
  return plan_text(planned, study.study.run(scenario, {.record = false}).run);
}

}  // namespace

void add_plan(py::module_& module, StudyType& study) {
  using FreeOfLock = py::call_guard<py::gil_scoped_release>;
  py::class_<AnsweredPlan, std::shared_ptr<AnsweredPlan>>(module, "Plan")
      .def(
          "json", [](const AnsweredPlan& a) { return screen_text(a.tables, Format::json, true); }, FreeOfLock())
      .def_property_readonly("scenario", [](const AnsweredPlan& a) { return words_of(a.scenario); })
      .def_readonly("policies", &AnsweredPlan::policies)
      .def_readonly("fits", &AnsweredPlan::fits)
      .def_readonly("has_plan", &AnsweredPlan::has_plan)
      .def_readonly("step_time", &AnsweredPlan::step_time)
      .def_readonly("budget_bytes", &AnsweredPlan::budget)
      .def_readonly("missing_bytes", &AnsweredPlan::missing)
      .def_readonly("samples", &AnsweredPlan::samples);
  study.def("plan", &make_plan).def("plan_file", &plan_file_of, FreeOfLock());
}

}  // namespace memwall
