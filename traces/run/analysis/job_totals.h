// What all ranks of a job do and take together, where one program stands for all of them (Trace::ranks): its rate of
// computation, its memory by tier, its traffic by link. Absent for one rank, and for traces of several programs.
//
//   FLOP/s of the job = FLOPs of one rank x ranks / step time
//   bytes of a tier   = those of one rank x ranks (hosts and drives included: a rank's part of them is counted)
//   bytes of a link   = those of one link, which all ranks behind it cross, x links of that kind in the job
// No second derivation of a figure: FLOPs are those of FlopsUse, bytes those of TierResult and LinkResult.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "traces/run/analysis/top_work.h"
#include "traces/run/run.h"

namespace memwall {

// Of all ranks, when one of them has most in use. Bytes may be more than 63 bits count.
struct JobTier {
  std::string name;
  double peak_bytes = 0, usable_bytes = 0;
  std::array<double, kStorageKinds> by_kind{};
};

struct JobLink {
  std::string name;
  double count = 0;                  // links of the kind in the job
  double bytes = 0;                  // of one step, over all of them
  double bytes_per_second = 0;       // over the whole step
  double busy_bytes_per_second = 0;  // while something crosses it
  bool leads_to_storage = false;     // what a transfer from or to drives crosses
};

struct JobTotals {
  std::uint32_t ranks = 1;
  // FLOP/s of the model, and of what is computed again beside it; 0 where FLOPs are not known.
  double model_flops_per_second = 0, recomputed_flops_per_second = 0;
  std::vector<JobTier> tiers;  // in which something lives, as Machine::tiers
  std::vector<JobLink> links;  // that carry something, as Machine::links
};

// `flops`: top_work(run).flops.
std::optional<JobTotals> job_totals(const Run& run, const std::optional<FlopsUse>& flops);

}  // namespace memwall
