#include "study/policy_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <optional>
#include <utility>

#include "sim/byte_units.h"
#include "sim/error.h"
#include "sim/policy/given_budget.h"
#include "sim/policy/registry.h"
#include "sim/trace/ranks.h"
#include "study/device_budget.h"
#include "study/parallel_tasks.h"
#include "study/policy_text.h"
#include "study/step_work.h"
#include "traces/run/route_bytes.h"

namespace memwall {
namespace {

const char* const kFullCheckpointing = "checkpoint:mode=full";
const char* const kBudget = "budget";
const char* const kOwnPlanner = "plan";

struct AskedBudget {
  std::string text;
  GivenBudget budget{};  // a share is of the step's peak with unlimited memory
};

AskedBudget parse_budget(const std::string& text) {
  const auto refuse = [&](const std::string& why) {
    return UsageError(fmt::format("--budget {}: {}; expected a size from 1 MiB on (40GiB, 80GB) or a share of the "
                                  "step's own peak (70%).",
                                  text, why));
  };
  AskedBudget asked{text};
  if (text.ends_with('%')) {
    const char* const end = text.data() + text.size() - 1;
    double percent = 0;
    const auto read = std::from_chars(text.data(), end, percent);
    if (read.ec != std::errc{} || read.ptr != end) throw refuse("this is no share");
    if (!(percent > 0 && percent <= 1000)) throw refuse("the share is not above 0 % and up to 1000 %");
    asked.budget.share = percent / 100;
    return asked;
  }
  const std::optional<Bytes> bytes = parse_bytes(text);
  if (!bytes) throw refuse("this is no size");
  if (*bytes < kLeastBudget) throw refuse("this is too little");
  asked.budget.bytes = *bytes;
  return asked;
}

struct NamedPolicy {
  std::string text;
  bool takes_budget = false;

