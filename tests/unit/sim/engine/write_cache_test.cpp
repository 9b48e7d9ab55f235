// Do writes go as fast as the cache of the drives allows? Times worked out by hand from the rule in
// sim/engine/write_cache.h: 2 GB/s until it is full, 1 GB/s from then on, and emptied at 1 GB/s all the time.
#include "sim/engine/write_cache.h"

#include <gtest/gtest.h>

#include "tests/support/write_trace.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr double kSustained = 1e9;

double seconds_of(const SimulationResult& result, OpId op) {
  return to_seconds(result.records[op].end - result.records[op].start);
}

SimulationResult simulated(WriteTrace& step, const Machine& machine, std::vector<double> cached = {}) {
  return simulate(step.finish(), machine, {.allocator = "ideal", .cached = std::move(cached)});
}

const LinkResult& drives(const SimulationResult& result, const Machine& machine) {
  return result.links[static_cast<std::size_t>(machine.link("nvme_write"))];
}

TEST(WriteCache, FillsAndEmptiesAsItsRatesSay) {
  WriteCache cache(1e9, 1e9, 0);
  EXPECT_EQ(cache.full_at(), kNever);
  cache.set_inflow(Time{}, 3e9);
  EXPECT_EQ(cache.full_at(), from_seconds(0.5));
  cache.set_inflow(from_seconds(0.25), 0);  // holds 0.5 GB
  EXPECT_EQ(cache.full_at(), kNever);
  EXPECT_DOUBLE_EQ(cache.held(), 0.5e9);
  cache.set_inflow(from_seconds(0.5), 2e9);  // 0.25 GB: room for 0.75
  EXPECT_EQ(cache.full_at(), from_seconds(1.25));
  cache.fill(from_seconds(1.25));
  EXPECT_TRUE(cache.full());
  cache.set_inflow(from_seconds(1.25), 1e9);
  EXPECT_TRUE(cache.full()) << "as much is asked for as is taken from it";
  cache.set_inflow(from_seconds(2.25), 0.5e9);
  EXPECT_FALSE(cache.full());
  EXPECT_EQ(cache.time_full(), from_seconds(1));
  cache.advance(from_seconds(100));
  EXPECT_EQ(cache.held(), 0);
}

TEST(WriteCache, IsFullAtOnceWhereItHoldsNothing) {
  WriteCache cache(0, 1e9, 0);
  cache.set_inflow(from_seconds(1), 2e9);
  EXPECT_EQ(cache.full_at(), from_seconds(1));
  cache.set_inflow(from_seconds(1), 1e9);
  EXPECT_EQ(cache.full_at(), kNever) << "never asked for more than the drives take";
}

TEST(WriteCacheInTheEngine, AWriteFallsOffWhereTheCacheIsFull) {
  const Machine machine = machine_with_write_cache(kGigabyte, kSustained);
  WriteTrace step;
  const OpId op = step.write(0, 3 * kGigabyte);
  const SimulationResult result = simulated(step, machine);
  // C / (b - s) = 1 s, in which b C / (b - s) = 2 GB are written; the third at 1 GB/s.
  EXPECT_DOUBLE_EQ(seconds_of(result, op), 2);
  EXPECT_EQ(drives(result, machine).cache_full, from_seconds(1));
  EXPECT_DOUBLE_EQ(drives(result, machine).cached, 1e9);
  EXPECT_EQ(drives(result, machine).bytes, 3 * kGigabyte);
  WriteTrace small;
  const OpId fits = small.write(0, 2 * kGigabyte);
  EXPECT_DOUBLE_EQ(seconds_of(simulated(small, machine), fits), 1);
}

