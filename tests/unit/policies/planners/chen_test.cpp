// Does Chen's rule keep what grows with the square root of the layers, for one more forward? On equal layers, counted.
#include <gtest/gtest.h>

#include "tests/support/rewrite_checks.h"
#include "tests/support/step_program.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr Bytes kBlock = 1024;

// Layers of two ops, each of 1 us with a result of 1,024 bytes that backward reads.
Trace layers(std::size_t count, Bytes first = kBlock) {
  StepProgram p;
  StorageId x = p.preexisting(kBlock, StorageKind::input, "x");
  std::vector<StorageId> saved;
  for (std::size_t i = 0; i < count; ++i) {
    const StorageId h = p.make(i == 0 ? first : kBlock, "h");
    p.op("norm", {x}, {h});
    const StorageId y = p.make(kBlock, "y");
    p.op("linear", {h}, {y});
    saved.insert(saved.end(), {h, y});
    x = y;
  }
  p.backward();
  for (std::size_t i = saved.size(); i-- > 0;) {
    p.op("back", {saved[i]}, {});
    p.drop(saved[i]);
  }
  p.optimizer();
  p.op("update", {}, {});
  return std::move(p).finish();
}

Bytes peak_after(const Trace& step, const std::string& policy) { return activation_peak(rewritten(step, policy)); }

TEST(Chen, SegmentsOfTheRootKeepTwiceTheRoot) {
  const Trace step = layers(16);
  EXPECT_EQ(activation_peak(step), 32 * kBlock);
  // 4 segments of 4 layers: the outputs of three stay, and of one segment at a time its 8 are there.
  EXPECT_EQ(peak_after(step, "chen:mode=sqrt"), (3 + 8) * kBlock);
  const Trace after = rewritten(step, "chen:mode=sqrt");
  EXPECT_EQ(count(after, Phase::recompute), 29u) << "one more forward, without the ops that made what stays";
}

TEST(Chen, MemoryGrowsWithTheRootOfTheLayers) {
  for (const char* policy : {"chen:mode=sqrt", "chen"}) {
    const auto of_16 = static_cast<double>(peak_after(layers(16), policy));
    const auto of_256 = static_cast<double>(peak_after(layers(256), policy));
    EXPECT_LT(of_256 / of_16, 5) << policy << ": 16 times the layers, 4 times the memory";
    EXPECT_GT(of_256 / of_16, 3) << policy;
  }
}

TEST(Chen, AtMostOneMoreForward) {
  const Trace step = layers(100);
  for (const char* policy : {"chen:mode=sqrt", "chen"}) {
    const Trace after = rewritten(step, policy);
    EXPECT_LE(device_time(after, Phase::recompute), device_time(step, Phase::forward)) << policy;
    EXPECT_GT(device_time(after, Phase::recompute), device_time(step, Phase::forward) * 8 / 10) << policy;
    expect_same_contents(step, after);
  }
}

TEST(Chen, DoesNotComputeAgainWhatAnotherPolicyHasMoved) {
  const Machine machine = test_machine();
  const auto pricer = test_pricer(machine);
  const std::vector<PolicySpec> both = {parse_policy("offload:what=activations,to=host,min_bytes=0"),
                                        parse_policy("chen")};
  try {
    apply_rewriters(layers(16), both, machine, *pricer);
    FAIL() << "taken";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("another policy copies to host"), std::string::npos) << error.what();
  }
}

TEST(Chen, GreedyCutsBehindWhatIsLarge) {
  // The first layer holds as much as all others: by number it lies in a segment of four, by bytes it is one alone.
  const Trace step = layers(16, 16 * kBlock);
  EXPECT_LT(peak_after(step, "chen:mode=greedy"), peak_after(step, "chen:mode=sqrt"));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
