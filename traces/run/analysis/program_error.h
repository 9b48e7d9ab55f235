// How far the time of a step that was measured nowhere is from what the job takes, besides the errors of its prices:
// versions of libraries, clocks, what else the program does. By kind of job; the one place that the intervals of
// modelled steps are calibrated in.
//
// The deviations are conformal: over published rows to which nothing was fitted (memwall validate --published), the
// smallest with which an interval of 80 % holds ceil(0.8 (n + 1)) of n rows. `memwall validate --published --fit`
// prints them anew.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace memwall {

enum class JobKind : std::uint8_t {
  one_gpu,        // no collective
  data_parallel,  // collectives, but no gathers: every rank holds all parameters
  sharded,        // parameters are gathered
  deepspeed,      // likewise or not, by DeepSpeed
  offloaded       // the host updates parameters
};
inline constexpr std::size_t kJobKinds = 5;
// "one GPU", "data-parallel", "sharded", "DeepSpeed", "offloaded"
std::string_view to_string(JobKind kind);

// Standard deviation of ln(measured / predicted) that is added, in squares, to that of the prices.
double program_deviation(JobKind kind);

}  // namespace memwall
