// Predicted against published: step times and peak memory that others measured and wrote down,
// beside what memwall says of the same job from its configuration alone. The tables' own remarks say how far each can
// be trusted. To most tables nothing is fitted; to those of jobs under FSDP and DeepSpeed three constants are, by one
// half of their rows, and the other half judges (judged_tables.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "models/workload/generate/configuration/workload_file.h"
#include "traces/run/analysis/host_share.h"
#include "traces/run/analysis/program_error.h"
#include "validate/published/framework_constants.h"

namespace memwall {

enum class Protocol : std::uint8_t {
  unfitted,  // every row is compared, nothing is fitted to any
  halves,    // the first half of the rows is fitted, the second judged
  order      // the table leaves so much open that only the order of its rows is compared
};

enum class Half : std::uint8_t { none, fitted, judged };

// A measured row as a job that can be predicted, or the sentence why not.
struct PublishedCase {
  std::string table;  // its file's name, without ".csv"; or of some rows of a file
  std::string name;   // of the row: "4 GPUs, batch 64, microbatch 2"
  TrainingJob job;
  std::string machine;                // a machine file's name
  std::vector<std::string> settings;  // overrides of its numbers
  std::string alloc_conf;             // PYTORCH_ALLOC_CONF, "" = PyTorch's default
  std::vector<std::string> policies;  // as for `memwall run --policy`
  // In place of `policies` where the step does not fit with them: the first with which it does, else the last.
  std::vector<std::vector<std::string>> policies_where_needed;
  double step_seconds = 0;    // measured; 0 = the table does not say
  double peak_bytes = 0;      // measured, of active blocks; 0 = the table does not say
  double reserved_bytes = 0;  // measured, the allocator's cache included; 0 = the table does not say
  double device_bytes = 0;    // measured, as nvidia-smi shows it (traces/run/analysis/device_memory.h); 0 likewise
  double rate = 0;            // measured, FLOP/s of one GPU, of a table whose order alone counts; 0 = none
  double counted_flops = 0;   // by which the table makes `rate` of a step time, of one sequence
  // Of a table that states no batch: tried in this order, the first that fits is taken, else the last.
  std::vector<std::int64_t> batches;
  std::optional<bool> ran;  // whether the job had memory enough; nothing = the table's times say so
  std::string why_not;      // "" = it is predicted

  Protocol protocol = Protocol::unfitted;
  Half half = Half::none;
  std::string gpu;  // rows of one kind share the null model's constant
  FrameworkConstants constants;
  bool fitted = false;  // constants were fitted to rows of its table on its GPU
};

// The cases of every table in `folder` that memwall can read, in order of tables and rows. A table that is
// not there is left out. Throws InputError where none is there, and where one is damaged.
std::vector<PublishedCase> published_cases(const std::filesystem::path& folder);

struct PublishedResult {
  std::string table, name, metric;  // "step time", "peak active", "peak reserved", "peak on device", "rate", "fits"
  std::string unit;                 // "s", "B", "FLOP/s"; "" of "fits", which is 0 or 1
  double measured = 0, predicted = 0;
  double low = 0, high = 0;  // 80 % interval of the prediction; 0 = none is known
  std::string why_not;       // "" = predicted

  Protocol protocol = Protocol::unfitted;
  Half half = Half::none;
  std::string gpu;
  bool fitted = false;         // as of the case: the interval is with_fitted_constants()
  std::optional<JobKind> job;  // of the simulated step
  // Of a step time, what one is told who has no fitted constants (all 1): as predicted, low, high, job; and the host's
  // part in it.
  struct Told {
    double predicted = 0, low = 0, high = 0;
    std::optional<JobKind> job;
    HostShare host{};
  };
  Told unfitted;
  std::string work;            // what is trained and how, without batch and machine: rows of one work are one job
  double seconds_at_peak = 0;  // what the model's FLOPs would take at the GPU's peak rate; of a step time
  double error() const { return predicted / measured - 1; }
};

// Is it of the memory that a job takes at most, in any statistic?
bool is_peak(const std::string& metric);

// A result for each thing that the table says of the case. A case that the generators or policies refuse has their
// sentence in why_not. `with_unfitted`: else `unfitted` stays empty, which saves a simulation.
std::vector<PublishedResult> predict(const PublishedCase& one, bool with_unfitted = true);
// Of several cases, in their order, on this computer's cores.
std::vector<PublishedResult> predict(const std::vector<PublishedCase>& cases, bool with_unfitted = true);

// How far predictions of one table and metric are off, over its predicted rows: of tables to which nothing is fitted,
// and the peaks of the others.
struct PublishedErrors {
  std::string table, metric;
  std::size_t rows = 0, not_predicted = 0;
  double median = 0, p90 = 0;  // of |error|; p90 by nearest rank
  double aim = 0;              // of the median; 0 = none was set
};
std::vector<PublishedErrors> published_errors(const std::vector<PublishedResult>& results);

// An ablation is a table whose rows each add one technique: every step must change the metric in the direction that was
// measured.
struct AblationStep {
  std::string table, name, metric;
  double measured = 0, predicted = 0;  // relative change from the step before
  bool same_direction() const { return (measured < 0) == (predicted < 0); }
};
// Of each predicted step of an ablation against the predicted one before it, by metric.
std::vector<AblationStep> ablation(const std::vector<PublishedResult>& results);

}  // namespace memwall
