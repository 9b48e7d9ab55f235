// How far the time of a step that was measured nowhere is from what the job takes, besides the errors of its prices:
// versions of libraries, clocks, what else the program does. By kind of job; the one place that the intervals of
// modelled and of carried steps are calibrated in.
//
// The deviations are conformal over published rows to which nothing was fitted, predicted without any fitted constant,
// as a stranger's job is (memwall validate --published prints them anew): the smallest pair with which intervals of
// 80 % hold ceil(0.8 (n + 1)) of n rows. Programs do things that no model has, and seldom fewer, so that truths are
// more often longer than shorter.
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
  offloaded,      // the host updates parameters
  model_parallel  // layers, or what is in them, are divided over ranks: a pipeline, tensor parallelism
};
inline constexpr std::size_t kJobKinds = 6;
// "one GPU", "data-parallel", "sharded", "DeepSpeed", "offloaded", "model-parallel"
std::string_view to_string(JobKind kind);

// Standard deviation of ln(measured / predicted) that is added, in squares, to that of the prices: where less is
// measured than predicted, and where more is.
struct ProgramDeviation {
  double shorter = 0, longer = 0;
};
ProgramDeviation program_deviation(JobKind kind);

// Likewise of the time of the host: its processor, the interpreter, the framework's hooks. Conformal over those of the
// same rows half of whose critical path is the host's, of all kinds together: what the measured steps ask of
// host_share.h. Fifteen of the 18 are of one program, whose host takes twice what the cost model says of PyTorch's
// calls.
ProgramDeviation host_deviation();

// As program_deviation(), once constants were fitted to measured steps of the program on the machine
// (with_fitted_constants() in step_interval.h): over the rows whose table and GPU have such constants. Then half of
// what is known of the errors of prices is left besides: of 0, 1/4, 1/2, 3/4 and 1 that share holds most of the rows of
// tables that are left out (78 %; 64 % without, 75 % with all of it).
ProgramDeviation fitted_program_deviation(JobKind kind);
inline constexpr double kPricesBesides = 0.5;

// Likewise of a step that was measured on one kind of GPU and carried to another: what the program does besides is the
// same, but not the host, the libraries' choices, the clocks. Over pairs of published rows, both ways.
double carried_deviation();

}  // namespace memwall
