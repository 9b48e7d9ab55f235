#include "sim/policy/registry.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "sim/error.h"
#include "sim/trace/dataflow_note.h"
#include "sim/word_of.h"

namespace memwall {
namespace {

std::map<std::string, PolicyInfo>& registered() {
  static std::map<std::string, PolicyInfo> all;
  return all;
}

// Whole numbers are held as such, whatever the parameter: files do not tell 1 from 1.0.
AppliedValue applied_number(double number) {
  const double whole = std::floor(number);
  if (whole == number && std::abs(number) < 9e15) return static_cast<std::int64_t>(number);
  return number;
}

AppliedValue applied_value(const PolicyArguments& arguments, const ParameterInfo& parameter) {
  if (!arguments.is_set(parameter.name)) {
    const std::string& word = arguments.text(parameter.name);
    if (word == "0") return std::int64_t{0};
    return word;
  }
  switch (parameter.type) {
    case ParameterType::flag:
      return arguments.flag(parameter.name);
    case ParameterType::integer:
      return arguments.integer(parameter.name);
    case ParameterType::number:
      return applied_number(arguments.number(parameter.name));
    case ParameterType::bytes:
      return arguments.bytes(parameter.name);
    case ParameterType::bytes_or_share:
      if (arguments.share(parameter.name) == 0) return arguments.bytes(parameter.name);
      return arguments.text(parameter.name);
    case ParameterType::choices:
    case ParameterType::tiers:
    case ParameterType::patterns:
      return arguments.list(parameter.name);
    case ParameterType::choice:
    case ParameterType::tier:
    case ParameterType::program:
      break;
  }
  return arguments.text(parameter.name);
}

}  // namespace

std::string_view to_string(PolicyKind kind) {
  static constexpr std::string_view words[] = {"precision", "batch",       "recipe",  "fusion", "model_parallelism",
                                               "sharding",  "memory_plan", "launches", "pager"};
  return word_of(words, kind);
}

std::string_view to_string(RankRule rule) {
  static constexpr std::string_view words[] = {"each_alone", "each_alike", "each_meeting", "one_program"};
  return word_of(words, rule);
}

const std::map<std::string, PolicyInfo>& policies() { return registered(); }

const PolicyInfo& policy_of(PolicyKind kind) {
  const auto found = std::find_if(policies().begin(), policies().end(),
                                  [&](const auto& policy) { return policy.second.kind == kind; });
  assert(found != policies().end());
  return found->second;
}

RegisterPolicy::RegisterPolicy(PolicyInfo info) {
  assert((info.kind == PolicyKind::pager) == (info.make_pager != nullptr));
  assert(!info.make_rewriter != !info.make_pager);
  [[maybe_unused]] const bool is_new = registered().emplace(info.name, std::move(info)).second;
  assert(is_new && "two policies of one name");
}

const PolicyInfo& policy_named(const std::string& name) {
  const auto found = policies().find(name);
  if (found != policies().end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [known, info] : policies()) names.push_back(known);
  if (const auto meant = policies().find(name.substr(0, name.find('='))); meant != policies().end()) {
    std::vector<std::string> keys;
    for (const ParameterInfo& parameter : meant->second.parameters) keys.push_back(parameter.name);
    throw UsageError("There is no policy '" + name + "'. Parameters stand behind a colon: '" + meant->first +
                     ":KEY=VALUE', with keys " + listed(keys) + ".");
  }
  throw UsageError("There is no policy '" + name + "'." + did_you_mean(name, names) + " Known: " + listed(names) + ".");
}

PolicySpec parse_policy(const std::string& text) {
  const std::size_t colon = std::min(text.find(':'), text.size());
  const PolicyInfo& info = policy_named(text.substr(0, colon));
  const std::string rest = colon < text.size() ? text.substr(colon + 1) : "";
  return {&info, PolicyArguments::parse(info.name, rest, info.parameters), text};
}

AppliedPolicy applied_policy(const PolicySpec& spec) {
  AppliedPolicy applied{spec.info->name};
  for (const ParameterInfo& parameter : spec.info->parameters)
    applied.settings.emplace_back(parameter.name, applied_value(spec.arguments, parameter));
  return applied;
}

std::vector<std::string> missing_knowledge(const Knowledge& needs, const Knowledge& has) {
  std::vector<std::string> missing;
  if (needs.timing && !has.timing) missing.emplace_back("timing");
  if (needs.allocations && !has.allocations) missing.emplace_back("allocations");
  if (needs.dataflow && !has.dataflow) missing.emplace_back("dataflow");
  if (needs.modules && !has.modules) missing.emplace_back("modules");
  if (needs.shapes && !has.shapes) missing.emplace_back("shapes");
  return missing;
}

void require_knowledge(const PolicySpec& spec, const Trace& trace, const Knowledge& more) {
  const Knowledge& least = spec.info->needs;
  const Knowledge needs{.timing = least.timing || more.timing,
                        .allocations = least.allocations || more.allocations,
                        .dataflow = least.dataflow || more.dataflow,
                        .modules = least.modules || more.modules,
                        .shapes = least.shapes || more.shapes};
  const std::vector<std::string> missing = missing_knowledge(needs, trace.knowledge);
  if (missing.empty()) return;
  const std::string why = why_no_dataflow(trace);
  const std::string other = has_short_execution_trace(trace)
                                ? "a step of the same network (--onto) adds whatever is missing."
                                : "an ExecutionTrace of the same run (--et) adds dataflow, a step of the same network "
                                  "(--onto) whatever is missing.";
  throw UsageError("Policy '" + spec.info->name + "' needs " + listed(missing) + ", which trace '" + trace.name +
                   "' does not know. " + (why.empty() ? "" : why + " ") + "`memwall inspect` lists what it knows; " +
                   other);
}

}  // namespace memwall
