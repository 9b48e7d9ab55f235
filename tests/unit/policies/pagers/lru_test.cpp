// Does the pager `lru` name the right victims, and does a run with it go through?
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/error.h"
#include "sim/policy/registry.h"
#include "sim/engine/simulation.h"
#include "sim/trace/trace_builder.h"
#include "tests/support/test_machine.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr int kHbm = 0, kHost = 1, kNvme = 2;  // of the test machine

// What a pager sees, as a table.
class TableView : public PagerView {
 public:
  TableView(std::vector<ResidentStorage> resident, Bytes host_free, Bytes nvme_free)
      : resident_(std::move(resident)), host_free_(host_free), nvme_free_(nvme_free) {}
  Time now() const override { return {}; }
  Bytes free_bytes(int tier) const override { return tier == kHost ? host_free_ : tier == kNvme ? nvme_free_ : 0; }
  void each_movable(const std::function<bool(const ResidentStorage&)>& take) const override {
    for (const ResidentStorage& one : resident_)
      if (++looked_at_; !take(one)) return;
  }
  std::size_t looked_at() const { return looked_at_; }

 private:
  std::vector<ResidentStorage> resident_;
  Bytes host_free_, nvme_free_;
  mutable std::size_t looked_at_ = 0;
};

ResidentStorage resident(StorageId id, Bytes bytes, bool clean = false) {
  ResidentStorage r;
  r.storage = id;
  r.bytes = bytes;
  r.clean = clean;
  return r;
}

std::unique_ptr<Pager> pager(const std::string& text, const Machine& machine = test_machine()) {
  const PolicySpec spec = parse_policy(text);
  std::unique_ptr<Pager> made = spec.info->make_pager(spec.arguments);
  made->plan(machine, Trace{});
  return made;
}

std::string text(const std::vector<Move>& moves) {
  std::string result;
  for (const Move& move : moves)
    result += (move.kind == MoveKind::drop ? "drop " : "evict ") + std::to_string(move.storage) +
              (move.kind == MoveKind::drop ? "" : " to " + std::to_string(move.to)) + "; ";
  return result;
}

TEST(Lru, TakesTheOldestUntilTheBytesAreCovered) {
  const TableView view({resident(7, 10), resident(3, 10), resident(5, 10)}, 1000, 1000);
  EXPECT_EQ(text(pager("lru")->make_room(kHbm, 15, view)), "evict 7 to 1; evict 3 to 1; ");
  EXPECT_EQ(view.looked_at(), 2u);
  EXPECT_EQ(text(pager("lru")->make_room(kHbm, 10, view)), "evict 7 to 1; ");
  EXPECT_EQ(view.looked_at(), 3u);
}

TEST(Lru, DropsTheClean) {
  const TableView view({resident(3, 10, true), resident(5, 10)}, 1000, 1000);
  EXPECT_EQ(text(pager("lru")->make_room(kHbm, 100, view)), "drop 3; evict 5 to 1; ");
}

TEST(Lru, GoesOnToNvmeWhenTheHostIsFull) {
  const TableView view({resident(1, 10), resident(2, 10), resident(3, 4)}, 14, 1000);
  EXPECT_EQ(text(pager("lru")->make_room(kHbm, 24, view)), "evict 1 to 1; evict 2 to 2; evict 3 to 1; ");
  EXPECT_EQ(text(pager("lru:to=nvme")->make_room(kHbm, 24, view)), "evict 1 to 2; evict 2 to 2; evict 3 to 2; ");
}

TEST(Lru, AnswersNothingWhenNothingCanGo) {
  const TableView all_pinned({}, 1000, 1000), no_room({resident(1, 10)}, 5, 5);
  EXPECT_TRUE(pager("lru")->make_room(kHbm, 1, all_pinned).empty());
  EXPECT_TRUE(pager("lru")->make_room(kHbm, 1, no_room).empty());
}

TEST(Lru, NamesItsClockAndRefusesAMachineWithoutTheTier) {
  EXPECT_EQ(pager("lru")->clock(), PagerClock::host);
  EXPECT_EQ(pager("lru:clock=device")->clock(), PagerClock::device);
  Machine machine = test_machine();
  machine.tiers.resize(2);
  EXPECT_THROW(pager("lru:to=nvme", machine), UsageError);
  EXPECT_THROW(parse_policy("lru:clok=host"), UsageError);
  EXPECT_THROW(pager("lru:clock=both"), UsageError);
}

