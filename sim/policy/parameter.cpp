#include "sim/policy/parameter.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <cstdlib>

#include "sim/byte_units.h"
#include "sim/error.h"
#include "sim/number_text.h"
#include "sim/word_of.h"

namespace memwall {
namespace {

constexpr double kMostBytes = 9e18;

bool contains(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::string whole(double number) { return std::to_string(static_cast<std::int64_t>(number)); }

// A flag as Python, YAML and TOML write it.
std::optional<std::int64_t> truth_of(const std::string& text) {
  if (text == "true" || text == "True") return 1;
  if (text == "false" || text == "False") return 0;
  return std::nullopt;
}

bool is_list(ParameterType type) {
  return type == ParameterType::choices || type == ParameterType::tiers || type == ParameterType::patterns;
}

// One value while it is read; `refuse` says what was expected.
class Reading {
 public:
  Reading(const std::string& policy, const ParameterInfo& parameter, const std::string& text)
      : policy_(policy), p_(parameter), text_(text) {}

  ParameterValue value() const {
    ParameterValue result{.type = p_.type, .text = text_, .set = p_.unset.empty() || text_ != p_.unset, .items = {}};
    if (result.set) read(result);
    return result;
  }

 private:
  void read(ParameterValue& result) const {
    switch (p_.type) {
      case ParameterType::choice:
        return require_word(text_);
      case ParameterType::flag:
        if (!truth_of(text_)) require_word(text_);
        result.integer = truth_of(text_).value_or(text_ == "1" ? 1 : 0);
        return;
      case ParameterType::integer:
        result.integer = integer();
        return;
      case ParameterType::number:
        result.number = number();
        return;
      case ParameterType::bytes:
        result.integer = bytes();
        return;
      case ParameterType::bytes_or_share:
        bytes_or_share(result);
        return;
      case ParameterType::tier:
        if (text_.empty() || text_.find('+') != std::string::npos) refuse("a tier of the machine");
        return;
      case ParameterType::choices:
      case ParameterType::tiers:
      case ParameterType::patterns:
        result.items = items();
        return;
      case ParameterType::program:
        if (text_.empty()) refuse("a program; expected its path, or a name that PATH has");
        return;
    }
  }

  [[noreturn]] void refuse(const std::string& expected) const {
    throw UsageError("Policy '" + policy_ + "': " + p_.name + "=" + text_ +
                     (p_.unset.empty() ? " is not " : " is neither '" + p_.unset + "' nor ") + expected + ".");
  }

  void require_word(const std::string& word) const {
    if (contains(p_.words, word)) return;
    std::vector<std::string> valid = p_.words;
    if (p_.type == ParameterType::flag) valid.insert(valid.end(), {"false", "true"});
    if (!p_.unset.empty() && !is_list(p_.type)) valid.insert(valid.begin(), p_.unset);
    throw UsageError("Policy '" + policy_ + "': " + p_.name + "=" + text_ +
                     (word == text_ ? " is not valid" : ": '" + word + "' is not valid") + "; expected one of " +
                     listed(valid) + "." + did_you_mean(word, valid));
  }

  std::int64_t integer() const {
    if (p_.is_flag_too && truth_of(text_)) return *truth_of(text_);
    std::int64_t n = 0;
    const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), n);
    if (error != std::errc() || end != text_.data() + text_.size() || static_cast<double>(n) < p_.range.low ||
        static_cast<double>(n) > p_.range.high)
      refuse((p_.is_flag_too ? "true or false, nor a whole number between " : "a whole number between ") +
             whole(p_.range.low) + " and " + whole(p_.range.high));
    return n;
  }

  double number() const {
    char* end = nullptr;
    const double n = std::strtod(text_.c_str(), &end);
    if (p_.unit == "%" && end != text_.c_str() && *end == '%') ++end;  // 20% as well as 20
    if (text_.empty() || *end != 0 || !(n >= p_.range.low && n <= p_.range.high))
      refuse("a number between " + shortest_text(p_.range.low) + " and " + shortest_text(p_.range.high));
    return n;
  }

