#include "study/step_setting.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "models/workload/generate/configuration/other_names.h"
#include "models/workload/generate/configuration/workload_fields.h"
#include "models/workload/generate/configuration/workload_file.h"
#include "sim/error.h"
#include "study/network_name.h"

namespace memwall {
namespace {

bool is_setting(std::string_view name) {
  bool found = false;
  const auto visit = [&](std::string_view known, const auto&) { found |= known == name; };
  const Model model;
  const Recipe recipe;
  for_each_model_field(model, visit);
  for_each_recipe_field(recipe, visit);
  return found && name != "name";
}

// The policy that changes a captured step so, "" where there is none; {} stands for the value.
constexpr std::pair<std::string_view, std::string_view> kPolicies[] = {
    {"batch", "--policy batch:{}"},         {"sequence", "--second-size CAPTURE --policy batch:tokens=N"},
    {"precision", "--policy precision:{}"}, {"attention", "--policy attention:{}"},
    {"optimizer", "--policy optimizer:{}"}, {"accumulation", "--policy accumulate:{}"},
    {"checkpoint", "--policy checkpoint"},  {"activation_offload", "--policy offload:what=activations"},
    {"tensor", "--policy tensor:ranks={}"}, {"pipeline", "--policy pipeline:stages={}"},
};

std::string policy_for(const std::string& setting, const std::string& value) {
  const auto* const found =
      std::ranges::find(kPolicies, setting, &std::pair<std::string_view, std::string_view>::first);
  return found == std::end(kPolicies) ? "" : fmt::format(fmt::runtime(found->second), value);
}

}  // namespace

std::string step_setting(std::string_view word) {
  std::string name(word);
  std::ranges::replace(name, '-', '_');
  return is_setting(name) ? name : std::string(setting_called(word));
}

std::string where_to_set(const std::string& setting, const std::string& value, const std::string& step) {
  const std::string shown = value.empty() ? "N" : value;
  const std::string begin = setting + " is a setting of the step, given behind ";
  if (!step.empty() && names_workload(step)) return begin + "its name: " + with_setting(step, setting, shown) + ".";
  const std::string policy = policy_for(setting, shown);
  return begin + fmt::format("a network's name or the file of its configuration (NETWORK:{}={})", setting, shown) +
         (policy.empty() ? "." : "; a captured step takes " + policy + ".");
}

void require_no_step_setting(const std::vector<std::string>& overrides, const std::string& step) {
  for (const std::string& override : overrides) {
    const std::size_t equals = override.find('=');
    if (const std::string setting = step_setting(override.substr(0, equals)); !setting.empty())
      throw UsageError(
          fmt::format("--set {}: it changes numbers of the machine, and {}", override,
                      where_to_set(setting, equals == override.npos ? "" : override.substr(equals + 1), step)));
  }
}

}  // namespace memwall
