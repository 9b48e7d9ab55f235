#include "study/explain/varied_number.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <set>

#include "models/hw/machine_file.h"
#include "models/hw/machine_variants.h"
#include "sim/error.h"
#include "sim/policy/registry.h"
#include "study/network_name.h"

namespace memwall {
namespace {

// What a number of a machine file names, rather than how much there is of something: a smaller version of the compute
// capability is another GPU, and profiles of MIG are choices.
constexpr std::array<const char*, 3> kNames = {"gpu.compute_major", "gpu.compute_minor", "gpu.mig_profile."};

bool is_name(const std::string& path) {
  return std::ranges::any_of(kNames, [&](const char* name) { return path.starts_with(name); });
}

constexpr std::array<const char*, 4> kScales = {"kernels", "copies", "host", "collectives"};

// Only a number that takes whole values alone refuses a share of itself and takes its neighbour.
bool takes_whole_alone(const MachineVariants& machine, const Scenario& scenario, const VariedNumber& number) {
  if (!number.unit.empty() || number.value != std::floor(number.value)) return false;
  const auto takes = [&](double value) {
    try {
      (void)machine.with(with_value(scenario, number, value).settings);
      return true;
    } catch (const UsageError&) {
      return false;
    } catch (const InputError&) {
      return false;
    }
  };
  return !takes(number.value * 0.97) && !takes(number.value * 1.03);
}

void add_machine_numbers(const std::string& name, const Scenario& scenario, VariedNumbers& all) {
  const MachineVariants machine(name);
  for (const MachineNumber& stated : machine_numbers(name, scenario.settings)) {
    VariedNumber number{.name = stated.path};
    if (is_name(stated.path) || !split_quantity(stated.value, number.value, number.unit) || !(number.value > 0)) {
      all.fixed.push_back(stated.path);
      continue;
    }
    number.is_whole = takes_whole_alone(machine, scenario, number);
    all.numbers.push_back(std::move(number));
  }
}

// Links and routes that a copy between two memories crosses, as far as its file states them. What kernels and the
// host's own work cross is no part of the way.
class WayReader {
 public:
  WayReader(const Machine& machine, VariedNumbers& all) : machine_(machine), all_(all) {}

  void add_all() {
    std::vector<VariedNumber> ways;
    for (const Route& route : machine_.routes) {
      if (route.from == route.to || route.pageable) continue;
      const std::string from = machine_.tiers[route.from].name, to = machine_.tiers[route.to].name;
      add(fmt::format("{} to {}", from, to), {&route}, ways);
      const Route* const back = machine_.route(route.to, route.from, false);
      if (back != nullptr && route.from < route.to)
        add(fmt::format("between {} and {}", from, to), {&route, back}, ways);
    }
    for (VariedNumber& way : ways) all_.numbers.push_back(std::move(way));
  }

 private:
  void add(std::string name, const std::vector<const Route*>& routes, std::vector<VariedNumber>& ways) const {
    std::set<std::string> names;
    for (const Route* route : routes) {
      for (const std::uint16_t link : route->links)
        if (link != machine_.hbm_link && link != machine_.dram_link)
          names.insert(fmt::format("link.{}.bandwidth", machine_.links[link].name));
      names.insert(fmt::format("route.{}.bandwidth", route->name));
    }
    VariedNumber way{
        .name = std::move(name), .kind = NumberKind::way, .value = routes.front()->bandwidth / 1e9, .unit = "GB/s"};
    for (const VariedNumber& number : all_.numbers)
      if (names.contains(number.name)) way.parts.push_back(number);
    if (!way.parts.empty() && way.value > 0) ways.push_back(std::move(way));
  }