  // As --policy takes it.
  std::string within(Bytes budget) const {
    return takes_budget ? with_parameters(text, fmt::format("{}={}", kBudget, budget)) : text;
  }
};

bool takes_budget(const PolicyInfo& info) {
  return std::any_of(info.parameters.begin(), info.parameters.end(), [](const ParameterInfo& parameter) {
    return parameter.name == kBudget && parameter.type == ParameterType::bytes_or_share;
  });
}

NamedPolicy named_policy(const std::string& text) {
  const PolicySpec spec = parse_policy(text);
  if (spec.info->kind != PolicyKind::memory_plan)
    throw UsageError(
        fmt::format("--policy {}: \"{}\" makes no memory plan; expected one that does (`memwall policies`). "
                    "With --with all policies that are compared have it.",
                    text, spec.info->name));
  const bool budgeted = takes_budget(*spec.info);
  if (budgeted && spec.arguments.is_set(kBudget))
    throw UsageError(
        fmt::format("--policy {}: it names a budget of its own; expected budgets in --budget alone.", text));
  return {text, budgeted};
}

// All that can be asked without further settings.
std::vector<std::string> planners() {
  std::vector<std::string> names;
  for (const auto& [name, info] : policies())
    if (info.kind == PolicyKind::memory_plan && takes_budget(info) &&
        std::none_of(info.parameters.begin(), info.parameters.end(), [](const auto& p) { return p.required(); }))
      names.push_back(name);
  return names;
}

std::vector<NamedPolicy> compared(const PolicyQuestion& question) {
  std::vector<NamedPolicy> all{{std::string(kNoPolicy), false}, named_policy(kFullCheckpointing)};
  std::vector<std::string> more = question.policies;
  if (more.empty() || question.all_planners)
    for (std::string& name : planners()) more.push_back(std::move(name));
  for (const std::string& text : more)
    if (std::none_of(all.begin(), all.end(), [&](const NamedPolicy& there) { return there.text == text; }))
      all.push_back(named_policy(text));
  return all;
}

// Where storages may wait under one of the policies, as it says; the host in any case.
std::vector<std::string> named_tiers(const std::vector<NamedPolicy>& all) {
  std::vector<std::string> names{"host"};
  for (const NamedPolicy& policy : all) {
    if (policy.text == kNoPolicy) continue;
    const PolicySpec spec = parse_policy(policy.text);
    for (const ParameterInfo& parameter : spec.info->parameters) {
      if (parameter.type == ParameterType::tier) names.push_back(spec.arguments.tier(parameter.name));
      if (parameter.type != ParameterType::tiers) continue;
      const auto& tiers = spec.arguments.list(parameter.name);
      names.insert(names.end(), tiers.begin(), tiers.end());
    }
  }
  return names;
}

void add_copies(PolicyCell& cell, const Run& run) {
  const std::vector<Bytes> bytes = route_bytes(run);
  const Machine& machine = run.machine.one;
  std::vector<bool> used(machine.tiers.size());
  for (std::size_t r = 0; r < bytes.size(); ++r) {
    const Route& route = machine.routes[r];
    if (bytes[r] == 0 || route.from == route.to) continue;
    cell.moved += bytes[r];
    used[route.from] = used[route.to] = true;
  }
  for (std::size_t t = 0; t < used.size(); ++t)
    if (used[t]) cell.tiers.push_back(machine.tiers[t].name);
}

Duration rerun_time(const Run& run) {
  Duration sum{};
  for (OpId id = 0; id < run.trace->ops.size(); ++id) {
    const Op& op = run.trace->ops[id];
    const OpRecord& record = run.result.records[id];
    if (op.phase == Phase::recompute && op.kind == OpKind::kernel && record.start != kNever)
      sum += record.end - record.start;
  }
  return sum;
}

const TierResult& device_of(const Run& run) {
  return run.result.tiers[static_cast<std::size_t>(run.machine.tier("hbm"))];
}

void add_missing(PolicyCell& cell, Bytes missing, const std::string& where) {
  if (missing <= cell.missing) return;
  cell.missing = missing;
  cell.missing_in = where;
}

// What a run says, whatever the budget. `work`: of the step without a policy.
PolicyCell cell_of(const Run& run, const StepWork& work) {
  PolicyCell cell;
  add_copies(cell, run);
  cell.keeps_work = StepWork(*run.trace) == work;
  const auto steps = static_cast<std::int64_t>(std::max<std::size_t>(1, step_windows(run).size()));
  cell.step_time = mean_step(run);
  cell.peak_allocated = device_of(run).peak_allocated;
  cell.peak_reserved = device_of(run).peak_reserved;
  cell.moved /= steps;
  cell.rerun = rerun_time(run) / steps;
  for (const MemoryBudget& budget : run.trace->budgets) add_missing(cell, budget.over, kBudget);
  for (std::size_t t = 0; t < run.result.tiers.size(); ++t)
    add_missing(cell, run.result.tiers[t].missing, run.machine.tiers[t].name);
  cell.fits = run.result.fits && run.trace->keeps_to_budgets();
  return cell;
}

// Of a run on a GPU of the budget's size, whose memory is the budget.
PolicyCell cell_within_budget(const Run& run, const StepWork& work) {
  PolicyCell cell = cell_of(run, work);
  if (cell.missing_in == "hbm") cell.missing_in = kBudget;
  return cell;
}

void mark_front(PolicyComparison& c) {
  const std::size_t policies = c.policies.size();
  for (std::size_t b = 0; b < c.budgets.size(); ++b)
    for (std::size_t p = 0; p < policies; ++p) {
      PolicyCell& cell = c.cells[b * policies + p];
      cell.is_on_front = cell.fits;
      for (std::size_t other = 0; cell.is_on_front && other < c.cells.size(); ++other) {
        const PolicyCell& o = c.cells[other];
        if (!o.fits || other / policies < b) continue;
        cell.is_on_front = other / policies > b ? o.step_time > cell.step_time : o.step_time >= cell.step_time;
      }
    }
}

class Comparing {
 public:
  Comparing(Study& study, const PolicyQuestion& question, Watch* watch)
      : study_(study), question_(question), watch_(watch), policies_(compared(question)) {
    const auto& given = question.budgets.empty() ? default_budgets() : question.budgets;
    for (const std::string& text : given) budgets_.push_back(parse_budget(text));
  }

