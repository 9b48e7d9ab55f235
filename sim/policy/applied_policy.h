// A policy as it was applied: its name and every setting that was in effect, defaults included, in a form that files
// hold. Data only: what a setting means is for the policy to say.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace memwall {

// By the parameter's type: flag, whole number (sizes in bytes), number, word (a share of bytes too: "60%"), list. Of a
// setting that has no value it is the word that says so: "auto", "all".
using AppliedValue = std::variant<bool, std::int64_t, double, std::string, std::vector<std::string>>;

struct AppliedPolicy {
  std::string policy;
  std::vector<std::pair<std::string, AppliedValue>> settings{};  // in the order of the policy's declaration

  // Null: it has no such setting.
  const AppliedValue* find(std::string_view setting) const;
  // Of a setting that is absent or of another type, `otherwise`.
  bool flag(std::string_view setting, bool otherwise) const;
  std::int64_t integer(std::string_view setting, std::int64_t otherwise) const;
  double number(std::string_view setting, double otherwise) const;  // of a whole number, too
  std::string word(std::string_view setting) const;                 // otherwise ""
  // Of a list; of a word that one item.
  std::vector<std::string> list(std::string_view setting) const;

  bool operator==(const AppliedPolicy&) const = default;
};

}  // namespace memwall
