// A configuration file of a training framework as a flat list: each value under its dotted path
// ("zero_optimization.offload_optimizer.device"), read from JSON, TOML or YAML.
//
// Who reads a value has asked for its path; what nobody has asked for is unknown().
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace memwall {

struct ConfigurationValue {
  enum class Kind { null, boolean, number, text, list };
  Kind kind = Kind::null;
  bool truth = false;
  double number = 0;
  std::string text;               // text: itself; all others: as the file writes them, for messages
  std::vector<std::string> list;  // elements, as the file writes them
};

class ConfigurationFile {
 public:
  enum class Syntax { json, toml, yaml };

  // `name` is for messages. Throws InputError: FILE, the place, what was found, what was expected.
  ConfigurationFile(std::string_view text, Syntax syntax, std::string name);
  // By the file's ending: .json, .toml, .yaml, .yml; any other is taken as `otherwise`.
  static ConfigurationFile read(const std::filesystem::path& path, Syntax otherwise);

  const std::string& name() const { return name_; }

  // Is it there, and neither null nor "auto"? What is "auto" (or absent) has the caller's default.
  bool has(std::string_view path) const;
  bool is_auto(std::string_view path) const;
  // Is there a value, or a table with one?
  bool has_any(std::string_view path) const;

  // Throw InputError where the value is of another kind or outside of its limits. Texts that YAML's and argparse's
  // users write for truths ("no", "True") count as such, and texts of numbers as numbers (DeepSpeed takes 5e8 as a
  // size).
  bool flag(std::string_view path, bool otherwise) const;
  std::int64_t integer(std::string_view path, std::int64_t otherwise, std::int64_t low, std::int64_t high) const;
  double number(std::string_view path, double otherwise, double low, double high) const;
  std::string text(std::string_view path, std::string_view otherwise) const;
  std::vector<std::string> list(std::string_view path) const;  // a text is a list of one, or of its words

  // Known, and without effect on what a step does. `path` names itself and all below it.
  void pass_over(std::string_view path) const { passed_over_.insert(std::string(path)); }
  // In the order of the file: what was neither asked for nor passed over.
  std::vector<std::string> unknown() const;
  // The path that was asked for, is not in the file and is nearest to one that is unknown; "" where none is near.
  std::string nearest(const std::string& path) const;
  std::size_t size() const { return order_.size(); }  // values

  [[noreturn]] void fail(std::string_view path, const std::string& expected) const;  // "FILE: "path" is X; expected …"
  [[noreturn]] void refuse(const std::string& sentence) const;                       // "FILE: sentence."

 private:
  const ConfigurationValue* find(std::string_view path) const;

  std::string name_;
  std::vector<std::string> order_;
  std::map<std::string, ConfigurationValue, std::less<>> values_;
  mutable std::set<std::string, std::less<>> asked_, passed_over_;
};

// The readers of one syntax each: path and value, in the order of the file. Throw InputError, with `name` in front.
using ConfigurationEntries = std::vector<std::pair<std::string, ConfigurationValue>>;
ConfigurationEntries entries_of_json(std::string_view text, const std::string& name);
ConfigurationEntries entries_of_toml(std::string_view text, const std::string& name);
ConfigurationEntries entries_of_yaml(std::string_view text, const std::string& name);

}  // namespace memwall
