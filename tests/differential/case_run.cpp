#include "tests/differential/case_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <stdexcept>

#include "models/workload/import/mwc/mwc_import.h"
#include "policies/plan/plan_realization.h"
#include "policies/trace/dataflow.h"
#include "sim/error.h"
#include "study/plan_outcome.h"
#include "study/study.h"
#include "tests/support/command.h"
#include "tests/support/scratch_folder.h"
#include "traces/plan/plan_file.h"

namespace memwall {
namespace {

namespace fs = std::filesystem;

Scenario scenario_of(const fs::path& base, const std::vector<std::string>& policies) {
  Scenario scenario;
  scenario.step = {base.string()};
  scenario.machine = "h100-sxm-80gb";
  scenario.policies = policies;
  // A policy that says so itself is asked without the setting, as `--policy plan:executable=torch` is.
  const bool says_so = std::any_of(policies.begin(), policies.end(), [](const std::string& policy) {
    return policy.find("executable=torch") != std::string::npos;
  });
  if (!says_so) scenario.executable = "torch";
  return scenario;
}

Bytes reserved(Study& study, const fs::path& base, const std::vector<std::string>& policies) {
  const memwall::Run run = study.run(scenario_of(base, policies), {.record = false}).run;
  return run.result.tiers[static_cast<std::size_t>(run.machine.tier("hbm"))].peak_reserved;
}

// "middle" and "tight" lie between what the step needs with every block computed again and what it takes as it is,
// "80%" is a share of the latter.
void set_budgets(Study& study, const fs::path& base, std::vector<DifferentialCase>& cases) {
  const Bytes most = reserved(study, base, {}), least = reserved(study, base, {"checkpoint:mode=full"});
  for (DifferentialCase& one : cases)
    for (std::string& policy : one.policies) {
      policy = with_budget(policy, "middle", least + (most - least) / 2);
      policy = with_budget(policy, "tight", least + (most - least) / 5);
      for (const int percent : {80, 60, 50})
        policy = with_budget(policy, fmt::format("{}%", percent), most * percent / 100);
    }
}

// Of several policies that plan memory the file has the last one's decisions, whose numbers are of the trace behind the
// others; by names it has what all of them decide. `last`: what all the policies together give.
PlanRealization named_by_all(Study& study, const fs::path& base, const std::vector<std::string>& policies,
                             const PlannedStep& last) {
  PlanRealization all;
  for (std::size_t i = 1; i <= policies.size(); ++i) {
    std::optional<PlannedStep> before;
    if (i < policies.size())
      before = study.plan(scenario_of(base, {policies.begin(), policies.begin() + static_cast<std::ptrdiff_t>(i)}));
    const PlannedStep& planned = before ? *before : last;
    PlanRealization named = realization_of(planned.plan, planned.trace, Dataflow(planned.trace));
    const auto append = [](auto& to, auto& from) { to.insert(to.end(), from.begin(), from.end()); };
    named.recompute.insert(named.recompute.begin(), all.recompute.begin(), all.recompute.end());
    append(all.lazy_operators, named.lazy_operators);
    append(all.offload, named.offload);
    append(all.homes, named.homes);
    append(all.unnamed, named.unnamed);
    append(all.runs_again, named.runs_again);
    all.recompute = named.recompute;
    all.parameters = named.parameters;
    all.forwards = named.forwards;
  }
  return all;
}

void make_plan(Study& study, const fs::path& base, const fs::path& path, CaseRun& out) {
  try {
    const Scenario scenario = scenario_of(base, out.asked.policies);
    const PlannedStep planned = study.plan(scenario);
    const memwall::Run run = study.run(scenario, {.record = false}).run;
    if (planned.plan.storages.empty() && planned.plan.reruns.empty()) {
      out.end = CaseEnd::nothing_planned;
      return;
    }
    const PlanRealization named = named_by_all(study, base, out.asked.policies, planned);
    write_content(path, to_json(planned.plan, planned.trace, planned.made_by, {named, expectation_of(run)}));
    out.simulated = step_memory(run.trace);
    if (!named.unnamed.empty()) out.unnamed = named.unnamed.front().reason;
  } catch (const UsageError& error) {
    out.end = CaseEnd::not_planned;
    out.sentence = error.what();
  }
}

void execute(const std::string& python, const std::string& arguments) {
  const CommandOutcome done =
      run_command(fmt::format("{} {}/tests/differential/execute.py {}", python, MEMWALL_SOURCE, arguments), ".");
  if (done.code != 0) throw std::runtime_error(fmt::format("execute.py {}: {}{}", arguments, done.out, done.err));
}

void read_outcome(const fs::path& folder, CaseRun& out) {
  if (out.end == CaseEnd::not_planned || out.end == CaseEnd::nothing_planned) return;
  const std::string place = (folder / out.asked.name).string();
  if (fs::exists(place + ".refused")) {
    out.end = out.unnamed.empty() ? CaseEnd::refused : CaseEnd::refused_by_both;
    out.sentence = content_of(place + ".refused");
  } else if (fs::exists(place + ".mwc.gz")) {
    out.end = CaseEnd::compared;
    out.executed = step_memory(read_mwc(place + ".mwc.gz").trace);
    out.differences = differences(out.simulated, out.executed);
  } else {
    out.sentence = content_of(place + ".failed");
  }
}

}  // namespace

std::string_view to_string(CaseEnd end) {
  static constexpr std::string_view kNames[] = {"compared",        "not planned", "nothing planned",
                                                "refused by both", "refused",     "failed"};
  return kNames[static_cast<std::size_t>(end)];
}

std::string python_with_torch() {
  const char* named = std::getenv("MEMWALL_PYTHON");
  const std::string python = named != nullptr ? named : "python3";
  return run_command(python + " -c 'import torch'", ".").code == 0 ? python : "";
}

std::vector<CaseRun> run_cases(const std::string& python, const DifferentialFamily& family,
                               std::vector<DifferentialCase> cases, const fs::path& folder) {
  fs::remove_all(folder);
  fs::create_directories(folder);
  const fs::path base = folder / "base.mwc.gz";
  execute(python, fmt::format("{} --base '{}'", family.name, base.string()));
  Study study;
  set_budgets(study, base, cases);
  std::vector<CaseRun> runs;
  for (DifferentialCase& one : cases) {
    CaseRun& run = runs.emplace_back();
    run.asked = std::move(one);
    make_plan(study, base, folder / (run.asked.name + ".plan"), run);
  }
  execute(python, fmt::format("{0} --plans '{1}' --out '{1}'", family.name, folder.string()));
  for (CaseRun& run : runs) read_outcome(folder, run);
  return runs;
}

}  // namespace memwall
