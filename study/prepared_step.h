// A step made ready for a machine: loaded, carried over to it, scaled, repeated, rewritten by policies. What
// `memwall run` simulates and `memwall schedule` writes down.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/scale_option.h"
#include "sim/machine/machine.h"
#include "sim/policy/pager.h"
#include "sim/trace/trace.h"

namespace memwall {

// As the command line gave them.
struct StepSettings {
  std::string step, execution_trace, machine, pager;               // execution_trace, machine, pager: "" = none given
  std::vector<std::string> more_ranks{}, more_execution_traces{};  // beside step and execution_trace, of one job
  std::string second_size{};                    // a capture of the same program at another size; "" = none
  std::vector<std::string> settings, policies;  // of the machine; rewriters
  std::vector<ScaleOption> scale;               // noted in the trace
  std::uint32_t steps = 1;
  std::string output;  // what is going to be written: refused before any work if that would destroy something
  bool keep_unchanged = false;
  std::string measured_on{};  // the machine that the step was measured on; "" = as its file says
  bool carry_host = false;    // on another machine than the trace's own: TransferSettings::host
};

struct PreparedStep {
  Trace trace;                     // sound
  std::optional<Trace> unchanged;  // before policies; only with keep_unchanged, where there are policies or a pager
  Machine machine;
  std::unique_ptr<Pager> pager;              // null = none
  std::vector<std::filesystem::path> files;  // that were read
};

// As read, before anything is changed, so that a step can be prepared several times.
struct LoadedStep {
  Trace trace;
  std::optional<Trace> second;  // StepSettings::second_size
  Machine machine;
  std::vector<std::filesystem::path> files;  // that were read
};

// Throws UsageError and InputError; names of policies and machines are looked up before a long import.
PreparedStep prepare_step(const StepSettings& settings);

// The same in two. Of the settings, `policies`, `pager`, `scale` and `steps` may differ from call to call. With a
// second size the policy batch is not a rewriter: the step at its size lies on a line through both.
LoadedStep load_step(const StepSettings& settings);
PreparedStep prepare_step(const LoadedStep& loaded, const StepSettings& settings);

}  // namespace memwall
