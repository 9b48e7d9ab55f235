// Is what ranks of a host take of its memory and cores what can be counted by hand?
#include "traces/run/analysis/host_use.h"

#include <gtest/gtest.h>

#include "sim/trace/ranks.h"
#include "sim/trace/trace_builder.h"
#include "sim/trace/trace_check.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/test_machine.h"
#include "traces/run/analysis/summary.h"
#include "traces/run/file/run_file.h"
#include "traces/run/run_recorder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr Duration ms(std::int64_t n) { return microseconds(1000 * n); }

// 16 cores, as test_machine has them; eight ranks to a host.
Machine host_of_eight() {
  Machine m = test_machine();
  for (Link& link : m.links) link.sharers = link.name == "host_dram" ? 8 : 1;
  m.tiers[1].memory_link = m.dram_link;
  m.host.optimizer_threads = 3;
  return m;
}

// Optimizer states of 1 GB, page-locked; 65 MiB of page-locked gradients from 10 ms to 50 ms, and pageable 3 MB beside
// them. The CPU optimizer runs from 20 ms to 40 ms, the framework's own work goes on from 0 to 20 ms, and from 40 ms to
// 50 ms.
Trace step(std::uint32_t ranks) {
  TraceBuilder builder;
  Trace& t = builder.trace();
  t.name = "host";
  t.knowledge = {true, true, true, false, false};
  t.constants = {};
  t.ranks = ranks;
  builder.add_thread("main");
  builder.add_stream("compute", StreamRole::compute);
  const auto storage = [&](Bytes bytes, StorageKind kind, bool pinned, bool preexisting) {
    const StorageId id = builder.add_storage(bytes, kind, "host", "", preexisting);
    builder.trace().storages[id].pinned = pinned;
    return id;
  };
  storage(1'000'000'000, StorageKind::optimizer_state, true, true);
  const StorageId gradient = storage(MiB(65), StorageKind::gradient, true, false);
  const StorageId pageable = storage(3'000'000, StorageKind::workspace, false, false);
  const auto pause = [&](Duration gap) {
    Op mark;
    mark.host_gap = gap;
    return builder.append(mark);
  };
  const OpId first = pause(Duration{});
  pause(ms(10));
  builder.alloc(gradient, 0);
  builder.alloc(pageable, 0);
  pause(ms(10));
  Op adam;
  adam.kind = OpKind::host_work;
  adam.phase = Phase::optimizer;
  adam.bytes = 20'000'000;  // of 10 GB/s
  adam.duration = ms(20);
  adam.added = true;
  builder.append(adam);
  pause(ms(10));
  builder.free(gradient, 0);
  builder.free(pageable, 0);
  t.steps.push_back({"step", first, static_cast<OpId>(t.ops.size())});
  Trace finished = std::move(builder).finish();
  EXPECT_EQ(check(finished), std::vector<std::string>{});
  return finished;
}

memwall::Run run_of(Trace trace, const RunSettings& settings = {}) {
  return simulate_and_record(std::move(trace), host_of_eight(), settings);
}

Bytes bytes_of(const HostUse& use, StorageKind kind, bool pinned) {
  for (const HostMemoryCause& cause : use.causes)
    if (cause.kind == kind && cause.pinned == pinned) return cause.bytes;
  return 0;
}

Bytes sum_of(const HostUse& use) {
  Bytes sum = use.rounding + use.cached;
  for (const HostMemoryCause& cause : use.causes) sum += cause.bytes;
  return sum;
}

TEST(HostUse, CountsMemoryByCauseForAllRanksOfTheHost) {
  for (const std::uint32_t ranks : {1u, 4u, 8u}) {
    const std::vector<HostUse> all = host_use(run_of(step(ranks)));
    ASSERT_EQ(all.size(), 1u);
    const HostUse& use = all.front();
    EXPECT_EQ(use.tier, "host");
    EXPECT_EQ(use.ranks.size(), ranks);
    EXPECT_EQ(use.hosts, 1u);
    EXPECT_EQ(bytes_of(use, StorageKind::optimizer_state, true), ranks * Bytes{1'000'000'000});
    EXPECT_EQ(bytes_of(use, StorageKind::gradient, true), ranks * MiB(65));
    EXPECT_EQ(bytes_of(use, StorageKind::workspace, false), ranks * Bytes{3'000'000});
    EXPECT_EQ(use.rounding, ranks * (GiB(1) - 1'000'000'000 + MiB(63))) << "powers of two";
    EXPECT_EQ(use.peak_reserved, ranks * (GiB(1) + MiB(128) + 3'000'000));
    EXPECT_EQ(sum_of(use), use.peak_reserved);
    EXPECT_EQ(use.causes.front().kind, StorageKind::optimizer_state) << "the largest first";
  }
}

TEST(HostUse, CountsHostsThatLookAlike) {
  const HostUse use = host_use(run_of(step(24))).front();
  EXPECT_EQ(use.ranks.size(), 8u);
  EXPECT_EQ(use.hosts, 3u);
}

TEST(HostUse, OfRanksWrittenOutIsThatOfFoldedOnes) {
  std::vector<RankProgram> programs;
  for (std::uint32_t number = 0; number < 4; ++number) programs.push_back({number, step(1)});
  const HostUse written = host_use(run_of(joined_ranks(std::move(programs)))).front();
  const HostUse folded = host_use(run_of(step(4))).front();
  EXPECT_EQ(written.ranks, (std::vector<std::uint32_t>{0, 1, 2, 3}));
  EXPECT_EQ(written.peak_reserved, folded.peak_reserved);
  EXPECT_EQ(written.rounding, folded.rounding);
  ASSERT_EQ(written.causes.size(), folded.causes.size());
  for (std::size_t i = 0; i < written.causes.size(); ++i)
    EXPECT_EQ(written.causes[i].bytes, folded.causes[i].bytes) << i;
  ASSERT_EQ(written.cores.size(), 1u);
  ASSERT_EQ(folded.cores.size(), 1u);
  EXPECT_DOUBLE_EQ(written.cores[0].most, folded.cores[0].most);
  EXPECT_NEAR(written.cores[0].mean, folded.cores[0].mean, 1e-9);
  EXPECT_EQ(written.cores[0].ranks, folded.cores[0].ranks);
}

TEST(HostUse, CountsPageLockingByCallAndByRoundedBytes) {
  const HostUse use = host_use(run_of(step(8))).front();
  EXPECT_EQ(use.before_step.calls, 1u);
  EXPECT_EQ(use.before_step.bytes, GiB(1));
  EXPECT_EQ(use.in_first_step.calls, 1u);
  EXPECT_EQ(use.in_first_step.bytes, MiB(128));
  RunSettings unpooled;
  unpooled.allocator_settings.pinned_pool = false;
  const HostUse exact = host_use(run_of(step(1), unpooled)).front();
  EXPECT_EQ(exact.before_step.bytes, (1'000'000'000 + 4095) / 4096 * 4096);
  EXPECT_EQ(exact.in_first_step.bytes, MiB(65));
  EXPECT_EQ(sum_of(exact), exact.peak_reserved);
}

TEST(HostUse, CountsCoresThatWorkAndThreadsKeepBusy) {
  const HostUse use = host_use(run_of(step(1))).front();
  ASSERT_EQ(use.cores.size(), 1u);
  const CoreUse& cores = use.cores.front();
  EXPECT_EQ(cores.cores, 16);
  EXPECT_DOUBLE_EQ(cores.most, 3) << "while the optimizer runs";
  EXPECT_NEAR(cores.mean_optimizer, 3 * 20 / 50.0, 1e-9);
  EXPECT_NEAR(cores.mean_threads, 30 / 50.0, 1e-9);
  EXPECT_EQ(cores.mean_memory_work, 0);
  EXPECT_NEAR(cores.mean, (60 + 30) / 50.0, 1e-9);
  EXPECT_EQ(cores.beyond, Duration{});
}

// Eight ranks with three threads each want 24 of 16 cores: the work lasts one and a half times as long.
TEST(HostUse, SaysHowLongMoreCoresAreWantedThanThereAre) {
  const memwall::Run run = run_of(step(8));
  ASSERT_EQ(run.result.end, ms(30) + ms(30));
  const CoreUse cores = host_use(run).front().cores.front();
  EXPECT_EQ(cores.ranks, 8u);
  EXPECT_DOUBLE_EQ(cores.most, 24);
  EXPECT_EQ(cores.beyond, ms(30));
  EXPECT_NEAR(cores.mean_optimizer, 24 * 30 / 60.0, 1e-9);
  EXPECT_NEAR(cores.mean_threads, 8 * 30 / 60.0, 1e-9);
}

TEST(HostUse, WaitingForTheDeviceKeepsNoCoreBusy) {
  TraceBuilder builder;
  builder.trace().name = "waiting";
  builder.trace().knowledge = {true, true, true, false, false};
  builder.trace().constants = {};
  builder.add_thread("main");
  builder.add_stream("compute", StreamRole::compute);
  const StorageId state = builder.add_storage(1000, StorageKind::optimizer_state, "host", "", true);
  EXPECT_EQ(state, 0u);
  Op kernel;
  kernel.kind = OpKind::kernel;
  kernel.duration = ms(90);
  builder.append(kernel);
  Op synchronize;
  synchronize.kind = OpKind::synchronize;
  synchronize.wait_for = WaitFor::device;
  synchronize.host_cost = ms(9);
  builder.append(synchronize);
  const HostUse use = host_use(run_of(std::move(builder).finish())).front();
  EXPECT_NEAR(use.cores.front().mean, 0.1, 1e-9) << "9 of 90 ms";
}

TEST(HostUse, IsEmptyWhereNothingLivesThere) {
  TraceBuilder builder;
  builder.trace().name = "empty";
  builder.add_thread("main");
  EXPECT_TRUE(host_use(run_of(std::move(builder).finish())).empty());
}

TEST(HostUse, IsInTheJsonOfASummary) {
  memwall::Run run = run_of(step(8));
  run.first_step = ms(1000);
  run.alone_step = ms(50);
  run.contended_steps = {ms(51), ms(52), ms(53), ms(54)};
  std::string json = to_json(summarize(run));
  std::erase_if(json, [](char c) { return c == ' ' || c == '\n'; });
  for (const char* part :
       {"\"first_step_time_s\":1,", "\"alone_step_time_s\":0.05,",
        "\"contention\":{\"links_shared_step_time_s\":0.051,\"memory_channels_shared_step_time_s\":0.052,"
        "\"cores_shared_step_time_s\":0.053,\"storage_shared_step_time_s\":0.054}",
        "\"hosts\":[{\"tier\":\"host\",\"ranks\":[0,1,2,3,4,5,6,7],\"hosts\":1,",
        "{\"kind\":\"optimizer_state\",\"page_locked\":true,\"bytes\":8000000000}",
        "{\"kind\":\"workspace\",\"page_locked\":false,\"bytes\":24000000}",
        "\"page_locked_in_first_step\":{\"calls\":1,\"bytes\":134217728}",
        "\"cores\":[{\"cores\":16,\"ranks\":8,\"most\":24,"})
    EXPECT_NE(json.find(part), std::string::npos) << part;
}

TEST(HostUse, OfARunFileIsThatOfItsRun) {
  const ScratchFolder folder;
  const memwall::Run run = run_of(step(8));
  write_run(run, folder / "run.h5");
  EXPECT_EQ(to_json(summarize(read_run(folder / "run.h5"))), to_json(summarize(run)));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