  Bytes bytes() const {
    const std::optional<Bytes> size = parse_bytes(text_);
    if (!size || static_cast<double>(*size) > p_.range.high)
      refuse("a size; expected a number with B, kB, MB, GB, TB, KiB, MiB, GiB or TiB, e.g. 25MiB");
    if (static_cast<double>(*size) < p_.range.low) refuse("a size of at least " + whole(p_.range.low) + " bytes");
    return *size;
  }

  void bytes_or_share(ParameterValue& result) const {
    const std::string expected = "expected a size of at least " + exact_bytes_text(static_cast<Bytes>(p_.range.low)) +
                                 ", as 10GB, or a share, as 60%";
    if (!text_.empty() && text_.back() == '%') {
      double percent = 0;
      const char* const last = text_.data() + text_.size() - 1;
      const auto [end, error] = std::from_chars(text_.data(), last, percent);
      if (error != std::errc() || end != last || !(percent > 0 && percent <= 100))
        refuse("a share above 0% and up to 100%; " + expected);
      result.number = percent / 100;
      return;
    }
    const std::optional<Bytes> size = parse_bytes(text_);
    if (!size || static_cast<double>(*size) > p_.range.high) refuse("a size or a share; " + expected);
    if (static_cast<double>(*size) < p_.range.low) refuse("enough; " + expected + unit_hint());
    result.integer = *size;
  }

  // A number without a unit that is no size, but may be meant as a share.
  std::string unit_hint() const {
    double number = 0;
    const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), number);
    const bool is_share = error == std::errc() && end == text_.data() + text_.size() && number > 0 && number <= 1;
    return is_share ? " (" + shortest_text(number * 100) + "% for " + text_ + " of it)" : "";
  }

  std::vector<std::string> items() const {
    std::vector<std::string> found;
    for (std::size_t begin = 0; begin <= text_.size();) {
      const std::size_t end = std::min(text_.find('+', begin), text_.size());
      const std::string item = text_.substr(begin, end - begin);
      if (item.empty()) refuse("a list; expected items joined by '+', as a+b");
      if (p_.type == ParameterType::choices) require_word(item);
      if (contains(found, item))
        throw UsageError("Policy '" + policy_ + "': " + p_.name + "=" + text_ + " names '" + item + "' twice.");
      found.push_back(item);
      begin = end + 1;
    }
    return found;
  }

  const std::string& policy_;
  const ParameterInfo& p_;
  const std::string& text_;
};

ParameterInfo parameter(ParameterType type, std::string name, ParameterDefault otherwise, std::string sentence,
                        std::vector<std::string> words = {}, ParameterRange range = {}, std::string unit = "") {
  return {.name = std::move(name),
          .type = type,
          .default_value = std::move(otherwise.text),
          .unset = std::move(otherwise.unset),
          .words = std::move(words),
          .range = range,
          .unit = std::move(unit),
          .sentence = std::move(sentence)};
}

}  // namespace

std::string_view to_string(ParameterType type) {
  static constexpr std::string_view words[] = {"choice", "flag",    "integer", "number",   "bytes",  "bytes_or_share",
                                               "tier",   "choices", "tiers",   "patterns", "program"};
  return word_of(words, type);
}

ParameterDefault::ParameterDefault(double value) : text(shortest_text(value)) {}

ParameterInfo choice(std::string name, ParameterDefault otherwise, std::vector<std::string> words,
                     std::string sentence) {
  return parameter(ParameterType::choice, std::move(name), std::move(otherwise), std::move(sentence), std::move(words));
}

ParameterInfo flag(std::string name, ParameterDefault otherwise, std::string sentence) {
  return parameter(ParameterType::flag, std::move(name), std::move(otherwise), std::move(sentence), {"0", "1"});
}

