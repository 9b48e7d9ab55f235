// Points that another program asks for, one after the other, while it searches: a line of JSON in, a line out.
//
//   {"id": 7, "set": {"batch": 8, "policy": "checkpoint"}}
//   {"id": 7, "objectives": {"step_time": 0.061}, "fits": true, "feasible": true, "fields": {"peak": 9.1e9},
//    "scenario": "step=... policy=checkpoint", "error": null}
//
// `set` names axes as those of a study are named. What is wrong with a line is the `error` of its answer.
#pragma once

#include <functional>
#include <iosfwd>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "study/layout/folded_scenarios.h"
#include "study/scenario.h"
#include "study/study.h"
#include "study/sweep/sweep_goal.h"
#include "study/sweep/sweep_journal.h"

namespace memwall {

struct AskedRequest {
  Scenario base;                          // what no line sets
  std::vector<Axis> axes{};               // that lines may set, and expressions name; none = any axis
  std::vector<std::string> conditions{};  // what is feasible
  std::string objective{};                // "" = none
  std::vector<std::string> fields{};      // of each answer
  bool accept_gaps = false;
  bool written_out = false;  // SweepRequest::written_out
};

class AskedPoints {
 public:
  // `journal`: null = none. Both outlive it. Throws UsageError for what is wrong with expressions whatever a line sets. A
  // field that seems mistyped is looked for in a run of the base, which that takes.
  AskedPoints(Study& study, AskedRequest request, SweepJournal* journal);

  // The answer to one line, with its line end. `number`: of the line, from 1 on, for its error. May be called from
  // several threads at once. Throws InputError where the journal is damaged.
  std::string answer(const std::string& line, std::size_t number);

 private:
  struct Asked;
  PointRecord record_of(const Scenario& scenario, const SweepGoal& goal);
  SweepPoint point_of(const Asked& asked, const SweepGoal& goal);
  void require_spelt(const SweepGoal& goal);

  Study& study_;
  const AskedRequest request_;
  SweepJournal* journal_;
  std::optional<SweepGoal> goal_;  // where axes are given
  PointKeys keys_;
  FoldedScenarios folded_;
  std::mutex mutex_;  // of the journal
};

// Every line of `in` but empty ones is answered by `tell`, in the order in which points are finished, `jobs` of them at
// once; returns how many lines there were. `tell` is called by one thread at a time. Throws what `tell` throws.
std::size_t answer_all(std::istream& in, AskedPoints& points, unsigned jobs,
                       const std::function<void(const std::string&)>& tell);

}  // namespace memwall
