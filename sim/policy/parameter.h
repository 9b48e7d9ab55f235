// A setting of a policy, declared once: name, type, valid values, default. Checks, help and JSON come from that.
//
// A registration lists its parameters with the functions below:
//   choice("mode", "full", {"full", "sqrt"}, "which blocks are units")
//   integer("ranks", kRequired, {2, 1024}, "ranks", "data-parallel ranks")
//   integer("buffers", Unset{"auto"}, {0, 100}, "copies", "in flight; by default 5")
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/units.h"

namespace memwall {

enum class ParameterType : std::uint8_t {
  choice,          // one of `words`
  flag,            // 0 or 1, also written false and true
  integer,         // within `range`
  number,          // within `range`
  bytes,           // within `range`: "25MiB", "1e9", "0"
  bytes_or_share,  // as bytes, or more than 0 and at most 100 percent of what the policy's sentence says: "60%"
  tier,            // the name of a tier of the machine, or one of `words`
  choices,         // some of `words`, joined by '+'
  tiers,           // names of tiers, joined by '+'
  patterns,        // names with '*' for any letters, joined by '+'
  program,         // a path, or the name of a command
};
std::string_view to_string(ParameterType type);

struct ParameterRange {
  double low = 0, high = 0;  // both inclusive; of whole numbers at most 2^53, so that they are exact
};

struct ParameterInfo {
  std::string name;
  ParameterType type = ParameterType::choice;
  std::string default_value{};       // "" = required
  std::string unset{};               // this word in place of a value says that none is given; "" = there is none
  std::vector<std::string> words{};  // see ParameterType
  ParameterRange range{};
  std::string unit{};  // of an integer or number: "ranks"; "" = none
  bool is_flag_too = false;  // of an integer: true and false are 1 and 0
  std::string sentence{};

  bool required() const { return default_value.empty(); }
};

struct Required {};
inline constexpr Required kRequired;
struct Unset {
  const char* word;
};

// What stands where the user gives nothing.
struct ParameterDefault {
  ParameterDefault(Required) {}
  ParameterDefault(Unset none) : text(none.word), unset(none.word) {}
  ParameterDefault(const char* value) : text(value) {}
  ParameterDefault(double value);
  template <std::integral Whole>
  ParameterDefault(Whole value) : text(std::to_string(static_cast<std::int64_t>(value))) {}

  std::string text, unset;
};

ParameterInfo choice(std::string name, ParameterDefault otherwise, std::vector<std::string> words,
                     std::string sentence);
ParameterInfo flag(std::string name, ParameterDefault otherwise, std::string sentence);
ParameterInfo integer(std::string name, ParameterDefault otherwise, ParameterRange range, std::string unit,
                      std::string sentence);
ParameterInfo integer_or_flag(std::string name, ParameterDefault otherwise, ParameterRange range, std::string unit,
                              std::string sentence);
ParameterInfo number(std::string name, ParameterDefault otherwise, ParameterRange range, std::string unit,
                     std::string sentence);
ParameterInfo bytes(std::string name, ParameterDefault otherwise, Bytes least, std::string sentence);
ParameterInfo bytes_or_share(std::string name, ParameterDefault otherwise, Bytes least, std::string sentence);
ParameterInfo tier(std::string name, ParameterDefault otherwise, std::string sentence,
                   std::vector<std::string> words_beside = {});
ParameterInfo choices(std::string name, ParameterDefault otherwise, std::vector<std::string> words,
                      std::string sentence);
ParameterInfo tiers(std::string name, ParameterDefault otherwise, std::string sentence);
ParameterInfo patterns(std::string name, ParameterDefault otherwise, std::string sentence);
ParameterInfo program(std::string name, ParameterDefault otherwise, std::string sentence);

// Which values are valid, for people: "0 to 4096 ops", "auto, or 0 or 1".
std::string values_text(const ParameterInfo& parameter);

struct ParameterValue {
  ParameterType type = ParameterType::choice;
  std::string text;                // as given
  bool set = true;                 // not ParameterInfo::unset
  std::int64_t integer = 0;        // of integer, bytes, flag; of bytes_or_share where no share is given
  double number = 0;               // of number; of bytes_or_share the share, from 0 to 1, or 0 where bytes are given
  std::vector<std::string> items;  // of choices, tiers, patterns: one or more, distinct, none of them ""
};

// Throws UsageError naming policy, key, what was found and what is expected, with the nearest word.
ParameterValue parse_parameter(const std::string& policy, const ParameterInfo& parameter, const std::string& text);

}  // namespace memwall
