#include "traces/run/analysis/core_use.h"

#include <algorithm>
#include <array>
#include <map>

#include "sim/trace/ranks.h"

namespace memwall {
namespace {

enum Cause : std::uint8_t { optimizer, memory_work, threads };
constexpr std::size_t kCauses = 3;

// So many cores more (or less) are wanted from `time` on.
struct Change {
  Time time{};
  double cores = 0;
};

struct Pool {
  std::vector<Change> changes;
  std::array<double, kCauses> core_seconds{};
  void keep(Time begin, Time end, double cores, Cause cause) {
    if (end <= begin) return;
    changes.push_back({begin, cores});
    changes.push_back({end, -cores});
    core_seconds[cause] += cores * to_seconds(end - begin);
  }
};

// One host thread: what it does by itself, in stretches.
class ThreadStretches {
 public:
  explicit ThreadStretches(double times) : times_(times) {}
  void add(Pool& pool, Time begin, Time end) {
    if (end <= begin) return;
    if (begin > end_) {
      close(pool);
      begin_ = begin;
    }
    end_ = std::max(end_, end);
  }
  void close(Pool& pool) {
    pool.keep(begin_, end_, times_, Cause::threads);
    begin_ = end_;
  }
  Time end() const { return end_; }

 private:
  double times_;  // threads like it
  Time begin_{}, end_{};
};

CoreUse use_of(Pool& pool, double cores, double ranks, Time end) {
  CoreUse use{.cores = cores, .ranks = static_cast<std::uint32_t>(ranks)};
  std::stable_sort(pool.changes.begin(), pool.changes.end(), [](const Change& a, const Change& b) {
    return a.time != b.time ? a.time < b.time : a.cores < b.cores;  // who ends makes room first
  });
  constexpr double kRounding = 1e-6;
  double now = 0;
  for (std::size_t i = 0; i < pool.changes.size(); ++i) {
    now += pool.changes[i].cores;
    use.most = std::max(use.most, now);
    if (now > cores + kRounding && i + 1 < pool.changes.size())
      use.beyond += pool.changes[i + 1].time - pool.changes[i].time;
  }
  if (end <= Time{}) return use;
  const double seconds = to_seconds(end);
  use.mean_optimizer = pool.core_seconds[Cause::optimizer] / seconds;
  use.mean_memory_work = pool.core_seconds[Cause::memory_work] / seconds;
  use.mean_threads = pool.core_seconds[Cause::threads] / seconds;
  use.mean = use.mean_optimizer + use.mean_memory_work + use.mean_threads;
  return use;
}

}  // namespace

std::vector<CoreUse> core_use(const Run& run, const std::vector<std::size_t>& ranks) {
  const Trace& trace = run.trace;
  if (run.machine.core_pools.empty() || run.result.records.size() < trace.ops.size()) return {};
  const bool folded = trace.rank_table.empty();
  const auto times_of = [&](std::size_t rank) {
    const RankView& view = run.machine.views[rank];
    return folded ? run.machine.core_pools[view.core_pool].multiplicity : view.core_times;
  };
  std::map<std::size_t, Pool> pools;
  std::map<std::size_t, double> members;
  for (const std::size_t rank : ranks) {
    pools[run.machine.views[rank].core_pool];
    members[run.machine.views[rank].core_pool] += times_of(rank);
  }
  std::vector<ThreadStretches> stretches;
  for (const HostThread& thread : trace.threads) stretches.emplace_back(times_of(thread.rank));
  const double workers = worker_threads(run.machine.one.host);
  for (OpId id = 0; id < trace.ops.size(); ++id) {
    const Op& op = trace.ops[id];
    const OpRecord& record = run.result.records[id];
    if (op.placed || record.host_start == kNever || record.host_end == kNever) continue;
    const std::size_t rank = trace.threads[op.thread].rank;
    const auto pool = pools.find(run.machine.views[rank].core_pool);
    if (pool == pools.end()) continue;
    ThreadStretches& thread = stretches[op.thread];
    const Time from = std::max(thread.end(), record.host_start - std::max(Duration{}, op.host_gap));
    if (op.kind == OpKind::host_work && op.bytes > 0) {
      thread.add(pool->second, from, record.host_start);
      thread.close(pool->second);
      pool->second.keep(record.host_start, record.host_end, workers * times_of(rank),
                        op.phase == Phase::optimizer ? Cause::optimizer : Cause::memory_work);
      continue;
    }
    const Duration length = record.host_end - record.host_start;
    const Duration own = record.host_end_waited ? std::min(length, op.host_cost) : length;
    thread.add(pool->second, from, record.host_start + std::max(Duration{}, own));
  }
  std::vector<CoreUse> uses;
  for (std::size_t t = 0; t < stretches.size(); ++t)
    if (const auto pool = pools.find(run.machine.views[trace.threads[t].rank].core_pool); pool != pools.end())
      stretches[t].close(pool->second);
  for (auto& [index, pool] : pools)
    uses.push_back(use_of(pool, run.machine.core_pools[index].cores, members[index], run.result.end));
  return uses;
}

}  // namespace memwall
