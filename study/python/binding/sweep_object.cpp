#include "study/python/binding/sweep_object.h"

#include <pybind11/stl.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <thread>

#include "cli/print/fit_tables.h"
#include "cli/print/sweep_tables.h"
#include "sim/error.h"
#include "study/charts/sweep_charts.h"
#include "study/python/binding/scenario_words.h"
#include "study/sweep/fit.h"
#include "study/sweep/study_file.h"
#include "traces/figure/dark_figure.h"
#include "traces/figure/svg.h"

namespace memwall {
namespace {

namespace py = pybind11;

struct AnsweredSweep {
  SweepRequest request;
  std::string title;
  SweepResult result;
};
struct AnsweredFit {
  FitRequest request;
  FitResult result;
};

// What keeps points, and what is told of each: the same for sweeps and fits.
struct PointsRequest {
  unsigned jobs = 0;    // 0 = as many threads as this computer runs
  std::string journal;  // "" = none
  bool accept_gaps = false, written_out = false;
  std::string shard;  // "" = all points

  explicit PointsRequest(const py::dict& words)
      : jobs(py::cast<unsigned>(words["jobs"])),
        journal(py::cast<std::string>(words["journal"])),
        accept_gaps(py::cast<bool>(words["accept_gaps"])),
        written_out(py::cast<bool>(words["written_out"])),
        shard(words.contains("shard") ? py::cast<std::string>(words["shard"]) : "") {}
  unsigned threads() const { return jobs > 0 ? jobs : std::max(1u, std::thread::hardware_concurrency()); }
  std::unique_ptr<SweepJournal> open() const {
    return journal.empty() ? nullptr : std::make_unique<SweepJournal>(journal);
  }
};

// Asks for signals, and tells a Python function of progress.
class PointsWatch {
 public:
  explicit PointsWatch(py::object function) : function_(std::move(function)) {}
  void tell(std::size_t done, std::size_t of, std::size_t failed) {
    check_.ask();
    const py::gil_scoped_acquire lock;
    if (!function_.is_none()) function_(done, of, failed);
  }
  bool is_silent() const { return function_.is_none(); }
  void ask() { check_.ask(); }

