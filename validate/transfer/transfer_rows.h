// One piece of work that was measured on two GPUs, and what one measurement says of the other machine.
//
// A row of a published table that exists for both GPUs is one piece of work: a kernel, or the several kernels that a
// framework runs for it. Where there are several, the measured time is shared between them as the old machine's prices
// are, each part is transferred by itself, and errors add as errors of one step do within a class.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "models/hw/transferred_duration.h"

namespace memwall {

struct WorkPart {
  Op op;
  Shape shape;
};

struct TransferRow {
  std::string table;     // its file's name
  std::string name;      // of the row
  std::string kind;      // what the table of errors counts it under: an operator class, "copy", "collective"
  std::string from, to;  // machine files' names
  std::vector<std::string> from_settings, to_settings;  // overrides of these
  std::vector<WorkPart> work;                           // as it ran on `from`
  std::vector<WorkPart> new_work;                       // as it ran on `to`; empty: as on `from`
  std::string source, target;                           // of copies
  std::uint32_t ranks = 0;                              // of collectives
  double measured_from = 0, measured_to = 0;            // seconds
  bool calibrated = false;  // both machines' files were fitted to this very table: no proof of anything
};

struct TransferResult {
  TransferRow row;
  double predicted = 0;                  // seconds
  double error_band = 0;                 // 90 % of truths within predicted x (1 +- this)
  double by_bandwidth = 0, by_peak = 0;  // null models: ratio of HBM (bus, link) bandwidths; of peak rates
  bool fits = false;                     // one of the rows from which the error was fitted
  double error() const { return predicted / row.measured_to - 1; }
  bool covered() const;
  bool covered_by_80_percent() const;  // by the interval as a step's is made of it: 1.2816 / 1.645 as wide, in ln
};

// Rows of every table under FOLDER (MEMWALL_SHARED/data) that has pairs, and of `own`, the folder of tables of this
// project. Tables and machine files that are not there are left out. Throws InputError where none is there.
std::vector<TransferRow> transfer_rows(const std::filesystem::path& folder, const std::filesystem::path& own);

// At what load products are priced: the tables are of benchmarks of some seconds, steps are carried as jobs of hours.
enum class TransferLoad : std::uint8_t { short_runs, jobs };
std::vector<TransferResult> transferred_rows(const std::vector<TransferRow>& rows,
                                             TransferLoad load = TransferLoad::short_runs);

// Errors of one kind of work, in both directions.
struct TransferSummary {
  std::string kind;
  std::size_t rows = 0, held_out = 0;
  double median = 0, p90 = 0, bias = 0;          // of all: |error|, |error|, median of error with its sign
  double fitted_p90 = 0;                         // p90 of |error| where it was fitted
  double band = 0;                               // median of the stated interval
  double coverage = 0;                           // of the interval, on held-out rows
  double coverage_80 = 0, half_width_80 = 0;     // of that of 80 %, likewise; median of its half-width, in ln
  double bandwidth_median = 0, peak_median = 0;  // |error| of the null models
};

// By kind, in order of appearance; "all" last.
std::vector<TransferSummary> summarize_transfer(const std::vector<TransferResult>& results);

}  // namespace memwall
