#include "study/python/binding/scenario_words.h"

#include <pybind11/stl.h>

#include "sim/error.h"

namespace memwall {
namespace {

namespace py = pybind11;

// Calls `see` with the name of each member and the member.
template <class S, class See>
void each_word(S& s, const See& see) {
  see("step", s.step);
  see("execution_traces", s.execution_traces);
  see("onto", s.onto);
  see("second_size", s.second_size);
  see("measured_on", s.measured_on);
  see("machine", s.machine);
  see("settings", s.settings);
  see("budget", s.budget);
  see("transfer_host", s.transfer_host);
  see("scale", s.scale);
  see("repeat", s.repeat);
  see("policies", s.policies);
  see("plan", s.plan);
  see("executable", s.executable);
  see("pager", s.pager);
  see("allocator", s.allocator);
  see("allocator_settings", s.allocator_settings);
}

}  // namespace

py::dict words_of(const Scenario& scenario) {
  py::dict words;
  each_word(scenario, [&](const char* name, const auto& value) { words[name] = py::cast(value); });
  return words;
}

Scenario scenario_of(const py::dict& words) {
  Scenario scenario;
  std::vector<std::string> known;
  std::size_t taken = 0;
  each_word(scenario, [&](const char* name, auto& value) {
    known.emplace_back(name);
    if (!words.contains(name)) return;
    ++taken;
    try {
      value = py::cast<std::decay_t<decltype(value)>>(words[name]);
    } catch (const py::cast_error&) {
      throw py::type_error("Scenario, " + std::string(name) + ": found " +
                           py::cast<std::string>(py::repr(words[name])) + ", which is of another type.");
    }
  });
  if (taken == words.size()) return scenario;
  for (const auto& [name, value] : words)
    if (const auto text = py::cast<std::string>(name); std::find(known.begin(), known.end(), text) == known.end())
      throw UsageError("A scenario has no \"" + text + "\"; expected one of " + listed(known) + "." +
                       did_you_mean(text, known));
  return scenario;
}

}  // namespace memwall
