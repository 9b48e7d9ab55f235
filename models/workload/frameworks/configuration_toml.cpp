#include <fmt/format.h>
#include <toml++/toml.h>

#include <sstream>

#include "models/workload/frameworks/configuration_file.h"
#include "sim/error.h"

namespace memwall {
namespace {

using Kind = ConfigurationValue::Kind;

std::string toml_text(const toml::node& node) {
  if (const auto text = node.as_string()) return text->get();
  std::ostringstream out;
  node.visit([&](const auto& value) { out << value; });
  return out.str();
}

ConfigurationValue toml_value(const toml::node& node) {
  ConfigurationValue value;
  value.text = toml_text(node);
  if (node.is_string()) {
    value.kind = Kind::text;
  } else if (const auto truth = node.as_boolean()) {
    value.kind = Kind::boolean;
    value.truth = truth->get();
  } else if (node.is_number()) {
    value.kind = Kind::number;
    value.number = node.value_or(0.0);
  } else if (const auto array = node.as_array()) {
    value.kind = Kind::list;
    for (const toml::node& each : *array) value.list.push_back(toml_text(each));
  }
  return value;
}

// The file's order is lost: toml++ keeps the keys of a table sorted.
void add_toml(const std::string& path, const toml::table& table, ConfigurationEntries& out) {
  for (const auto& [key, node] : table) {
    const std::string below = path.empty() ? std::string(key.str()) : fmt::format("{}.{}", path, key.str());
    if (const auto inner = node.as_table())
      add_toml(below, *inner, out);
    else
      out.emplace_back(below, toml_value(node));
  }
}

}  // namespace

ConfigurationEntries entries_of_toml(std::string_view text, const std::string& name) {
  try {
    ConfigurationEntries out;
    add_toml("", toml::parse(text, name), out);
    return out;
  } catch (const toml::parse_error& error) {
    const toml::source_position at = error.source().begin;
    throw InputError(fmt::format("{}:{}:{}: the TOML is damaged: {}.", name, at.line, at.column, error.description()));
  }
}

}  // namespace memwall
