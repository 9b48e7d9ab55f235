#include "validate/report/tolerance.h"

#include <cassert>
#include <cmath>

namespace memwall {
namespace {

constexpr Tolerance kTolerances[] = {
    {ToleranceKind::step_time, 0.05, 0.15,
     "the aim for replayed schedules on a GPU; a computer that stands in for one shares its cores with whatever runs"},
    {ToleranceKind::phase, 0.10, 0.20, "where one phase ends late, the next is shorter: parts err more than their sum"},
    {ToleranceKind::link_bytes, 0.001, 0.001, "the same transfers: only rounding may differ"},
    {ToleranceKind::link_busy, 0.10, 0.20, "as a phase: what overlaps does not add up"},
    {ToleranceKind::copy_rate, 0.10, 0.15, "the aim for copies; two directions at once know one duplex factor only"},
    {ToleranceKind::file_rate, 0.15, 0.15, "the aim for file I/O; the rate of a drive depends on its past"},
    {ToleranceKind::device_peak, 0.02, 0.02, "the aim for peaks; the allocator's rules are known"},
    {ToleranceKind::other_peak, 0, 0,
     "host memory and files are laid out before a replay begins, so that no pass waits for the driver: what is "
     "reserved there is no prediction of an allocator"},
    {ToleranceKind::overlap, 0.10, 0.15, "a share; as the times that it is made of"},
    {ToleranceKind::kernel_pricing, 0, 0,
     "a row of its own: the replayed kernels take stand-alone times, so that this error is in no other row"},
    {ToleranceKind::copy_benchmark, 0.10, 0.15, "the aim for copies and file I/O, transfer by transfer"},
    {ToleranceKind::kernel_benchmark, 0.15, 0.15,
     "one share of the peak stands for all shapes of a class: what the median shape leaves to the largest one"},
    {ToleranceKind::residual, 0.10, 0.15, "the median of what the fit leaves over must not be worse than its use"},
    {ToleranceKind::contention, 0.15, 0.15,
     "the aim for ranks that share a host; what one process alone and several get is measured in turn, and still "
     "spreads where others use the computer"},
    {ToleranceKind::ranking, 0.001, 0.001, "every pair in the right order; ties count as right"},
};

}  // namespace

std::span<const Tolerance> tolerances() { return kTolerances; }

double tolerance_of(ToleranceKind kind, std::string_view backend) {
  const Tolerance& tolerance = kTolerances[static_cast<std::size_t>(kind)];
  assert(tolerance.kind == kind);
  return backend == "host" ? tolerance.host : tolerance.cuda;
}

void judge(ValidationRow& row, double tolerance, bool judged) {
  row.tolerance = judged ? tolerance : 0;
  row.status = ValidationStatus::reported;
  if (!judged || tolerance == 0) return;
  // What was measured as nothing and predicted as something is wrong by any measure.
  const bool wrong = row.unit != "share" && row.measured == 0 && row.predicted != 0;
  row.status = !wrong && std::abs(row.error()) <= tolerance ? ValidationStatus::within : ValidationStatus::outside;
}

}  // namespace memwall
