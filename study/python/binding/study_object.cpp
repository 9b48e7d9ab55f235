#include "study/python/binding/study_object.h"

#include <pybind11/stl.h>

#include <memory>
#include <optional>

#include "study/plan_outcome.h"
#include "study/python/binding/interruption.h"
#include "study/python/binding/plan_object.h"
#include "study/python/binding/run_object.h"
#include "study/python/binding/scenario_words.h"
#include "study/python/binding/study_with_watch.h"
#include "study/python/binding/sweep_object.h"
#include "study/replay_check.h"

namespace memwall {
namespace {

namespace py = pybind11;

// What `memwall run` asks for, or the one simulation of a point of `memwall sweep`.
RunOptions options_of(bool quick, Observer* observer) {
  if (quick)
    return {.record = false, .settle_writes = true};  // an observer would cost more than the answer of small steps
  return {.compare_to_base = true,
          .bound_step = true,
          .try_remedies = true,
          .try_speedups = true,
          .settle_writes = true,
          .try_alone = true,
          .try_first_step = true,
          .observer = observer};
}

std::shared_ptr<AnsweredRun> run_scenario(StudyWithWatch& study, const py::dict& words, bool quick, bool accept_gaps) {
  const Scenario scenario = scenario_of(words);
  const py::gil_scoped_release free_of_lock;
  InterruptibleRun interruptible;
  if (!quick)
    require_replay(scenario.step.empty() ? "" : scenario.step.front(), *study.study.load(scenario).trace, accept_gaps);
  auto answer =
      std::make_shared<AnsweredRun>(AnsweredRun{study.study.run(scenario, options_of(quick, &interruptible)).run});
  require_replay(scenario.step.front(), *answer->run.trace, accept_gaps);
  if (!scenario.plan.empty())
    if (std::string difference = plan_difference(scenario.plan, answer->run); !difference.empty())
      answer->notes.push_back(std::move(difference));
  return answer;
}

// What is known of the step before anything is run.
py::dict facts_of(StudyWithWatch& study, const py::dict& words) {
  const Scenario scenario = scenario_of(words);
  std::optional<LoadedStep> loaded;
  {
    const py::gil_scoped_release free_of_lock;
    loaded = study.study.load(scenario);
  }
  const Trace& trace = loaded->trace;
  py::dict facts;
  facts["name"] = trace.name;
  facts["machine"] = loaded->machine->name;
  facts["ops"] = trace.ops.size();
  facts["storages"] = trace.storages.size();
  facts["notes"] = trace.notes;
  std::vector<std::string> files;
  for (const auto& file : loaded->files) files.push_back(file.string());
  facts["files"] = files;
  return facts;
}

}  // namespace

void add_study(py::module_& module) {
  auto study = py::class_<StudyWithWatch, std::shared_ptr<StudyWithWatch>>(module, "Study");
  study.def(py::init<>())
      .def("run", &run_scenario)
      .def("facts", &facts_of)
      .def("check", [](StudyWithWatch& s, const py::dict& words) { s.study.check(scenario_of(words)); });
  add_sweep(module, study);
  add_plan(module, study);
}

}  // namespace memwall
