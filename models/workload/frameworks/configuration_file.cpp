#include "models/workload/frameworks/configuration_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <fstream>
#include <iterator>
#include <optional>

#include "sim/error.h"

namespace memwall {
namespace {

using Kind = ConfigurationValue::Kind;

// A configuration is a few kilobytes; what is larger is another file.
constexpr std::uintmax_t kMostBytes = std::uintmax_t{16} << 20;

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

std::optional<bool> truth_of(const ConfigurationValue& value) {
  if (value.kind == Kind::boolean) return value.truth;
  if (value.kind != Kind::text) return std::nullopt;
  const std::string word = lower(value.text);
  if (word == "true" || word == "yes" || word == "on") return true;
  if (word == "false" || word == "no" || word == "off") return false;
  return std::nullopt;
}

std::optional<double> number_of(const ConfigurationValue& value) {
  if (value.kind == Kind::number) return value.number;
  if (value.kind != Kind::text) return std::nullopt;
  double number = 0;
  const char* end = value.text.data() + value.text.size();
  const auto [last, error] = std::from_chars(value.text.data(), end, number);
  return error == std::errc{} && last == end ? std::optional(number) : std::nullopt;
}

ConfigurationEntries entries_of(std::string_view text, ConfigurationFile::Syntax syntax, const std::string& name) {
  switch (syntax) {
    case ConfigurationFile::Syntax::json:
      return entries_of_json(text, name);
    case ConfigurationFile::Syntax::toml:
      return entries_of_toml(text, name);
    case ConfigurationFile::Syntax::yaml:
      return entries_of_yaml(text, name);
  }
  return {};
}

}  // namespace

ConfigurationFile::ConfigurationFile(std::string_view text, Syntax syntax, std::string name) : name_(std::move(name)) {
  for (auto& [path, value] : entries_of(text, syntax, name_)) {
    if (!values_.contains(path)) order_.push_back(path);
    values_[path] = std::move(value);
  }
}

ConfigurationFile ConfigurationFile::read(const std::filesystem::path& path, Syntax otherwise) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  std::ifstream in(path, std::ios::binary);
  if (error || !in) throw InputError(fmt::format("{}: cannot be read; expected a configuration file.", path.string()));
  if (size > kMostBytes)
    throw InputError(fmt::format("{}: it has {} bytes; expected a configuration file of at most {}.", path.string(),
                                 size, kMostBytes));
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  const std::string ending = lower(path.extension().string());
  const Syntax syntax = ending == ".json"                       ? Syntax::json
                        : ending == ".toml"                     ? Syntax::toml
                        : ending == ".yaml" || ending == ".yml" ? Syntax::yaml
                                                                : otherwise;
  return ConfigurationFile(text, syntax, path.string());
}

const ConfigurationValue* ConfigurationFile::find(std::string_view path) const {
  asked_.emplace(path);
  const auto found = values_.find(path);
  if (found == values_.end() || found->second.kind == Kind::null || is_auto(path)) return nullptr;
  return &found->second;
}

bool ConfigurationFile::is_auto(std::string_view path) const {
  const auto found = values_.find(path);
  return found != values_.end() && found->second.kind == Kind::text && lower(found->second.text) == "auto";
}

bool ConfigurationFile::has(std::string_view path) const { return find(path) != nullptr; }

bool ConfigurationFile::has_any(std::string_view path) const {
  const std::string below = std::string(path) + ".";
  return std::any_of(values_.begin(), values_.end(), [&](const auto& entry) {
    return entry.second.kind != Kind::null && (entry.first == path || entry.first.starts_with(below));
  });
}

void ConfigurationFile::fail(std::string_view path, const std::string& expected) const {
  const auto found = values_.find(path);
  throw InputError(fmt::format("{}: \"{}\" is {}; expected {}.", name_, path,
                               found == values_.end() ? "absent" : found->second.text, expected));
}

void ConfigurationFile::refuse(const std::string& sentence) const {
  throw InputError(fmt::format("{}: {}.", name_, sentence));
}

bool ConfigurationFile::flag(std::string_view path, bool otherwise) const {
  const ConfigurationValue* value = find(path);
  if (!value) return otherwise;
  const std::optional<bool> truth = truth_of(*value);
  if (!truth) fail(path, "true or false");
  return *truth;
}

std::int64_t ConfigurationFile::integer(std::string_view path, std::int64_t otherwise, std::int64_t low,
                                        std::int64_t high) const {
  const ConfigurationValue* value = find(path);
  if (!value) return otherwise;
  const std::optional<double> number = number_of(*value);
  if (!number || *number != std::floor(*number) || *number < static_cast<double>(low) ||
      *number > static_cast<double>(high))
    fail(path, fmt::format("a whole number from {} to {}", low, high));
  return static_cast<std::int64_t>(*number);
}

double ConfigurationFile::number(std::string_view path, double otherwise, double low, double high) const {
  const ConfigurationValue* value = find(path);
  if (!value) return otherwise;
  const std::optional<double> number = number_of(*value);
  if (!number || !(*number >= low && *number <= high)) fail(path, fmt::format("a number from {} to {}", low, high));
  return *number;
}

std::string ConfigurationFile::text(std::string_view path, std::string_view otherwise) const {
  const ConfigurationValue* value = find(path);
  if (!value) return std::string(otherwise);
  if (value->kind == Kind::list) fail(path, "a text");
  return value->text;
}

std::vector<std::string> ConfigurationFile::list(std::string_view path) const {
  const ConfigurationValue* value = find(path);
  if (!value) return {};
  if (value->kind == Kind::list) return value->list;
  std::vector<std::string> words;
  std::string word;
  for (const char c : value->text + " ") {
    if (c != ' ' && c != ',') {
      word += c;
      continue;
    }
    if (!word.empty()) words.push_back(word);
    word.clear();
  }
  return words;
}

std::vector<std::string> ConfigurationFile::unknown() const {
  std::vector<std::string> out;
  for (const std::string& path : order_) {
    if (asked_.contains(path)) continue;
    const bool is_passed_over = std::any_of(passed_over_.begin(), passed_over_.end(), [&](const std::string& known) {
      return path == known || path.starts_with(known + ".");
    });
    if (!is_passed_over) out.push_back(path);
  }
  return out;
}

std::string ConfigurationFile::nearest(const std::string& path) const {
  std::vector<std::string> absent;
  for (const std::string& asked : asked_)
    if (!values_.contains(asked)) absent.push_back(asked);
  return nearest_name(path, absent);
}

}  // namespace memwall
