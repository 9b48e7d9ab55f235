#include "study/sweep/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>

#include "sim/error.h"

namespace memwall {
namespace {

std::string trimmed(std::string text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && blank(text.back())) text.pop_back();
  while (!text.empty() && blank(text.front())) text.erase(text.begin());
  return text;
}

bool begins_with_number(const std::string& text) {
  char* end = nullptr;
  return std::isfinite(std::strtod(text.c_str(), &end)) && end != text.c_str();
}

std::vector<std::string> split(const std::string& text, const char* separators) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find_first_of(separators, begin), text.size());
    parts.push_back(trimmed(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return parts;
}

class AxisReader {
 public:
  explicit AxisReader(const std::string& text) : text_(text) {}

  Axis read() {
    const std::size_t equals = text_.find('=');
    axis_.name = trimmed(text_.substr(0, equals));
    if (equals == std::string::npos || axis_.name.empty()) fail("name=values (batch=1..64, policy=none|checkpoint)");
    std::string values = text_.substr(equals + 1);
    if (const std::size_t condition = values.rfind(" if "); condition != std::string::npos) {
      read_condition(values.substr(condition + 4));
      values.resize(condition);
    }
    values = trimmed(values);
    if (values.find("..") != std::string::npos && values.find('|') == std::string::npos && begins_with_number(values))
      read_range(values);
    else
      read_list(values);
    return std::move(axis_);
  }

 private:
  [[noreturn]] void fail(const std::string& expected) const {
    throw UsageError(fmt::format("Axis \"{}\": expected {}.", text_, expected));
  }

  void read_condition(const std::string& text) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos) fail("another axis and its values behind \"if\" (if policy=offload|zero)");
    axis_.condition = AxisCondition{trimmed(text.substr(0, equals)), split(text.substr(equals + 1), "|")};
  }

  // Commas belong to parameters of policies, and to settings of networks.
  void read_list(const std::string& text) {
    const bool by_commas = text.find('|') == std::string::npos && text.find(':') == std::string::npos;
    axis_.values = split(text, by_commas ? "," : "|");
    std::set<std::string> seen;
    for (const std::string& value : axis_.values) {
      if (value.empty()) fail("a value between separators; found none");
      if (!seen.insert(value).second) fail(fmt::format("each value once; found {} twice", value));
    }
  }

  void read_range(const std::string& text) {
    const std::vector<std::string> parts = split(text, ":");
    const std::size_t dots = parts[0].find("..");
    if (dots == std::string::npos) fail("low..high, as in 16..64GB/s");
    AxisRange range;
    std::string low_unit;
    range.low = read_number(parts[0].substr(0, dots), low_unit);
    range.high = read_number(parts[0].substr(dots + 2), range.unit);
    if (!low_unit.empty() && low_unit != range.unit) fail("one unit on both sides of \"..\"");
    if (range.low >= range.high) fail("a first value that is less than the last");
    range.is_whole = range.unit.empty() && is_whole(range.low) && is_whole(range.high);
    std::size_t count = 0;
    double step = 0;
    for (std::size_t i = 1; i < parts.size(); ++i) read_spacing(parts[i], range, count, step);
    if (range.is_logarithmic && range.low <= 0) fail("values above 0 on a logarithmic axis");
    const double apart = step > 0 ? step : count > 0 ? (range.high - range.low) / static_cast<double>(count - 1) : 1;
    // Numbers of layers stay whole where they can: 100..2000:4, but not 0..1:5, a factor, or by a step that is none.
    const bool is_amount = step > 0 || apart < 1 || axis_.name.starts_with("scale.");
    if (!range.is_logarithmic && !is_whole(apart) && is_amount) range.is_whole = false;
    if (step > 0)
      fill_by_step(range, step);
    else if (count > 0)
      fill(range, count);
    else if (range.is_whole && !range.is_logarithmic)
      fill_by_step(range, 1);
    else
      fail("how many values (16..64GB/s:log:9, 0..1:5)");
    axis_.range = range;
  }

  void read_spacing(const std::string& word, AxisRange& range, std::size_t& count, double& step) const {
    if (word == "log" || word == "lin") {
      range.is_logarithmic = word == "log";
      return;
    }
    const bool is_step = word.starts_with("step=");
    const std::string digits = is_step ? word.substr(5) : word;
    char* end = nullptr;
    const double number = std::strtod(digits.c_str(), &end);
    if (digits.empty() || *end != '\0' || !(number > 0) || number > static_cast<double>(kMostAxisValues))
      fail(fmt::format("log, lin, a number of values or step=N behind the range; found \"{}\"", word));
    if (step > 0 || count > 0) fail(fmt::format("one spacing; found \"{}\" behind another", word));
    if (is_step) {
      step = number;
      return;
    }
    if (!is_whole(number) || number < 2) fail("two values or more");
    count = static_cast<std::size_t>(number);
  }

  double read_number(const std::string& text, std::string& unit) const {
    char* end = nullptr;
    const double number = std::strtod(text.c_str(), &end);
    if (end == text.c_str() || !std::isfinite(number)) fail(fmt::format("a number; found \"{}\"", text));
    unit = trimmed(end);
    return number;
  }

  static bool is_whole(double number) { return number == std::floor(number) && std::abs(number) < 1e15; }

  void fill_by_step(const AxisRange& range, double step) {
    const double count = std::floor((range.high - range.low) / step + 1e-9);
    if (count >= static_cast<double>(kMostAxisValues)) fail(fmt::format("at most {} values", kMostAxisValues));
    for (std::size_t i = 0; i <= static_cast<std::size_t>(count); ++i)
      axis_.values.push_back(range_value(range, range.low + static_cast<double>(i) * step));
  }

  // Of whole numbers those nearest, each once.
  void fill(const AxisRange& range, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      const double share = static_cast<double>(i) / static_cast<double>(count - 1);
      const double value = range.is_logarithmic ? range.low * std::pow(range.high / range.low, share)
                                                : range.low + share * (range.high - range.low);
      std::string typed = range_value(range, i + 1 == count ? range.high : value);
      if (axis_.values.empty() || axis_.values.back() != typed) axis_.values.push_back(std::move(typed));
    }
  }

  const std::string& text_;
  Axis axis_;
};

}  // namespace

bool AxisCondition::holds_for(const std::string& value) const {
  for (std::size_t begin = 0; begin <= value.size();) {
    const std::size_t plus = std::min(value.find(" + ", begin), value.size());
    const std::string part = value.substr(begin, plus - begin);
    for (const std::string& wanted : values)
      if (part == wanted || part.starts_with(wanted + ":")) return true;
    begin = plus + 3;
  }
  return false;
}

Axis parse_axis(const std::string& text) { return AxisReader(text).read(); }

std::string range_value(const AxisRange& range, double value) {
  if (range.is_whole) return fmt::format("{:.0f}", value);
  // Between the ends of a logarithmic axis nobody wants all digits; ends, and even steps, are as they were typed.
  const bool is_between = range.is_logarithmic && value != range.low && value != range.high;
  return is_between ? fmt::format("{:.6g}{}", value, range.unit) : fmt::format("{:.12g}{}", value, range.unit);
}

}  // namespace memwall
