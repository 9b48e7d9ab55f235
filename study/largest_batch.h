// The largest batch that a machine holds: the step at ever more samples, each under the same policies and the same
// allocator, until one does not fit; then halving in between.
//
// That takes for granted that what fits at N fits at less. Caching allocators do not promise it, so a few sizes
// beyond the first that fails are tried as well, and a larger one that fits is told.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "sim/engine/simulation.h"
#include "sim/machine/machine.h"
#include "sim/trace/trace.h"

namespace memwall {

// One size, simulated.
struct BatchProbe {
  std::int64_t samples = 0;  // per step and rank, as asked for
  double passes = 1;         // of as many samples each: what `accumulate` makes of the step
  std::uint32_t ranks = 1;   // that run it
  bool fits = false;
  Duration step_time{};
  Bytes peak_allocated = 0, peak_reserved = 0, missing = 0;  // of the GPU's memory; missing: of any tier
};

// What does not fit at the smallest size that was refused.
struct BatchLimit {
  std::string tier;
  Bytes usable = 0, missing = 0;
  RefusedRequest request;  // storage kNoStorage: what was held before the window is too much already
  Bytes requested_bytes = 0;
  std::string kind, label, operator_name, module, phase;  // of the storage asked for and of the op that fills it
};

struct LargestBatch {
  std::vector<BatchProbe> probes;           // in the order of trying
  std::int64_t largest = 0;                 // 0 = not even the smallest fits
  std::int64_t refused = 0;                 // the smallest that was tried and does not fit; 0 = none
  std::optional<std::int64_t> fits_beyond;  // a larger size than `refused` that fits
  std::optional<BatchLimit> limit;          // absent where nothing was refused
};

// Sizes are multiples of `unit` up to `most`. `probe` simulates one, and explains it where the pointer is given. After
// `most_probes` of them no more are tried between the largest that fits and the smallest that does not, or beyond it.
// REQUIRES: 1 <= unit <= most.
using ProbeBatch = std::function<BatchProbe(std::int64_t samples, std::optional<BatchLimit>* limit)>;
LargestBatch find_largest_batch(std::int64_t unit, std::int64_t most, const ProbeBatch& probe,
                                std::size_t most_probes = std::numeric_limits<std::size_t>::max());

double samples_per_second(const BatchProbe& probe);  // of all ranks; 0 where it does not fit, or takes no time

BatchProbe probe_of(std::int64_t samples, std::uint32_t ranks, const Machine& machine, const SimulationResult& result);
// REQUIRES: !result.fits.
BatchLimit limit_of(const Trace& trace, const Machine& machine, const SimulationResult& result);

}  // namespace memwall
