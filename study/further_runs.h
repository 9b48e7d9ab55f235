// The step of a run simulated again for what is told beside the run: on other machines, with other times, with other
// caches. Internal to study/.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "study/study.h"

namespace memwall {

struct RunSettings;

class FurtherRuns {
 public:
  // Neither is owned; both must outlive this. `settings`: of the run itself. `make_pager`: one for each simulation,
  // null where the run has none.
  FurtherRuns(const PreparedStep& step, const RunSettings& settings, std::function<std::unique_ptr<Pager>()> make_pager)
      : step_(step), settings_(settings), make_pager_(std::move(make_pager)) {}

  // As the run itself, of another trace or on another machine; not recorded. Throws what simulate_and_record() throws.
  Run on(SharedTrace trace, const Machine& machine) const;

  // Adds to `run` what `options` ask for: steady_step, alone_step and contended_steps, first_step, step_bounds.
  void add(const RunOptions& options, Run& run) const;

 private:
  Run run_again(SharedTrace trace, const Machine& machine, RunSettings settings) const;
  Run with_caches(std::vector<double> cached) const;
  Run of_first_step() const;

  const PreparedStep& step_;
  const RunSettings& settings_;
  std::function<std::unique_ptr<Pager>()> make_pager_;
};

}  // namespace memwall
