// Conditions and objectives of a study, over the fields of an outcome and the axes of a point:
//
//   fits and step_time_s < 1.2s and tiers.hbm.peak_reserved_bytes <= 70GiB
//   price_dollars / (step_time_s * samples_per_s)
//
// `or`, `and`, `not`, comparisons (< <= > >= == !=), + - * /, parentheses, numbers with or without a unit
// (40GiB, 1.5ms, 20%), names. Units are checked: what is added or compared is of one unit; a number without goes with a
// name that says its unit (step_time_s < 1.2), not with one that does not (step_time < 1.2). True is 1, false is 0.
// What is not known makes unknown whatever depends on it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "study/sweep/unit_of_field.h"

namespace memwall {

// A named number; nothing where it is not known at this point.
using FieldLookup = std::function<std::optional<double>(const std::string& name)>;

class Expression {
 public:
  // Throws UsageError with the place, what was found and what was expected; units of names as unit_of_field() has them,
  // or as `unit_of_name` where that is given.
  explicit Expression(std::string text, const std::function<FieldUnit(const std::string&)>& unit_of_name = {});
  ~Expression();
  Expression(Expression&&) noexcept;
  Expression& operator=(Expression&&) noexcept;

  std::optional<double> value(const FieldLookup& lookup) const;
  // Is it known and not 0?
  bool holds(const FieldLookup& lookup) const;

  const std::string& text() const { return text_; }
  FieldUnit unit() const;
  bool is_condition() const;                                        // true or false, not a number of something
  const std::vector<std::string>& names() const { return names_; }  // in order of appearance, each once

  struct Node;

 private:
  std::string text_;
  std::vector<std::string> names_;
  std::unique_ptr<Node> root_;
};

}  // namespace memwall
