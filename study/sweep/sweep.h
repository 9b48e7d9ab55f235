// Many scenarios at once: a study over axes. Finished points come from the journal, the others are run on several
// threads; the result is the same for any number of them and any order in which they finish.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "study/scenario.h"
#include "study/study.h"
#include "study/sweep/sweep_goal.h"
#include "study/sweep/sweep_journal.h"
#include "study/sweep/sweep_point.h"
#include "study/sweep/sweep_shard.h"
#include "study/sweep/sweep_space.h"

namespace memwall {

struct SweepRequest {
  Scenario base;
  SweepSpace space;
  std::vector<std::string> conditions{};  // all have to hold: "fits", "step_time_s < 1s"
  std::string objective{};                // "step_time_s", "max samples_per_s"; "" = none
  std::vector<std::string> fields{};      // fields that the table wants, beside those above
  unsigned jobs = 1;
  bool accept_gaps = false;  // take captures that ask first (Completeness), too
  // Of jobs over many GPUs every operator is simulated. Else they are folded (study/layout/folded_scenarios.h) where
  // only fields that a folded job says are asked for.
  bool written_out = false;
  std::optional<SweepShard> shard{};  // of its points those of this one alone
};

// While it runs. Called by one thread at a time.
struct SweepProgress {
  std::size_t done = 0, failed = 0, kept = 0, of = 0;
  const SweepPoint* best = nullptr;  // so far; null = none
};
using SweepWatch = std::function<void(const SweepProgress&)>;

struct SweepResult {
  std::vector<std::string> axes;        // names
  std::vector<std::string> conditions;  // as SweepPoint::broken counts them
  std::vector<SweepPoint> points;       // in the order of points_of()
  std::string objective;                // as it was asked, without "max " and "min "; "" = none
  std::optional<std::size_t> best{};    // of equals the first
  bool minimizes = true;
  FieldUnit objective_unit{};
  std::string journal_failure{};  // a sentence, where points could not be kept

  std::size_t failures() const;
  std::size_t kept() const;  // from the journal
  std::size_t ties() const;  // points that are as good as the best, beside it
  // Failed points by what their sentence says, their axes' values, numbers and quoted names apart, most first: the
  // first point's sentence, and how many.
  std::vector<std::pair<std::string, std::size_t>> failures_by_cause() const;
  // Axes that change neither whether a step fits nor a time nor a peak, at any points that differ in nothing else.
  std::vector<std::string> effectless_axes() const;
};

// `journal`: null = none. Throws UsageError for what is wrong with axes, their values, conditions and objective before
// a point is run, and for names of fields that no point has: behind the first point where that can be told of one (of
// a shard there alone). What a point throws is its own failure. Throws InputError where the step, which is no axis,
// cannot be read.
SweepResult sweep(Study& study, const SweepRequest& request, SweepJournal* journal, const SweepWatch& watch = {});

// The result of a study whose points have run elsewhere: in the order of points_of(). Throws UsageError as sweep(), and
// where there are not as many.
SweepResult assembled(const SweepRequest& request, std::vector<PointRecord> records);

// Of all that the results of all points depend on, whatever the shard: 32 hexadecimal digits. Throws as PointKeys.
std::string fingerprint_of(const SweepRequest& request);

}  // namespace memwall
