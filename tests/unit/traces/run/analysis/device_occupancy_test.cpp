// Do storages hold data on the device's clock when device_occupancy.h says so? In cases worked out by hand.
#include "traces/run/analysis/device_occupancy.h"

#include <gtest/gtest.h>

#include "tests/support/handmade_run.h"
#include "traces/run/analysis/summary.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr std::uint8_t kHbm = 0, kHost = 1;

// Ops by hand, on microseconds; what lives where by the host's clock is what the allocs and frees say.
class Scene : public HandmadeRun {
 public:
  Scene() { run.trace.edit().knowledge = {true, true, true, true, true}; }

  StorageId storage(Bytes bytes, StorageKind kind, std::uint8_t tier = kHbm, bool preexisting = false) {
    Storage storage;
    storage.bytes = bytes;
    storage.kind = kind;
    storage.place = tier;
    storage.preexisting = preexisting;
    run.trace.edit().storages.push_back(storage);
    const auto id = static_cast<StorageId>(run.trace->storages.size() - 1);
    if (preexisting) run.residency.push_back({id, tier, Time{}, kNever});
    return id;
  }
  void alloc(StorageId storage, double at) {
    op(host(OpKind::alloc, "", at, at)).target = storage;
    run.residency.push_back({storage, run.trace->storages[storage].place, from_microseconds(at), kNever});
  }
  void free(StorageId storage, double at) {
    op(host(OpKind::free, "", at, at)).target = storage;
    for (Residency& residency : run.residency)
      if (residency.storage == storage) residency.end = from_microseconds(at);
  }
  void uses(OpId id, std::vector<Use> uses) {
    op(id).first_use = static_cast<std::uint32_t>(run.trace->uses.size());
    op(id).use_count = static_cast<std::uint32_t>(uses.size());
    for (const Use& use : uses) run.trace.edit().uses.push_back(use);
  }
  OpId kernel(double called, double start, double end, std::vector<Use> used) {
    const OpId id = device(OpKind::kernel, "k", 0, called, called, start, end);
    uses(id, std::move(used));
    return id;
  }
  OpId copy(double called, double start, double end, std::vector<Use> used) {
    const OpId id = device(OpKind::copy, "c", 1, called, called, start, end);
    uses(id, std::move(used));
    return id;
  }
  Run done() {
    Run made = finish();
    for (Residency& residency : made.residency)
      if (residency.end == kNever) residency.end = made.result.end;
    return made;
  }
};

Use writes(StorageId s) { return {s, 1, Access::write}; }
Use reads(StorageId s) { return {s, 1, Access::read}; }

std::vector<std::string> text_of(const std::vector<Residency>& lives) {
  std::vector<std::string> lines;
  for (const Residency& life : lives)
    lines.push_back(std::to_string(life.storage) + " in " + std::to_string(life.tier) + ": " +
                    std::to_string(life.begin.count() / 1'000'000) + " to " +
                    std::to_string(life.end.count() / 1'000'000));
  return lines;
}
using Lines = std::vector<std::string>;

TEST(DeviceOccupancy, WhatTheHostFreedIsNotFreeBeforeItsCopyHasEnded) {
  Scene s;
  const StorageId a = s.storage(100, StorageKind::activation), there = s.storage(100, StorageKind::activation, kHost);
  const StorageId b = s.storage(70, StorageKind::activation);
  s.alloc(a, 0);
  s.kernel(1, 10, 20, {writes(a)});
  s.alloc(there, 2);
  s.copy(2, 20, 80, {reads(a), writes(there)});
  s.free(a, 3);
  s.alloc(b, 4);
  s.kernel(5, 30, 90, {writes(b)});
  const memwall::Run run = s.done();
  EXPECT_EQ(text_of(device_residency(run)), (Lines{"0 in 0: 10 to 80", "1 in 1: 20 to 90", "2 in 0: 30 to 90"}));
  const std::vector<DevicePeak> peaks = device_peaks(run);
  EXPECT_EQ(peaks[kHbm].bytes, 170) << "the host never has more than 100 allocated";
  EXPECT_EQ(peaks[kHbm].time, from_microseconds(30));
  EXPECT_EQ(peaks[kHost].bytes, 100);
  EXPECT_EQ(peaks[kHost].time, from_microseconds(20));
}

TEST(DeviceOccupancy, AllocatedIsNotWrittenYet) {
  Scene s;
  const StorageId a = s.storage(100, StorageKind::activation), b = s.storage(70, StorageKind::gradient);
  s.alloc(a, 0);
  s.alloc(b, 0);
  s.kernel(1, 1, 500, {writes(a)});
  s.free(a, 2);
  s.kernel(2, 500, 600, {writes(b)});
  s.free(b, 3);
  const memwall::Run run = s.done();
  EXPECT_EQ(text_of(device_residency(run)), (Lines{"0 in 0: 1 to 500", "1 in 0: 500 to 600"}));
  const DevicePeak peak = device_peaks(run)[kHbm];
  EXPECT_EQ(peak.bytes, 100) << "what ends at 500 is not there with what begins at 500";
  EXPECT_EQ(peak.time, from_microseconds(1));
  EXPECT_EQ(peak.by_kind[static_cast<int>(StorageKind::activation)], 100);
  EXPECT_EQ(peak.by_kind[static_cast<int>(StorageKind::gradient)], 0);
}

TEST(DeviceOccupancy, ParametersAreThereFromTheStartToTheEnd) {
  Scene s;
  const StorageId weight = s.storage(100, StorageKind::parameter, kHbm, true);
  const StorageId old = s.storage(30, StorageKind::input, kHbm, true);
  s.kernel(1, 10, 20, {reads(weight), reads(old)});
  s.free(old, 2);
  s.kernel(3, 20, 60, {});
  EXPECT_EQ(text_of(device_residency(s.done())), (Lines{"0 in 0: 0 to 60", "1 in 0: 0 to 20"}));
}

