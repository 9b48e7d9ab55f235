// Does the ledger give each copy what links have left, and no more? In closed form: a step of 1 s, 10 GB/s each way.
#include "policies/profile/ledger.h"

#include <gtest/gtest.h>

#include "tests/support/step_program.h"
#include "tests/support/test_machine.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr Bytes kGigabyte = 1'000'000'000;
constexpr Duration kSecond = microseconds(1'000'000);
constexpr Duration kSlot = kSecond / 1000;

Trace one_second(Bytes copied = 0) {
  StepProgram p;
  Op op;
  op.duration = kSecond;
  if (copied > 0) {
    const StorageId on_host = p.builder().add_storage(copied, StorageKind::input, "host", "host", true);
    const StorageId on_device = p.preexisting(copied, StorageKind::input, "device");
    Op copy = p.here(OpKind::copy);
    copy.bytes = copied;
    copy.duration = from_seconds(static_cast<double>(copied) / 10e9);
    copy.from = p.builder().trace().place("host");
    copy.to = p.builder().trace().place("hbm");
    copy.stream = p.builder().add_stream("copies", StreamRole::copy);
    const Use uses[] = {{on_host, TraceBuilder::kLatest, Access::read}, {on_device, 0, Access::write}};
    p.builder().append(copy, uses);
  }
  p.op("f", {}, {}, op);
  return std::move(p).finish();
}

struct OneSecond {
  explicit OneSecond(Machine of = test_machine(), Bytes copied = 0, std::uint32_t ranks = 1)
      : machine(std::move(of)), trace(one_second(copied)) {
    trace.ranks = ranks;
    profile.emplace(trace, machine);
    device = machine.tier("hbm"), host = machine.tier("host");
  }
  Machine machine;
  Trace trace;
  std::optional<StepProfile> profile;
  int device = 0, host = 0;
};

void expect_near(Time found, Time expected) {
  EXPECT_LE(std::abs((found - expected).count()), 2 * kSlot.count()) << to_seconds(found) << " s";
}

TEST(Ledger, CopiesFollowEachOtherAndDirectionsDoNotShare) {
  OneSecond s;
  Ledger ledger(*s.profile, 1000);
  for (int i = 0; i < 10; ++i) {
    const auto span = ledger.earliest(s.device, s.host, kGigabyte, Time{});
    ASSERT_TRUE(span) << i;
    expect_near(span->end, kSecond / 10 * (i + 1));
    ledger.reserve(s.device, s.host, kGigabyte, *span);
  }
  EXPECT_FALSE(ledger.earliest(s.device, s.host, kGigabyte / 10, Time{})) << "ten copies fill the second";
  EXPECT_NEAR(ledger.load(static_cast<std::size_t>(s.machine.link("pcie_d2h"))), 1, 0.01);
  const auto back = ledger.earliest(s.host, s.device, kGigabyte, Time{});
  ASSERT_TRUE(back);
  expect_near(back->end, kSecond / 10);
}

TEST(Ledger, LatestEndsAtTheDeadlineAndTheNextBeforeIt) {
  OneSecond s;
  Ledger ledger(*s.profile, 1000);
  const auto last = ledger.latest(s.host, s.device, kGigabyte, kSecond / 2);
  ASSERT_TRUE(last);
  expect_near(last->begin, kSecond / 10 * 4);
  EXPECT_EQ(last->end, kSecond / 2);
  ledger.reserve(s.host, s.device, kGigabyte, *last);
  const auto other = ledger.latest(s.host, s.device, kGigabyte, kSecond / 2);
  ASSERT_TRUE(other);
  expect_near(other->begin, kSecond / 10 * 3);
  EXPECT_FALSE(ledger.latest(s.host, s.device, 5 * kGigabyte, kSecond / 2)) << "4 GB are left before";
}

TEST(Ledger, TheStepsOwnCopiesComeFirst) {
  OneSecond s(test_machine(), 4 * kGigabyte);  // 0.4 s
  const Ledger ledger(*s.profile, 1000);
  const auto span = ledger.earliest(s.host, s.device, kGigabyte, Time{});
  ASSERT_TRUE(span);
  expect_near(span->end, kSecond / 2);
}

TEST(Ledger, RanksBehindOneLinkHaveAPartOfItEach) {
  Machine machine = test_machine();
  for (Link& link : machine.links) link.sharers = link.name.starts_with("pcie") ? 4 : 1;
  OneSecond alone(machine, 0, 1), four(machine, 0, 4);
  const Ledger one(*alone.profile, 1000), shared(*four.profile, 1000);
  expect_near(one.earliest(alone.device, alone.host, kGigabyte, Time{})->end, kSecond / 10);
  expect_near(shared.earliest(four.device, four.host, kGigabyte, Time{})->end, kSecond / 10 * 4);
}

TEST(Ledger, PinnedMemoryOfTheHostIsRoundedUp) {
  Machine machine = test_machine();
  machine.tiers[static_cast<std::size_t>(machine.tier("host"))].capacity = GiB(4);
  OneSecond s(machine);
  Ledger ledger(*s.profile, 1000);
  EXPECT_TRUE(ledger.has_room(s.host, GiB(3), Time{}, kSecond)) << "4 GiB";
  ledger.hold(s.host, GiB(1) + 1, Time{}, kSecond / 2);  // takes 2 GiB
  EXPECT_FALSE(ledger.has_room(s.host, GiB(2) + 1, Time{}, kSecond / 10));
  EXPECT_TRUE(ledger.has_room(s.host, GiB(2), Time{}, kSecond / 10));
  EXPECT_TRUE(ledger.has_room(s.host, GiB(3), kSecond / 10 * 6, kSecond)) << "it is given back by then";
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
