// Two ranks that are paged at once: do their moves share what leads to the host, and the host's memory?
#include <gtest/gtest.h>

#include "sim/engine/simulation.h"
#include "sim/error.h"
#include "sim/machine/rank_machine.h"
#include "tests/support/oldest_first_pager.h"
#include "tests/support/two_writes.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

// ms that 6 GB take from hbm to host.
constexpr std::int64_t kAlone = 600;

SimulationResult paged(const Trace& trace, const Machine& machine, Pager& pager) {
  SimulationOptions options;
  options.allocator = "ideal";
  options.pager = &pager;
  return simulate(trace, machine, options);
}

class PagedRanks : public testing::TestWithParam<PagerClock> {};
INSTANTIATE_TEST_SUITE_P(Clocks, PagedRanks, testing::Values(PagerClock::host, PagerClock::device));

TEST_P(PagedRanks, MoveAtOnceOverLinksOfTheirOwn) {
  OldestFirstPager pager(GetParam());
  const SimulationResult result = paged(joined(two_writes(0), two_writes(1)), small_gpu(), pager);
  ASSERT_EQ(result.moves.size(), 2u);
  for (const MoveRecord& move : result.moves) EXPECT_EQ(move.end - move.start, microseconds(1000 * kAlone));
  EXPECT_EQ(result.moves[0].start, result.moves[1].start) << "each GPU has copy engines of its own";
  EXPECT_EQ(result.end, microseconds(1000 * (kAlone + 2)));
  EXPECT_TRUE(result.fits);
}

TEST_P(PagedRanks, ShareTheUplinkThatTheyHaveInCommon) {
  Machine machine = small_gpu();
  machine.links[static_cast<std::size_t>(machine.link("pcie_d2h"))].sharers = 2;
  OldestFirstPager pager(GetParam());
  const SimulationResult result = paged(joined(two_writes(0), two_writes(1)), machine, pager);
  ASSERT_EQ(result.moves.size(), 2u);
  for (const MoveRecord& move : result.moves) EXPECT_EQ(move.end - move.start, microseconds(1000 * (2 * kAlone)));
  const SimulationResult apart = paged(joined(two_writes(0), two_writes(2)), machine, pager);
  for (const MoveRecord& move : apart.moves) EXPECT_EQ(move.end - move.start, microseconds(1000 * kAlone));
}

TEST_P(PagedRanks, FillTheHostThatTheyHaveInCommon) {
  Machine machine = small_gpu();
  const auto host = static_cast<std::size_t>(machine.tier("host"));
  machine.tiers[host].capacity = 8 * kGB;
  OldestFirstPager pager(GetParam());
  const Trace trace = joined(two_writes(0), two_writes(1));
  const SimulationResult both = paged(trace, machine, pager);
  EXPECT_FALSE(both.fits) << "two times 6 GB leave for 8 GB";
  EXPECT_EQ(both.tiers[host].missing, 4 * kGB);
  machine.tiers[host].sharers = 1;
  EXPECT_TRUE(paged(trace, machine, pager).fits) << "each has a host of its own";
}

// A pager sees one rank's memory: a move of another's is refused.
TEST(PagedRanksMoves, OfAnotherRankAreRefused) {
  class Meddler final : public Pager {
   public:
    PagerClock clock() const override { return PagerClock::host; }
    std::vector<Move> make_room(int, Bytes, const PagerView& view) override {
      Move move{MoveKind::evict, 0, 1};
      view.each_movable([&](const ResidentStorage& oldest) {
        move.storage = oldest.storage < 2 ? 2 : 0;
        return false;
      });
      return {move};
    }
  } pager;
  EXPECT_THROW(paged(joined(two_writes(0), two_writes(1)), small_gpu(), pager), UsageError);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
