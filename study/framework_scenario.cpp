#include "study/framework_scenario.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "sim/error.h"
#include "study/network_name.h"
#include "study/workload_file.h"

namespace memwall {
namespace {

std::string key_of(const std::string& setting) { return setting.substr(0, setting.find('=')); }
std::string value_of(const std::string& setting) { return setting.substr(setting.find('=') + 1); }

bool says(const std::string& network, const std::string& key) {
  return network.find(":" + key + "=") != std::string::npos || network.find("," + key + "=") != std::string::npos;
}

// The last setting of a key is the file's: a named file's stand behind those of the one that names it.
std::vector<std::string> last_of_each_key(const std::vector<std::string>& settings) {
  std::vector<std::string> out;
  for (const std::string& setting : settings) {
    std::erase_if(out, [&](const std::string& other) { return key_of(other) == key_of(setting); });
    out.push_back(setting);
  }
  return out;
}

std::vector<std::string> apply_settings(const FrameworkJob& job, const std::string& file, Scenario& scenario) {
  const std::vector<std::string> settings = last_of_each_key(job.settings);
  if (settings.empty()) return {};
  if (scenario.step.size() != 1 || !is_generated_step(scenario.step.front()))
    return {fmt::format("The step is a capture, which keeps its own settings; left out of {}: {}.", file,
                        fmt::join(settings, ", "))};
  std::string& network = scenario.step.front();
  std::vector<std::string> kept;
  for (const std::string& setting : settings) {
    if (says(network, key_of(setting)))
      kept.push_back(setting);
    else
      network = with_setting(network, key_of(setting), value_of(setting));
  }
  if (kept.empty()) return {};
  return {fmt::format("The step's own settings stand; left out of {}: {}.", file, fmt::join(kept, ", "))};
}

// Each with the key that it may have been meant for.
std::vector<std::string> unknown_keys_of(const FrameworkJob& job) {
  std::vector<std::string> keys = job.unknown_keys;
  for (std::size_t i = 0; i < keys.size(); ++i)
    if (i < job.meant_keys.size() && !job.meant_keys[i].empty())
      keys[i] += fmt::format(" (did you mean {}?)", job.meant_keys[i]);
  return keys;
}

}  // namespace

std::vector<std::string> take_framework_job(const FrameworkJob& job, Framework framework, Scenario& scenario) {
  const std::string file = job.files.front().string();
  if (scenario.step.empty() && job.network.empty())
    throw UsageError(
        fmt::format("{}: it names no network that memwall knows; give the step: a capture, a trace or a "
                    "network's name.",
                    file));
  if (scenario.step.empty()) scenario.step = {job.network};
  std::vector<std::string> sentences = apply_settings(job, file, scenario);
  scenario.policies.insert(scenario.policies.begin(), job.policies.begin(), job.policies.end());
  std::string what = scenario.step.size() == 1 ? scenario.step.front() : "the step";
  for (const std::string& policy : job.policies) what += " --policy " + policy;
  sentences.insert(sentences.begin(), fmt::format("{} ({}) is: {}", file, to_string(framework), what));
  if (!job.unknown_keys.empty())
    sentences.insert(sentences.begin() + 1,
                     fmt::format("{} {} that {} does not have, or memwall does not know, and the job is simulated "
                                 "without: {}.",
                                 file, job.unknown_keys.size() == 1 ? "has a key" : "has keys", to_string(framework),
                                 fmt::join(unknown_keys_of(job), ", ")));
  for (const std::string& note : job.notes) sentences.push_back(note);
  return sentences;
}

}  // namespace memwall
