// A trace with its durations multiplied: the quickest what-if, and the control
// that shows whether a replay simulates or merely repeats.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/trace/trace.h"

namespace memwall {

struct ScaleFactors {
  double kernels = 1;  // kernels and memsets, and collectives where `collectives` says nothing
  double copies = 1;   // copies and storage I/O
  double host = 1;     // host gaps, host costs of calls and host work; not waiting
  // Collectives. Nothing: those that met other ranks in the trace keep the time that they take together, whoever is
  // slowed; the others scale as kernels do.
  std::optional<double> collectives{};
  std::optional<std::uint32_t> rank{};  // only this one's ops, by its number in the job; nothing: all
};

// Durations round to the nearest picosecond. REQUIRES: factors are finite and >= 0.
// Throws UsageError where the trace does not hold the rank.
Trace scaled(Trace trace, const ScaleFactors& factors);

}  // namespace memwall
