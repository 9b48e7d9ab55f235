#include "study/study.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "models/hw/machine_file.h"
#include "models/hw/machine_variants.h"
#include "models/hw/modelled_step.h"
#include "models/hw/pricer.h"
#include "sim/error.h"
#include "sim/machine/device_memory.h"
#include "sim/policy/registry.h"
#include "sim/trace/trace_check.h"
#include "study/base_step.h"
#include "study/compiled_execution.h"
#include "study/device_budget.h"
#include "study/executable.h"
#include "study/further_runs.h"
#include "study/grafted_workload.h"
#include "study/overrides/override_check.h"
#include "study/overrides/override_effect.h"
#include "study/planned_trace.h"
#include "study/rank_settings.h"
#include "study/remedies.h"
#include "study/scale_text.h"
#include "study/shared_values.h"
#include "study/speedups.h"
#include "study/step_setting.h"
#include "study/workload_file.h"
#include "traces/run/analysis/unasked_trials.h"
#include "traces/run/run_recorder.h"

namespace memwall {
namespace {

namespace fs = std::filesystem;

// Of each kind of thing that scenarios share. Steps are large, the rest is small.
constexpr std::size_t kMostSteps = 8, kMostBases = 8, kMostMachineFiles = 64, kMostOthers = 1024;
// Memory plans: `memwall plan` makes some two dozen, and writes one of the first of them.
constexpr std::size_t kMostPlans = 32;

// A trace and what it was read from.
struct ReadStep {
  SharedTrace trace;
  std::vector<fs::path> files;
  bool is_checked = false;  // it is known to be sound
};

// What a base step does without policies and pager: Run::unchanged and Run::unchanged_step.
struct BaseResult {
  std::vector<TierResult> tiers;
  Duration step_time{};
};

struct BaseStep {
  SharedTrace trace;
  std::vector<fs::path> files;
  std::shared_ptr<const Machine> machine;
  std::string machine_name{};  // as this study finds it
  std::string captured_on{};   // as the step says
  bool is_modelled = false;    // nothing of it was measured
};

std::vector<PolicySpec> parse_rewriters(const std::vector<std::string>& texts) {
  std::vector<PolicySpec> specs;
  for (const std::string& text : texts) {
    specs.push_back(parse_policy(text));
    if (!specs.back().info->make_rewriter)
      throw UsageError(
          fmt::format("--policy {}: \"{}\" is a pager; give it with --pager.", text, specs.back().info->name));
  }
  return specs;
}

std::unique_ptr<Pager> make_pager(const std::string& text) {
  if (text.empty()) return nullptr;
  const PolicySpec spec = parse_policy(text);
  if (!spec.info->make_pager)
    throw UsageError(
        fmt::format("--pager {}: \"{}\" rewrites the step beforehand; give it with --policy.", text, spec.info->name));
  return spec.info->make_pager(spec.arguments);
}

std::vector<fs::path> paths_of(const std::vector<std::string>& names) { return {names.begin(), names.end()}; }

// What of a scenario decides the loaded step, and the base step.
std::string load_key(const Scenario& s) {
  return to_text(
      {.step = s.step, .execution_traces = s.execution_traces, .onto = s.onto, .measured_on = s.measured_on});
}
std::string base_key(const Scenario& s) {
  Scenario key = s;
  key.pager = key.plan = key.executable = key.allocator_settings = key.budget = "";
  key.allocator = Scenario{}.allocator;
  if (s.second_size.empty()) key.policies.clear();  // else the size that one of them asks for
  return to_text(key);
}

PlanAllocator allocator_of(const Scenario& s) { return {s.allocator, s.allocator_settings}; }

}  // namespace

class Study::Implementation : public MachineSource {
 public:
  Implementation(Watch* watch, StudyMemory memory) : watch_(watch), memory_(memory) {}

  void add_step(const std::string& name, SharedTrace trace) { added_steps_[name] = std::move(trace); }
  void add_machine(const std::string& name, Machine machine) {
    added_machines_[name] = std::make_shared<const Machine>(std::move(machine));
  }

  bool has_added_step(const std::string& name) const { return added_steps_.contains(name); }

  bool knows(const std::string& name) override {
    if (added_machines_.contains(name)) return true;
    return *known_machines_.get(name, [&] {
      std::error_code error;
      return fs::is_regular_file(name, error) || has_machine(name);  // which reads its file
    });
  }

