// Rows of a benchmark that several processes run at the same time.
//
// Each case has two rows, told apart by the parameter `measured`: "all" is the time from the common start until the
// last process is done, with the bytes of all of them, so that its rate is the total one; "each" is the time of one
// process with its own bytes, of all processes and rounds, so that its spread also tells how unequally they were
// served. The parameter `bytes` is that of one process.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include "validate/bench/benchmark.h"
#include "validate/bench/fork_server.h"

namespace memwall {

inline constexpr std::array kProcessCounts = {1u, 2u, 4u, 8u};

// What one process does in a round of a case.
struct ProcessCase {
  unsigned processes = 1, repetitions = 1;
  std::map<std::string, std::string> parameters{};  // besides `bytes`, `processes` and `measured`
};
struct ProcessLoad {
  double bytes = 0, flops = 0;
};

// Repetitions after which the processes have together done as much as the most do in one: rounds of all cases last
// about as long where something that they share limits them, and a disturbance has the same share in each.
constexpr unsigned equal_work(unsigned processes) { return std::max(1u, kProcessCounts.back() / processes); }

// Turns last eight times as long together as samples of one case do: what disturbs the several disturbs most of all.
ProcessSampling process_sampling(const BenchmarkRun& run, std::size_t cases);
void report_rounds(BenchmarkRun& run, const std::vector<ProcessCase>& cases, const ProcessLoad& load,
                   const ProcessRounds& rounds);

// Measures all cases in turn and reports them. Work: as ForkServer::run takes it; `case_index` of its rounds is an
// index into `cases`. Throws as ForkServer::run.
template <class Work>
void measure_processes(BenchmarkRun& run, const std::vector<ProcessCase>& cases, const ProcessLoad& load,
                       const typename Work::Arguments& arguments) {
  std::vector<ForkedCase> active;
  for (const ProcessCase& c : cases) active.push_back({c.processes, c.repetitions});
  report_rounds(run, cases, load, run.fork_server().run<Work>(active, arguments, process_sampling(run, cases.size())));
}

// Bytes that each of the most processes may have, where one of these takes `per_byte` bytes of memory: half of what is
// free, at most `most` and the settings' largest buffer, in whole pages, at least one.
std::size_t bytes_of_process(const BenchmarkRun& run, double per_byte, std::size_t most);

}  // namespace memwall
