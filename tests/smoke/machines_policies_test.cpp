// Does every policy run on every machine, and does what comes out hang together?
#include <gtest/gtest.h>

#include "models/hw/machine_file.h"
#include "models/hw/pricer.h"
#include "models/hw/transfer.h"
#include "sim/error.h"
#include "sim/registry.h"
#include "sim/simulation.h"
#include "sim/trace_check.h"
#include "tests/support/gpt_trace.h"

namespace memwall {
namespace {

// At least one setting of each registered policy that rewrites.
const std::vector<std::string>& settings() {
  static const std::vector<std::string> all{
      "checkpoint:mode=full", "checkpoint:mode=sqrt", "checkpoint:mode=every,every=2", "offload:what=optimizer,to=host",
      "offload:what=activations,to=host", "offload:what=activations,to=nvme", "offload:what=activations,to=peer",
      "offload:what=parameters,to=host", "zero:stage=0,ranks=2", "zero:stage=1,ranks=2", "zero:stage=2,ranks=2",
      "zero:stage=3,ranks=2"};
  return all;
}

Trace step() {
  GptShape shape;
  shape.hidden = 256;
  shape.sequence = 64;
  shape.steps = 2;
  return gpt_step(shape);
}

class OnMachine : public ::testing::TestWithParam<std::string> {};

TEST_P(OnMachine, EveryPolicyRuns) {
  const Machine machine = load_machine(GetParam());
  const Trace plain = transferred(step(), nullptr, machine);
  const auto pricer = make_pricer(machine);
  const SimulationResult base = simulate(plain, machine, {});
  EXPECT_TRUE(base.fits);
  for (const std::string& text : settings()) {
    SCOPED_TRACE(text);
    const Trace changed = apply_rewriters(plain, {parse_policy(text)}, machine, *pricer);
    EXPECT_EQ(check(changed), std::vector<std::string>{});
    const SimulationResult result = simulate(changed, machine, {});
    EXPECT_EQ(result.steps.size(), 2u);
    EXPECT_GT(result.end, Duration{});
    EXPECT_GT(result.tiers.front().peak_allocated, 0);
  }
}

TEST_P(OnMachine, EveryPagerKeepsASmallGpuGoing) {
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
  for (const MachineSummary& m : list_machines()) names.push_back(m.name);
  return names;
}

std::string readable(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  for (char& c : name)
    if (c == '-') c = '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Smoke, OnMachine, ::testing::ValuesIn(machine_names()), readable);

TEST(Smoke, EveryRegisteredPolicyIsAmongThem) {
  for (const auto& [name, info] : policies()) {
    if (!info.make_rewriter) continue;
    const bool covered = std::any_of(settings().begin(), settings().end(),
                                     [&](const std::string& text) { return text.starts_with(name + ":"); });
    EXPECT_TRUE(covered) << name << " has no line in settings()";
  }
}

TEST(Smoke, ThreePoliciesComposeWhateverTheirOrder) {
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

}  // namespace
}  // namespace memwall