  std::shared_ptr<const Machine> machine(const std::string& name, const std::vector<std::string>& settings) override {
    if (const auto added = added_machines_.find(name); added != added_machines_.end()) {
      if (!settings.empty())
        throw UsageError(
            fmt::format("Machine {} comes from a program and has no file: its numbers cannot be "
                        "overridden; change them there.",
                        name));
      return added->second;
    }
    return machines_.get(to_text({.step = {name}, .settings = settings}), [&] {
      return machine_files_.get(name, [&] { return MachineVariants(name); })->with(settings);
    });
  }

  std::shared_ptr<const ReadStep> load(const Scenario& s) {
    return loaded_.get(load_key(s), [&] {
      if (const auto added = added_steps_.find(name_of_step(s)); s.step.size() == 1 && added != added_steps_.end()) {
        if (!s.execution_traces.empty() || !s.measured_on.empty() || !s.onto.empty())
          throw UsageError(
              fmt::format("{}: this step comes from a program; expected no ExecutionTrace, no complete step and no "
                          "machine of its durations beside it.",
                          name_of_step(s)));
        return ReadStep{added->second, {}, true};
      }
      Workload workload = complete_workload(paths_of(s.step), paths_of(s.execution_traces),
                                            {.measured_on = s.measured_on}, {.onto = s.onto}, watch_);
      return ReadStep{std::move(workload.trace), std::move(workload.files), workload.is_checked};
    });
  }

  std::shared_ptr<const ReadStep> load_second(const Scenario& s, const Trace& first) {
    auto second = load({.step = {s.second_size}, .measured_on = s.measured_on});
    if (second->trace->machine != first.machine)
      throw UsageError(fmt::format("--second-size {}: it was measured on '{}', {} on '{}'; expected one machine.",
                                   s.second_size, second->trace->machine, name_of_step(s), first.machine));
    return second;
  }

  // What is wrong with a scenario is told before a long import.
  void check(const Scenario& s) {
    if (s.repeat == 0) throw UsageError("The step is repeated 0 times; expected 1 or more.");
    if (s.step.empty()) throw UsageError("There is no step; expected a file, or the name of a workload.");
    require_no_step_setting(s.settings, name_of_step(s));
    parse_rewriters(s.policies);
    (void)restriction_of(s.executable);
    parse_scales(s.scale);
    if (!s.budget.empty()) parse_device_budget(s.budget);
    const std::unique_ptr<Pager> pager = make_pager(s.pager);
    require_allocator({.allocator = s.allocator,
                       .pager = pager.get(),
                       .allocator_settings = parse_allocator_settings(s.allocator_settings)});
    if (!s.machine.empty()) machine(s.machine, s.settings);
  }

  std::shared_ptr<const BaseStep> base(const Scenario& s) {
    return bases_.get(base_key(s), [&] {
      auto loaded = load(s);
      BaseStep base{loaded->trace,
                    loaded->files,
                    choose_machine(s, loaded->trace, *this),
                    s.machine.empty() ? loaded->trace->machine : s.machine,
                    loaded->trace->machine,
                    measured_nowhere(loaded->trace)};
      if (!s.second_size.empty()) {
        const auto second = load_second(s, loaded->trace);
        base.trace = between_sizes(loaded->trace, second->trace, parse_rewriters(s.policies));
        base.files.insert(base.files.end(), second->files.begin(), second->files.end());
      }
      // Then only times differ from what was checked. A rank that is scaled alone may get a program of its own.
      bool same_program = loaded->is_checked && s.second_size.empty() && s.repeat == 1 && s.scale.empty();
      const std::size_t programs = loaded->trace->rank_table.size();
      if (memory_ == StudyMemory::base_steps) {  // nobody else holds the trace then, and it is changed in place
        loaded.reset();
        loaded_.forget(load_key(s));
      }
      base.trace = base_step(std::move(base.trace), s, *base.machine, *this);
      same_program &= base.trace->rank_table.size() == programs;
      (same_program ? require_sound_costs : require_sound)(base.trace, name_of_step(s));
      return base;
    });
  }

  // The step's machine, with as much memory for it as the scenario's budget says.
  static std::shared_ptr<const Machine> within_budget(const Scenario& s, const BaseStep& base) {
    if (s.budget.empty()) return base.machine;
    const Bytes whole = device_bytes_for(*base.trace, *base.machine);
    return with_device_bytes(*base.machine, *base.trace, parse_device_budget(s.budget).of(whole));
  }

