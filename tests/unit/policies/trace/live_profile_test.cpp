// Is the highest of the live bytes what adding them up op by op says, after each change?
#include "policies/trace/live_profile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/support/gpt_trace.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

std::vector<Bytes> live_bytes_of(const Trace& trace, Bytes& at_start) {
  for (const Storage& storage : trace.storages)
    if (storage.preexisting && trace.places[storage.place] == "hbm") at_start += storage.bytes;
  std::vector<Bytes> live;
  Bytes now = at_start;
  for (const Op& op : trace.ops) {
    const bool counts = (op.kind == OpKind::alloc || op.kind == OpKind::free) &&
                        trace.places[trace.storages[op.target].place] == "hbm";
    if (counts) now += op.kind == OpKind::alloc ? trace.storages[op.target].bytes : -trace.storages[op.target].bytes;
    live.push_back(now);
  }
  return live;
}

TEST(LiveProfile, IsWhatAddingUpSays) {
  const Trace trace = gpt_step({.layers = 2});
  LiveProfile profile(trace);
  Bytes at_start = 0;
  std::vector<Bytes> live = live_bytes_of(trace, at_start);
  const auto highest = [&] { return std::max(at_start, *std::max_element(live.begin(), live.end())); };
  ASSERT_EQ(profile.peak(), highest());
  std::mt19937_64 random(1);
  for (int round = 0; round < 3'000; ++round) {
    const auto first = static_cast<OpId>(random() % live.size()), last = static_cast<OpId>(random() % live.size());
    const Bytes bytes = static_cast<Bytes>(random() % (1 << 30)) - (1 << 29);
    profile.add(first, last, bytes);  // nothing where first > last
    for (OpId id = first; id <= last && first <= last; ++id) live[id] += bytes;
    ASSERT_EQ(profile.peak(), highest()) << round;
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
