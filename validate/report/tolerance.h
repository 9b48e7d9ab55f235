// How far predictions may be off, and why so far: one table for all rungs but PyTorch's, whose aims stand in
// report/pytorch.h.
#pragma once

#include <span>
#include <string_view>

#include "validate/report/validation.h"

namespace memwall {

enum class ToleranceKind : std::uint8_t {
  step_time,
  phase,
  link_bytes,
  link_busy,
  copy_rate,
  file_rate,
  device_peak,
  other_peak,
  overlap,
  kernel_pricing,
  copy_benchmark,
  kernel_benchmark,
  residual,
  contention,
  ranking
};

struct Tolerance {
  ToleranceKind kind;
  double cuda = 0, host = 0;  // by back end; 0 = none is claimed
  std::string_view reason;
};
std::span<const Tolerance> tolerances();  // by kind, all of them
double tolerance_of(ToleranceKind kind, std::string_view backend);

// A figure that belongs to less of a step than this is reported, and not judged: an event's microseconds in it
// are a large share of nothing.
inline constexpr double kJudgedShare = 0.02;

// Sets tolerance and status of a row whose figures are set; `judged` false: only reported.
void judge(ValidationRow& row, double tolerance, bool judged = true);

}  // namespace memwall
