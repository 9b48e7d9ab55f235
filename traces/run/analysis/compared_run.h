// What comparing asks of a run, a few numbers per op: two large runs are compared without both being in memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "traces/run/analysis/compare.h"

namespace memwall {

struct ComparedRun {
  // Ops that are counted together.
  struct Group {
    std::string name, operator_name;  // name: as name_of
    OpKind kind = OpKind::kernel;
    Phase phase = Phase::unknown;
    std::uint64_t key = 0;  // by which they are aligned with a run of another lineage
  };
  struct ComparedOp {
    std::uint64_t key = 0;  // by which it is aligned with a run of its lineage
    Time end{};             // of its work; kNever
    OpCost cost;
    std::uint32_t group = 0;  // index into groups
    std::uint16_t thread = 0;
  };

  Run run;  // what of it does not grow
  ClassTimes classes;
  StepEnergyPrice energy_price;
  std::string bound_by;  // as Verdict::bound_by
  std::vector<Group> groups;
  std::vector<ComparedOp> ops;
};

// REQUIRES: ops, records, moves, strings and the bytes of storages are there (read_run_ops,
// traces/run/file/run_file.h); the rest of the run is not looked at.
ComparedRun compared(const Run& run);

// As compare(const Run&, const Run&) of the two runs.
Comparison compare(const ComparedRun& base, const ComparedRun& other);

}  // namespace memwall
