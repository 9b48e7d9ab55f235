// A scenario explained: what binds its step time and its memory now, what binds next, and what each number is worth.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "study/explain/break_even.h"
#include "study/explain/elasticity.h"
#include "study/explain/next_bound.h"
#include "study/explain/peak_binding.h"
#include "study/explain/policy_regret.h"
#include "study/explain/shadow_price.h"
#include "study/sweep/axis.h"
#include "traces/run/analysis/critical_path.h"

namespace memwall {

struct ExplanationRequest {
  Scenario scenario;
  std::vector<std::string> only{};  // patterns of numbers (selected()); none = all
  double share = kUsualShare;       // by which numbers are varied, as sensitivities() takes it
  bool regret = true;               // are policies compared?
  std::vector<Axis> curves{};
  unsigned jobs = 1;         // threads; the result is the same for any number
  bool accept_gaps = false;  // SweepRequest::accept_gaps
};

struct Explanation {
  Scenario scenario;
  std::string step, machine;  // names
  double share = kUsualShare;
  PointFigures here{};
  // Of a job over many GPUs, whose numbers are varied with its passes folded (study/layout/folded_scenarios.h): the
  // step so, in seconds; 0 = every operator was simulated each time.
  double folded_step_time = 0;
  std::string missing_in{};  // where the scenario does not fit: the memory, or "budget"
  Bytes missing = 0;         // there, at worst
  bool memory_recorded = true;
  std::vector<std::pair<TimeClass, Duration>> path{};  // what the critical path is made of, the largest part first
  std::vector<Sensitivity> sensitivities{};            // what changes something, the strongest on the step time first
  std::vector<std::string> idle{};                     // numbers that change nothing on either side
  std::vector<std::pair<std::string, std::string>> refused{};  // numbers that neither side runs with: name, sentence
  std::vector<std::string> fixed{};                            // as VariedNumbers
  std::vector<ShadowPrice> prices{};
  std::vector<NextBound> next{};
  PeakBinding peak{};
  std::optional<PolicyRegret> regret{};  // nothing where it was not asked for
  std::vector<BreakEvenCurve> curves{};
  std::size_t simulated = 0;      // points that were no journal's
  std::size_t kept = 0;           // and that were
  std::string journal_failure{};  // a sentence, where points could not be kept
};

// `journal`: null = none; `watch` is told what is done (null = nobody). Throws what Study::run throws of the scenario
// itself, and UsageError where the request makes no sense.
Explanation explain(Study& study, const ExplanationRequest& request, SweepJournal* journal, Watch* watch = nullptr);

}  // namespace memwall
