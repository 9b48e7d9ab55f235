#include "validate/measurement/flags.h"

#include <algorithm>
#include <cassert>
#include <charconv>
#include <cmath>

#include "sim/byte_units.h"
#include "sim/error.h"

namespace memwall {
namespace {

const FlagDescription kHelp{"--help", "", "print this and stop", true};

// False unless all of `text` is a finite decimal number.
bool read_number(const std::string& text, double& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && std::isfinite(value);
}

[[noreturn]] void refuse(const std::string& name, const std::string& value, const std::string& expected) {
  throw UsageError(name + " \"" + value + "\": expected " + expected + ".");
}

}  // namespace

Flags::Flags(const std::vector<std::string>& words, std::vector<FlagDescription> known) : known_(std::move(known)) {
  known_.push_back(kHelp);
  take(words);
}

Flags::Flags(int argc, const char* const* argv, std::vector<FlagDescription> known)
    : Flags(std::vector<std::string>(argv + std::min(argc, 1), argv + argc), std::move(known)) {}

const FlagDescription& Flags::described(const std::string& name) const {
  const auto found = std::find_if(known_.begin(), known_.end(), [&](const auto& flag) { return flag.name == name; });
  if (found != known_.end()) return *found;
  std::vector<std::string> names;
  for (const FlagDescription& flag : known_) names.push_back(flag.name);
  const std::string nearest = nearest_name(name, names);
  throw UsageError("unknown flag \"" + name + "\"" + (nearest.empty() ? "" : " (nearest: " + nearest + ")") +
                   "; --help lists all.");
}

void Flags::take(const std::vector<std::string>& words) {
  for (auto word = words.begin(); word != words.end(); ++word) {
    if (*word == "--") {
      arguments_.insert(arguments_.end(), word + 1, words.end());
      return;
    }
    if (word->size() < 2 || word->front() != '-') {  // "-" alone stands for a stream
      arguments_.push_back(*word);
      continue;
    }
    const std::size_t equals = word->find('=');
    const std::string name = *word == "-h" ? "--help" : word->substr(0, equals);
    const FlagDescription& flag = described(name);
    if (values_.count(name) && !flag.repeatable) throw UsageError(name + " is given twice; expected once.");
    std::vector<std::string>& values = values_[name];
    if (flag.value_name.empty()) {
      if (equals != std::string::npos) throw UsageError(name + " takes no value, found \"" + *word + "\".");
      values.emplace_back();
    } else if (equals != std::string::npos) {
      values.push_back(word->substr(equals + 1));
    } else {
      if (word + 1 == words.end() || word[1].starts_with("--"))
        throw UsageError(name + ": expected a value (" + flag.value_name + ") after it.");
      values.push_back(*++word);
    }
  }
}

bool Flags::given(const std::string& name) const {
  assert(!described(name).name.empty());
  return values_.count(name) > 0;
}

std::vector<std::string> Flags::all(const std::string& name) const {
  return given(name) ? values_.at(name) : std::vector<std::string>{};
}

std::string Flags::text(const std::string& name, const std::string& fallback) const {
  return given(name) ? values_.at(name).back() : fallback;
}

double Flags::number(const std::string& name, double fallback, double lowest, double highest) const {
  if (!given(name)) return fallback;
  double value = 0;
  if (!read_number(text(name), value) || value < lowest || value > highest)
    refuse(name, text(name), "a number from " + shortest_text(lowest) + " to " + shortest_text(highest));
  return value;
}

std::uint64_t Flags::count(const std::string& name, std::uint64_t fallback, std::uint64_t lowest,
                           std::uint64_t highest) const {
  if (!given(name)) return fallback;
  const std::string& word = values_.at(name).back();
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() || value < lowest || value > highest)
    refuse(name, word, "a whole number from " + std::to_string(lowest) + " to " + std::to_string(highest));
  return value;
}

std::uint64_t Flags::bytes(const std::string& name, std::uint64_t fallback) const {
  if (!given(name)) return fallback;
  const std::string& word = values_.at(name).back();
  const std::optional<Bytes> bytes = parse_bytes(word);
  if (!bytes || *bytes < 1) refuse(name, word, "a size such as 4096, 64KiB, 1.5GiB or 2GB");
  return static_cast<std::uint64_t>(*bytes);
}

std::string Flags::choice(const std::string& name, const std::string& fallback,
                          const std::vector<std::string>& choices) const {
  const std::string value = text(name, fallback);
  if (!given(name) || std::find(choices.begin(), choices.end(), value) != choices.end()) return value;
  std::string expected;
  for (const std::string& one : choices) expected += (expected.empty() ? "" : ", ") + one;
  const std::string nearest = nearest_name(value, choices);
  refuse(name, value, "one of " + expected + (nearest.empty() ? "" : " (nearest: " + nearest + ")"));
}

std::string flags_help(const std::vector<FlagDescription>& known) {
  std::vector<FlagDescription> all = known;
  all.push_back(kHelp);
  const auto left = [](const FlagDescription& flag) {
    return "  " + flag.name + (flag.value_name.empty() ? "" : " " + flag.value_name);
  };
  std::size_t width = 0;
  for (const FlagDescription& flag : all) width = std::max(width, left(flag).size());
  std::string help;
  for (const FlagDescription& flag : all) {
    const std::string begin = left(flag);
    help += begin + std::string(width + 2 - begin.size(), ' ') + flag.sentence + "\n";
  }
  return help;
}

}  // namespace memwall
