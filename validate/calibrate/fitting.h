// A calibration at work: what the parts share, one function per part. Each takes the rows it knows, puts numbers into
// the machine_file and says which rows they must explain; residuals come at the end, from the finished machine.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "models/hw/machine_file_builder.h"
#include "sim/machine/machine.h"
#include "sim/trace/op.h"
#include "sim/machine/pricer.h"
#include "validate/measurement/measurement.h"

namespace memwall {

// A row, and what memwall says of it on a machine, in seconds.
struct PricedRow {
  Measurement row;
  std::function<double(const Machine&, const Pricer&)> predicted;
};

struct FittedNumber {
  std::string path;
  std::string measurements;  // "copy_host_hbm_pinned, 13 sizes from 4 KiB to 256 MiB"
  std::vector<PricedRow> rows;
  bool in_source = true;  // false: a residual to be listed, of a number whose source says something else
};

struct Fitting {
  Fitting(const MeasurementSet& measurements, const std::string& base_name);

  const MeasurementSet& set;
  std::string base_name;
  Machine base;
  MachineFileBuilder machine_file;
  bool host = false;      // measured on the host back end
  bool same_gpu = false;  // as the base's: its data-sheet peaks hold
  std::string date;       // "2026-11-21", or "on an unknown date"
  std::vector<FittedNumber> numbers;
  std::vector<std::string> notes;

  void fit(const std::string& path, const std::string& value, const std::string& measurements,
           std::vector<PricedRow> rows);
  // A number that the environment of the measurements states.
  void state(const std::string& path, const std::string& value, const std::string& key);
  // A value of the environment as a number; 0 where it is absent or none.
  double environment_number(const std::string& key) const;
  // Makes the entry of an operator class that the base lacks: what the engine takes instead.
  void require_class(OperatorClass operator_class);
  // The bandwidth at `path` becomes at least `rate`, because `reason` reached it. Notes it where it changes.
  void require_bandwidth(const std::string& path, double rate, const std::string& reason);
};

void fit_identity(Fitting& fitting, const std::string& name);  // names, sizes, counts
void fit_device_memory(Fitting& fitting);                      // HBM, L2
void fit_matrix_products(Fitting& fitting);                    // peaks, GEMM
void fit_kernels(Fitting& fitting);                            // shares of the other classes
void fit_host(Fitting& fitting);                               // calls, DRAM, CPU optimizer
void fit_routes(Fitting& fitting);                             // copies, storage
void fit_duplex(Fitting& fitting);                             // both directions at once
void fit_fabric(Fitting& fitting);                             // peers, collectives

// Seconds that one copy takes while the other direction is busy throughout, as the engine simulates it.
double duplex_copy_seconds(const Machine& machine, const Pricer& pricer, double bytes, bool to_device);

}  // namespace memwall
