// What several processes get of one computer when they copy, or run CPU optimizers, at the same time: predicted from
// what one process gets, and measured (bench/process_rows.h).
//
// The prediction is the simulator's: as many ranks as there are processes, each with one op that takes as long as it
// does alone, on the machine of the file, of which all of them share the host's DRAM, and those on one GPU that GPU's
// links.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/machine/machine.h"
#include "validate/measurement/measurement.h"
#include "validate/report/validation.h"

namespace memwall {

struct ContendedRate {
  std::string benchmark, parameters;  // "adam_host_processes", "threads=2"
  unsigned processes = 0;
  double alone = 0;                    // bytes per second of one process that has the computer to itself
  double measured = 0, predicted = 0;  // of all processes together, likewise
  double spread = 0;                   // 10th to 90th percentile of the times, as a share of their median
};

// The end of everything, where each of `processes` ranks does `op` once: a copy, or host work. REQUIRES: processes > 0;
// the op has its duration alone, and places that the machine has, named by `places`.
Duration contended_end(const Op& op, const std::vector<std::string>& places, unsigned processes,
                       const Machine& machine);

// A rate for every case of several processes in `measurements`, in their order; what lacks its counterpart of one
// process is left out. `machine` is the file of these measurements as it is to be judged, `calibrated` the same without
// overrides.
// - Copies between host and device take alone what the machine file says of their route. All processes share the
//   host's DRAM; `gpus` of them have a GPU of their own, the others share those in turn ("gpus" of the row; each has
//   its own on the host back end).
// - Copies within host memory, and optimizers, take alone what one process took, and the host's DRAM carries what one
//   process reached with the best number of threads: both measured in turn with the several, as a computer that others
//   use may be half as fast a minute later. An override of host.dram.bandwidth scales it.
std::vector<ContendedRate> contended_rates(const MeasurementSet& measurements, const Machine& machine,
                                           const Machine& calibrated);

// Their rows, of the rung "contention".
std::vector<ValidationRow> contention_rows(const std::vector<ContendedRate>& rates, std::string_view backend);

}  // namespace memwall
