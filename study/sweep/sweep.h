// Many scenarios at once: a study over axes. Finished points come from the journal, the others are run on several
// threads; the result is the same for any number of them and any order in which they finish.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "study/scenario.h"
#include "study/study.h"
#include "study/sweep/expression.h"
#include "study/sweep/sweep_journal.h"
#include "study/sweep/sweep_space.h"

namespace memwall {

struct SweepRequest {
  Scenario base;
  SweepSpace space;
  std::vector<std::string> conditions{};  // all have to hold: "fits", "step_time_s < 1s"
  std::string objective{};                // "step_time_s", "max samples_per_s"; "" = none
  std::vector<std::string> fields{};      // fields that the table wants, beside those above
  unsigned jobs = 1;
};

struct SweepPoint {
  PointValues values;
  Scenario scenario;
  PointRecord record;
  bool is_kept = false;               // from the journal
  bool meets = false;                 // ran, and all conditions hold
  std::optional<double> objective{};  // where it ran and the objective is known

  bool ran() const { return record.error.empty(); }
};

// While it runs. Called by one thread at a time.
struct SweepProgress {
  std::size_t done = 0, failed = 0, kept = 0, of = 0;
  const SweepPoint* best = nullptr;  // so far; null = none
};
using SweepWatch = std::function<void(const SweepProgress&)>;

struct SweepResult {
  std::vector<std::string> axes;   // names
  std::vector<SweepPoint> points;  // in the order of points_of()
  std::optional<std::size_t> best{};
  bool minimizes = true;
  FieldUnit objective_unit{};
  std::string journal_failure{};  // a sentence, where points could not be kept

  std::size_t failures() const;
  // Failed points by what their sentence says, names and numbers apart, most first: the first point's sentence, and
  // how many.
  std::vector<std::pair<std::string, std::size_t>> failures_by_cause() const;
};

// `journal`: null = none. Throws UsageError for what is wrong with axes, conditions and objective before a point is
// run, and for names of fields that the first point that ran does not have. What a point throws is its own failure.
SweepResult sweep(Study& study, const SweepRequest& request, SweepJournal* journal, const SweepWatch& watch = {});

// A field's name in full: "step_time" is "step_time_s", "peak" is "tiers.hbm.peak_reserved_bytes".
std::string full_field_name(const std::string& name);

}  // namespace memwall
