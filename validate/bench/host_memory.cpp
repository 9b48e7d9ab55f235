// What DRAM gives the CPU: copies by one thread and by many.
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "validate/bench/benchmark.h"
#include "validate/bench/page_buffer.h"
#include "validate/bench/thread_team.h"
#include "validate/replay/host_computer.h"
#include "validate/replay/pattern.h"

namespace memwall {
namespace {

constexpr std::size_t kLine = 64;  // bytes; no two threads write one cache line

// Beyond caches; the largest that is allowed where that is less.
std::vector<std::size_t> copy_sizes(std::size_t largest) {
  std::vector<std::size_t> sizes;
  for (std::size_t bytes = std::size_t{1} << 30; bytes >= std::size_t{256} << 20; bytes /= 4)
    if (bytes <= largest) sizes.push_back(bytes);
  if (sizes.empty()) sizes.push_back(std::max(largest / 4096 * 4096, std::size_t{4096}));
  return sizes;
}

void copy_with(BenchmarkRun& run, ThreadTeam& team, const PageBuffer& from, const PageBuffer& to, std::size_t bytes) {
  Measurement m = run.row({{"bytes", std::to_string(bytes)}, {"threads", std::to_string(team.size())}});
  m.bytes = static_cast<double>(bytes);
  std::memset(to.as(), 0xa5, bytes);
  run.sample(m, [&] {
    return team.run([&](unsigned member) {
      const TeamShare share = share_of(bytes, member, team.size(), kLine);
      std::memcpy(to.as() + share.begin, from.as() + share.begin, share.end - share.begin);
    });
  });
  if (std::memcmp(from.as(), to.as(), bytes) != 0) {
    m.status = MeasurementStatus::failed;
    m.note = "the copy differs from what was copied";
  }
  run.report(m);
}

void memcpy_host_host(BenchmarkRun& run) {
  const std::size_t a_quarter = static_cast<std::size_t>(available_memory()) / 4;
  const std::vector<std::size_t> sizes = copy_sizes(std::min(run.settings().largest_buffer, a_quarter));
  const PageBuffer from(sizes.front()), to(sizes.front());
  for (const unsigned threads : team_sizes()) {
    ThreadTeam team(threads);
    // Every member touches its part first, so that pages lie near the core that uses them.
    if (threads == team_sizes().front())
      team.run([&](unsigned member) {
        const TeamShare share = share_of(sizes.front() / 8, member, threads, kLine / 8);
        for (std::size_t i = share.begin; i < share.end; ++i)
          from.as<std::uint64_t>()[i] = pattern_word(run.settings().seed, i);
        std::memset(to.as<std::uint64_t>() + share.begin, 0, 8 * (share.end - share.begin));
      });
    for (const std::size_t bytes : sizes) {
      if (run.out_of_time()) return;
      copy_with(run, team, from, to, bytes);
    }
  }
}

const RegisterBenchmark registered_memcpy_host_host{
    {"memcpy_host_host", "copies in host memory, by size and threads; each byte is read once and written once",
     BenchmarkPlace::computer, 20, memcpy_host_host}};

}  // namespace
}  // namespace memwall
