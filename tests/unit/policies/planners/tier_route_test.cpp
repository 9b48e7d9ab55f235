// Which way does a copy take to a tier, and when? By hand: 10 GB/s to the host and back, storage writes 2 and reads 4.
#include "policies/planners/tier_route.h"

#include <gtest/gtest.h>

#include "sim/error.h"
#include "tests/support/step_program.h"
#include "tests/support/test_machine.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr Bytes kGigabyte = 1'000'000'000;

TEST(TierRoute, StorageIsReachedThroughTheHost) {
  const Machine machine = test_machine();
  const TierRoute host = TierRoute::required("test", machine, "host"),
                  nvme = TierRoute::required("test", machine, "nvme");
  EXPECT_EQ(host.style().through, "");
  EXPECT_EQ(nvme.style().through, "host");
  EXPECT_EQ(nvme.style().tier_class, TierClass::storage);
  EXPECT_EQ(TierRoute::required("test", machine, "peer_hbm").style().through, "") << "straight";
  EXPECT_DOUBLE_EQ(host.rate_out(machine), 10e9);
  EXPECT_DOUBLE_EQ(nvme.rate_out(machine), 2e9);
}

TEST(TierRoute, LegsFollowEachOther) {
  StepProgram p;
  Op op;
  op.duration = microseconds(4'000'000);
  p.op("f", {}, {}, op);
  const Trace step = std::move(p).finish();
  const Machine machine = test_machine();
  const StepProfile profile(step, machine);
  Ledger ledger(profile);
  const TierRoute nvme = TierRoute::required("test", machine, "nvme");
  EXPECT_EQ(nvme.alone_out(ledger, kGigabyte), microseconds(600'000));
  EXPECT_EQ(nvme.alone_back(ledger, kGigabyte), microseconds(350'000));
  const auto out = nvme.earliest_out(ledger, kGigabyte, Time{});
  const auto back = nvme.latest_back(ledger, kGigabyte, microseconds(4'000'000));
  ASSERT_TRUE(out && back);
  EXPECT_EQ(out->legs.size(), 2u);
  EXPECT_NEAR(to_seconds(out->end()), 0.6, 0.002);
  EXPECT_NEAR(to_seconds(back->begin()), 3.65, 0.002);
  // The next write waits for this one.
  nvme.reserve_out(ledger, kGigabyte, *out);
  EXPECT_NEAR(to_seconds(nvme.earliest_out(ledger, kGigabyte, Time{})->end()), 1.1, 0.003);
}

TEST(TierRoute, WhatIsMissingIsNamed) {
  Machine machine = test_machine();
  EXPECT_FALSE(TierRoute::find(machine, "cxl"));
  EXPECT_THROW(TierRoute::required("test", machine, "cxl"), UsageError);
  EXPECT_FALSE(TierRoute::find(machine, "hbm")) << "no other place";
  std::erase_if(machine.routes, [](const Route& route) { return route.engine == 4; });
  EXPECT_FALSE(TierRoute::find(machine, "nvme")) << "there is no way to write";
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
