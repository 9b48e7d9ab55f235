// The device's view of memory against a reference that looks at every op for every storage; and what it must show of
// every program that is safe on a GPU: memory that two storages take one after the other is never both's at once.
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <tuple>

#include "sim/error.h"
#include "sim/policy/registry.h"
#include "study/study.h"
#include "tests/support/device_occupancy_reference.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/random_trace.h"
#include "tests/support/test_machine.h"
#include "tests/support/varied_runs.h"
#include "traces/run/analysis/device_occupancy.h"
#include "traces/run/run_recorder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

using Life = std::tuple<StorageId, int, Time, Time>;

std::vector<Life> sorted(const std::vector<Residency>& lives) {
  std::vector<Life> rows;
  for (const Residency& life : lives) rows.emplace_back(life.storage, life.tier, life.begin, life.end);
  std::sort(rows.begin(), rows.end());
  return rows;
}

std::vector<Time> instants_of(const std::vector<Residency>& lives, Time end) {
  std::vector<Time> instants{Time{}};
  for (const Residency& life : lives) {
    instants.push_back(life.begin);
    if (life.end < end) instants.push_back(life.end);
  }
  std::sort(instants.begin(), instants.end());
  instants.erase(std::unique(instants.begin(), instants.end()), instants.end());
  return instants;
}

// "" where the run's device view is the reference's: lives, bytes by kind at every instant, peaks.
std::string difference_to_reference(const Run& run) {
  const DeviceOccupancyReference reference(run);
  if (sorted(device_residency(run)) != sorted(reference.lives())) return "lives differ";
  const std::vector<Time> instants = instants_of(reference.lives(), run.result.end);
  const std::vector<DevicePeak> peaks = device_peaks(run);
  for (int tier = 0; tier < static_cast<int>(run.machine.tiers.size()); ++tier) {
    const std::vector<KindPoint> points = device_memory_by_kind(run, tier);
    Bytes most = -1;
    Time time{};
    for (const Time at : instants) {
      const auto after =
          std::partition_point(points.begin(), points.end(), [&](const KindPoint& p) { return p.time <= at; });
      for (int kind = 0; kind < kStorageKinds; ++kind)
        if (std::prev(after)->by_kind[kind] != reference.held(tier, at, static_cast<StorageKind>(kind)))
          return "bytes by kind differ";
      if (reference.held(tier, at) > most) {
        most = reference.held(tier, at);
        time = at;
      }
    }
    const DevicePeak& peak = peaks[static_cast<std::size_t>(tier)];
    if (peak.bytes != most) return "peaks differ";
    if (peak.time != time) return "instants of the peak differ";
    for (int kind = 0; kind < kStorageKinds; ++kind)
      if (peak.by_kind[static_cast<std::size_t>(kind)] != reference.held(tier, time, static_cast<StorageKind>(kind)))
        return "kinds at the peak differ";
  }
  return "";
}

