// Does scaling say what it covers, and do several scales together what one with all of their factors does?
#include "study/scale_text.h"

#include <gtest/gtest.h>

#include "sim/error.h"
#include "tests/support/gpt_trace.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

std::vector<ScaleFactors> of(const std::vector<std::string>& texts) { return combined(parse_scales(texts)); }

void expect_alike(const std::vector<std::string>& several, const std::string& one) {
  const std::vector<ScaleFactors> a = of(several), b = of({one});
  ASSERT_EQ(a.size(), 1u);
  EXPECT_DOUBLE_EQ(a[0].kernels, b[0].kernels);
  EXPECT_DOUBLE_EQ(a[0].copies, b[0].copies);
  EXPECT_DOUBLE_EQ(a[0].host, b[0].host);
  EXPECT_EQ(a[0].collectives, b[0].collectives);
  EXPECT_EQ(a[0].rank, b[0].rank);
}

TEST(ScaleText, SeveralAreAsOne) {
  expect_alike({"kernels=2", "host=0.5"}, "kernels=2,host=0.5");
  expect_alike({"kernels=2", "kernels=1.5"}, "kernels=3");
  expect_alike({"copies=2,host=3", "host=2"}, "copies=2,host=6");
  // What is said of collectives holds whichever comes first: they do not follow the kernels any more.
  expect_alike({"kernels=2", "collectives=3"}, "kernels=2,collectives=3");
  expect_alike({"collectives=3", "kernels=2"}, "kernels=2,collectives=3");
  expect_alike({"collectives=3", "collectives=2"}, "collectives=6");
}

TEST(ScaleText, RanksStayApart) {
  const std::vector<ScaleFactors> all = of({"kernels=2", "kernels=3,rank=1", "kernels=2,rank=1", "host=2"});
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].rank, std::nullopt);
  EXPECT_EQ(all[0].kernels, 2);
  EXPECT_EQ(all[0].host, 2);
  EXPECT_EQ(all[1].rank, 1u);
  EXPECT_EQ(all[1].kernels, 6);
}

TEST(ScaleText, DurationsAreThoseOfTheProduct) {
  const Trace step = gpt_step({});
  const Trace twice = scaled(step, of({"kernels=2", "kernels=1.5"})[0]), once = scaled(step, of({"kernels=3"})[0]);
  for (OpId id = 0; id < step.ops.size(); ++id) EXPECT_EQ(twice.ops[id].duration, once.ops[id].duration);
}

TEST(ScaleText, SaysWhatEachFactorCovers) {
  EXPECT_EQ(coverage_text(of({"kernels=1.1"})[0]),
            "kernels x 1.1 (kernels, memsets, and collectives that meet no other rank in the trace)");
  EXPECT_EQ(coverage_text(of({"kernels=1.1,collectives=1,rank=2"})[0]),
            "kernels x 1.1 (kernels and memsets) of rank 2");
  EXPECT_EQ(coverage_text(of({"host=1"})[0]), "nothing");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
