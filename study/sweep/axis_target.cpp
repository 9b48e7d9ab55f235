#include "study/sweep/axis_target.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <numeric>
#include <utility>

#include "models/hw/bus_setting.h"
#include "models/workload/generate/configuration/workload_file.h"
#include "sim/error.h"
#include "sim/policy/registry.h"
#include "study/network_name.h"
#include "study/policy_text.h"
#include "study/text_parts.h"

namespace memwall {
namespace {

// Order of application.
constexpr int kSteps = 0, kSettings = 1, kPolicies = 2, kParameters = 3;

class WordTarget : public AxisTarget {
 public:
  WordTarget(std::string word, std::string Scenario::*member, bool names_step)
      : word_(std::move(word)), member_(member), names_step_(names_step) {}
  void apply(const std::string& value, Scenario& scenario) const override {
    scenario.*member_ = value == "none" ? "" : value;
  }
  bool names_step() const override { return names_step_; }
  std::string replaces() const override { return word_; }

 private:
  std::string word_;
  std::string Scenario::*member_;
  bool names_step_;
};

class StepTarget : public AxisTarget {
 public:
  void apply(const std::string& value, Scenario& scenario) const override { scenario.step = {value}; }
  bool names_step() const override { return true; }
};

class RepeatTarget : public AxisTarget {
 public:
  void apply(const std::string& value, Scenario& scenario) const override {
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), scenario.repeat);
    if (error != std::errc() || end != value.data() + value.size() || scenario.repeat == 0)
      throw UsageError(fmt::format("Axis repeat: found {}; expected a whole number of 1 or more.", value));
  }
};

// "checkpoint:mode=full + zero:stage=2", "none".
class PolicyTarget : public AxisTarget {
 public:
  void apply(const std::string& value, Scenario& scenario) const override {
    if (value == "none") return;
    for (std::size_t begin = 0; begin <= value.size();) {
      const std::size_t plus = std::min(value.find(" + ", begin), value.size());
      scenario.policies.push_back(value.substr(begin, plus - begin));
      begin = plus + 3;
    }
  }
  int rank() const override { return kPolicies; }
};

class ParameterTarget : public AxisTarget {
 public:
  ParameterTarget(std::string policy, std::string parameter)
      : policy_(std::move(policy)), parameter_(std::move(parameter)) {}
  void apply(const std::string& value, Scenario& scenario) const override {
    bool found = false;
    const auto set = [&](std::string& text) {
      if (text.substr(0, text.find(':')) != policy_) return;
      if (is_set_in(text))
        throw UsageError(fmt::format("Axis {}.{} sets what the policy {} of the point says already; leave one out.",
                                     policy_, parameter_, text));
      text = with_parameters(text, parameter_ + "=" + value);
      found = true;
    };
    for (std::string& text : scenario.policies) set(text);
    set(scenario.pager);
    if (!found)
      throw UsageError(
          fmt::format("Axis {0}.{1}: the point has no policy {0}; expected it in --policy or an axis "
                      "\"policy\", and where only some points have it \"if policy={0}\" behind the values.",
                      policy_, parameter_));
  }
  int rank() const override { return kParameters; }
  std::string replaces() const override { return policy_ + "." + parameter_; }

 private:
  bool is_set_in(const std::string& text) const {
    const std::size_t at = text.find(parameter_ + "=");
    return at != std::string::npos && at > 0 && (text[at - 1] == ':' || text[at - 1] == ',');
  }

  std::string policy_, parameter_;
};

class ScaleTarget : public AxisTarget {
 public:
  explicit ScaleTarget(std::string what) : what_(std::move(what)) {}
  void apply(const std::string& value, Scenario& scenario) const override {
    scenario.scale.push_back(what_ + "=" + value);
  }

 private:
  std::string what_;
};

class OverrideTarget : public AxisTarget {
 public:
  explicit OverrideTarget(std::string path) : path_(std::move(path)) {}
  void apply(const std::string& value, Scenario& scenario) const override {
    scenario.settings.push_back(path_ + "=" + value);
  }
  int rank() const override { return kSettings; }
  std::string replaces() const override { return path_; }

 private:
  std::string path_;
};

class NetworkTarget : public AxisTarget {
 public:
  explicit NetworkTarget(std::string key) : key_(std::move(key)) {}
  void apply(const std::string& value, Scenario& scenario) const override {
    std::string& step = scenario.step.front();
    step = with_setting(step, key_, value);
  }
  int rank() const override { return kSettings; }
  bool names_step() const override { return true; }
  // "layers" and "model.layers" are one.
  std::string replaces() const override { return "setting " + key_.substr(key_.find('.') + 1); }

 private:
  std::string key_;
};

// Of a captured step: `to` or `tokens` of its policy "batch", which the scenario may have for what the capture does not
// say (batch:1,from=512).
class BatchTarget : public AxisTarget {
 public:
  explicit BatchTarget(std::string parameter) : parameter_(std::move(parameter)) {}
  void apply(const std::string& value, Scenario& scenario) const override {
    for (std::string& text : scenario.policies)
      if (text == "batch" || text.starts_with("batch:")) {
        text = with_parameters(without_own(text), parameter_ + "=" + value);
        return;
      }
    scenario.policies.push_back("batch:" + parameter_ + "=" + value);
  }
  int rank() const override { return kParameters; }

