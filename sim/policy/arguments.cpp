#include "sim/policy/arguments.h"

#include <algorithm>
#include <cassert>

#include "sim/error.h"

namespace memwall {
namespace {

std::vector<std::string> names_of(const std::vector<ParameterInfo>& known) {
  std::vector<std::string> names;
  for (const ParameterInfo& p : known) names.push_back(p.name);
  return names;
}

}  // namespace

PolicyArguments::PolicyArguments(const std::string& policy, const std::map<std::string, std::string>& values,
                                 const std::vector<ParameterInfo>& known) {
  const std::vector<std::string> names = names_of(known);
  for (const auto& [key, value] : values)
    if (std::find(names.begin(), names.end(), key) == names.end())
      throw UsageError("Policy '" + policy + "' has no parameter '" + key + "'." + did_you_mean(key, names) +
                       (names.empty() ? " It takes none." : " It has: " + listed(names) + "."));
  for (const ParameterInfo& p : known) {
    const auto given = values.find(p.name);
    if (given == values.end() && p.required())
      throw UsageError("Policy '" + policy + "' needs '" + p.name + "=…' (" + values_text(p) + "): " + p.sentence);
    values_[p.name] = parse_parameter(policy, p, given == values.end() ? p.default_value : given->second);
  }
}

PolicyArguments PolicyArguments::parse(const std::string& policy, const std::string& text,
                                       const std::vector<ParameterInfo>& known) {
  const std::vector<std::string> names = names_of(known);
  std::map<std::string, std::string> values;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    std::string item = text.substr(begin, end - begin);
    const bool is_name = std::find(names.begin(), names.end(), item) != names.end();
    if (begin == 0 && !item.empty() && item.find('=') == std::string::npos && !names.empty() && !is_name)
      item = names.front() + "=" + item;
    const std::size_t equals = item.find('=');
    if (equals == std::string::npos || equals == 0)
      throw UsageError("Policy '" + policy + "': found '" + item + "', expected key=value.");
    if (!values.emplace(item.substr(0, equals), item.substr(equals + 1)).second)
      throw UsageError("Policy '" + policy + "': '" + item.substr(0, equals) + "' is given twice.");
    begin = end + 1;
  }
  return {policy, values, known};
}

const ParameterValue& PolicyArguments::at(const std::string& key) const {
  assert(values_.contains(key));
  return values_.at(key);
}

const std::string& PolicyArguments::choice(const std::string& key) const {
  assert(at(key).type == ParameterType::choice);
  return at(key).text;
}

std::int64_t PolicyArguments::integer(const std::string& key) const {
  assert(at(key).type == ParameterType::integer && at(key).set);
  return at(key).integer;
}

double PolicyArguments::number(const std::string& key) const {
  assert(at(key).type == ParameterType::number && at(key).set);
  return at(key).number;
}

bool PolicyArguments::flag(const std::string& key) const {
  assert(at(key).type == ParameterType::flag && at(key).set);
  return at(key).integer == 1;
}

Bytes PolicyArguments::bytes(const std::string& key) const {
  assert((at(key).type == ParameterType::bytes || at(key).type == ParameterType::bytes_or_share) && at(key).set);
  return at(key).integer;
}

double PolicyArguments::share(const std::string& key) const {
  assert(at(key).type == ParameterType::bytes_or_share && at(key).set);
  return at(key).number;
}

const std::string& PolicyArguments::tier(const std::string& key) const {
  assert(at(key).type == ParameterType::tier);
  return at(key).text;
}

const std::vector<std::string>& PolicyArguments::list(const std::string& key) const { return at(key).items; }

std::int64_t PolicyArguments::integer_or(const std::string& key, std::int64_t otherwise) const {
  return is_set(key) ? integer(key) : otherwise;
}

bool PolicyArguments::flag_or(const std::string& key, bool otherwise) const {
  return is_set(key) ? flag(key) : otherwise;
}

}  // namespace memwall
