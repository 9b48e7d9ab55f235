#include "study/scenario.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <optional>
#include <utility>

#include "sim/error.h"

namespace memwall {
namespace {

struct TextKey {
  const char* name;
  std::string Scenario::*member;
  const char* default_value;
};
struct ListKey {
  const char* name;
  std::vector<std::string> Scenario::*member;
};


constexpr ListKey kLists[] = {{"step", &Scenario::step},
                              {"execution_trace", &Scenario::execution_traces},
                              {"set", &Scenario::settings},
                              {"scale", &Scenario::scale},
                              {"policy", &Scenario::policies}};
constexpr TextKey kTexts[] = {{"onto", &Scenario::onto, ""},
                              {"second_size", &Scenario::second_size, ""},
                              {"measured_on", &Scenario::measured_on, ""},
                              {"machine", &Scenario::machine, ""},
                              {"budget", &Scenario::budget, ""},
                              {"plan", &Scenario::plan, ""},
                              {"executable", &Scenario::executable, ""},
                              {"pager", &Scenario::pager, ""},
                              {"allocator", &Scenario::allocator, "pytorch"},
                              {"allocator_settings", &Scenario::allocator_settings, ""}};
constexpr const char *kTransferHost = "transfer_host", *kRepeat = "repeat";

bool is_plain(unsigned char c) { return c > ' ' && c != 0x7f && c != '"' && c != '\\'; }

std::string quoted_where_needed(const std::string& value) {
  if (!value.empty() &&
      std::all_of(value.begin(), value.end(), [](char c) { return is_plain(static_cast<unsigned char>(c)); }))
    return value;
  std::string text = "\"";
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      text += {'\\', c};
    else if (c == '\n')
      text += "\\n";
    else if (c == '\t')
      text += "\\t";
    else if (byte < ' ' || byte == 0x7f)
      text += fmt::format("\\x{:02x}", byte);
    else
      text += c;
  }
  return text + '"';
}

// Reads one word after the other.
class ScenarioReader {
 public:
  explicit ScenarioReader(std::string_view text) : text_(text) {}

  std::optional<std::pair<std::string, std::string>> next() {
    while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
    if (at_ == text_.size()) return std::nullopt;
    const std::size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != '=' && !is_blank(text_[at_])) ++at_;
    std::string key(text_.substr(begin, at_ - begin));
    if (at_ == text_.size() || text_[at_] != '=') fail(key, "expected key=value");
    ++at_;
    std::string value = at_ < text_.size() && text_[at_] == '"' ? quoted(key) : plain(key);
    return std::pair{std::move(key), std::move(value)};
  }

 private:
  static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

  [[noreturn]] static void fail(const std::string& word, const char* expected) {
    throw UsageError(fmt::format("Scenario: found \"{}\"; {}.", word, expected));
  }

  std::string plain(const std::string& key) {
    const std::size_t begin = at_;
    while (at_ < text_.size() && !is_blank(text_[at_])) {
      if (!is_plain(static_cast<unsigned char>(text_[at_])))
        fail(fmt::format("{}={}", key, text_.substr(begin, at_ - begin)),
             "expected a value in double quotes where it holds quotes, backslashes or unprintable bytes");
      ++at_;
    }
    return std::string(text_.substr(begin, at_ - begin));
  }

  std::string quoted(const std::string& key) {
    std::string value;
    for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) value += text_[at_] == '\\' ? escaped(key) : text_[at_];
    if (at_ == text_.size()) fail(key + "=\"" + value, "expected a closing double quote");
    ++at_;
    if (at_ < text_.size() && !is_blank(text_[at_])) fail(key, "expected a blank behind the closing double quote");
    return value;
  }

  // Ends on the last character of the escape.
  char escaped(const std::string& key) {
    const char c = ++at_ < text_.size() ? text_[at_] : '\0';
    if (c == '"' || c == '\\') return c;
    if (c == 'n') return '\n';
    if (c == 't') return '\t';
    unsigned byte = 0;
    if (c == 'x' && at_ + 2 < text_.size()) {
      const char* digits = text_.data() + at_ + 1;
      const auto [end, error] = std::from_chars(digits, digits + 2, byte, 16);
      if (error == std::errc() && end == digits + 2) {
        at_ += 2;
        return static_cast<char>(byte);
      }
    }
    fail(key, R"(expected \", \\, \n, \t or \xHH behind a backslash)");
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

[[noreturn]] void refuse_key(const std::string& key) {
  std::vector<std::string> names = {kTransferHost, kRepeat};
  for (const ListKey& k : kLists) names.emplace_back(k.name);
  for (const TextKey& k : kTexts) names.emplace_back(k.name);
  const std::string nearest = nearest_name(key, names);
  throw UsageError(fmt::format("Scenario: there is no key \"{}\"{}; expected one of {}.", key,
                               nearest.empty() ? "" : fmt::format(" (nearest: \"{}\")", nearest),
                               fmt::join(names, ", ")));
}

std::uint32_t parse_repeat(const std::string& value) {
  std::uint32_t n = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), n);
  if (error != std::errc() || end != value.data() + value.size() || n == 0)
    throw UsageError(fmt::format("Scenario: {}={}; expected a whole number of 1 or more.", kRepeat, value));
  return n;
}

void assign(Scenario& scenario, const std::string& key, std::string value) {
  for (const ListKey& k : kLists)
    if (key == k.name) return (scenario.*k.member).push_back(std::move(value));
  for (const TextKey& k : kTexts)
    if (key == k.name) return void(scenario.*k.member = std::move(value));
  if (key == kRepeat) return void(scenario.repeat = parse_repeat(value));
  if (key != kTransferHost) refuse_key(key);
  if (value != "0" && value != "1")
    throw UsageError(fmt::format("Scenario: {}={}; expected 0 or 1.", kTransferHost, value));
  scenario.transfer_host = value == "1";
}

}  // namespace

std::string to_text(const Scenario& scenario) {
  std::string text;
  const auto add = [&](const char* key, const std::string& value) {
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", key, quoted_where_needed(value));
  };
  for (const ListKey& k : kLists)
    for (const std::string& value : scenario.*k.member) add(k.name, value);
  for (const TextKey& k : kTexts)
    if (scenario.*k.member != k.default_value) add(k.name, scenario.*k.member);
  if (scenario.transfer_host) add(kTransferHost, "1");
  if (scenario.repeat != 1) add(kRepeat, std::to_string(scenario.repeat));
  return text;
}

Scenario parse_scenario(std::string_view text) {
  Scenario scenario;
  std::vector<std::string> single;  // keys that may stand once
  ScenarioReader reader(text);
  while (auto word = reader.next()) {
    auto& [key, value] = *word;
    const bool is_list =
        std::any_of(std::begin(kLists), std::end(kLists), [&](const ListKey& k) { return key == k.name; });
    if (!is_list && std::find(single.begin(), single.end(), key) != single.end())
      throw UsageError(fmt::format("Scenario: {} is given twice; expected it once.", key));
    if (!is_list) single.push_back(key);
    assign(scenario, key, std::move(value));
  }
  if (scenario.step.empty())
    throw UsageError("Scenario: there is no step; expected step=FILE, or the name of a workload.");
  return scenario;
}

}  // namespace memwall
