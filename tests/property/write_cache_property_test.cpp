// Random writers to drives with a write cache, against small steps of time: at each of them every writer that has begun
// gets its max-min fair share of 2 GB/s, or of what the drives take while the cache is full, and the cache holds what
// came less what they took.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>

#include "tests/support/write_trace.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr double kBandwidth = 2e9, kTick = 1e-5;

struct Writer {
  double begin = 0, bytes = 0, rate = 0;  // rate: alone
  double left = 0, end = 0;
};

// Raises all rates alike until each is at its cap or nothing is left.
std::vector<double> shares(const std::vector<const Writer*>& writers, double capacity) {
  std::vector<double> rates(writers.size(), 0);
  std::vector<std::size_t> order(writers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](auto a, auto b) { return writers[a]->rate < writers[b]->rate; });
  for (std::size_t i = 0; i < order.size(); ++i) {
    rates[order[i]] = std::min(writers[order[i]]->rate, capacity / static_cast<double>(order.size() - i));
    capacity -= rates[order[i]];
  }
  return rates;
}

// Returns what the cache holds when all have ended.
double step_by_step(std::vector<Writer>& writers, double cache, double sustained, double held) {
  for (Writer& writer : writers) writer.left = writer.bytes;
  std::size_t running = writers.size();
  for (long tick = 0; running > 0; ++tick) {
    const double now = static_cast<double>(tick) * kTick;
    std::vector<const Writer*> active;
    for (const Writer& writer : writers)
      if (writer.begin <= now + kTick / 2 && writer.left > 0) active.push_back(&writer);
    double flow = 0;
    const std::vector<double> rates = shares(active, held >= cache ? sustained : kBandwidth);
    for (std::size_t i = 0; i < active.size(); ++i) {
      Writer& writer = writers[static_cast<std::size_t>(active[i] - writers.data())];
      flow += rates[i];
      writer.left -= rates[i] * kTick;
      if (writer.left > 1e-3) continue;
      writer.end = now + kTick;
      writer.left = 0;
      --running;
    }
    held = std::clamp(held + (flow - sustained) * kTick, 0.0, cache);
  }
  return held;
}

RC_GTEST_PROP(WriteCacheProperty, IsWhatSmallStepsOfTimeGive, ()) {
  const Bytes cache = *rc::gen::inRange<Bytes>(0, 100) * 1'000'000;
  const double sustained = *rc::gen::inRange(1, 20) * 1e8;
  const double held = *rc::gen::inRange(0, 101) / 100.0 * static_cast<double>(cache);
  const Machine machine = machine_with_write_cache(cache, sustained);
  std::vector<Writer> writers;
  WriteTrace step;
  double begin = 0;
  for (int i = *rc::gen::inRange(1, 6); i > 0; --i) {
    begin += *rc::gen::inRange(0, 80) * 1e-3;
    const Bytes bytes = *rc::gen::inRange<Bytes>(1, 100) * 1'000'000;
    const double rate = *rc::gen::inRange(1, 21) * 1e8;
    writers.push_back({begin, static_cast<double>(bytes), rate});
    step.write(begin, bytes, rate);
  }
  std::vector<double> cached(machine.links.size(), 0);
  const auto link = static_cast<std::size_t>(machine.link("nvme_write"));
  cached[link] = held;
  const SimulationResult result = simulate(step.finish(), machine, {.allocator = "ideal", .cached = cached});
  const double left = step_by_step(writers, static_cast<double>(cache), sustained, held);
  // Each change of rates may be seen a tick late, at twice the rate that holds by then.
  const double tolerance = 20 * static_cast<double>(writers.size()) * kTick;
  for (std::size_t i = 0; i < writers.size(); ++i)
    RC_ASSERT(std::abs(to_seconds(result.records[i].end) - writers[i].end) < tolerance);
  RC_ASSERT(std::abs(result.links[link].cached - left) < tolerance * kBandwidth);
  // However it goes: no more is written than the drives take and the cache holds.
  const double room = static_cast<double>(cache) - held;
  double written = 0;
  for (const Writer& writer : writers) written += writer.bytes;
  RC_ASSERT(written <= sustained * to_seconds(result.end) + room + 1);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
