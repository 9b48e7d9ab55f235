// The verbs of memwall, one file each. A verb adds its options to the command
// line and says what to do when it is the one that was given.
#pragma once

#include <functional>
#include <string>

#include "cli/terminal.h"

namespace CLI {
class App;
}

namespace memwall {

// Exit code of a check that found something outside what is allowed (docs/man/memwall.1).
inline constexpr int kOutside = 4;

struct Verb {
  CLI::App* app = nullptr;   // its options; owned by the parent
  std::function<int()> act;  // returns the exit code; throws the errors of sim/error.h
};

Verb add_import(CLI::App& parent);
Verb add_inspect(CLI::App& parent);
Verb add_machines(CLI::App& parent);
Verb add_policies(CLI::App& parent);
Verb add_run(CLI::App& parent, const std::string& command_line);  // the latter for provenance
Verb add_compare(CLI::App& parent);
Verb add_compare_policies(CLI::App& parent);
Verb add_export(CLI::App& parent);
Verb add_emit(CLI::App& parent);
Verb add_plan(CLI::App& parent);
Verb add_render(CLI::App& parent);
Verb add_view(CLI::App& parent);
Verb add_memory(CLI::App& parent);
Verb add_schedule(CLI::App& parent);
Verb add_validate(CLI::App& parent);
Verb add_calibrate(CLI::App& parent);
Verb add_forecast(CLI::App& parent);
Verb add_generate(CLI::App& parent);
Verb add_watch(CLI::App& parent);
Verb add_roofline(CLI::App& parent);
Verb add_sweep(CLI::App& parent);
Verb add_fit(CLI::App& parent);
Verb add_explain(CLI::App& parent);
Verb add_completion(CLI::App& program);
Verb add_manual(CLI::App& program);

}  // namespace memwall
