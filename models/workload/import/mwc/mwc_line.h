// The members of one line of a captured step, each in its range. Internal to the reader of captures.
#pragma once

#include <fmt/format.h>
#include <simdjson.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/workload/import/bytes/quote_for_message.h"
#include "models/workload/import/bytes/line_source.h"
#include "sim/error.h"

namespace memwall {

namespace od = simdjson::ondemand;

class MwcLine {
 public:
  using string_view = std::string_view;

  static constexpr std::size_t kLongest = std::size_t{64} << 20;              // 64 MiB: a million tensors and more
  static constexpr std::uint64_t kMostNumber = (std::uint64_t{1} << 31) - 1;  // of storages, ops and events

  MwcLine(od::parser& parser, const LineSource& lines) : parser_(parser), lines_(lines) {}

  // Calls `take(key, value)` for every member; which keys are of interest is the caller's business.
  template <typename Take>
  void parse(string_view line, Take take) {
    const simdjson::padded_string_view padded(line, line.size() + LineSource::kPadding);
    od::document document;
    if (const auto error = parser_.iterate(padded).get(document)) bad_json(error);
    od::object object;
    if (const auto error = document.get_object().get(object)) bad_json(error);
    members(object, take);
    const char* rest = nullptr;
    if (!document.current_location().get(rest)) lines_.fail("found more behind the object; expected one per line.");
  }

  template <typename Take>
  void members(od::object& object, Take take) {
    for (auto item : object) {
      od::field field;
      if (const auto error = std::move(item).get(field)) bad_json(error);
      const string_view key = key_of(field);
      od::value value = field.value();
      bool is_null = false;
      if (const auto error = value.is_null().get(is_null)) bad_json(error);
      if (!is_null) take(key, value);  // null: not given
    }
  }

  std::uint64_t number(string_view key, od::value value, std::uint64_t most) {
    std::uint64_t n = 0;
    if (value.get_uint64().get(n) || n > most) wrong(key, value, fmt::format("a whole number from 0 to {}", most));
    return n;
  }

  double real(string_view key, od::value value, double most) {
    double x = 0;
    if (value.get_double().get(x) || !(x >= 0) || x > most)
      wrong(key, value, fmt::format("a number from 0 to {}", most));
    return x;
  }

  bool truth(string_view key, od::value value) {
    bool b = false;
    if (value.get_bool().get(b)) wrong(key, value, "true or false");
    return b;
  }

  string_view text(string_view key, od::value value) {
    string_view t;
    if (const auto error = value.get_string().get(t)) {
      if (error == simdjson::INCORRECT_TYPE) wrong(key, value, "text");
      bad_json(error);
    }
    return t;
  }

  void numbers(string_view key, od::value value, std::vector<std::uint32_t>& to) {
    elements(key, value, "a list of storage numbers",
             [&](od::value& element) { to.push_back(static_cast<std::uint32_t>(number(key, element, kMostNumber))); });
  }

  od::object object(string_view key, od::value value) {
    od::object inner;
    if (value.get_object().get(inner)) wrong(key, value, "an object");
    return inner;
  }

  void texts(string_view key, od::value value, std::vector<std::string>& to) {
    elements(key, value, "a list of sentences", [&](od::value& element) { to.emplace_back(text(key, element)); });
  }

  // One of the first `count` values of an enumeration, by its word.
  template <typename E>
  E word(string_view key, od::value value, int count, int first = 0) {
    const string_view t = text(key, value);
    std::vector<std::string> known;
    for (int i = first; i < count; ++i)
      if (to_string(static_cast<E>(i)) == t) return static_cast<E>(i);
    for (int i = first; i < count; ++i) known.emplace_back(to_string(static_cast<E>(i)));
    unknown_word(key, t, known);
  }

  [[noreturn]] void unknown_word(string_view key, string_view found, const std::vector<std::string>& known) {
    const std::string near = nearest_name(std::string(found), known);
    std::string all;
    for (const std::string& k : known) all += (all.empty() ? "" : ", ") + k;
    lines_.fail(fmt::format("\"{}\" is {}{}; expected one of {}.", key, quote_for_message(found),
                            near.empty() ? "" : fmt::format(" (nearest: \"{}\")", near), all));
  }

  // Calls `take` with every element of a list.
  template <typename Take>
  void elements(string_view key, od::value& value, const std::string& expected, Take take) {
    od::array array;
    if (value.get_array().get(array)) wrong(key, value, expected);
    for (auto item : array) {
      od::value element;
      if (const auto error = std::move(item).get(element)) bad_json(error);
      take(element);
    }
  }

  std::string raw(od::value& value) {
    string_view token = value.raw_json_token();
    while (!token.empty() && std::strchr(" \t\r\n", token.back()) != nullptr) token.remove_suffix(1);
    return quote_for_message(token);
  }

  [[noreturn]] void wrong(string_view key, od::value& value, const std::string& expected) {
    lines_.fail(fmt::format("\"{}\" is {}; expected {}.", key, raw(value), expected));
  }

 private:
  static string_view key_of(od::field& field) {
    const char* begin = field.key().raw();
    return {begin, static_cast<std::size_t>(static_cast<const char*>(std::memchr(begin, '"', kLongest)) - begin)};
  }

  [[noreturn]] void bad_json(simdjson::error_code error) {
    lines_.fail(fmt::format("found JSON that cannot be parsed ({}); expected one object per line.",
                            simdjson::error_message(error)));
  }

  od::parser& parser_;
  const LineSource& lines_;
};

}  // namespace memwall