  PreparedStep prepare(const Scenario& s) {
    check(s);
    const auto base_step = base(s);
    PreparedStep step{.trace = base_step->trace,
                      .base = base_step->trace,
                      .machine = within_budget(s, *base_step),
                      .pager = make_pager(s.pager),
                      .files = base_step->files};
    if (!s.pager.empty()) require_knowledge(parse_policy(s.pager), step.base);
    std::vector<PolicySpec> specs = parse_rewriters(s.policies);
    if (!s.second_size.empty()) std::erase_if(specs, sets_batch);
    const std::unique_ptr<Pricer> pricer = make_pricer(*step.machine);
    if (!specs.empty())
      step.trace = apply_rewriters(step.base, specs, *step.machine, *pricer, restriction_of(s.executable),
                                   allocator_of(s), plan_cache(s));
    if (!s.plan.empty()) {
      step.trace = planned_trace(step.trace, s.plan, *step.machine, *pricer, restriction_of(s.executable));
      step.files.emplace_back(s.plan);
    }
    require_compiled(*step.trace);
    step.trace = in_equal_places(std::move(step.trace), *step.machine);
    return step;
  }

  PlannedStep plan(const Scenario& s) {
    check(s);
    const auto base_step = base(s);
    std::vector<PolicySpec> specs = parse_rewriters(s.policies);
    if (!s.second_size.empty()) std::erase_if(specs, sets_batch);
    const std::shared_ptr<const Machine> machine = within_budget(s, *base_step);
    return plan_rewriters(base_step->trace, specs, *machine, *make_pricer(*machine), restriction_of(s.executable),
                          allocator_of(s), plan_cache(s));
  }

  std::vector<InputFile> inputs(const std::vector<fs::path>& files) {
    std::vector<InputFile> inputs;
    for (const fs::path& file : files)
      inputs.push_back({file.filename().string(), *hashes_.get(file.string(), [&] { return hash_of_file(file); })});
    return inputs;
  }

  // Which overrides did nothing in this run.
  std::vector<std::string> warnings(const Scenario& s, const Run& run) {
    const auto base_step = base(s);
    const std::string& name = base_step->machine_name;
    return override_warnings(
        run, {knows(base_step->captured_on), base_step->is_modelled},
        {[&](const std::vector<std::string>& settings) { return machine(name, settings); },
         [&](const std::vector<std::string>& settings) { return machine_numbers(name, settings); }});
  }

  // What the base step does, alone.
  BaseResult base_result(const Scenario& s, const PreparedStep& step) {
    Scenario key = s;
    key.pager = key.plan = key.executable = "";
    if (s.second_size.empty()) key.policies.clear();
    return *base_results_.get(to_text(key), [&] {
      Run run = simulate_and_record(step.base, *step.machine,
                                    {.policies = {},
                                     .pager_text = {},
                                     .allocator = s.allocator,
                                     .allocator_settings = parse_allocator_settings(s.allocator_settings),
                                     .inputs = {},
                                     .record = false});
      return BaseResult{std::move(run.result.tiers), mean_step(run)};
    });
  }

 private:
  // Keys begin with all of the scenario that a plan follows from, but for the policies before it.
  PlanCache plan_cache(const Scenario& s) {
    Scenario rest = s;
    rest.pager = rest.plan = "";
    if (s.second_size.empty()) rest.policies.clear();
    return [this, begin = to_text(rest) + '\n'](const std::string& key, const std::function<MadePlan()>& make) {
      return plans_.get(begin + key, make);
    };
  }

