#include "study/python/binding/own_policy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "policies/plan/plan_check.h"
#include "policies/planners/exec_profile.h"
#include "policies/planners/planner.h"
#include "sim/error.h"
#include "study/python/binding/python_pager.h"
#include "traces/plan/plan_file.h"

namespace memwall {
namespace {

namespace py = pybind11;

// Where Python keeps what it gave a name: memwall.own.functions, which lives and ends with Python.
py::object function_named(const std::string& name) {
  return py::module_::import("memwall.own").attr("functions").attr("__getitem__")(name);
}

// Nothing that is not a plan for this step, and can be carried out, comes back.
MemoryPlan planned_by(const std::string& name, const StepProfile& profile, const Budget& budget) {
  const std::string document = profile_document(profile, budget.device);
  std::string text;
  {
    const py::gil_scoped_acquire lock;
    const py::module_ json = py::module_::import("json");
    const py::object answer = function_named(name)(json.attr("loads")(document));
    if (!py::isinstance<py::str>(answer) && !py::isinstance<py::dict>(answer))
      throw py::type_error(
          fmt::format("What planner '{}' returned: found {}; expected a memory plan as a dictionary or as "
                      "JSON text.",
                      name, py::cast<std::string>(py::repr(answer))));
    text = py::cast<std::string>(py::isinstance<py::str>(answer) ? answer : json.attr("dumps")(answer));
  }
  const std::string what = fmt::format("What planner '{}' returned", name);
  MemoryPlan plan = [&] {
    try {
      return plan_of_text(text, what, profile.trace(), profile.machine());
    } catch (const InputError& error) {  // of no file: of who was asked
      throw UsageError(error.what());
    }
  }();
  if (const std::vector<std::string> problems = check_plan(plan, profile.trace(), profile.flow()); !problems.empty())
    throw UsageError(fmt::format("{}: the plan cannot be carried out. {}", what, fmt::join(problems, " ")));
  return plan;
}

void require_own_name(const std::string& name) {
  if (name.empty() || name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") != std::string::npos)
    throw UsageError(
        fmt::format("\"{}\" can be no policy's name; expected small letters, digits and underlines.", name));
  if (policies().contains(name))
    throw UsageError(fmt::format("\"{}\" is the name of a {} already; expected another.", name,
                                 policies().at(name).kind == PolicyKind::pager ? "pager" : "policy"));
}

// Python says which of its names are registered already: these are not registered again.
void add_planner(const std::string& name, const std::string& sentence) {
  require_own_name(name);
  const RegisterPlanner registered{
      {.name = name,
       .sentence = sentence,
       .is_user_code = true,
       .parameters = {},
       .make = [name](const PolicyArguments&) -> Planner {
         return [name](const StepProfile& profile, const Budget& budget, const Machine&, const Pricer&) {
           return ProposedPlans(planned_by(name, profile, budget));
         };
       }}};
}

void add_pager(const std::string& name, const std::string& sentence) {
  require_own_name(name);
  const RegisterPolicy registered{{.name = name,
                                   .sentence = sentence,
                                   .kind = PolicyKind::pager,
                                   .needs = {.allocations = true, .dataflow = true},
                                   .make_pager = [name](const PolicyArguments&) -> std::unique_ptr<Pager> {
                                     const py::gil_scoped_acquire lock;
                                     return std::make_unique<PythonPager>(name, function_named(name)());
                                   }}};
}

}  // namespace

void add_own_policies(py::module_& module) {
  module.def("add_planner", &add_planner);
  module.def("add_pager", &add_pager);
  add_pager_view(module);
}

}  // namespace memwall
