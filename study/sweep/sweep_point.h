// One scenario of a study, and what came of it.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "study/scenario.h"
#include "study/sweep/sweep_journal.h"
#include "study/sweep/sweep_space.h"

namespace memwall {

struct SweepPoint {
  PointValues values;
  Scenario scenario;
  PointRecord record;
  bool is_kept = false;               // from the journal
  bool meets = false;                 // ran, and all conditions hold
  std::vector<std::size_t> broken{};  // conditions that do not hold, of a point that ran
  std::optional<double> objective{};  // where it ran and the objective is known

  bool ran() const { return record.error.empty(); }
};

}  // namespace memwall
