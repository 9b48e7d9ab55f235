#include "validate/published/published.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "models/workload/generate/configuration/workload_limits.h"
#include "models/workload/generate/generate.h"
#include "sim/error.h"
#include "sim/quantile.h"
#include "study/study.h"
#include "traces/run/analysis/summary.h"
#include "validate/published/tables.h"

namespace memwall {
namespace {

constexpr const char* kStepTime = "step time";
constexpr const char* kPeakActive = "peak active";

struct KnownTable {
  const char* name;
  std::vector<PublishedCase> (*cases)(const std::vector<CsvTableRow>&);
  bool ablation;  // each row adds to the one before
};

constexpr KnownTable kTables[] = {
    {"torchtune_llama32_3b_ablation_a100", torchtune_cases, true},
    {"megatron_2020_tp_scaling_v100_a100", megatron_cases, false},
    {"vtrain_single_node_a100_iter_time", vtrain_cases, false},
    {"llmc_step_times", llmc_cases, false},
};

std::vector<std::string> known_files() {
  std::vector<std::string> files;
  for (const KnownTable& known : kTables) files.push_back(fmt::format("{}.csv", known.name));
  return files;
}

bool is_ablation(const std::string& table) {
  return std::any_of(std::begin(kTables), std::end(kTables),
                     [&](const KnownTable& known) { return known.ablation && table == known.name; });
}

// Times and sizes beyond these are no measurements, and could not be counted in picoseconds and bytes.
void require_measurable(const PublishedCase& one, const std::filesystem::path& path) {
  constexpr double kMostSeconds = 1e6, kMostBytes = 1e18;
  if (one.step_seconds > kMostSeconds || one.peak_bytes > kMostBytes)
    throw InputError(
        fmt::format("{}: row \"{}\" says {:.3g} s and {:.3g} bytes; expected at most {:.0e} s and {:.0e} bytes.",
                    path.string(), one.name, one.step_seconds, one.peak_bytes, kMostSeconds, kMostBytes));
}

struct Simulated {
  double seconds = 0, low = 0, high = 0, peak = 0;
};

Simulated simulated(const PublishedCase& one) {
  Study study;
  study.add_step(one.name, generate_step(one.job.model, one.job.recipe));
  const Scenario scenario{.step = {one.name}, .machine = one.machine, .policies = one.policies};
  const Run run = study.run(scenario).run;
  const RunSummary summary = summarize(run);
  Simulated s;
  s.seconds = to_seconds(summary.step_time);
  if (summary.step_interval)
    s.low = to_seconds(summary.step_interval->low), s.high = to_seconds(summary.step_interval->high);
  s.peak = static_cast<double>(summary.tiers[static_cast<std::size_t>(run.machine.tier("hbm"))].peak_allocated);
  return s;
}

PublishedResult result_of(const PublishedCase& one, const char* metric, const char* unit, double measured) {
  PublishedResult result;
  result.table = one.table;
  result.name = one.name;
  result.metric = metric;
  result.unit = unit;
  result.measured = measured;
  result.why_not = one.why_not;
  return result;
}

// Rows are taken as they are: what cannot be trained is a sentence, or "".
std::string impossible(const TrainingJob& job) {
  const Recipe& recipe = job.recipe;
  if (recipe.batch < 1 || recipe.accumulation < 1 || recipe.data_parallel < 1)
    return "its batch is less than one sample per replica";
  return contradiction(job);
}

}  // namespace

std::vector<PublishedCase> published_cases(const std::filesystem::path& folder) {
  if (!std::filesystem::is_directory(folder))
    throw InputError(fmt::format("{}: there is no such folder of published tables.", folder.string()));
  std::vector<PublishedCase> all;
  bool found = false;
  for (const KnownTable& known : kTables) {
    const std::filesystem::path path = folder / fmt::format("{}.csv", known.name);
    if (!std::filesystem::exists(path)) continue;
    found = true;
    for (PublishedCase& one : known.cases(read_csv_table(path))) {
      require_measurable(one, path);
      one.table = known.name;
      all.push_back(std::move(one));
    }
  }
  if (!found)
    throw InputError(fmt::format("{}: none of the tables that are known is there; expected {}.", folder.string(),
                                 fmt::join(known_files(), ", ")));
  return all;
}

std::vector<PublishedResult> predict(const PublishedCase& one) {
  std::vector<PublishedResult> results;
  if (one.step_seconds > 0) results.push_back(result_of(one, kStepTime, "s", one.step_seconds));
  if (one.peak_bytes > 0) results.push_back(result_of(one, kPeakActive, "B", one.peak_bytes));
  if (!one.why_not.empty()) return results;
  if (const std::string wrong = impossible(one.job); !wrong.empty()) {
    for (PublishedResult& r : results) r.why_not = wrong;
    return results;
  }
  try {
    const Simulated s = simulated(one);
    for (PublishedResult& r : results) {
      const bool time = r.metric == kStepTime;
      r.predicted = time ? s.seconds : s.peak;
      if (time) r.low = s.low, r.high = s.high;
    }
  } catch (const UsageError& refused) {
    for (PublishedResult& r : results) r.why_not = refused.what();
  }
  return results;
}

std::vector<PublishedErrors> published_errors(const std::vector<PublishedResult>& results) {
  std::vector<PublishedErrors> all;
  std::vector<std::vector<double>> errors;
  for (const PublishedResult& r : results) {
    auto at = std::find_if(all.begin(), all.end(),
                           [&](const PublishedErrors& e) { return e.table == r.table && e.metric == r.metric; });
    if (at == all.end()) {
      at = all.emplace(at);
      at->table = r.table;
      at->metric = r.metric;
      at->aim = r.metric == kStepTime ? 0.10 : 0.05;
      errors.emplace_back();
    }
    if (r.why_not.empty())
      errors[static_cast<std::size_t>(at - all.begin())].push_back(std::abs(r.error()));
    else
      ++at->not_predicted;
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].rows = errors[i].size();
    if (errors[i].empty()) continue;
    all[i].median = median(errors[i]);
    all[i].p90 = lower_quantile(errors[i], 0.9);
  }
  return all;
}

std::vector<AblationStep> ablation(const std::vector<PublishedResult>& results) {
  std::vector<AblationStep> steps;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const PublishedResult& r = results[i];
    if (!is_ablation(r.table) || !r.why_not.empty()) continue;
    const PublishedResult* before = nullptr;
    for (std::size_t k = 0; k < i; ++k)
      if (results[k].table == r.table && results[k].metric == r.metric && results[k].why_not.empty())
        before = &results[k];
    if (before == nullptr) continue;
    steps.push_back(
        {r.table, r.name, r.metric, r.measured / before->measured - 1, r.predicted / before->predicted - 1});
  }
  return steps;
}

}  // namespace memwall