TEST(WriteCacheInTheEngine, IdleDrivesMakeRoom) {
  const Machine machine = machine_with_write_cache(kGigabyte, kSustained);
  WriteTrace step;
  step.write(0, 2 * kGigabyte);                        // full at 1 s
  const OpId op = step.write(1.5, 1'500'000'000);      // room for 0.5 GB: 1 GB in 0.5 s, 0.5 GB in 0.5 s
  const OpId later = step.write(12.5, 2 * kGigabyte);  // empty again
  const SimulationResult result = simulated(step, machine);
  EXPECT_NEAR(seconds_of(result, op), 1, 1e-11);
  EXPECT_NEAR(seconds_of(result, later), 1, 1e-11);
}

TEST(WriteCacheInTheEngine, SlowWritersNeverFillIt) {
  const Machine machine = machine_with_write_cache(kGigabyte / 1000, kSustained);
  WriteTrace step;
  const OpId op = step.write(0, 10 * kGigabyte, 1e9);
  const SimulationResult result = simulated(step, machine);
  EXPECT_DOUBLE_EQ(seconds_of(result, op), 10);
  EXPECT_EQ(drives(result, machine).cached, 0);
  EXPECT_EQ(drives(result, machine).cache_full, Duration{});
}

TEST(WriteCacheInTheEngine, WritersShareWhatIsLeft) {
  const Machine machine = machine_with_write_cache(kGigabyte, kSustained);
  WriteTrace alike;
  const OpId one = alike.write(0, 1'500'000'000), other = alike.write(0, 1'500'000'000);
  const SimulationResult both = simulated(alike, machine);
  // 1 GB/s each for 1 s, then 0.5 GB/s each.
  EXPECT_NEAR(seconds_of(both, one), 2, 1e-11);
  EXPECT_NEAR(seconds_of(both, other), 2, 1e-11);
  WriteTrace unlike;
  const OpId slow = unlike.write(0, kGigabyte / 2, 0.25e9), fast = unlike.write(0, 3 * kGigabyte);
  const SimulationResult result = simulated(unlike, machine);
  EXPECT_NEAR(seconds_of(result, slow), 2, 1e-11) << "its share is more than it asks for";
  // 1.75 GB/s for 1 s, 0.75 GB/s for 1 s beside the slow one, then 1 GB/s for the last 0.5 GB.
  EXPECT_NEAR(seconds_of(result, fast), 2.5, 1e-11);
}

TEST(WriteCacheInTheEngine, FoldedRanksFillItTogether) {
  Machine machine = machine_with_write_cache(kGigabyte, kSustained);
  machine.links[static_cast<std::size_t>(machine.link("nvme_write"))].sharers = 2;
  WriteTrace step;
  step.builder().trace().ranks = 2;
  const OpId op = step.write(0, 1'500'000'000);
  const SimulationResult result = simulated(step, machine);
  EXPECT_NEAR(seconds_of(result, op), 2, 1e-11);  // as two writers
  EXPECT_EQ(drives(result, machine).bytes, 3 * kGigabyte);
}

TEST(WriteCacheInTheEngine, CompressedBytesFillItLess) {
  Machine machine = machine_with_write_cache(kGigabyte, kSustained);
  for (Route& route : machine.routes)
    if (route.to == machine.tier("nvme")) route.link_shares = {0.5, 1};
  WriteTrace step;
  const OpId op = step.write(0, 6 * kGigabyte, 4e9);  // 3 GB as stored
  EXPECT_NEAR(seconds_of(simulated(step, machine), op), 2, 1e-11);
}

TEST(WriteCacheInTheEngine, ReadsAndCapturedWritesKeepTheirTimes) {
  const Machine machine = machine_with_write_cache(kGigabyte, kSustained);
  WriteTrace step;
  const OpId write = step.write(0, 5 * kGigabyte), read = step.read(0, 12 * kGigabyte);
  const SimulationResult result = simulated(step, machine);
  EXPECT_NEAR(seconds_of(result, write), 4, 1e-11);
  EXPECT_NEAR(seconds_of(result, read), 3, 1e-11);
  WriteTrace captured;
  const OpId op = captured.write(0, 3 * kGigabyte);
  captured.builder().trace().ops[op].added = false;
  const SimulationResult as_captured = simulated(captured, machine);
  EXPECT_DOUBLE_EQ(seconds_of(as_captured, op), 1.5);
  EXPECT_DOUBLE_EQ(drives(as_captured, machine).cached, 1e9) << "it fills all the same";
}

TEST(WriteCacheInTheEngine, BeginsWithWhatStepsBeforeHaveLeft) {
  const Machine machine = machine_with_write_cache(kGigabyte, kSustained);
  std::vector<double> cached(machine.links.size(), 0);
  const auto link = static_cast<std::size_t>(machine.link("nvme_write"));
  cached[link] = 1e9;
  WriteTrace full, half, idle;
  const OpId op = full.write(0, 3 * kGigabyte);
  EXPECT_DOUBLE_EQ(seconds_of(simulated(full, machine, cached), op), 3);
  const OpId later = idle.write(0.5, 3 * kGigabyte);  // half of it is free by then: 1 GB in 0.5 s, 2 GB in 2 s
  EXPECT_NEAR(seconds_of(simulated(idle, machine, cached), later), 2.5, 1e-11);
  cached[link] = 0.5e9;
  const OpId first = half.write(0, 3 * kGigabyte);
  EXPECT_NEAR(seconds_of(simulated(half, machine, cached), first), 2.5, 1e-11);
}

// Without a sustained rate, or one that is the link's own, nothing differs: not even the number of events.
TEST(WriteCacheInTheEngine, DrivesThatDoNotFallOffAreAsEver) {
  WriteTrace step;
  for (int i = 0; i < 5; ++i) step.write(0.25 * i, kGigabyte);
  const SimulationResult plain = simulated(step, test_machine());
  const SimulationResult same = simulated(step, machine_with_write_cache(kGigabyte, 2e9));
  EXPECT_EQ(plain.end, same.end);
  EXPECT_EQ(plain.events, same.events);
  for (OpId op = 0; op < 5; ++op) EXPECT_EQ(plain.records[op].end, same.records[op].end);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
