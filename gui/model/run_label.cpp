#include "gui/model/run_label.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

namespace memwall::gui {
namespace {

// Has any other of the same name?
bool is_shared(const std::vector<std::string>& names, std::size_t i) {
  return std::count(names.begin(), names.end(), names[i]) > 1;
}

bool all_the_same(const std::vector<std::string>& names) {
  return std::all_of(names.begin(), names.end(), [&](const std::string& name) { return name == names.front(); });
}

}  // namespace

std::string policies_of(const Run& run) {
  std::vector<std::string> policies = run.policies;
  if (!run.pager.empty()) policies.push_back("pager " + run.pager);
  return policies.empty() ? "no policy" : fmt::format("{}", fmt::join(policies, " + "));
}

std::vector<std::string> run_labels(const std::vector<const Run*>& runs, const std::vector<std::string>& files) {
  std::vector<std::string> steps, machines, stems, labels;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    steps.push_back(runs[i]->trace->name);
    machines.push_back(machine_text(runs[i]->machine.name, runs[i]->changes.overrides));
    stems.push_back(std::filesystem::path(files[i]).stem().string());
  }
  for (std::size_t i = 0; i < runs.size(); ++i) {
    std::string label = policies_of(*runs[i]);
    if (!all_the_same(machines)) label = machines[i] + ", " + label;
    if (!all_the_same(steps)) label = steps[i] + ", " + label;
    labels.push_back(std::move(label));
  }
  std::vector<std::string> out = labels;
  for (std::size_t i = 0; i < labels.size(); ++i)
    if (is_shared(labels, i)) out[i] = fmt::format("{} ({})", labels[i], is_shared(stems, i) ? files[i] : stems[i]);
  return out;
}

}  // namespace memwall::gui