  Watch* watch_;
  const StudyMemory memory_;
  std::map<std::string, SharedTrace> added_steps_;
  std::map<std::string, std::shared_ptr<const Machine>> added_machines_;
  SharedValues<ReadStep> loaded_{kMostSteps};
  SharedValues<BaseStep> bases_{kMostBases};
  SharedValues<bool> known_machines_{kMostMachineFiles};
  SharedValues<MachineVariants> machine_files_{kMostMachineFiles};
  SharedValues<Machine> machines_{kMostOthers};
  SharedValues<std::string> hashes_{kMostOthers};
  SharedValues<BaseResult> base_results_{kMostOthers};
  SharedValues<MadePlan> plans_{kMostPlans};
};

Study::Study(Watch* watch, StudyMemory memory) : implementation_(std::make_unique<Implementation>(watch, memory)) {}
Study::~Study() = default;

void Study::add_step(const std::string& name, SharedTrace trace) { implementation_->add_step(name, std::move(trace)); }
void Study::add_machine(const std::string& name, Machine machine) {
  implementation_->add_machine(name, std::move(machine));
}

void Study::check(const Scenario& scenario) { implementation_->check(with_rank_settings_as_scales(scenario)); }

std::shared_ptr<const Machine> Study::machine(const Scenario& scenario) {
  return implementation_->machine(scenario.machine, scenario.settings);
}

bool Study::has_added_step(const std::string& name) const { return implementation_->has_added_step(name); }

LoadedStep Study::load(const Scenario& asked) {
  const Scenario scenario = with_rank_settings_as_scales(asked);
  implementation_->check(scenario);
  const auto step = implementation_->load(scenario);
  LoadedStep loaded{step->trace, choose_machine(scenario, step->trace, *implementation_), step->files};
  if (!scenario.plan.empty()) loaded.files.emplace_back(scenario.plan);
  for (const std::string& machine : {scenario.machine, scenario.measured_on})
    if (std::error_code error; fs::is_regular_file(machine, error)) loaded.files.emplace_back(machine);
  if (scenario.second_size.empty()) return loaded;
  const auto second = implementation_->load_second(scenario, step->trace);
  loaded.files.insert(loaded.files.end(), second->files.begin(), second->files.end());
  return loaded;
}

PlannedStep Study::plan(const Scenario& scenario) {
  return implementation_->plan(with_rank_settings_as_scales(scenario));
}

PreparedStep Study::prepare(const Scenario& scenario) {
  return implementation_->prepare(with_rank_settings_as_scales(scenario));
}

// RunOptions::compare_to_base.
void Study::compare_to_base(const Scenario& scenario, const PreparedStep& step, bool is_recorded, Run& run) {
  if (!same(step.trace, step.base) || step.pager) {
    BaseResult base = implementation_->base_result(scenario, step);
    run.unchanged = std::move(base.tiers);
    run.unchanged_step = base.step_time;
  }
  if (scenario.settings.empty() && scenario.scale.empty()) return;
  Scenario without = scenario;
  without.settings.clear();
  without.scale.clear();
  std::optional<Run> unset;
  try {
    unset = this->run(without, {.record = false}).run;
    run.changes.step_without = mean_step(*unset);
  } catch (const UsageError&) {  // refused without what was changed: nothing to compare with
  }
  if (is_recorded) add_effectless(scenario, unset, run);
}

// Adds to what is said of overrides those without which the run is the same. `unset`: without any of them, and
// unscaled.
void Study::add_effectless(const Scenario& scenario, const std::optional<Run>& unset, Run& run) {
  const auto under = [&](const std::vector<std::string>& settings, bool with_bounds) -> std::optional<Run> {
    if (settings.empty() && scenario.scale.empty() && !with_bounds) return unset;
    if (run.trace->ops.size() > kOpsTriedUnasked) return {};
    Scenario other = scenario;
    other.settings = settings;
    try {
      return this->run(other, {.record = false, .bound_step = with_bounds}).run;
    } catch (const UsageError&) {
      return {};
    }
  };
  for (std::string& sentence : effectless_overrides(run, under)) run.warnings.push_back(std::move(sentence));
}

Outcome Study::run(const Scenario& asked, const RunOptions& options) {
  const Scenario scenario = with_rank_settings_as_scales(asked);
  PreparedStep step = implementation_->prepare(scenario);
  if (options.device_bytes > 0) step.machine = with_device_bytes(*step.machine, *step.trace, options.device_bytes);
  std::vector<std::string> policies = scenario.policies;
  if (!scenario.plan.empty()) policies.push_back("plan " + fs::path(scenario.plan).filename().string());
  RunSettings settings{.policies = std::move(policies),
                       .pager_text = scenario.pager,
                       .allocator = scenario.allocator,
                       .allocator_settings = parse_allocator_settings(scenario.allocator_settings),
                       .changes = {scenario.settings, scenario.scale, scenario.transfer_host},
                       .pager = step.pager.get(),
                       .observer = options.observer,
                       .inputs = {},
                       .record = options.record};
  if (options.record) settings.inputs = implementation_->inputs(step.files);
  Outcome outcome{asked, simulate_and_record(step.trace, *step.machine, settings), step.files};
  const FurtherRuns further(step, settings, [&scenario] { return make_pager(scenario.pager); });
  further.add(options, outcome.run);
  if (options.record && !scenario.settings.empty())
    outcome.run.warnings = implementation_->warnings(scenario, outcome.run);
  if (options.compare_to_base) compare_to_base(scenario, step, options.record, outcome.run);
  const bool is_short = outcome.run.trace->ops.size() <= kOpsTriedUnasked;
  if (options.try_speedups && outcome.run.result.fits && is_short)
    outcome.run.speedups = try_speedups(outcome.run, [&further](SharedTrace trace, const Machine& machine) {
      return further.on(std::move(trace), machine);
    });
  if (options.try_remedies && !outcome.run.result.fits && is_short)
    outcome.run.tried = try_remedies(outcome.run, scenario,
                                     [this](const Scenario& changed) { return run(changed, {.record = false}).run; });
  return outcome;
}

}  // namespace memwall
