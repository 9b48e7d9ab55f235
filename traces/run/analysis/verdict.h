// What a run answers, in words: does it fit, how long is a step and what bounds it, what to try next.
//
// Said first by `memwall run`, in its JSON, and wherever else a run is summed up. Every figure in it stands in
// RunSummary, too.
#pragma once

#include <string>
#include <vector>

#include "traces/run/run.h"

namespace memwall {

struct RunSummary;

struct Verdict {
  // What the critical path of one program is most of; of several ranks, what most of their steps' time goes to, for
  // their path lies on the slowest. "compute" (kernels, recomputed ones included), another TimeClass by its name,
  // or "rank 3" where the ranks wait for each other and that one holds up the others most. "" for a run without
  // duration.
  std::string bound_by;
  // Whether it fits, and why; the step's time, and why; what to try, if anything follows from the figures.
  std::vector<std::string> sentences;
};

// What a capture with holes is worth: what is missing, and what follows. "" of a complete one.
std::string completeness_sentence(Completeness completeness, const std::string& reason);

// REQUIRES: `summary` is of this run, complete but for its verdict.
Verdict verdict_of(const Run& run, const RunSummary& summary);

}  // namespace memwall
