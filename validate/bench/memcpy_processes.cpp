// What DRAM gives several processes that copy at the same time, by one thread each: as data loaders, staging and
// offloading ranks do.
#include <cstring>
#include <memory>

#include "validate/bench/page_buffer.h"
#include "validate/bench/process_rows.h"
#include "validate/bench/thread_team.h"
#include "validate/replay/pattern.h"

namespace memwall {
namespace {

constexpr std::size_t kLineBytes = 64;

class CopyInMemory final : public ProcessWork {
 public:
  struct Arguments {
    std::size_t bytes = 0;    // a multiple of 8
    unsigned whole_team = 0;  // of this case all cores copy, of the others one
    std::uint64_t seed = 0;
  };
  CopyInMemory(const Arguments& a, unsigned index) : arguments_(a), from_(a.bytes), to_(a.bytes) {
    if (index == 0) team_ = std::make_unique<ThreadTeam>(team_sizes().front());
    for (std::size_t i = 0; i < a.bytes / 8; ++i) from_.as<std::uint64_t>()[i] = pattern_word(a.seed + index, i);
    std::memset(to_.as(), 0xa5, a.bytes);
  }
  // Threads do not wait for each other in between, as processes do not.
  void work(unsigned case_index, unsigned repetitions) override {
    if (case_index != arguments_.whole_team)
      copy(0, arguments_.bytes, repetitions);
    else
      team_->run([&](unsigned member) {
        const TeamShare share = share_of(arguments_.bytes, member, team_->size(), kLineBytes);
        copy(share.begin, share.end - share.begin, repetitions);
      });
  }
  std::string fault() override {
    return std::memcmp(from_.as(), to_.as(), arguments_.bytes) == 0 ? "" : "the copy differs from what was copied";
  }

 private:
  void copy(std::size_t begin, std::size_t bytes, unsigned repetitions) {
    for (unsigned i = 0; i < repetitions; ++i) std::memcpy(to_.as() + begin, from_.as() + begin, bytes);
  }

  Arguments arguments_;
  PageBuffer from_, to_;
  std::unique_ptr<ThreadTeam> team_;  // of the process that works in every case
};

void memcpy_host_host_processes(BenchmarkRun& run) {
  const std::size_t bytes = bytes_of_process(run, 2, std::size_t{256} << 20);
  std::vector<ProcessCase> cases;
  for (const unsigned processes : kProcessCounts)
    cases.push_back({processes, equal_work(processes), {{"threads", "1"}}});
  const auto whole_team = static_cast<unsigned>(cases.size());
  if (team_sizes().front() > 1)
    cases.push_back({1, equal_work(1), {{"threads", std::to_string(team_sizes().front())}}});
  measure_processes<CopyInMemory>(run, cases, {.bytes = static_cast<double>(bytes)},
                                  {bytes, whole_team, run.settings().seed});
}

const RegisterBenchmark registered_memcpy_host_host_processes{
    {"memcpy_host_host_processes",
     "copies in host memory by 1, 2, 4 and 8 processes at once; each byte is read once and written once",
     BenchmarkPlace::computer, 55, memcpy_host_host_processes}};

}  // namespace
}  // namespace memwall
