// The one way from a step to a result: a Scenario in, an Outcome out.
//
//   load     the step, once for all scenarios that name it
//   base     transferred to the machine, priced where it has no times, scaled, repeated
//   rewrite  the policies, in the fixed order of their kinds
//   run      the engine, the allocator, the pager
//
// What scenarios have in common is made once and shared: loaded steps, machines, base steps, and what the base step
// does without policies. A trace is copied by a rewriter that changes it, and nowhere else. All functions may be called
// from several threads at once; each result depends on its scenario alone. Nothing is printed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/machine/machine.h"
#include "sim/policy/pager.h"
#include "sim/policy/registry.h"
#include "sim/trace/shared_trace.h"
#include "study/scenario.h"
#include "study/watch.h"
#include "traces/run/run.h"

namespace memwall {

// A scenario's step before anything is changed.
struct LoadedStep {
  SharedTrace trace;
  std::shared_ptr<const Machine> machine;    // of one GPU; overrides applied
  std::vector<std::filesystem::path> files;  // that were read
};

// A scenario's step, ready to be simulated.
struct PreparedStep {
  SharedTrace trace;                         // after policies; sound
  SharedTrace base;                          // before them; the same trace where there are none
  std::shared_ptr<const Machine> machine;    // of one GPU; overrides applied
  std::unique_ptr<Pager> pager;              // null = none
  std::vector<std::filesystem::path> files;  // that were read
};

struct Outcome {
  Scenario scenario;
  Run run;  // without provenance; series of memory and links only where they were recorded
  std::vector<std::filesystem::path> files;  // that were read
};

struct RunOptions {
  bool record = true;  // keep what a run file holds: memory and link rates over time, residency, input hashes
  // Run::unchanged and unchanged_step: the base step without policies and pager, under the same allocator.
  // RunChanges::step_without: the scenario without overrides and scales. One more simulation of each, for who looks at
  // it. Of a recorded run also warnings of overrides without which it is the same (study/overrides/override_effect.h):
  // of several overrides one more simulation each, where it has at most kOpsTriedUnasked ops.
  bool compare_to_base = false;
  // Run::step_bounds, where they say more than the critical path: two more simulations.
  bool bound_step = false;
  // Run::tried, where the step does not fit and has at most kOpsTriedUnasked ops (study/remedies.h): a dozen
  // more simulations, or two.
  bool try_remedies = false;
  // Run::speedups, where it fits and has as few ops (study/speedups.h): four more simulations at most.
  bool try_speedups = false;
  // Run::steady_step, where drives fall off (study/steady_writes.h): mostly two more simulations.
  bool settle_writes = false;
  // Run::alone_step and contended_steps, where several ranks use a host (study/alone_step.h): one more simulation, or
  // five.
  bool try_alone = false;
  // Run::first_step, where steps page-lock memory (study/first_step.h): one more simulation.
  bool try_first_step = false;
  // What the step's storages may take of the GPU's memory, in place of what the machine has for them; 0 = that.
  Bytes device_bytes = 0;
  Observer* observer = nullptr;  // of the simulation itself; not owned
};

// What a study holds on to.
enum class StudyMemory : std::uint8_t {
  everything,  // for the next scenario that names it
  base_steps   // not the loaded step once its base step is made: for one scenario, or several of one base step. Another
               // base step of the same file reads the file again.
};

class Study {
 public:
  // `watch` sees what is read; null = nobody. Not owned.
  explicit Study(Watch* watch = nullptr, StudyMemory memory = StudyMemory::everything);
  ~Study();
  Study(const Study&) = delete;
  Study& operator=(const Study&) = delete;

  // Scenarios may name this trace in `step`, this machine in `machine` and Trace::machine. For steps and machines that
  // are no files. Files are read once: a study does not see that one changed since. REQUIRES: the trace is sound; the
  // name is not used yet; no other function runs meanwhile.
  void add_step(const std::string& name, SharedTrace trace);
  void add_machine(const std::string& name, Machine machine);

  // What is wrong with the words of a scenario, before its step is read: throws UsageError and InputError. Policies,
  // pager, allocator, budget, scale; machine and overrides where the scenario names a machine.
  void check(const Scenario& scenario);

  // The machine of a scenario that names one, overrides applied; the budget is not. Throws UsageError and InputError.
  // REQUIRES: it names one.
  std::shared_ptr<const Machine> machine(const Scenario& scenario);
  // Was a step of that name added?
  bool has_added_step(const std::string& name) const;

  // The scenario's step as it is read, and its machine. Throws as prepare() does.
  LoadedStep load(const Scenario& scenario);

  // Throws UsageError and InputError; names of policies, machines and allocators are looked up before a long import.
  PreparedStep prepare(const Scenario& scenario);

  // What the last of the scenario's policies decides, as a memory plan, and the trace that it is for. Throws as
  // prepare() does, and UsageError where that policy makes none (sim/policy/registry.h).
  PlannedStep plan(const Scenario& scenario);

  // Where the step does not fit, Outcome::run.result says so, with memory taken as unlimited. Throws as prepare() does,
  // and what simulate() throws.
  Outcome run(const Scenario& scenario, const RunOptions& options = {});

 private:
  void compare_to_base(const Scenario& scenario, const PreparedStep& step, bool is_recorded, Run& run);
  void add_effectless(const Scenario& scenario, const std::optional<Run>& unset, Run& run);

  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace memwall