  const Machine& machine_;
  VariedNumbers& all_;
};

void add_ways(const Machine& machine, VariedNumbers& all) { WayReader(machine, all).add_all(); }

bool is_number(ParameterType type) {
  return type == ParameterType::integer || type == ParameterType::number || type == ParameterType::bytes ||
         type == ParameterType::bytes_or_share;
}

void add_parameters(const std::string& text, NumberKind kind, std::size_t index, VariedNumbers& all) {
  const PolicySpec spec = parse_policy(text);
  for (const ParameterInfo& info : spec.info->parameters) {
    if (!is_number(info.type)) continue;
    VariedNumber number{.name = fmt::format("{}.{}", spec.info->name, info.name),
                        .kind = kind,
                        .is_whole = info.type == ParameterType::integer,
                        .parameter = info.name,
                        .policy = index};
    const bool varies = spec.arguments.is_set(info.name) &&
                        split_quantity(spec.arguments.text(info.name), number.value, number.unit) && number.value > 0;
    if (varies)
      all.numbers.push_back(std::move(number));
    else
      all.fixed.push_back(number.name);
  }
}

bool matches(std::string_view pattern, std::string_view name) {
  if (pattern.empty()) return name.empty();
  if (pattern.front() != '*')
    return !name.empty() && pattern.front() == name.front() && matches(pattern.substr(1), name.substr(1));
  for (std::size_t i = 0; i <= name.size(); ++i)
    if (matches(pattern.substr(1), name.substr(i))) return true;
  return false;
}

// "offload" or "offload:what=activations" with that parameter, in place of one of its name.
std::string with_parameter(const std::string& policy, const std::string& key, const std::string& value) {
  const PolicySpec spec = parse_policy(policy);
  // The first parameter may stand without its name, and would stand twice.
  const std::size_t colon = policy.find(':');
  const bool is_nameless = colon != std::string::npos && !spec.info->parameters.empty() &&
                           policy.substr(colon + 1, policy.find(',') - colon - 1).find('=') == std::string::npos;
  if (!is_nameless) return with_setting(policy, key, value);
  const std::string first = spec.info->parameters.front().name;
  return with_setting(fmt::format("{}:{}={}", spec.info->name, first, policy.substr(colon + 1)), key, value);
}

}  // namespace

std::string_view to_string(NumberKind kind) {
  constexpr std::array<std::string_view, 6> kNames = {"machine", "way", "scale", "policy", "pager", "budget"};
  return kNames[static_cast<std::size_t>(kind)];
}

bool split_quantity(const std::string& text, double& value, std::string& unit) {
  char* end = nullptr;
  value = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || !std::isfinite(value)) return false;
  while (*end == ' ') ++end;
  unit = end;
  return unit.find_first_of(":,") == std::string::npos;
}

VariedNumbers varied_numbers(Study& study, const Scenario& scenario) {
  VariedNumbers all;
  const LoadedStep loaded = study.load(scenario);
  add_machine_numbers(scenario.machine.empty() ? loaded.trace->machine : scenario.machine, scenario, all);
  add_ways(*loaded.machine, all);
  for (const char* what : kScales)
    all.numbers.push_back(
        {.name = fmt::format("scale.{}", what), .kind = NumberKind::scale, .value = 1, .parameter = what});
  for (std::size_t i = 0; i < scenario.policies.size(); ++i)
    add_parameters(scenario.policies[i], NumberKind::policy, i, all);
  if (!scenario.pager.empty()) add_parameters(scenario.pager, NumberKind::pager, 0, all);
  VariedNumber budget{.name = "budget", .kind = NumberKind::budget};
  if (split_quantity(scenario.budget, budget.value, budget.unit) && budget.value > 0)
    all.numbers.push_back(std::move(budget));
  return all;
}

VariedNumbers selected(VariedNumbers all, const std::vector<std::string>& patterns) {
  if (patterns.empty()) return all;
  std::vector<std::string> names = all.fixed;
  for (const VariedNumber& number : all.numbers) names.push_back(number.name);
  for (const std::string& pattern : patterns)
    if (std::ranges::none_of(names, [&](const std::string& name) { return matches(pattern, name); }))
      throw UsageError(
          fmt::format("--only {}: the scenario has no number of that name; expected one of those that "
                      "`memwall machines show` and `memwall policies show` list, as in "
                      "gpu.hbm.bandwidth, link.*.bandwidth, scale.kernels.{}",
                      pattern, did_you_mean(pattern, names)));
  const auto is_other = [&](const std::string& name) {
    return std::ranges::none_of(patterns, [&](const std::string& pattern) { return matches(pattern, name); });
  };
  std::erase_if(all.numbers, [&](const VariedNumber& number) { return is_other(number.name); });
  std::erase_if(all.fixed, is_other);
  return all;
}

std::string typed_value(const VariedNumber& number, double value) {
  if (number.is_whole || number.unit == "B") return fmt::format("{:.0f}{}", value, number.unit);
  return fmt::format("{:.12g}{}", value, number.unit);
}

Scenario with_value(Scenario scenario, const VariedNumber& number, double value) {
  const std::string typed = typed_value(number, value);
  switch (number.kind) {
    case NumberKind::machine:
      scenario.settings.push_back(fmt::format("{}={}", number.name, typed));
      break;
    case NumberKind::way:
      for (const VariedNumber& part : number.parts)
        scenario = with_value(std::move(scenario), part, part.value * (value / number.value));
      break;
    case NumberKind::scale:
      scenario.scale.push_back(fmt::format("{}={}", number.parameter, typed));
      break;
    case NumberKind::policy:
      scenario.policies[number.policy] = with_parameter(scenario.policies[number.policy], number.parameter, typed);
      break;
    case NumberKind::pager:
      scenario.pager = with_parameter(scenario.pager, number.parameter, typed);
      break;
    case NumberKind::budget:
      scenario.budget = typed;
      break;
  }
  return scenario;
}

}  // namespace memwall
