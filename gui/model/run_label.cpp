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

// What may tell runs apart besides their policies: one of each per run.
struct RunSubjects {
  std::vector<std::string> steps, machines, settings;
};

RunSubjects subjects_of(const std::vector<const Run*>& runs) {
  RunSubjects out;
  for (const Run* run : runs) {
    out.steps.push_back(run->trace->name);
    out.machines.push_back(machine_text(run->machine.name, run->changes.overrides));
    const auto settings = settings_text(run->changes, "", run->allocator, run->allocator_settings);
    out.settings.push_back(fmt::format("{}", fmt::join(settings, ", ")));
  }
  return out;
}

}  // namespace

std::string policies_of(const Run& run) {
  std::vector<std::string> policies = run.policies;
  if (!run.pager.empty()) policies.push_back("pager " + run.pager);
  return policies.empty() ? "no policy" : fmt::format("{}", fmt::join(policies, " + "));
}

std::vector<std::string> run_labels(const std::vector<const Run*>& runs, const std::vector<std::string>& files) {
  const RunSubjects subjects = subjects_of(runs);
  std::vector<std::string> stems, labels;
  for (const std::string& file : files) stems.push_back(std::filesystem::path(file).stem().string());
  for (std::size_t i = 0; i < runs.size(); ++i) {
    std::string label = policies_of(*runs[i]);
    if (!all_the_same(subjects.settings) && !subjects.settings[i].empty()) label += ", " + subjects.settings[i];
    if (!all_the_same(subjects.machines)) label = subjects.machines[i] + ", " + label;
    if (!all_the_same(subjects.steps)) label = subjects.steps[i] + ", " + label;
    labels.push_back(std::move(label));
  }
  std::vector<std::string> out = labels;
  for (std::size_t i = 0; i < labels.size(); ++i)
    if (is_shared(labels, i)) out[i] = fmt::format("{} ({})", labels[i], is_shared(stems, i) ? files[i] : stems[i]);
  return out;
}

std::string shared_headline(const std::vector<const Run*>& runs) {
  const RunSubjects subjects = subjects_of(runs);
  std::string line;
  if (all_the_same(subjects.steps)) line = subjects.steps.front();
  if (all_the_same(subjects.machines)) line += (line.empty() ? "on " : " on ") + subjects.machines.front();
  if (all_the_same(subjects.settings) && !subjects.settings.front().empty())
    line += (line.empty() ? "" : ", ") + subjects.settings.front();
  return line;
}

}  // namespace memwall::gui
