// Members of a JSON document that a person or a program wrote, read one by one: what is not as expected is refused by
// a sentence with its place. Internal to traces/plan.
#pragma once

#include <fmt/format.h>
#include <simdjson.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/error.h"
#include "sim/units.h"

namespace memwall {

class PlanJson {
 public:
  using object_t = simdjson::dom::object;
  // `name`: of the file, for messages.
  explicit PlanJson(std::string name) : name_(std::move(name)) {}

  [[noreturn]] void fail(const std::string& at, const std::string& what) const {
    throw InputError(fmt::format("{}{}{}: {}.", name_, at.empty() ? "" : ", ", at, what));
  }

  // What was found there, shortened, and what was expected.
  [[noreturn]] void fail_of(simdjson::dom::element found, const std::string& at, const std::string& expected) const {
    constexpr std::size_t kMostShown = 40;
    std::string text = simdjson::minify(found);
    if (text.size() > kMostShown) text = text.substr(0, kMostShown) + "...";
    fail(at, "found " + text + "; expected " + expected);
  }

  static std::string inside(const std::string& at, const char* key) { return at.empty() ? key : at + "." + key; }

  static bool has(object_t of, const char* key) {
    simdjson::dom::element found;
    return !of.at_key(key).get(found);
  }

  object_t object(simdjson::dom::element element, const std::string& at) const {
    object_t found;
    if (element.get_object().get(found)) fail_of(element, at, "an object");
    return found;
  }

  simdjson::dom::element member(object_t of, const char* key, const std::string& at) const {
    simdjson::dom::element found;
    if (of.at_key(key).get(found)) fail(at, fmt::format("\"{}\" is missing", key));
    return found;
  }

  // A whole number from 0 to `most`.
  std::uint64_t number(object_t of, const char* key, const std::string& at, std::uint64_t most) const {
    std::uint64_t found = 0;
    const simdjson::dom::element element = member(of, key, at);
    if (element.get_uint64().get(found) || found > most)
      fail_of(element, inside(at, key), fmt::format("a whole number from 0 to {}", most));
    return found;
  }
  Bytes bytes(object_t of, const char* key, const std::string& at) const {
    constexpr std::uint64_t kMost = std::uint64_t{1} << 60;
    return static_cast<Bytes>(number(of, key, at, kMost));
  }
  std::uint32_t count(object_t of, const char* key, const std::string& at) const {
    return static_cast<std::uint32_t>(number(of, key, at, std::numeric_limits<std::uint32_t>::max()));
  }
  // A time in seconds, of at most a million.
  Duration seconds(object_t of, const char* key, const std::string& at) const {
    double found = 0;
    const simdjson::dom::element element = member(of, key, at);
    if (element.get_double().get(found) || !(found >= 0 && found <= 1e6))
      fail_of(element, inside(at, key), "seconds, from 0 to 1000000");
    return from_seconds(found);
  }

  bool flag(object_t of, const char* key, const std::string& at, std::optional<bool> otherwise) const {
    simdjson::dom::element element;
    if (of.at_key(key).get(element)) {
      if (otherwise) return *otherwise;
      fail(at, fmt::format("\"{}\" is missing", key));
    }
    bool found = false;
    if (element.get_bool().get(found)) fail_of(element, inside(at, key), "true or false");
    return found;
  }

  std::string text(object_t of, const char* key, const std::string& at) const {
    return text(member(of, key, at), inside(at, key));
  }
  std::string text(simdjson::dom::element element, const std::string& at) const {
    std::string_view found;
    if (element.get_string().get(found)) fail_of(element, at, "a text");
    return std::string(found);
  }
  std::string text_or_nothing(object_t of, const char* key, const std::string& at) const {
    return has(of, key) ? text(of, key, at) : "";
  }

  // Calls take(element, its place) of each item of a list.
  template <typename Take>
  void each_item(simdjson::dom::element list, const std::string& at, Take take) const {
    simdjson::dom::array items;
    if (list.get_array().get(items)) fail_of(list, at, "a list");
    std::size_t index = 0;
    for (const simdjson::dom::element item : items) take(item, fmt::format("{}[{}]", at, index++));
  }
  // The same of a list of objects.
  template <typename Take>
  void each(object_t of, const char* key, const std::string& at, Take take) const {
    each_item(member(of, key, at), inside(at, key),
              [&](simdjson::dom::element item, const std::string& here) { take(object(item, here), here); });
  }
  std::vector<std::string> texts(simdjson::dom::element list, const std::string& at) const {
    std::vector<std::string> found;
    each_item(list, at,
              [&](simdjson::dom::element item, const std::string& here) { found.push_back(text(item, here)); });
    return found;
  }

 private:
  std::string name_;
};

}  // namespace memwall
