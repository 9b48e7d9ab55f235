#include "study/python/binding/run_object.h"

#include <pybind11/stl.h>

#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <sstream>

#include "gui/drawing/run_figures.h"
#include "sim/error.h"
#include "study/python/binding/run_tables.h"
#include "study/sweep/outcome_fields.h"
#include "traces/figure/dark_figure.h"
#include "traces/figure/svg.h"
#include "traces/run/analysis/summary.h"
#include "traces/run/file/run_file.h"

namespace memwall {
namespace {

namespace py = pybind11;

using SharedAnswer = std::shared_ptr<AnsweredRun>;
using FreeOfLock = py::call_guard<py::gil_scoped_release>;

std::string json_of(const AnsweredRun& answer) {
  RunSummary summary = summarize(answer.run);
  summary.notes.insert(summary.notes.end(), answer.notes.begin(), answer.notes.end());
  return to_json(summary);
}

// To the last bit as the JSON has them.
std::vector<std::pair<std::string, double>> fields_of(const AnsweredRun& answer) {
  return quick_fields(answer.run).all();
}

std::map<std::string, double> training_of(const AnsweredRun& answer, double tokens,
                                          std::optional<double> price_per_gpu_hour) {
  if (!(tokens > 0) || !std::isfinite(tokens)) throw UsageError("The tokens of a training: expected a number above 0.");
  const auto cost = training_cost(summarize(answer.run), tokens, price_per_gpu_hour);
  if (!cost) throw UsageError("The step does not say how many tokens it has, or takes no time.");
  std::map<std::string, double> figures{
      {"tokens", cost->tokens}, {"steps", cost->steps}, {"seconds", cost->seconds}, {"gpu_hours", cost->gpu_hours}};
  if (cost->dollars) figures["dollars"] = *cost->dollars;
  if (cost->joules) figures["joules"] = *cost->joules;
  return figures;
}

std::string run_figure_text(const AnsweredRun& answer, const std::string& view, const std::string& tier,
                            const std::string& range, const std::vector<std::string>& lanes, const std::string& clock,
                            bool is_dark) {
  gui::RunFigureRequest request{.view = view, .tier = tier, .range = {}, .lanes = lanes, .clock = MemoryClock::host};
  if (clock != "host" && clock != "device")
    throw UsageError("The clock \"" + clock + "\" is unknown; expected host or device.");
  if (clock == "device") request.clock = MemoryClock::device;
  if (answer.run.memory.empty())
    throw UsageError(
        "This run keeps nothing over time, which a figure shows; expected one that was made with quick=False, or that "
        "was "
        "read from a file.");
  if (!range.empty()) request.range = gui::parse_range(range, answer.run, tier, request.clock);
  Figure figure = gui::run_figure({&answer.run}, {answer.run.trace->name}, request);
  std::ostringstream text;
  write_svg(is_dark ? dark_figure(std::move(figure)) : figure, text);
  return text.str();
}

template <auto make>
auto table_by() {
  return [](const AnsweredRun& answer) { return std::make_shared<ColumnTable>(make(answer.run)); };
}
template <auto make>
auto table_of_part() {
  return [](const AnsweredRun& answer, const std::string& part) {
    return std::make_shared<ColumnTable>(make(answer.run, part));
  };
}

std::vector<std::string> names_of(const auto& parts) {
  std::vector<std::string> names;
  for (const auto& part : parts) names.push_back(part.name);
  return names;
}

}  // namespace

void add_run(py::module_& module) {
  py::class_<AnsweredRun, SharedAnswer>(module, "Run")
      .def("json", &json_of, FreeOfLock())
      .def("fields", &fields_of, FreeOfLock())
      .def(
          "write",
          [](const AnsweredRun& a, const std::string& path) {
            if (a.run.memory.empty())
              throw UsageError("The run was made with quick=True, which records nothing to write; run it without.");
            write_run(a.run, path);
          },
          FreeOfLock())
      .def("training", &training_of, FreeOfLock())
      .def("figure", &run_figure_text, FreeOfLock())
      .def("ops", table_by<op_table>(), FreeOfLock())
      .def("timeline", table_by<timeline_table>(), FreeOfLock())
      .def("storages", table_by<storage_table>(), FreeOfLock())
      .def("residency", table_by<residency_table>(), FreeOfLock())
      .def("memory", table_of_part<memory_table>(), FreeOfLock())
      .def("link", table_of_part<link_table>(), FreeOfLock())
      .def(
          "live",
          [](const AnsweredRun& a, const std::string& tier, const std::optional<double>& seconds) {
            return std::make_shared<ColumnTable>(live_table(a.run, tier, seconds));
          },
          FreeOfLock())
      .def_property_readonly("step_time",
                             [](const AnsweredRun& a) { return static_cast<double>(mean_step(a.run).count()) / 1e12; })
      .def_property_readonly("tiers", [](const AnsweredRun& a) { return names_of(a.run.machine.tiers); })
      .def_property_readonly("links", [](const AnsweredRun& a) { return names_of(a.run.machine.links); })
      .def_property_readonly("has_series", [](const AnsweredRun& a) { return !a.run.memory.empty(); })
      .def_property_readonly("op_count", [](const AnsweredRun& a) { return a.run.trace->ops.size(); })
      .def_property_readonly("trace", [](const AnsweredRun& a) { return a.run.trace->name; })
      .def_property_readonly(
          "machine", [](const AnsweredRun& a) { return machine_text(a.run.machine.name, a.run.changes.overrides); })
      .def_property_readonly("policies", [](const AnsweredRun& a) { return a.run.policies; })
      .def_property_readonly("warnings", [](const AnsweredRun& a) { return a.run.warnings; })
      .def_property_readonly("scenario", [](const AnsweredRun& a) {
        return a.run.provenance ? a.run.provenance->scenario : std::string();
      });
  module.def(
      "read_run", [](const std::string& path) { return std::make_shared<AnsweredRun>(AnsweredRun{read_run(path)}); },
      FreeOfLock());
}

}  // namespace memwall