ParameterInfo integer(std::string name, ParameterDefault otherwise, ParameterRange range, std::string unit,
                      std::string sentence) {
  return parameter(ParameterType::integer, std::move(name), std::move(otherwise), std::move(sentence), {}, range,
                   std::move(unit));
}

ParameterInfo integer_or_flag(std::string name, ParameterDefault otherwise, ParameterRange range, std::string unit,
                              std::string sentence) {
  ParameterInfo info = integer(std::move(name), std::move(otherwise), range, std::move(unit), std::move(sentence));
  info.is_flag_too = true;
  return info;
}

ParameterInfo number(std::string name, ParameterDefault otherwise, ParameterRange range, std::string unit,
                     std::string sentence) {
  return parameter(ParameterType::number, std::move(name), std::move(otherwise), std::move(sentence), {}, range,
                   std::move(unit));
}

ParameterInfo bytes(std::string name, ParameterDefault otherwise, Bytes least, std::string sentence) {
  return parameter(ParameterType::bytes, std::move(name), std::move(otherwise), std::move(sentence), {},
                   {static_cast<double>(least), kMostBytes}, "bytes");
}

ParameterInfo bytes_or_share(std::string name, ParameterDefault otherwise, Bytes least, std::string sentence) {
  return parameter(ParameterType::bytes_or_share, std::move(name), std::move(otherwise), std::move(sentence), {},
                   {static_cast<double>(least), kMostBytes}, "bytes");
}

ParameterInfo tier(std::string name, ParameterDefault otherwise, std::string sentence,
                   std::vector<std::string> words_beside) {
  return parameter(ParameterType::tier, std::move(name), std::move(otherwise), std::move(sentence),
                   std::move(words_beside));
}

ParameterInfo choices(std::string name, ParameterDefault otherwise, std::vector<std::string> words,
                      std::string sentence) {
  return parameter(ParameterType::choices, std::move(name), std::move(otherwise), std::move(sentence),
                   std::move(words));
}

ParameterInfo tiers(std::string name, ParameterDefault otherwise, std::string sentence) {
  return parameter(ParameterType::tiers, std::move(name), std::move(otherwise), std::move(sentence));
}

ParameterInfo patterns(std::string name, ParameterDefault otherwise, std::string sentence) {
  return parameter(ParameterType::patterns, std::move(name), std::move(otherwise), std::move(sentence));
}

ParameterInfo program(std::string name, ParameterDefault otherwise, std::string sentence) {
  return parameter(ParameterType::program, std::move(name), std::move(otherwise), std::move(sentence));
}

std::string values_text(const ParameterInfo& p) {
  const auto unit = [&] { return p.unit.empty() ? "" : " " + p.unit; };
  const auto own = [&]() -> std::string {
    switch (p.type) {
      case ParameterType::choice:
        return listed(p.words);
      case ParameterType::flag:
        return "0 or 1";
      case ParameterType::integer:
        return (p.is_flag_too ? "true, false or " : "") + whole(p.range.low) + " to " + whole(p.range.high) + unit();
      case ParameterType::number:
        return shortest_text(p.range.low) + " to " + shortest_text(p.range.high) + unit();
      case ParameterType::bytes:
        return "bytes: 25MiB";
      case ParameterType::bytes_or_share:
        return "bytes or a share: 10GB, 60%";
      case ParameterType::tier:
        return p.words.empty() ? "a tier" : "a tier, or " + listed(p.words);
      case ParameterType::choices:
        return listed(p.words) + "; joined by '+'";
      case ParameterType::tiers:
        return "tiers, joined by '+'";
      case ParameterType::patterns:
        return "patterns, joined by '+'";
      case ParameterType::program:
        return "a path, or a command";
    }
    return "";
  }();
  return p.unset.empty() ? own : p.unset + ", or " + own;
}

ParameterValue parse_parameter(const std::string& policy, const ParameterInfo& parameter, const std::string& text) {
  return Reading(policy, parameter, text).value();
}

}  // namespace memwall
