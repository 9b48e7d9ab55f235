// What the values of options and positionals are: what completion offers for them, and where "-" is standard input.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace memwall {

enum class ValueKind : std::uint8_t {
  other,        // a number, a size, a name of one's own
  word,         // one of a few
  input,        // a file that is read, or, for what takes a step, the name of a workload
  machine,      // a machine's name, or a file
  policy,       // a policy's name; where it is used, with arguments behind it
  output_file,  // that is written
  folder
};

struct OptionValues {
  ValueKind kind = ValueKind::other;
  std::vector<std::string> words{};  // that are known: names of machines, policies, formats
};

// REQUIRES: `option` is one of `verb`, which may be a verb's verb.
OptionValues values_of(const CLI::App& verb, const CLI::Option& option);

// "--machine", "-h" where there is no long name, or the name of a positional.
std::string name_of(const CLI::Option& option);

// From now on a "-" that is given as an input or a machine to `app` or its verbs is standard input: what they get is
// kStandardInput.
void take_standard_input(CLI::App& app);

// Throws UsageError where the command line names standard input more than once: its bytes come once.
void require_one_standard_input(const CLI::App& app);

}  // namespace memwall
