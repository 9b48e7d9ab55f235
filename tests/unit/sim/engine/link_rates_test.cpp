#include <gtest/gtest.h>

#include <vector>

#include "sim/engine/simulation.h"
#include "sim/trace/trace_builder.h"
#include "tests/support/test_machine.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

class Rates : public Observer {
 public:
  void on_link_rate(Time, int, double rate) override { seen.push_back(rate); }
  std::vector<double> seen;
};

// An activity takes the place of one that ended; nothing of that may show in what is told of it.
TEST(LinkRates, EveryFlowIsToldWithItsOwnRateWhenItBegins) {
  TraceBuilder builder;
  builder.trace().knowledge.timing = true;
  builder.add_thread("main");
  builder.add_stream("compute", StreamRole::compute);
  Op kernel;
  kernel.kind = OpKind::kernel;
  kernel.duration = microseconds(10);
  for (const Bytes bytes : {3'000'000, 1'000'000, 2'000'000}) {
    kernel.bytes = bytes;
    builder.append(kernel);
  }
  const Trace trace = std::move(builder).finish();
  Rates rates;
  simulate(trace, test_machine(), {.observer = &rates});
  const std::vector<double> expected = {3e11, 0, 1e11, 0, 2e11, 0};
  ASSERT_EQ(rates.seen.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(rates.seen[i], expected[i], 1) << i;
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
