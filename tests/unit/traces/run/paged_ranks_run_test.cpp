// What a run says of a pager's moves on several ranks: whose lane they stand in, and which route they took.
#include <gtest/gtest.h>

#include "tests/support/oldest_first_pager.h"
#include "tests/support/two_writes.h"
#include "traces/run/analysis/summary.h"
#include "traces/run/route_bytes.h"
#include "traces/run/run_index.h"
#include "traces/run/run_recorder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

memwall::Run paged_run() {
  OldestFirstPager pager(PagerClock::host);
  RunSettings settings;
  settings.allocator = "ideal";
  settings.pager_text = "oldest";
  settings.pager = &pager;
  return simulate_and_record(joined(two_writes(2), two_writes(3)), small_gpu(), settings);
}

TEST(PagedRanksRun, MovesStandInALaneOfTheirRank) {
  const memwall::Run run = paged_run();
  std::vector<std::pair<std::uint16_t, std::string>> pagers;
  for (const RunLane& lane : build_run_index(run).lanes)
    if (lane.kind == RunLaneKind::pager) pagers.emplace_back(lane.rank, lane.name);
  const std::vector<std::pair<std::uint16_t, std::string>> expected = {{0, "hbm to host"}, {1, "hbm rank 3 to host"}};
  EXPECT_EQ(pagers, expected);
}

TEST(PagedRanksRun, MovesOfAllRanksCountOnTheRoute) {
  const memwall::Run run = paged_run();
  const std::vector<Bytes> bytes = route_bytes(run);
  const Route* out = run.machine.one.route(run.machine.one.tier("hbm"), run.machine.one.tier("host"), false);
  EXPECT_EQ(bytes[static_cast<std::size_t>(out - run.machine.one.routes.data())], 12 * kGB);
  EXPECT_EQ(summarize(run).moves, 2u);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