// Four storages of 1 GB, written in turn and then read in turn, on a device that holds three.
Trace four_storages() {
  TraceBuilder b;
  b.trace().name = "four";
  b.trace().knowledge = {true, true, true, false, false};
  b.trace().constants.event_latency = Duration{};
  b.add_thread("main");
  b.add_stream("compute", StreamRole::compute);
  std::vector<StorageId> s;
  const auto kernel = [&](StorageId id, Access access) {
    Op op;
    op.kind = OpKind::kernel;
    op.duration = microseconds(100'000);
    const Use use{id, access == Access::write ? 0 : TraceBuilder::kLatest, access};
    b.append(op, {&use, 1});
  };
  for (int i = 0; i < 4; ++i) {
    s.push_back(b.add_storage(1'000'000'000, StorageKind::activation, "hbm", ""));
    b.alloc(s[i], 0);
    kernel(s[i], Access::write);
  }
  for (int i = 0; i < 4; ++i) kernel(s[i], Access::read);
  for (int i = 0; i < 4; ++i) b.free(s[i], 0);
  b.trace().steps = {{"step", 0, static_cast<OpId>(b.trace().ops.size())}};
  return std::move(b).finish();
}

struct Moved {
  SimulationResult result;
  Bytes in = 0, out = 0;
};

Moved run_on_three(const std::string& text) {
  Machine machine = test_machine();
  machine.tiers[kHbm].capacity = 3'000'000'000;
  SimulationOptions options;
  options.allocator = "ideal";
  EXPECT_FALSE(simulate(four_storages(), machine, options).fits);
  const std::unique_ptr<Pager> lru = pager(text, machine);
  options.pager = lru.get();
  Moved moved{simulate(four_storages(), machine, options), 0, 0};
  for (const MoveRecord& move : moved.result.moves) (move.to == kHbm ? moved.in : moved.out) += move.bytes;
  EXPECT_TRUE(moved.result.fits);
  EXPECT_LE(moved.result.tiers[kHbm].peak_allocated, machine.tiers[kHbm].usable());
  EXPECT_EQ(moved.result.links[machine.link("pcie_h2d")].bytes, moved.in);
  EXPECT_EQ(moved.result.links[machine.link("pcie_d2h")].bytes, moved.out);
  return moved;
}

TEST(Lru, OnTheHostClockACyclicSweepMissesEveryTime) {
  // The host runs ahead: it makes room for the fourth at 100 ms, when the first was written, and each
  // read finds its storage gone. All moves end before the kernels that need them would start.
  const Moved moved = run_on_three("lru:clock=host");
  EXPECT_EQ(moved.in, 4'000'000'000);
  EXPECT_EQ(moved.out, 5'000'000'000);
  EXPECT_EQ(moved.result.end, from_seconds(0.8));
}

TEST(Lru, OnTheDeviceClockKernelsFault) {
  // The fourth kernel waits for the first storage to leave, the fifth for it to come back and the second
  // to leave, the sixth for the second, for which the first, freed by then, makes room.
  const Moved moved = run_on_three("lru:clock=device");
  EXPECT_EQ(moved.in, 2'000'000'000);
  EXPECT_EQ(moved.out, 2'000'000'000);
  EXPECT_EQ(moved.result.end, from_seconds(0.8 + 0.4));
}

// Kernels that each read the same `storages` small storages, on a device that holds half of what the trace makes.
std::uint64_t steps_of_wide_kernels(int storages, const std::string& text, std::size_t& moves) {
  TraceBuilder b;
  b.trace().knowledge = {true, true, true, false, false};
  b.add_thread("main");
  b.add_stream("compute", StreamRole::compute);
  std::vector<Use> first, second;
  for (int i = 0; i < 2 * storages; ++i) {
    const StorageId s = b.add_storage(MiB(2), StorageKind::parameter, "hbm", "", true);
    (i < storages ? first : second).push_back({s, TraceBuilder::kLatest, Access::read});
  }
  for (int i = 0; i < 4; ++i) {
    Op op;
    op.kind = OpKind::kernel;
    op.duration = microseconds(10);
    b.append(op, i % 2 == 0 ? first : second);
  }
  b.trace().steps = {{"step", 0, static_cast<OpId>(b.trace().ops.size())}};
  Machine machine = test_machine();
  machine.tiers[kHbm].capacity = storages * MiB(2);
  SimulationOptions options;
  options.allocator = "ideal";
  const std::unique_ptr<Pager> lru = pager(text, machine);
  options.pager = lru.get();
  const SimulationResult result = simulate(std::move(b).finish(), machine, options);
  EXPECT_TRUE(result.fits);
  moves = result.moves.size();
  return result.paging_steps;
}

TEST(Lru, CostsInProportionToUsesAndMovesNotToTheirProduct) {
  for (const char* text : {"lru:clock=host", "lru:clock=device"}) {
    std::size_t few = 0, many = 0;
    const std::uint64_t before = steps_of_wide_kernels(300, text, few), after = steps_of_wide_kernels(2400, text, many);
    EXPECT_GE(few, 1200u) << text;
    EXPECT_EQ(many, 8 * few) << text;
    EXPECT_LE(after, 9 * before) << text;
    EXPECT_LE(after, 8 * many) << text;
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
