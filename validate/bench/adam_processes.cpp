// CPU optimizers of several ranks at the same time: what each gets of cores and DRAM, by threads per rank.
#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "validate/bench/adam_state.h"
#include "validate/bench/process_rows.h"
#include "validate/replay/host_computer.h"

namespace memwall {
namespace {

class RankOptimizer final : public ProcessWork {
 public:
  struct Arguments {
    std::size_t count = 0;
    std::array<unsigned, ForkServer::kMostCases> threads{};  // by case
    std::uint64_t seed = 0;
  };
  static_assert(sizeof(Arguments) <= ForkServer::kArguments);

  RankOptimizer(const Arguments& a, unsigned index) : threads_(a.threads), state_(a.count) {
    for (const unsigned threads : std::set<unsigned>(a.threads.begin(), a.threads.end()))
      if (threads > 0) teams_.emplace(threads, threads);
    state_.randomize(teams_.rbegin()->second, a.count, a.seed + 16 * index);
  }
  void work(unsigned case_index, unsigned repetitions) override {
    state_.step(teams_.at(threads_[case_index]), repetitions);
  }
  std::string fault() override { return state_.fault(); }

 private:
  std::array<unsigned, ForkServer::kMostCases> threads_;
  std::map<unsigned, ThreadTeam> teams_;  // by size
  AdamState state_;
};

// One thread per process, an equal part of the cores, and all of them, as a program does that is told nothing. One
// process is measured with as many threads as any of several has: alone, and beside the others.
std::vector<ProcessCase> cases_of(unsigned cores, std::array<unsigned, ForkServer::kMostCases>& threads_of_case) {
  std::vector<ProcessCase> cases;
  for (const unsigned processes : kProcessCounts) {
    std::set<unsigned> sizes{1, cores};
    for (const unsigned other : kProcessCounts)
      if (other == processes || processes == 1) sizes.insert(std::max(1u, cores / other));
    for (const unsigned threads : sizes) {
      threads_of_case[cases.size()] = threads;
      cases.push_back({processes, equal_work(processes), {{"threads", std::to_string(threads)}}});
    }
  }
  return cases;
}

// Arrays of 512 MiB in each process, where there is memory for all.
void adam_host_processes(BenchmarkRun& run) {
  RankOptimizer::Arguments arguments;
  arguments.count = bytes_of_process(run, AdamState::kBytesPerElement / 4, std::size_t{1} << 27) / 4;
  arguments.seed = run.settings().seed;
  const std::vector<ProcessCase> cases = cases_of(static_cast<unsigned>(allowed_cores().size()), arguments.threads);
  measure_processes<RankOptimizer>(
      run, cases, {AdamState::bytes_of(arguments.count), AdamState::flops_of(arguments.count)}, arguments);
}

const RegisterBenchmark registered_adam_host_processes{
    {"adam_host_processes", "steps of Adam on the CPU by 1, 2, 4 and 8 processes at once, by threads of each",
     BenchmarkPlace::computer, 56, adam_host_processes}};

}  // namespace
}  // namespace memwall
