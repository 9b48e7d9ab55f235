// Scenarios run on several threads; those that a journal holds are taken from it. Results are the same for any number
// of threads.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "study/layout/folded_scenarios.h"
#include "study/scenario.h"
#include "study/study.h"
#include "study/sweep/sweep_journal.h"

namespace memwall {

// Told after each point, by one thread at a time: how many are done, of how many that are known so far.
using PointWatch = std::function<void(std::size_t done, std::size_t of)>;

// A point by its place among the scenarios, and whether it is from the journal. Called by one thread at a time.
using PointTaker = std::function<void(std::size_t index, PointRecord record, bool is_kept)>;

class ScenarioPoints {
 public:
  // `journal`: null = none. Both outlive this. `accept_gaps`: as SweepRequest has it. `folds`: jobs over many GPUs are
  // folded where they can be (PointSettings::folded).
  ScenarioPoints(Study& study, SweepJournal* journal, unsigned jobs, PointWatch watch = {}, bool accept_gaps = false,
                 bool folds = false)
      : study_(study),
        journal_(journal),
        jobs_(jobs),
        watch_(std::move(watch)),
        accept_gaps_(accept_gaps),
        folds_(folds),
        folded_(study) {}

  // Hands on each point as it is finished, those of the journal first; keeps none of them. `needs_all`: every field of
  // `memwall run --format json`, not the quick ones alone. What a scenario throws is its record's error. REQUIRES:
  // nothing is null.
  void take_each(const std::vector<const Scenario*>& scenarios, bool needs_all, const PointTaker& take);

  // In the order of the scenarios. Equal ones run once, also of several calls: what is finished is held on to.
  std::vector<PointRecord> run(const std::vector<Scenario>& scenarios, bool needs_all = false);
  PointRecord run(const Scenario& scenario, bool needs_all = false) { return run(std::vector{scenario}, needs_all)[0]; }

  Study& study() const { return study_; }
  SweepJournal* journal() const { return journal_; }
  unsigned jobs() const { return jobs_; }
  bool accept_gaps() const { return accept_gaps_; }
  std::size_t simulated() const { return simulated_; }  // not from the journal
  std::size_t kept() const { return kept_; }            // from the journal

 private:
  Study& study_;
  SweepJournal* journal_;
  unsigned jobs_;
  PointWatch watch_;
  bool accept_gaps_, folds_;
  FoldedScenarios folded_;
  std::optional<PointKeys> keys_;                // with a journal
  std::map<std::string, PointRecord> finished_;  // by the scenario's line
  std::size_t done_ = 0, known_ = 0, simulated_ = 0, kept_ = 0;
};

}  // namespace memwall