 private:
  py::object function_;
  SignalCheck check_;
};

void tell(PointsWatch& watch, std::size_t done, std::size_t of, std::size_t failed) {
  watch.is_silent() ? watch.ask() : watch.tell(done, of, failed);
}

// The words of a scenario for which `memwall sweep` has no option, so that merged() leaves them as the file has them.
void take_other_words(const Scenario& given, Scenario& base) {
  const Scenario unsaid;
  const auto take = [&](auto member) {
    if (!(given.*member == unsaid.*member)) base.*member = given.*member;
  };
  for (const auto member : {&Scenario::second_size, &Scenario::budget, &Scenario::plan, &Scenario::executable,
                            &Scenario::pager, &Scenario::allocator, &Scenario::allocator_settings})
    take(member);
  take(&Scenario::transfer_host);
  take(&Scenario::repeat);
}

// As `memwall sweep` merges a file, a preset and its options.
StudyFile study_of(const py::dict& words) {
  const auto list = [&](const char* name) { return py::cast<std::vector<std::string>>(words[name]); };
  StudyFile given{.base = scenario_of(words["scenario"]),
                  .axes = list("over"),
                  .zips = list("zip"),
                  .conditions = list("where"),
                  .fields = list("show"),
                  .sample = py::cast<std::string>(words["sample"]),
                  .objective = py::cast<std::string>(words["objective"])};
  if (!given.base.machine.empty()) given.machines = {std::exchange(given.base.machine, "")};
  StudyFile study;
  if (const auto file = py::cast<std::string>(words["file"]); !file.empty()) study = load_study_file(file);
  if (const auto preset = py::cast<std::string>(words["preset"]); !preset.empty())
    study = merged(load_study_preset(preset), study);
  study = merged(std::move(study), given);
  take_other_words(given.base, study.base);
  for (const std::string& axis : study.axes)
    if (study.base.step.empty() && axis.starts_with("step=")) study.base.step = {parse_axis(axis).values.front()};
  if (study.base.step.empty())
    throw UsageError("The step is missing; expected one in the scenario, in the study's file, or as an axis.");
  return study;
}

SweepRequest request_of(const StudyFile& study, const PointsRequest& points) {
  SweepRequest request{.base = study.base,
                       .space = {},
                       .conditions = study.conditions,
                       .objective = study.objective,
                       .fields = study.fields,
                       .jobs = points.threads(),
                       .accept_gaps = points.accept_gaps,
                       .written_out = points.written_out};
  if (!points.shard.empty()) request.shard = parse_shard(points.shard);
  request.space = space_of(study, request.base);
  if (request.space.axes.empty())
    throw UsageError("There is no axis; expected one or several, as in over=[\"policy=none|checkpoint\"].");
  return request;
}

std::shared_ptr<AnsweredSweep> run_sweep(StudyWithWatch& study, const py::dict& words, py::object progress) {
  const StudyFile file = study_of(words);
  const PointsRequest points(words);
  PointsWatch watch(std::move(progress));
  const py::gil_scoped_release free_of_lock;
  auto answer = std::make_shared<AnsweredSweep>(AnsweredSweep{request_of(file, points), file.title, {}});
  const std::unique_ptr<SweepJournal> journal = points.open();
  answer->result = sweep(study.study, answer->request, journal.get(),
                         [&](const SweepProgress& p) { tell(watch, p.done, p.of, p.failed); });
  return answer;
}

std::size_t count_points(StudyWithWatch&, const py::dict& words) {
  const StudyFile file = study_of(words);
  const PointsRequest points(words);
  const py::gil_scoped_release free_of_lock;
  return points_of(request_of(file, points).space).size();
}

std::shared_ptr<AnsweredFit> run_fit(StudyWithWatch& study, const py::dict& words, py::object progress) {
  const PointsRequest points(words);
  PointsWatch watch(std::move(progress));
  auto answer = std::make_shared<AnsweredFit>();
  answer->request = {.base = scenario_of(words["scenario"]),
                     .axis = parse_axis(py::cast<std::string>(words["over"])),
                     .conditions = py::cast<std::vector<std::string>>(words["where"]),
                     .fields = py::cast<std::vector<std::string>>(words["show"]),
                     .largest = py::cast<bool>(words["largest"]),
                     .jobs = points.threads(),
                     .accept_gaps = points.accept_gaps,
                     .written_out = points.written_out};
  const py::gil_scoped_release free_of_lock;
  const std::unique_ptr<SweepJournal> journal = points.open();
  answer->result = fit(study.study, answer->request, journal.get(),
                       [&](std::size_t done, std::size_t most) { tell(watch, done, most, 0); });
  // Where no value ran, that is the answer.
  if (std::ranges::none_of(answer->result.probes, [](const FitProbe& p) { return p.point.ran(); })) {
    const PointRecord& first = answer->result.probes.front().point.record;
    if (first.cause == "input") throw InputError(first.error);
    throw UsageError(first.error);
  }
  return answer;
}

std::string sweep_figure(const AnsweredSweep& answer, const std::string& kind, bool is_dark) {
  const SweepFigure drawn = parse_sweep_figure(kind, answer.request);
  Figure figure = draw_sweep(drawn, answer.request, answer.result);
  std::ostringstream text;
  write_svg(is_dark ? dark_figure(std::move(figure)) : figure, text);
  return text.str();
}

// "policy=checkpoint, pcie=32GB/s" of each point, and its scenario.
std::vector<std::string> scenarios_of(const AnsweredSweep& answer) {
  std::vector<std::string> lines;
  for (const SweepPoint& point : answer.result.points) lines.push_back(to_text(point.scenario));
  return lines;
}

}  // namespace

void add_sweep(py::module_& module, StudyType& study) {
  using FreeOfLock = py::call_guard<py::gil_scoped_release>;
  py::class_<AnsweredSweep, std::shared_ptr<AnsweredSweep>>(module, "Sweep")
      .def(
          "json", [](const AnsweredSweep& a) { return sweep_json(a.result); }, FreeOfLock())
      .def(
          "csv", [](const AnsweredSweep& a) { return sweep_csv(a.result); }, FreeOfLock())
      .def("figure", &sweep_figure, FreeOfLock())
      .def("scenarios", &scenarios_of)
      .def_property_readonly("best", [](const AnsweredSweep& a) { return a.result.best; })
      .def_property_readonly("failures", [](const AnsweredSweep& a) { return a.result.failures_by_cause(); })
      .def_property_readonly("kept", [](const AnsweredSweep& a) { return a.result.kept(); })
      .def_property_readonly("journal_failure", [](const AnsweredSweep& a) { return a.result.journal_failure; })
      .def("__len__", [](const AnsweredSweep& a) { return a.result.points.size(); });
  py::class_<AnsweredFit, std::shared_ptr<AnsweredFit>>(module, "Fit")
      .def(
          "json", [](const AnsweredFit& a) { return fit_json(a.request, a.result); }, FreeOfLock())
      .def_property_readonly("value", [](const AnsweredFit& a) -> std::optional<std::string> {
        if (!a.result.edge.last) return std::nullopt;
        return a.result.values[*a.result.edge.last];
      });
  study.def("sweep", &run_sweep).def("count_points", &count_points).def("fit", &run_fit);
  module.def("study_presets", &study_presets);
}

}  // namespace memwall
