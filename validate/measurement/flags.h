// The command line of a small program that must build without any library: `--name value`, `--name=value`,
// `--name` for a switch, `-o value` for a short name, anything else an argument; `--` ends the flags.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace memwall {

// One flag that a program takes.
struct FlagDescription {
  std::string name;        // with its dashes: "--filter", "-o"
  std::string value_name;  // as help prints it: "TEXT"; "" = a switch, which takes none
  std::string sentence;    // for help
  bool repeatable = false;
};

// What was given. Every member function that finds a value wrong throws a UsageError that names the flag,
// the value and what was expected. REQUIRES: the names asked for were described.
class Flags {
 public:
  // Throws UsageError: unknown flag (with the nearest known one), value missing or not wanted, given twice.
  // `--help` and `-h` are always known.
  Flags(const std::vector<std::string>& words, std::vector<FlagDescription> known);
  Flags(int argc, const char* const* argv, std::vector<FlagDescription> known);

  bool given(const std::string& name) const;
  bool help() const { return given("--help"); }
  // All values of a flag, in order; empty where it was not given.
  std::vector<std::string> all(const std::string& name) const;
  std::string text(const std::string& name, const std::string& fallback = "") const;
  // A decimal number between `lowest` and `highest`.
  double number(const std::string& name, double fallback, double lowest, double highest) const;
  // A whole number of that range.
  std::uint64_t count(const std::string& name, std::uint64_t fallback, std::uint64_t lowest,
                      std::uint64_t highest) const;
  // Bytes: "4096", "64KiB", "1.5 GiB", "2GB"; at least 1.
  std::uint64_t bytes(const std::string& name, std::uint64_t fallback) const;
  // One of `choices`; a UsageError gives the nearest.
  std::string choice(const std::string& name, const std::string& fallback,
                     const std::vector<std::string>& choices) const;
  // What is no flag, in order.
  const std::vector<std::string>& arguments() const { return arguments_; }

 private:
  const FlagDescription& described(const std::string& name) const;
  void take(const std::vector<std::string>& words);

  std::vector<FlagDescription> known_;
  std::map<std::string, std::vector<std::string>> values_;
  std::vector<std::string> arguments_;
};

// One line per flag, `--help` included, aligned, for a program's own help.
std::string flags_help(const std::vector<FlagDescription>& known);

}  // namespace memwall
