#include <fmt/format.h>
#include <simdjson.h>

#include "models/workload/frameworks/configuration_file.h"
#include "sim/error.h"

namespace memwall {
namespace {

namespace dom = simdjson::dom;
using Kind = ConfigurationValue::Kind;

// Without the quotes that JSON puts around a text.
std::string json_text(const dom::element& element) {
  std::string_view text;
  return element.get_string().get(text) == simdjson::SUCCESS ? std::string(text) : simdjson::minify(element);
}

ConfigurationValue json_value(const dom::element& element) {
  ConfigurationValue value;
  value.text = json_text(element);
  switch (element.type()) {
    case dom::element_type::STRING:
      value.kind = Kind::text;
      break;
    case dom::element_type::BOOL:
      value.kind = Kind::boolean;
      value.truth = bool(element);
      break;
    case dom::element_type::INT64:
    case dom::element_type::UINT64:
    case dom::element_type::DOUBLE:
      value.kind = Kind::number;
      value.number = double(element);
      break;
    case dom::element_type::ARRAY:
      value.kind = Kind::list;
      for (const dom::element& each : dom::array(element)) value.list.push_back(json_text(each));
      break;
    default:
      break;
  }
  return value;
}

// simdjson refuses what is nested more than 1,024 deep.
void add_json(const std::string& path, const dom::element& element, ConfigurationEntries& out) {
  if (element.type() != dom::element_type::OBJECT) return out.emplace_back(path, json_value(element)), void();
  for (const dom::key_value_pair& member : dom::object(element))
    add_json(path.empty() ? std::string(member.key) : fmt::format("{}.{}", path, member.key), member.value, out);
}

}  // namespace

ConfigurationEntries entries_of_json(std::string_view text, const std::string& name) {
  dom::parser parser;
  dom::element root;
  if (const auto error = parser.parse(simdjson::padded_string(text)).get(root))
    throw InputError(fmt::format("{}: the JSON is damaged: {}.", name, simdjson::error_message(error)));
  if (root.type() != dom::element_type::OBJECT)
    throw InputError(fmt::format("{}: found JSON that is no object; expected a configuration.", name));
  ConfigurationEntries out;
  add_json("", root, out);
  return out;
}

}  // namespace memwall
