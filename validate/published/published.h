// Predicted against published: step times and peak memory that others measured and wrote down,
// beside what memwall says of the same job from its configuration alone. Nothing in memwall is
// fitted to these rows; the tables' own remarks say how far each can be trusted.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "models/workload/generate/configuration/workload_file.h"

namespace memwall {

// A measured row as a job that can be predicted, or the sentence why not.
struct PublishedCase {
  std::string table;  // its file's name, without ".csv"
  std::string name;   // of the row: "4 GPUs, batch 64, microbatch 2"
  TrainingJob job;
  std::string machine;                // a machine file's name
  std::vector<std::string> policies;  // as for `memwall run --policy`
  double step_seconds = 0;            // measured; 0 = the table does not say
  double peak_bytes = 0;              // measured, of active blocks; 0 = the table does not say
  std::string why_not;                // "" = it is predicted
};

// The cases of every table in `folder` that memwall can read, in order of tables and rows. A table that is
// not there is left out. Throws InputError where none is there, and where one is damaged.
std::vector<PublishedCase> published_cases(const std::filesystem::path& folder);

struct PublishedResult {
  std::string table, name, metric;  // "step time", "peak active"
  std::string unit;                 // "s", "B"
  double measured = 0, predicted = 0;
  double low = 0, high = 0;  // 80 % interval of the prediction; 0 = none is known
  std::string why_not;       // "" = predicted
  double error() const { return predicted / measured - 1; }
};

// One or two results per case. A case that the generators or policies refuse has their sentence in why_not.
std::vector<PublishedResult> predict(const PublishedCase& one);

// How far predictions of one table and metric are off, over its predicted rows.
struct PublishedErrors {
  std::string table, metric;
  std::size_t rows = 0, not_predicted = 0;
  double median = 0, p90 = 0;  // of |error|; p90 by nearest rank
  double aim = 0;              // of the median
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
