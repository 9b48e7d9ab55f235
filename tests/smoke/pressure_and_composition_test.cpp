// Does every pager keep a GPU going that is too small, on every machine, and do three policies compose?
#include <gtest/gtest.h>

#include <array>

#include "models/hw/machine_file.h"
#include "models/hw/pricer.h"
#include "models/hw/transfer.h"
#include "sim/policy/registry.h"
#include "sim/engine/simulation.h"
#include "tests/support/gpt_trace.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

Trace step() {
  GptShape shape;
  shape.hidden = 256;
  shape.sequence = 64;
  shape.steps = 2;
  return gpt_step(shape);
}

class SmallGpu : public ::testing::TestWithParam<std::string> {};

TEST_P(SmallGpu, EveryPagerKeepsASmallGpuGoing) {
  Machine machine = load_machine(GetParam());
  const Trace plain = transferred(step(), nullptr, machine);
  SimulationOptions options;
  options.allocator = "ideal";
  const SimulationResult base = simulate(plain, machine, options);
  machine.tiers.front().capacity = machine.tiers.front().unavailable + base.tiers.front().peak_allocated * 9 / 10;
  EXPECT_FALSE(simulate(plain, machine, options).fits);
  for (const auto& [name, info] : policies()) {
    if (!info.make_pager) continue;
    SCOPED_TRACE(name);
    const auto pager = info.make_pager(PolicyArguments(name, {}, info.parameters));
    options.pager = pager.get();
    const SimulationResult result = simulate(plain, machine, options);
    EXPECT_TRUE(result.fits);
    EXPECT_FALSE(result.moves.empty());
    EXPECT_GE(result.end, base.end);
  }
}

std::vector<std::string> machine_names() {
  std::vector<std::string> names;
  for (const Machine& m : whole_machines()) names.push_back(m.name);
  return names;
}

std::string readable(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  for (char& c : name)
    if (c == '-') c = '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Pressure, SmallGpu, ::testing::ValuesIn(machine_names()), readable);

TEST(Composition, ThreePoliciesComposeWhateverTheirOrder) {
  const Machine machine = load_machine("a100-sxm-40gb");
  const auto pricer = make_pricer(machine);
  const Trace plain = transferred(step(), nullptr, machine);
  const char* texts[] = {"zero:stage=1,ranks=2", "checkpoint:mode=full", "offload:what=optimizer,to=host"};
  std::vector<Time> ends;
  for (const auto& order : {std::array{0, 1, 2}, std::array{2, 1, 0}, std::array{1, 2, 0}}) {
    std::vector<PolicySpec> specs;
    for (const int i : order) specs.push_back(parse_policy(texts[i]));
    ends.push_back(simulate(apply_rewriters(plain, specs, machine, *pricer), machine, {}).end);
  }
  EXPECT_EQ(ends[0], ends[1]);
  EXPECT_EQ(ends[0], ends[2]);
}

// Another batch comes first, so that the others see the step as it will be.
TEST(Composition, AnotherBatchIsTheStepThatTheOthersChange) {
  const Machine machine = load_machine("a100-sxm-40gb");
  const auto pricer = make_pricer(machine);
  const Trace plain = transferred(step(), nullptr, machine);
  const auto apply = [&](const Trace& trace, const std::vector<std::string>& texts) {
    std::vector<PolicySpec> specs;
    for (const std::string& text : texts) specs.push_back(parse_policy(text));
    return apply_rewriters(trace, specs, machine, *pricer);
  };
  const std::vector<std::string> others = {"zero:stage=2,ranks=2", "checkpoint:mode=full",
                                           "offload:what=optimizer,to=host"};
  const Trace together = apply(plain, {others[0], others[1], "batch:6", others[2]});
  const SimulationResult a = simulate(together, machine, {}),
                         b = simulate(apply(apply(plain, {"batch:6"}), others), machine, {});
  EXPECT_EQ(a.end, b.end);
  EXPECT_EQ(a.tiers.front().peak_allocated, b.tiers.front().peak_allocated);
  EXPECT_GT(a.tiers.front().peak_allocated, simulate(apply(plain, others), machine, {}).tiers.front().peak_allocated);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
