#include "models/workload/generate/configuration/hugging_face_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "sim/error.h"

namespace memwall {
namespace {

namespace dom = simdjson::dom;

std::string shown(const dom::element& value) {
  const std::string text = simdjson::minify(value);
  return text.size() <= 60 ? text : text.substr(0, 60) + "...";
}

}  // namespace

HuggingFaceConfig::HuggingFaceConfig(std::string_view json, std::string file) : file_(std::move(file)), text_(json) {
  dom::element element;
  if (const auto error = parser_.parse(text_).get(element))
    fail(fmt::format("the JSON is damaged: {}", simdjson::error_message(error)));
  if (element.get_object().get(members_)) fail("expected a JSON object: the config.json of a model");
}

void HuggingFaceConfig::fail(const std::string& sentence) const {
  throw InputError(fmt::format("{}: {}.", file_, sentence));
}

bool HuggingFaceConfig::holds(std::string_view key) const {
  dom::element value;
  return !members_.at_key(key).get(value);
}

HuggingFaceConfig HuggingFaceConfig::within(std::string_view key) const {
  const auto value = find(key);
  dom::object object;
  if (!value || value->get_object().get(object)) fail(fmt::format("there is no object \"{}\"; expected one", key));
  return HuggingFaceConfig(simdjson::minify(object), file_);
}

std::int64_t HuggingFaceConfig::integer(std::string_view key, std::int64_t otherwise, std::int64_t high) const {
  const auto value = find(key);
  if (!value) return otherwise;
  std::int64_t number = 0;
  if (value->get_int64().get(number)) fail(fmt::format("\"{}\" is {}; expected a whole number", key, shown(*value)));
  if (number < 0 || number > high) fail(fmt::format("\"{}\" is {}; expected 0 to {}", key, number, high));
  return number;
}

std::int64_t HuggingFaceConfig::size(std::string_view key, std::int64_t otherwise, std::int64_t high) const {
  const std::int64_t number = integer(key, otherwise, high);
  if (number == 0) fail(fmt::format("\"{}\" is 0; expected 1 to {}", key, high));
  return number;
}

double HuggingFaceConfig::number(std::string_view key, double otherwise) const {
  const auto value = find(key);
  double found = otherwise;
  if (value && value->get_double().get(found)) fail(fmt::format("\"{}\" is {}; expected a number", key, shown(*value)));
  return found;
}

double HuggingFaceConfig::share(std::string_view key, double otherwise) const {
  const auto value = find(key);
  if (!value) return otherwise;
  double number = 0;
  if (value->get_double().get(number) || !(number >= 0 && number < 1))
    fail(fmt::format("\"{}\" is {}; expected at least 0 and less than 1", key, shown(*value)));
  return number;
}

bool HuggingFaceConfig::flag(std::string_view key, bool otherwise) const {
  const auto value = find(key);
  if (!value) return otherwise;
  bool truth = false;
  if (value->get_bool().get(truth)) fail(fmt::format("\"{}\" is {}; expected true or false", key, shown(*value)));
  return truth;
}

std::string HuggingFaceConfig::text(std::string_view key, std::string_view otherwise) const {
  const auto value = find(key);
  if (!value) return std::string(otherwise);
  std::string_view found;
  if (value->get_string().get(found)) fail(fmt::format("\"{}\" is {}; expected a text", key, shown(*value)));
  return std::string(found);
}

std::vector<std::int64_t> HuggingFaceConfig::list(std::string_view key, std::vector<std::int64_t> otherwise) const {
  const auto value = find(key);
  if (!value) return otherwise;
  dom::array found;
  if (value->get_array().get(found) || found.size() > 1000)
    fail(fmt::format("\"{}\" is {}; expected a list of at most 1000 whole numbers", key, shown(*value)));
  std::vector<std::int64_t> numbers;
  for (const dom::element element : found) {
    std::int64_t number = 0;
    if (element.get_int64().get(number) || number < 1 || number > 100000)
      fail(fmt::format("\"{}\" holds {}; expected whole numbers from 1 to 100000", key, shown(element)));
    numbers.push_back(number);
  }
  return numbers;
}

std::vector<std::string> HuggingFaceConfig::texts(std::string_view key) const {
  const auto value = find(key);
  if (!value) return {};
  dom::array found;
  std::vector<std::string> texts;
  if (value->get_array().get(found)) fail(fmt::format("\"{}\" is {}; expected a list of texts", key, shown(*value)));
  for (const dom::element element : found) {
    std::string_view text;
    if (element.get_string().get(text)) fail(fmt::format("\"{}\" holds {}; expected texts alone", key, shown(element)));
    texts.emplace_back(text);
  }
  return texts;
}

bool HuggingFaceConfig::is_empty_list(std::string_view key) const {
  const auto value = find(key);
  dom::array found;
  return !value || (!value->get_array().get(found) && found.size() == 0);
}

std::size_t HuggingFaceConfig::members(std::string_view key) const {
  const auto value = find(key);
  dom::object object;
  if (!value || value->get_object().get(object)) return 0;
  return object.size();
}

double HuggingFaceConfig::number_within(std::string_view object, std::string_view key, double otherwise) const {
  const auto value = find(object);
  dom::object members;
  dom::element element;
  if (!value || value->get_object().get(members) || members.at_key(key).get(element) || element.is_null())
    return number(key, otherwise);
  double found = 0;
  if (element.get_double().get(found))
    fail(fmt::format("\"{}\" of \"{}\" is {}; expected a number", key, object, shown(element)));
  return found;
}

std::optional<dom::element> HuggingFaceConfig::find(std::string_view key) const {
  dom::element value;
  if (members_.at_key(key).get(value) || value.is_null()) return std::nullopt;
  return value;
}

Activation HuggingFaceConfig::activation(std::string_view key, std::string_view otherwise, bool gated) const {
  static const std::map<std::string, Activation, std::less<>> known{{"gelu", Activation::gelu},
                                                                    {"gelu_new", Activation::gelu_tanh},
                                                                    {"gelu_pytorch_tanh", Activation::gelu_tanh},
                                                                    {"gelu_fast", Activation::gelu_tanh},
                                                                    {"relu", Activation::relu}};
  const std::string name = text(key, otherwise);
  if (gated) {
    if (name == "silu" || name == "swish") return Activation::swiglu;
    fail(fmt::format("\"{}\" is \"{:.60}\"; expected \"silu\": no other gated activation is known here", key, name));
  }
  const auto found = known.find(name);
  if (found != known.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [n, a] : known) names.push_back(n);
  const std::string near = name.size() > 60 ? "" : nearest_name(name, names);
  fail(fmt::format("\"{}\" is \"{:.60}\"{}; expected one of {}", key, name,
                   near.empty() ? "" : fmt::format(" (nearest: \"{}\")", near), fmt::join(names, ", ")));
}

double HuggingFaceConfig::one_dropout(const std::vector<std::pair<const char*, double>>& keys) const {
  const double first = share(keys.front().first, keys.front().second);
  for (const auto& [key, otherwise] : keys)
    if (share(key, otherwise) != first)
      fail(fmt::format("\"{}\" is {} and \"{}\" is {}; expected one dropout for all", keys.front().first, first, key,
                       share(key, otherwise)));
  return first;
}

}  // namespace memwall
