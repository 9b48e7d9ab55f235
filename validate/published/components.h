// Does a machine file reproduce the component tables that it was fitted to? Bandwidths, latencies, copies, collectives
// and kernels as others measured them, beside what the file's own curves and the cost model say of them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "models/hw/machine_calibration.h"
#include "sim/machine/machine.h"

namespace memwall {

struct ComponentPoint {
  std::string what;  // "4 MiB", "scale", "1024x10240x5120"
  double measured = 0, predicted = 0;
  std::string unit;         // "s", "B/s", "FLOP/s"
  double residual() const;  // |predicted / measured - 1|
};

struct ComponentCheck {
  ComponentRows rows;
  std::vector<ComponentPoint> points;
  double median = 0, p90 = 0;  // of the residuals; p90 by nearest rank
  std::size_t worst = 0;       // index into points
  bool within() const { return median <= rows.limit; }
};

// The rows of one calibration entry of a machine's file, from tables below `folder`. Throws InputError where the table
// is not there or damaged, names a column that it lacks, or where no row fits.
ComponentCheck check_component(const Machine& machine, const ComponentRows& rows, const std::filesystem::path& folder);

// All of one machine, in the order of its file.
std::vector<ComponentCheck> check_components(const std::string& machine, const std::filesystem::path& folder);

}  // namespace memwall
