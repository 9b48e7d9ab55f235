// memwall._memwall: what the package calls. Everything that a user sees stands in memwall/*.py.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "models/hw/machine_file.h"
#include "models/workload/generate/configuration/workload_file.h"
#include "sim/files/data_folder.h"
#include "sim/policy/registry.h"
#include "study/python/binding/kept_memory.h"
#include "study/python/binding/own_policy.h"
#include "study/python/binding/plan_object.h"
#include "study/python/binding/python_error.h"
#include "study/python/binding/run_object.h"
#include "study/python/binding/scenario_words.h"
#include "study/python/binding/snapshot_object.h"
#include "study/python/binding/study_object.h"
#include "study/python/binding/table_object.h"

namespace memwall {
namespace {

namespace py = pybind11;

py::list machine_list() {
  py::list rows;
  for (const MachineSummary& machine : list_machines()) rows.append(py::make_tuple(machine.name, machine.description));
  return rows;
}

// path, value, source of each number of a machine.
py::list number_list(const std::string& name, const std::vector<std::string>& settings) {
  py::list rows;
  for (const MachineNumber& number : machine_numbers(name, settings))
    rows.append(py::make_tuple(number.path, number.value, number.source));
  return rows;
}

py::list workload_list() {
  py::list rows;
  for (const WorkloadSummary& workload : list_workloads())
    rows.append(py::make_tuple(workload.name, workload.description));
  return rows;
}

py::list policy_list() {
  py::list rows;
  for (const auto& [name, info] : policies()) {
    py::list parameters;
    for (const ParameterInfo& parameter : info.parameters) parameters.append(parameter.name);
    rows.append(py::make_tuple(name, std::string(to_string(info.kind)), info.sentence, parameters));
  }
  return rows;
}

}  // namespace
}  // namespace memwall

PYBIND11_MODULE(_memwall, module) {
  using namespace memwall;
  keep_memory_for_runs();
  translate_errors(module);
  add_columns(module);
  add_run(module);
  add_study(module);
  add_snapshot(module);
  add_own_policies(module);
  module.attr("version") = MEMWALL_VERSION;
  module.def("words_of", [](const std::string& line) { return words_of(parse_scenario(line)); });
  module.def("line_of", [](const py::dict& words) { return to_text(scenario_of(words)); });
  module.def("machines", &machine_list);
  module.def("machine_numbers", &number_list);
  module.def("workloads", &workload_list);
  module.def("policies", &policy_list);
  module.def("sample", [] { return (data_folder(nullptr, "samples", MEMWALL_SAMPLES) / "gpt_124m.mwt").string(); });
}
