#include "validate/bench/process_rows.h"

#include <algorithm>

#include "validate/replay/host_computer.h"

namespace memwall {
namespace {

Measurement case_row(const BenchmarkRun& run, const ProcessCase& c, const ProcessLoad& load,
                     const std::string& measured) {
  std::map<std::string, std::string> parameters = c.parameters;
  parameters["bytes"] = std::to_string(static_cast<long long>(load.bytes));
  parameters["processes"] = std::to_string(c.processes);
  parameters["measured"] = measured;
  Measurement m = run.row(std::move(parameters));
  const double processes = measured == "all" ? c.processes : 1;
  m.bytes = processes * load.bytes;
  m.flops = processes * load.flops;
  return m;
}

}  // namespace

ProcessSampling process_sampling(const BenchmarkRun& run, std::size_t cases) {
  constexpr double kMore = 8;
  ProcessSampling sampling;
  sampling.seconds = kMore * static_cast<double>(cases) * run.settings().seconds_per_case;
  sampling.fewest = run.settings().fewest_samples;
  sampling.patience += sampling.seconds;
  return sampling;
}

void report_rounds(BenchmarkRun& run, const std::vector<ProcessCase>& cases, const ProcessLoad& load,
                   const ProcessRounds& rounds) {
  for (std::size_t i = 0; i < cases.size(); ++i) {
    std::vector<double> all, each;
    for (const std::vector<double>& round : rounds.seconds[i]) {
      all.push_back(*std::max_element(round.begin(), round.end()));
      each.insert(each.end(), round.begin(), round.end());
    }
    for (const char* measured : {"all", "each"}) {
      Measurement m = case_row(run, cases[i], load, measured);
      summarize_samples(measured == std::string("all") ? all : each, m);
      m.note = rounds.fault;
      if (!m.note.empty()) m.status = MeasurementStatus::failed;
      run.report(m);
    }
  }
}

std::size_t bytes_of_process(const BenchmarkRun& run, double per_byte, std::size_t most) {
  constexpr std::size_t kPage = 4096;
  const double free = static_cast<double>(available_memory()) / 2 / kProcessCounts.back() / per_byte;
  const std::size_t bytes = std::min({most, run.settings().largest_buffer, static_cast<std::size_t>(free)});
  return std::max(bytes / kPage * kPage, kPage);
}

}  // namespace memwall
