// Policies side by side: the step under each of them within each of several budgets of device memory.
//
// A policy with a parameter `budget` is asked at each budget, as `--policy NAME:budget=...` would. Any other does what
// it does, and is held against each. A budget is what the step's storages may take of the GPU's memory, as PyTorch's
// allocator holds them: each cell is a run on a GPU of that size, be it less or more than the machine's own. A budget
// as a share is of what the step reserves at its peak with unlimited memory. Bounds are of plans that may move storages
// to any memory that one of the policies uses.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "study/budget_bound.h"
#include "study/scenario.h"
#include "study/study.h"
#include "study/watch.h"

namespace memwall {

// The step as it is, which stands in every comparison as the first of the policies.
inline constexpr std::string_view kNoPolicy = "none";

struct PolicyQuestion {
  Scenario scenario;                    // its policies are those that all have beneath their own
  std::vector<std::string> budgets{};   // "40GiB", "70%"; none: default_budgets()
  std::vector<std::string> policies{};  // memory plans, as --policy names them; none: all planners
  bool all_planners = false;            // beside the named ones, too
  unsigned jobs = 1;                    // threads; the result is the same for any number
};
const std::vector<std::string>& default_budgets();

struct ComparedBudget {
  std::string given;  // "70%"
  Bytes bytes = 0;
};

struct PolicyCell {
  std::string refusal;     // the sentence of a policy that cannot be applied; "" = it was, and what follows holds
  bool fits = false;       // within the budget, and on the machine
  Bytes missing = 0;       // at worst
  std::string missing_in;  // "budget", or a memory of the machine
  Duration step_time{};    // mean over the steps; of what does not fit with memory taken as unlimited
  Bytes peak_allocated = 0, peak_reserved = 0;  // of the GPU's memory
  Bytes moved = 0;                              // by copies between memories, per step; the step's own included
  std::vector<std::string> tiers{};             // that anything is copied to or from
  Duration rerun{};                             // of device work that is recomputation, per step
  // False: the policy changes what the step's kernels are (study/step_work.h), and no bound holds for it.
  bool keeps_work = true;
  // > 0: the plan is the one for this smaller budget of the comparison, as none that is as good was found for all of it. Of
  // `plan` alone: other planners are shown as they are.
  Bytes planned_for = 0;
  // > 0: that plan takes longer with all of this budget, as the allocator keeps more in its cache then, and the process is
  // limited to so much (torch.cuda.set_per_process_memory_fraction): the cell is the run on a GPU of that size.
  Bytes held_to = 0;
  // Of the cells that fit, none has a smaller budget and no longer time, nor an equal budget and a shorter time.
  bool is_on_front = false;

  bool operator==(const PolicyCell&) const = default;
};

struct PolicyComparison {
  std::string step, machine;            // names
  std::vector<std::string> overrides{};  // as Scenario::settings
  std::vector<std::string> beneath{};    // policies that all have
  Duration unlimited_step{};             // of the step with unlimited memory
  Bytes unlimited_peak = 0;              // that it reserves then for its storages
  std::vector<ComparedBudget> budgets{};  // distinct, the largest first
  std::vector<std::string> policies{};    // as given, without budget: kNoPolicy, full checkpointing, the others
  BudgetBounds bounds{};
  std::vector<PolicyCell> cells{};  // of the first budget by policy, of the second, ...

  const PolicyCell& cell(std::size_t budget, std::size_t policy) const {
    return cells[budget * policies.size() + policy];
  }
  // Index of a policy: the first of the fastest that fit; of what does not, that which lacks least. -1: none.
  int fastest(std::size_t budget) const;
  int nearest(std::size_t budget) const;
  bool anything_fits() const;
};

// `watch` is told how far it is; null = nobody. Throws UsageError where a budget or a policy makes no sense, what
// Study::run throws of the step without policies, and of a policy what is no UsageError or InfeasibleError.
PolicyComparison compare_policies(Study& study, const PolicyQuestion& question, Watch* watch = nullptr);

}  // namespace memwall
