#include "validate/published/published.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <map>
#include <thread>
#include <utility>

#include "models/workload/generate/configuration/workload_limits.h"
#include "sim/error.h"
#include "sim/quantile.h"
#include "validate/published/grown_steps.h"
#include "validate/published/judged_tables.h"
#include "validate/published/simulated_step.h"
#include "validate/published/tables.h"

namespace memwall {
namespace {

constexpr const char* kStepTime = "step time";
constexpr const char* kPeakActive = "peak active";
constexpr const char* kPeakReserved = "peak reserved";
constexpr const char* kPeakDevice = "peak on device";
constexpr const char* kRate = "rate";
constexpr const char* kFits = "fits";

struct KnownTable {
  const char* name;
  std::vector<PublishedCase> (*cases)(const std::vector<CsvTableRow>&);
  bool ablation = false;  // each row adds to the one before
  Protocol protocol = Protocol::unfitted;
  const char* file = nullptr;  // whose rows of one kind are a table of their own; nullptr: all of the file of its name

  std::string file_name() const { return fmt::format("{}.csv", file ? file : name); }
};

constexpr KnownTable kTables[] = {
    {"torchtune_llama32_3b_ablation_a100", torchtune_cases, true, Protocol::halves},
    {"torchtune_llama31_recipes", torchtune_recipe_cases, false, Protocol::halves},
    {"megatron_2020_tp_scaling_v100_a100", megatron_cases, false, Protocol::halves},
    {"vtrain_single_node_a100_iter_time", vtrain_cases, false, Protocol::halves},
    {"vtrain_multi_node_a100_iter_time", vtrain_multi_node_cases, false, Protocol::halves},
    {"bloom176b_prequel_a100_grid", bloom_cases, false, Protocol::halves},
    {"megatron_bridge_perf_all", megatron_bridge_cases, false, Protocol::halves},
    {"llmc_step_times", llmc_cases, false, Protocol::halves},
    {"qwen_finetune_memory_time_a100", qwen_cases, false, Protocol::halves},
    {"fms_fsdp_llama2_a100_h100", fms_cases, false, Protocol::halves},
    {"torchao_float8nocompile_llama3_8b_ac_h100", torchao_cases, false, Protocol::order},
    {"deepspeed_azure_zero3_a100", deepspeed_azure_cases, false, Protocol::halves},
    {"internevo_7b_a100_throughput", internevo_cases, false, Protocol::halves},
    {"internevo_7b_a100_zero1_scope", internevo_scope_cases, false, Protocol::halves},
    {"h200_llama31_8b_zero3_offload_mlengineering", h200_offload_cases, false, Protocol::halves},
    {"mosaic_llmfoundry_mpt_throughput", mosaic_cases, false, Protocol::halves},
    {"torchtitan_llama_perf_memory", torchtitan_cases, false, Protocol::halves},
    {"torchtitan_llama_tensor_parallel", torchtitan_divided_cases, false, Protocol::halves,
     "torchtitan_llama_perf_memory"},
    {"answerai_fsdp_qlora", fsdp_qlora_cases, false, Protocol::halves},
    {"deepspeed_zero_tutorial_runs", zero_tutorial_cases, false, Protocol::halves},
    {"deepspeed_zero_offload_tflops_v100", zero_offload_cases, false, Protocol::order},
};

std::vector<std::string> known_files() {
  std::vector<std::string> files;
  for (const KnownTable& known : kTables)
    if (!known.file) files.push_back(known.file_name());
  return files;
}

bool is_ablation(const std::string& table) {
  return std::any_of(std::begin(kTables), std::end(kTables),
                     [&](const KnownTable& known) { return known.ablation && table == known.name; });
}

// Times and sizes beyond these are no measurements, and could not be counted in picoseconds and bytes.
void require_measurable(const PublishedCase& one, const std::filesystem::path& path) {
  constexpr double kMostSeconds = 1e6, kMostBytes = 1e18;
  if (one.step_seconds > kMostSeconds || std::max({one.peak_bytes, one.reserved_bytes, one.device_bytes}) > kMostBytes)
    throw InputError(
        fmt::format("{}: row \"{}\" says {:.3g} s and {:.3g} bytes; expected at most {:.0e} s and {:.0e} bytes.",
                    path.string(), one.name, one.step_seconds,
                    std::max({one.peak_bytes, one.reserved_bytes, one.device_bytes}), kMostSeconds, kMostBytes));
}

// Rows that differ in more than batch, GPUs and policies have other words.
std::string work_of(const TrainingJob& job) {
  const Model& m = job.model;
  const Recipe& r = job.recipe;
  return fmt::format("{} layers of {}, {} heads, {} tokens, LoRA {}, NF4 {}, {}", m.layers, m.width, m.heads,
                     r.sequence, r.lora_rank, r.weights_in_nf4, r.checkpoint == ActivationCheckpoint::full);
}

PublishedResult result_of(const PublishedCase& one, const char* metric, const char* unit, double measured) {
  PublishedResult result;
  result.table = one.table;
  result.name = one.name;
  result.metric = metric;
  result.unit = unit;
  result.measured = measured;
  result.why_not = one.why_not;
  result.protocol = one.protocol;
  result.half = one.half;
  result.gpu = one.gpu;
  result.fitted = one.fitted;
  if (!is_divided(one)) result.work = work_of(one.job);
  return result;
}

// What the table says of the case, not predicted yet.
std::vector<PublishedResult> told_by(const PublishedCase& one) {
  std::vector<PublishedResult> results;
  if (one.step_seconds > 0) results.push_back(result_of(one, kStepTime, "s", one.step_seconds));
  if (one.rate > 0) results.push_back(result_of(one, kRate, "FLOP/s", one.rate));
  if (one.peak_bytes > 0) results.push_back(result_of(one, kPeakActive, "B", one.peak_bytes));
  if (one.reserved_bytes > 0) results.push_back(result_of(one, kPeakReserved, "B", one.reserved_bytes));
  if (one.device_bytes > 0) results.push_back(result_of(one, kPeakDevice, "B", one.device_bytes));
  if (one.protocol != Protocol::unfitted) results.push_back(result_of(one, kFits, "", one.ran.value_or(true) ? 1 : 0));
  return results;
}

void fill_in(const PublishedCase& one, const SimulatedStep& s, PublishedResult& r) {
  if (r.metric == kStepTime) {
    r.predicted = s.seconds;
    r.low = one.fitted ? s.low_fitted : s.low, r.high = one.fitted ? s.high_fitted : s.high;
    r.job = s.job;
    r.seconds_at_peak = s.seconds_at_peak;
  } else if (r.metric == kRate) {
    r.predicted = one.counted_flops * static_cast<double>(s.batch) / s.seconds;
  } else if (r.metric == kPeakActive) {
    r.predicted = s.peak;
  } else if (r.metric == kPeakReserved) {
    r.predicted = s.reserved;
  } else if (r.metric == kPeakDevice) {
    r.predicted = s.on_device;
  } else {
    r.predicted = s.fits ? 1 : 0;
  }
}

void fill_in_unfitted(const PublishedCase& one, const SimulatedStep& fitted, WrittenSteps& steps, GrownSteps& grown,
                      std::vector<PublishedResult>& results) {
  PublishedCase unfitted = one;
  unfitted.constants = {};
  const bool same = one.constants == unfitted.constants;
  std::optional<SimulatedStep> s;
  for (PublishedResult& r : results) {
    if (r.metric != kStepTime) continue;
    if (!s) s = same ? fitted : simulated(unfitted, steps, grown);
    r.unfitted = {s->seconds, s->low, s->high, s->job, s->host};
  }
}

// Rows are taken as they are: what cannot be trained is a sentence, or "".
std::string impossible(const TrainingJob& job) {
  const Recipe& recipe = job.recipe;
  if (recipe.batch < 1 || recipe.accumulation < 1 || recipe.data_parallel < 1)
    return "its batch is less than one sample per replica";
  // Of a long step few micro-batches are written down.
  TrainingJob few = job;
  const ModelParallel& parallel = recipe.parallel;
  if (parallel.tensor > 1 || parallel.pipeline > 1)
    few.recipe.accumulation = std::min(recipe.accumulation, parallel.pipeline + 2);
  return contradiction(few);
}

}  // namespace

bool is_peak(const std::string& metric) {
  return metric == kPeakActive || metric == kPeakReserved || metric == kPeakDevice;
}

std::vector<PublishedCase> published_cases(const std::filesystem::path& folder) {
  if (!std::filesystem::is_directory(folder))
    throw InputError(fmt::format("{}: there is no such folder of published tables.", folder.string()));
  std::vector<PublishedCase> all;
  bool found = false;
  for (const KnownTable& known : kTables) {
    const std::filesystem::path path = folder / known.file_name();
    if (!std::filesystem::exists(path)) continue;
    found = true;
    std::vector<PublishedCase> cases = known.cases(read_csv_table(path));
    if (known.protocol == Protocol::halves) halve(cases);
    for (PublishedCase& one : cases) {
      require_measurable(one, path);
      one.table = known.name;
      one.protocol = known.protocol;
      if (known.protocol == Protocol::halves) {
        one.constants = fitted_constants(known.name, one.gpu);
        one.fitted = has_fitted_constants(known.name, one.gpu);
      }
      all.push_back(std::move(one));
    }
  }
  if (!found)
    throw InputError(fmt::format("{}: none of the tables that are known is there; expected {}.", folder.string(),
                                 fmt::join(known_files(), ", ")));
  return all;
}

namespace {

std::vector<PublishedResult> predicted_with(GrownSteps& grown, const PublishedCase& one, bool with_unfitted) {
  std::vector<PublishedResult> results = told_by(one);
  if (!one.why_not.empty()) return results;
  if (const std::string wrong = impossible(one.job); !wrong.empty()) {
    for (PublishedResult& r : results) r.why_not = wrong;
    return results;
  }
  try {
    WrittenSteps steps;
    const SimulatedStep s = simulated(one, steps, grown);
    for (PublishedResult& r : results) fill_in(one, s, r);
    if (with_unfitted) fill_in_unfitted(one, s, steps, grown, results);
  } catch (const UsageError& refused) {
    for (PublishedResult& r : results) r.why_not = refused.what();
  }
  return results;
}

}  // namespace

std::vector<PublishedResult> predict(const PublishedCase& one, bool with_unfitted) {
  GrownSteps grown;
  return predicted_with(grown, one, with_unfitted);
}

std::vector<PublishedResult> predict(const std::vector<PublishedCase>& cases, bool with_unfitted) {
  std::vector<std::vector<PublishedResult>> of_case(cases.size());
  std::vector<std::exception_ptr> failures(cases.size());
  std::atomic<std::size_t> next = 0;
  GrownSteps grown;
  const auto work = [&] {
    for (std::size_t i = next++; i < cases.size(); i = next++) try {
        of_case[i] = predicted_with(grown, cases[i], with_unfitted);
      } catch (...) {
        failures[i] = std::current_exception();
      }
  };
  {
    std::vector<std::jthread> threads;
    for (unsigned t = 1; t < std::max(1U, std::thread::hardware_concurrency()); ++t) threads.emplace_back(work);
    work();
  }
  std::vector<PublishedResult> all;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    if (failures[i]) std::rethrow_exception(failures[i]);
    all.insert(all.end(), of_case[i].begin(), of_case[i].end());
  }
  return all;
}

std::vector<PublishedErrors> published_errors(const std::vector<PublishedResult>& results) {
  std::vector<PublishedErrors> all;
  std::vector<std::vector<double>> errors;
  for (const PublishedResult& r : results) {
    if (r.protocol != Protocol::unfitted && !is_peak(r.metric)) continue;
    auto at = std::find_if(all.begin(), all.end(),
                           [&](const PublishedErrors& e) { return e.table == r.table && e.metric == r.metric; });
    if (at == all.end()) {
      at = all.emplace(at);
      at->table = r.table;
      at->metric = r.metric;
      if (r.protocol == Protocol::unfitted) at->aim = r.metric == kStepTime ? 0.10 : 0.05;
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