  PolicyComparison run() {
    const Run unlimited = unlimited_run(question_.scenario);
    require_comparable(unlimited);
    describe(unlimited);
    cells_of_all_budgets(0, unlimited);
    add_tasks();
    run_tasks(tasks_, question_.jobs, watch_);  // each fills cells of its own: their order changes nothing
    take_plans_for_less();
    result_.bounds = budget_bounds(unlimited, tiers(), bytes_of_budgets());
    mark_front(result_);
    return std::move(result_);
  }

 private:
  static void require_comparable(const Run& run) {
    if (rank_count(*run.trace) > 1)
      throw UsageError(
          fmt::format("{}: it holds {} ranks; expected a step of one rank, whose memory one budget is for.",
                      run.trace->name, rank_count(*run.trace)));
    if (!run.trace->knowledge.allocations)
      throw UsageError(run.trace->name + ": it does not say when memory is taken and given back; expected a step that "
                                         "does (`memwall inspect`).");
    if (run.machine.tier("hbm") < 0)
      throw UsageError("Machine '" + run.machine.name + "' has no memory 'hbm', which budgets are for.");
  }

  void describe(const Run& unlimited) {
    result_.step = unlimited.trace->name;
    result_.machine = unlimited.machine.name;
    result_.overrides = question_.scenario.settings;
    result_.beneath = question_.scenario.policies;
    result_.unlimited_step = mean_step(unlimited);
    work_.emplace(*unlimited.trace);
    untracked_ = unlimited.trace->untracked_bytes;
    result_.unlimited_peak = device_of(unlimited).peak_reserved - untracked_;
    for (const NamedPolicy& policy : policies_) result_.policies.push_back(policy.text);
    for (const AskedBudget& given : budgets_) {
      const Bytes bytes = std::max(kLeastBudget, given.budget.of(result_.unlimited_peak));
      const auto same = [&](const ComparedBudget& there) { return there.bytes == bytes; };
      if (std::none_of(result_.budgets.begin(), result_.budgets.end(), same))
        result_.budgets.push_back({given.text, bytes});
    }
    std::stable_sort(result_.budgets.begin(), result_.budgets.end(),
                     [](const ComparedBudget& a, const ComparedBudget& b) { return a.bytes > b.bytes; });
    result_.cells.resize(result_.budgets.size() * policies_.size());
  }

  std::vector<Bytes> bytes_of_budgets() const {
    std::vector<Bytes> all;
    for (const ComparedBudget& budget : result_.budgets) all.push_back(budget.bytes);
    return all;
  }

  // Where storages may wait: as policies say, and as they do.
  std::vector<std::string> tiers() const {
    std::vector<std::string> names = named_tiers(policies_);
    for (const PolicyCell& one : result_.cells) names.insert(names.end(), one.tiers.begin(), one.tiers.end());
    return names;
  }

  PolicyCell& cell(std::size_t budget, std::size_t policy) {
    return result_.cells[budget * policies_.size() + policy];
  }

  Scenario scenario(std::size_t policy, Bytes budget) const {
    Scenario s = question_.scenario;
    if (policies_[policy].text != kNoPolicy) s.policies.push_back(policies_[policy].within(budget));
    return s;
  }

  Run unlimited_run(const Scenario& scenario) const {
    return study_.run(scenario, {.record = false, .device_bytes = kUnlimitedDevice}).run;
  }

  // Of a policy that knows no budget, by runs on a GPU of each size, which may be larger than the machine's. `run`: with
  // unlimited memory.
  void cells_of_all_budgets(std::size_t policy, const Run& run) {
    const PolicyCell alike = cell_of(run, *work_);
    for (std::size_t b = 0; b < result_.budgets.size(); ++b) {
      PolicyCell& one = cell(b, policy) = alike;
      const Bytes bytes = result_.budgets[b].bytes;
      // Then it is the same run, unless settings of the allocator speak of parts of the device.
      if (alike.peak_reserved - untracked_ <= bytes && question_.scenario.allocator_settings.empty()) continue;
      const Run smaller = study_.run(scenario(policy, bytes), {.record = false, .device_bytes = bytes}).run;
      one = cell_within_budget(smaller, *work_);
    }
  }

