#include "study/step_text.h"

#include <algorithm>

#include "models/workload/generate/configuration/workload_file.h"

namespace memwall {
namespace {

// "layers" of "model.layers=4".
std::string name_of(const std::string& setting) {
  const std::string path = setting.substr(0, setting.find('='));
  return path.substr(path.find('.') + 1);  // npos + 1 = 0
}

}  // namespace

std::vector<std::string> settings_said(const std::string& step) {
  std::vector<std::string> names;
  for (const std::string& setting : name_and_settings(step).settings) names.push_back(name_of(setting));
  return names;
}

std::string without_settings(const std::string& step, std::span<const std::string_view> names) {
  const NameAndSettings parts = name_and_settings(step);
  std::string kept = parts.name;
  char separator = ':';
  for (const std::string& setting : parts.settings) {
    if (std::ranges::find(names, name_of(setting)) != names.end()) continue;
    kept += separator + setting;
    separator = ',';
  }
  return kept;
}

}  // namespace memwall