TEST(DeviceOccupancy, WhatTheHostWritesIsThereFromItsAllocationOn) {
  Scene s;
  const StorageId batch = s.storage(10, StorageKind::input, kHost), on_device = s.storage(10, StorageKind::input);
  s.alloc(batch, 1);
  const OpId load = s.host(OpKind::host_work, "load", 5, 9);
  s.uses(load, {writes(batch)});
  s.alloc(on_device, 9);
  s.copy(9, 12, 40, {reads(batch), writes(on_device)});
  s.free(batch, 10);
  EXPECT_EQ(text_of(device_residency(s.done())), (Lines{"0 in 1: 1 to 40", "1 in 0: 12 to 40"}));
}

// A workspace that the capture saw allocated and freed, and no op names: the kernel between may use it.
TEST(DeviceOccupancy, WhatNoOpNamesCountsInTheOrderOfItsStream) {
  Scene s;
  const StorageId workspace = s.storage(50, StorageKind::workspace), unused = s.storage(7, StorageKind::workspace);
  s.kernel(0, 5, 20, {});
  s.alloc(workspace, 1);
  s.kernel(1, 20, 30, {});
  s.kernel(2, 30, 45, {});
  s.free(workspace, 3);
  s.alloc(unused, 3);
  s.copy(4, 4, 9, {});
  s.free(unused, 4);
  s.kernel(5, 45, 60, {});
  const memwall::Run run = s.done();
  EXPECT_EQ(text_of(device_residency(run)), (Lines{"0 in 0: 20 to 45"}));
  EXPECT_EQ(device_peaks(run)[kHbm].unnamed, 50);
}

TEST(DeviceOccupancy, AMoveHoldsItInBothTiersWhileItLasts) {
  Scene s;
  const StorageId a = s.storage(100, StorageKind::activation);
  s.alloc(a, 0);
  s.kernel(0, 0, 10, {writes(a)});
  s.kernel(1, 60, 70, {reads(a)});
  s.free(a, 2);
  s.run.result.moves = {{from_microseconds(20), from_microseconds(30), a, kHbm, kHost, 100, kNoOp},
                        {from_microseconds(50), from_microseconds(58), a, kHost, kHbm, 100, kNoOp}};
  EXPECT_EQ(text_of(device_residency(s.done())), (Lines{"0 in 0: 0 to 30", "0 in 1: 20 to 58", "0 in 0: 50 to 70"}));
}

TEST(DeviceOccupancy, ByKindStepsWhereSomethingBeginsOrEnds) {
  Scene s;
  s.run.trace.edit().untracked_bytes = 1000;
  const StorageId a = s.storage(100, StorageKind::activation), b = s.storage(70, StorageKind::gradient);
  s.alloc(a, 0);
  s.alloc(b, 0);
  s.kernel(1, 10, 20, {writes(a)});
  s.kernel(1, 20, 30, {reads(a), writes(b)});
  s.free(a, 2);
  s.kernel(2, 30, 50, {reads(b)});
  s.free(b, 3);
  s.kernel(3, 50, 51, {});
  const std::vector<KindPoint> points = device_memory_by_kind(s.done(), kHbm);
  std::vector<std::string> lines;
  for (const KindPoint& p : points)
    lines.push_back(std::to_string(p.time.count() / 1'000'000) + ": " +
                    std::to_string(p.by_kind[static_cast<int>(StorageKind::unknown)]) + " " +
                    std::to_string(p.by_kind[static_cast<int>(StorageKind::activation)]) + " " +
                    std::to_string(p.by_kind[static_cast<int>(StorageKind::gradient)]));
  EXPECT_EQ(lines, (Lines{"0: 1000 0 0", "10: 1000 100 0", "20: 1000 100 70", "30: 1000 0 70", "50: 1000 0 0"}));
}

TEST(DeviceOccupancy, IsNotToldWithoutDataflowOrResidency) {
  Scene s;
  const StorageId a = s.storage(100, StorageKind::activation);
  s.alloc(a, 0);
  s.kernel(0, 0, 10, {writes(a)});
  memwall::Run run = s.done();
  EXPECT_TRUE(has_device_clock(run));
  EXPECT_TRUE(summarize(run).tiers[kHbm].device_peak);
  run.trace.edit().knowledge.dataflow = false;
  EXPECT_FALSE(has_device_clock(run));
  EXPECT_FALSE(summarize(run).tiers[kHbm].device_peak);
  EXPECT_EQ(to_json(summarize(run)).find("device_clock"), std::string::npos);
  run.trace.edit().knowledge.dataflow = true;
  run.residency.clear();
  EXPECT_FALSE(has_device_clock(run));
}

TEST(DeviceOccupancy, IsInTheSummaryAndItsJson) {
  Scene s;
  const StorageId a = s.storage(100, StorageKind::activation);
  s.alloc(a, 0);
  s.kernel(0, 7, 10, {writes(a)});
  const RunSummary summary = summarize(s.done());
  ASSERT_TRUE(summary.tiers[kHbm].device_peak);
  EXPECT_EQ(summary.tiers[kHbm].device_peak->bytes, 100);
  const std::string text = to_json(summary);
  const std::size_t at = text.find("\"device_clock\"");
  ASSERT_NE(at, std::string::npos);
  const std::string part = text.substr(at, 120);
  EXPECT_NE(part.find("\"peak_bytes\": 100"), std::string::npos) << part;
  EXPECT_NE(part.find("\"peak_time_s\": 7e-06"), std::string::npos) << part;
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