  void fill(std::size_t policy, std::optional<std::size_t> budget) {
    const auto refused = [&](const std::string& sentence) {
      for (std::size_t b = 0; b < result_.budgets.size(); ++b)
        if (!budget || *budget == b) (cell(b, policy) = {}).refusal = sentence;
    };
    try {
      if (!budget) return cells_of_all_budgets(policy, unlimited_run(scenario(policy, 0)));
      // On a GPU of that size: of more memory the allocator would cache more, and the plan would seem faster than it
      // is.
      const Bytes bytes = result_.budgets[*budget].bytes;
      const Run run = study_.run(scenario(policy, bytes), {.record = false, .device_bytes = bytes}).run;
      cell(*budget, policy) = cell_within_budget(run, *work_);
    } catch (const UsageError& error) {
      refused(error.what());
    } catch (const InfeasibleError& error) {
      refused(error.what());
    }
  }

  void add_tasks() {
    for (std::size_t p = 1; p < policies_.size(); ++p) {
      if (!policies_[p].takes_budget) tasks_.push_back([this, p] { fill(p, std::nullopt); });
      for (std::size_t b = 0; policies_[p].takes_budget && b < result_.budgets.size(); ++b)
        tasks_.push_back([this, p, b] { fill(p, b); });
    }
  }

  // A plan for less memory is a plan for more; where the allocator makes it slower with more, the process can be limited
  // to less. So no larger budget is slower than a smaller one.
  void take_plans_for_less() {
    for (std::size_t p = 1; p < policies_.size(); ++p) {
      if (!policies_[p].takes_budget || parse_policy(policies_[p].text).info->name != kOwnPlanner) continue;
      for (std::size_t b = result_.budgets.size() - 1; b-- > 0;) {
        const PolicyCell& less = cell(b + 1, p);
        if (!less.fits || !is_better(less, cell(b, p))) continue;
        const Bytes asked = less.planned_for > 0 ? less.planned_for : result_.budgets[b + 1].bytes;
        const Bytes bytes = result_.budgets[b].bytes;
        const Run run = study_.run(scenario(p, asked), {.record = false, .device_bytes = bytes}).run;
        PolicyCell taken = cell_within_budget(run, *work_);
        if (!taken.fits || taken.step_time > less.step_time) {
          taken = less;
          if (taken.held_to == 0) taken.held_to = result_.budgets[b + 1].bytes;
        }
        taken.planned_for = asked;
        cell(b, p) = std::move(taken);
      }
    }
  }
  static bool is_better(const PolicyCell& one, const PolicyCell& other) {
    return !other.fits || one.step_time < other.step_time;
  }

  Study& study_;
  const PolicyQuestion& question_;
  Watch* watch_;
  const std::vector<NamedPolicy> policies_;
  std::vector<AskedBudget> budgets_;
  std::vector<std::function<void()>> tasks_;
  PolicyComparison result_;
  std::optional<StepWork> work_;  // of the step without a policy
  Bytes untracked_ = 0;
};

}  // namespace

const std::vector<std::string>& default_budgets() {
  static const std::vector<std::string> all{"100%", "70%", "50%", "30%"};
  return all;
}

PolicyComparison compare_policies(Study& study, const PolicyQuestion& question, Watch* watch) {
  return Comparing(study, question, watch).run();
}

int PolicyComparison::fastest(std::size_t budget) const {
  int best = -1;
  for (std::size_t p = 0; p < policies.size(); ++p)
    if (const PolicyCell& one = cell(budget, p);
        one.fits && (best < 0 || one.step_time < cell(budget, static_cast<std::size_t>(best)).step_time))
      best = static_cast<int>(p);
  return best;
}

int PolicyComparison::nearest(std::size_t budget) const {
  int best = -1;
  for (std::size_t p = 0; p < policies.size(); ++p)
    if (const PolicyCell& one = cell(budget, p);
        one.refusal.empty() && !one.fits &&
        (best < 0 || one.missing < cell(budget, static_cast<std::size_t>(best)).missing))
      best = static_cast<int>(p);
  return best;
}

bool PolicyComparison::anything_fits() const {
  return std::any_of(cells.begin(), cells.end(), [](const PolicyCell& one) { return one.fits; });
}

}  // namespace memwall