TEST(DeviceOccupancyReferenced, InRunsOfAllKinds) {
  std::size_t told = 0;
  for (NamedRun& varied : varied_runs()) {
    if (varied.run.trace->ops.size() > 20'000) continue;  // the reference takes the square
    varied.run.trace.edit().knowledge.dataflow = true;    // runs made by hand say nothing of what they know
    if (!has_device_clock(varied.run)) continue;
    ++told;
    EXPECT_EQ(difference_to_reference(varied.run), "") << varied.name;
  }
  EXPECT_GE(told, 5u);
}

RC_GTEST_PROP(DeviceOccupancyReferenced, InRandomTraces, ()) {
  const auto seed = *rc::gen::inRange<std::uint64_t>(0, 1'000'000);
  const auto ops = *rc::gen::inRange<std::size_t>(1, 120);
  Trace trace = random_trace(seed, ops);
  trace.knowledge.dataflow = true;
  // Some ops forget what they use: storages that none names any more count in stream order.
  for (Op& op : trace.ops)
    if (*rc::gen::inRange(0, 4) == 0) op.use_count = 0;
  Machine machine = test_machine();
  std::optional<Run> run;
  try {
    run = simulate_and_record(std::move(trace), machine, {});
  } catch (const std::exception&) {
    RC_DISCARD("the machine has no route that the trace takes");
  }
  if (!has_device_clock(*run)) return;
  RC_ASSERT(difference_to_reference(*run) == "");
}

// ---------------------------------------------------------------- addresses

// Calls of the device's allocators in the order in which the simulation made them.
class PlacementLog final : public Observer {
 public:
  struct Placement {
    StorageId storage = kNoStorage;
    int tier = 0;
    bool begins = false;
  };
  void on_residency(Time, StorageId storage, int tier, bool begins) override {
    placements.push_back({storage, tier, begins});
  }
  std::vector<Placement> placements;
};

struct Block {
  Address begin = 0, end = 0;
  Time from{}, until{};
  StorageId storage = kNoStorage;
};

// Pairs of storages whose memory overlaps while both hold data; the allocator gives the addresses anew.
// REQUIRES: no pager; the tier's allocator is "pytorch", and the step fits.
std::vector<std::pair<StorageId, StorageId>> overlaps(const Run& run, const PlacementLog& log, int tier) {
  const auto t = static_cast<std::size_t>(tier);
  const auto allocator = make_pytorch_allocator(run.machine.tiers[t].holds() -
                                                untracked_by_tier(run.machine, run.trace)[t]);
  std::map<StorageId, Address> addresses;
  for (const auto& placement : log.placements) {
    if (placement.tier != tier) continue;
    const Storage& storage = run.trace->storages[placement.storage];
    if (placement.begins)
      addresses[placement.storage] = allocator->allocate(storage.bytes, storage.stream).value();
    else
      allocator->free(addresses.at(placement.storage));
  }
  std::vector<Block> blocks;
  for (const Residency& life : device_residency(run))
    if (life.tier == tier) {
      const Address at = addresses.at(life.storage);
      const auto bytes = static_cast<Address>(run.trace->storages[life.storage].bytes);
      blocks.push_back({at, at + bytes, life.begin, life.end, life.storage});
    }
  std::sort(blocks.begin(), blocks.end(), [](const Block& a, const Block& b) { return a.begin < b.begin; });
  std::vector<std::pair<StorageId, StorageId>> found;
  Address reach = 0;
  for (std::size_t i = 0, first = 0; i < blocks.size(); ++i) {
    if (blocks[i].begin >= reach) first = i;
    for (std::size_t j = first; j < i; ++j)
      if (blocks[j].end > blocks[i].begin && blocks[j].begin < blocks[i].end && blocks[j].from < blocks[i].until &&
          blocks[i].from < blocks[j].until)
        found.emplace_back(blocks[j].storage, blocks[i].storage);
    reach = std::max(reach, blocks[i].end);
  }
  return found;
}

struct Logged {
  Run run;
  PlacementLog log;
};

Logged logged_run(Trace trace, const Machine& machine) {
  Logged made;
  RunSettings settings;
  settings.observer = &made.log;
  made.run = simulate_and_record(std::move(trace), machine, settings);
  return made;
}

// As tests/smoke/race_freedom_test.cpp has them: their order on streams protects memory.
const std::vector<std::string> kPolicies = {"checkpoint:mode=full",
                                            "checkpoint:mode=every,every=2",
                                            "zero:stage=1,ranks=4",
                                            "zero:stage=3,ranks=4",
                                            "offload:what=activations,to=host,min_bytes=0",
                                            "offload:what=activations,to=host,min_bytes=0,stream=compute",
                                            "offload:what=activations,to=peer,min_bytes=0",
                                            "offload:what=optimizer,to=host",
                                            "offload:what=gradients,to=host,min_bytes=0",
                                            "offload:what=parameters,to=host,min_bytes=0"};

GptShape random_shape() {
  GptShape shape;
  shape.layers = *rc::gen::inRange(1, 5);
  shape.hidden = 8 * *rc::gen::inRange(1, 9);
  shape.sequence = *rc::gen::inRange(2, 40);
  shape.steps = *rc::gen::inRange(1, 3);
  shape.host_gap = nanoseconds(*rc::gen::inRange(0, 200));
  shape.launch_cost = nanoseconds(*rc::gen::inRange(0, 200));
  shape.allocator_cost = nanoseconds(*rc::gen::inRange(0, 50));
  shape.bytes_per_second = *rc::gen::element(1e10, 1e12, 1e14);
  return shape;
}

RC_GTEST_PROP(DeviceOccupancyAddresses, AreNeverTwoStoragesAtOnce, ()) {
  Trace step = gpt_step(random_shape());
  const Machine machine = test_machine();
  const auto pricer = test_pricer(machine);
  std::vector<PolicySpec> specs;
  const auto first = *rc::gen::inRange<std::size_t>(0, kPolicies.size() + 1);
  if (first < kPolicies.size()) specs.push_back(parse_policy(kPolicies[first]));
  const Logged made = logged_run(apply_rewriters(step, specs, machine, *pricer), machine);
  RC_PRE(made.run.result.fits);
  RC_ASSERT(overlaps(made.run, made.log, made.run.machine.tier("hbm")).empty());
}

// Captured and generated steps that are shipped, on as many streams as they have.
TEST(DeviceOccupancyAddresses, OfTheSamplesAreNeverTwoStoragesAtOnce) {
  std::vector<std::string> samples;
  for (const auto& entry : std::filesystem::directory_iterator(MEMWALL_SOURCE "/traces/samples/captures"))
    if (entry.path().string().ends_with(".mwc.gz")) samples.push_back(entry.path().string());
  samples.push_back(MEMWALL_SOURCE "/traces/samples/gpt_124m.mwt");
  ASSERT_GE(samples.size(), 7u);
  Study study;
  std::size_t looked_at = 0;
  for (const std::string& sample : samples)
    for (const char* policy : {"", "offload:what=activations,to=host", "zero:stage=3,ranks=8", "checkpoint:mode=full"}) {
      Scenario scenario{.step = {sample}, .machine = "h100-sxm-80gb"};
      if (*policy) scenario.policies = {policy};
      PlacementLog log;
      memwall::Run run;
      try {
        run = study.run(scenario, {.observer = &log}).run;
      } catch (const UsageError&) {
        continue;  // a sample that the policy does not take
      }
      if (!run.result.fits || !has_device_clock(run)) continue;
      ++looked_at;
      EXPECT_TRUE(overlaps(run, log, run.machine.tier("hbm")).empty()) << sample << " " << policy;
    }
  EXPECT_GE(looked_at, 2 * samples.size());
}

// Does the check see a program that a GPU would run wrong? Without its waits for events an offloaded activation's
// memory is given away while it is still copied.
TEST(DeviceOccupancyAddresses, OverlapWhereAStreamDoesNotWait) {
  GptShape shape;
  shape.layers = 4;
  const Machine machine = test_machine();
  const auto pricer = test_pricer(machine);
  const Trace safe = apply_rewriters(gpt_step(shape), {parse_policy("offload:what=activations,to=host,min_bytes=0")},
                                     machine, *pricer);
  const Logged good = logged_run(safe, machine);
  EXPECT_TRUE(overlaps(good.run, good.log, 0).empty());
  Trace unsafe = safe;
  for (Op& op : unsafe.ops)
    if (op.kind == OpKind::event_wait) op.kind = OpKind::mark;
  const Logged bad = logged_run(unsafe, machine);
  EXPECT_FALSE(overlaps(bad.run, bad.log, 0).empty());
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