 private:
  // "batch:1,from=512" without what is set: "batch:from=512". A parameter without a name is `to`.
  std::string without_own(const std::string& text) const {
    std::string rest = "batch";
    const std::size_t colon = text.find(':');
    if (colon == std::string::npos) return rest;
    for (const std::string& part : parts_of(text.substr(colon + 1), ',')) {
      const std::string name = part.find('=') == std::string::npos ? "to" : part.substr(0, part.find('='));
      if (name != parameter_) rest = with_parameters(rest, part);
    }
    return rest;
  }

  std::string parameter_;
};

const std::map<std::string, std::pair<std::string Scenario::*, bool>>& words() {
  static const std::map<std::string, std::pair<std::string Scenario::*, bool>> kWords = {
      {"machine", {&Scenario::machine, false}},
      {"pager", {&Scenario::pager, false}},
      {"allocator", {&Scenario::allocator, false}},
      {"allocator_settings", {&Scenario::allocator_settings, false}},
      {"budget", {&Scenario::budget, false}},
      {"executable", {&Scenario::executable, false}},
      {"plan", {&Scenario::plan, false}},
      {"onto", {&Scenario::onto, true}},
      {"measured_on", {&Scenario::measured_on, true}}};
  return kWords;
}

// Steps that the axes may run: those of the axis "step", or the base's.
std::vector<std::string> steps_of(const Scenario& base, const std::vector<Axis>& axes) {
  const auto axis = std::ranges::find(axes, "step", &Axis::name);
  return axis == axes.end() ? base.step : axis->values;
}

std::unique_ptr<AxisTarget> policy_parameter(const std::string& name) {
  const std::size_t dot = name.find('.');
  if (dot == std::string::npos) return nullptr;
  const auto policy = policies().find(name.substr(0, dot));
  if (policy == policies().end()) return nullptr;
  const std::string parameter = name.substr(dot + 1);
  std::vector<std::string> known;
  for (const ParameterInfo& info : policy->second.parameters) known.push_back(info.name);
  if (std::ranges::find(known, parameter) == known.end())
    throw UsageError(fmt::format("Axis {}: policy {} has no parameter \"{}\"; expected one of {}.{}", name,
                                 policy->first, parameter, listed(known), did_you_mean(parameter, known)));
  return std::make_unique<ParameterTarget>(policy->first, parameter);
}

// By name, or a file of one's own; settings may follow.
bool is_network(const std::string& step) {
  const std::string file = step.substr(0, step.find(':'));
  return names_workload(step) || file.ends_with(".textproto") || file.ends_with("config.json");
}

std::unique_ptr<AxisTarget> step_setting(const std::string& name, const std::vector<std::string>& steps) {
  const bool are_networks = !steps.empty() && std::ranges::all_of(steps, is_network);
  if (!are_networks) {
    if (name == "batch") return std::make_unique<BatchTarget>("to");
    if (name == "tokens") return std::make_unique<BatchTarget>("tokens");
    return nullptr;
  }
  return std::make_unique<NetworkTarget>(name);
}

// With the sentence of the settings, which names the nearest. A value that is wrong where others are right is that of
// its points.
void require_setting(const Axis& axis, const std::string& step) {
  const TrainingJob whole = load_training_job(step);
  std::string first;
  for (const std::string& value : axis.values) {
    try {
      TrainingJob job = whole;
      set(job, axis.name + "=" + value);
      return;
    } catch (const UsageError& error) {
      if (first.empty()) first = error.what();
    }
  }
  throw UsageError(first);
}

[[noreturn]] void refuse_name(const std::string& name) {
  std::vector<std::string> known = {"step", "policy", "repeat", "batch", "tokens", "scale.kernels", "scale.host"};
  for (const auto& [word, member] : words()) known.push_back(word);
  for (const std::string& bus : bus_settings()) known.push_back(bus);
  throw UsageError(fmt::format(
      "Axis \"{}\": there is nothing of that name; expected one of {}; a number of the machine (gpu.hbm.bandwidth, "
      "link.pcie_h2d.bandwidth), a parameter of a policy (checkpoint.mode) or, of a generated step, a setting of its "
      "(sequence).{}",
      name, listed(known), did_you_mean(name, known)));
}

}  // namespace

std::unique_ptr<AxisTarget> axis_target(const std::string& name, const Scenario& base, const std::vector<Axis>& axes) {
  if (name == "step") return std::make_unique<StepTarget>();
  if (name == "policy") return std::make_unique<PolicyTarget>();
  if (name == "repeat") return std::make_unique<RepeatTarget>();
  if (const auto word = words().find(name); word != words().end())
    return std::make_unique<WordTarget>(name, word->second.first, word->second.second);
  if (name.starts_with("scale.")) return std::make_unique<ScaleTarget>(name.substr(6));
  if (auto parameter = policy_parameter(name)) return parameter;
  const bool is_bus = std::ranges::find(bus_settings(), name) != bus_settings().end();
  if (is_bus || (name.find('.') != std::string::npos && !name.starts_with("model.") && !name.starts_with("recipe.")))
    return std::make_unique<OverrideTarget>(name);
  const std::vector<std::string> steps = steps_of(base, axes);
  auto setting = step_setting(name, steps);
  if (!setting) refuse_name(name);
  if (setting->names_step()) {
    const auto axis = std::ranges::find(axes, name, &Axis::name);
    if (axis != axes.end()) require_setting(*axis, steps.front());
  }
  return setting;
}

Scenario scenario_at(const PointValues& values, const Scenario& base, const AxisTargets& targets) {
  std::vector<std::size_t> order(targets.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return targets[i]->rank(); });
  Scenario scenario = base;
  for (const std::size_t i : order)
    if (!values[i].empty()) targets[i]->apply(values[i], scenario);
  return scenario;
}

}  // namespace memwall
