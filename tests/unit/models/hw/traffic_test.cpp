// Is the traffic of a measured kernel never more than HBM can move in its time?
#include "models/hw/traffic.h"

#include <gtest/gtest.h>

#include "tests/support/test_machine.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

Trace one_kernel(Bytes bytes, Origin origin = Origin::measured) {
  Trace trace;
  Op op;
  op.kind = OpKind::kernel;
  op.origin = origin;
  op.duration = microseconds(10);  // 1 TB/s moves 10 MB in it
  op.bytes = bytes;
  trace.ops.push_back(op);
  return trace;
}

TEST(Traffic, IsCappedAtTimeTimesBandwidth) {
  const Trace t = with_possible_traffic(one_kernel(25'000'000), test_machine());
  EXPECT_EQ(t.ops[0].bytes, 10'000'000);
  ASSERT_EQ(t.notes.size(), 1u);
  EXPECT_NE(t.notes[0].find("of 1 kernel are"), std::string::npos);
}

TEST(Traffic, BelowTheBandwidthStaysAsItIs) {
  const Trace t = with_possible_traffic(one_kernel(4'000'000), test_machine());
  EXPECT_EQ(t.ops[0].bytes, 4'000'000);
  EXPECT_TRUE(t.notes.empty());
}

// Captures round what took less than a microsecond to no time at all: the bytes of a memset are known all the same.
TEST(Traffic, OfAMemsetIsWhatWasRecorded) {
  Trace trace = one_kernel(4);
  trace.ops[0].kind = OpKind::memset;
  trace.ops[0].duration = Duration{};
  const Trace t = with_possible_traffic(trace, test_machine());
  EXPECT_EQ(t.ops[0].bytes, 4);
  EXPECT_TRUE(t.notes.empty());
}

TEST(Traffic, AModelledKernelIsTheModelsBusiness) {
  EXPECT_EQ(with_possible_traffic(one_kernel(25'000'000, Origin::modelled), test_machine()).ops[0].bytes, 25'000'000);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
