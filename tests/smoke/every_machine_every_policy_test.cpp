// Does every machine run every policy on a tiny step at all? And does anything impossible come out?
#include <gtest/gtest.h>

#include "models/hw/machine_file.h"
#include "models/hw/pricer.h"
#include "models/hw/transfer.h"
#include "policies/solver/linear_program.h"
#include "sim/engine/simulation.h"
#include "sim/error.h"
#include "sim/policy/registry.h"
#include "sim/trace/trace_check.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/policy_calls.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

TEST(Smoke, EveryPolicyIsListedHere) {
  for (const auto& [name, info] : policies()) EXPECT_TRUE(policy_calls().contains(name)) << "add a call of '" << name << "'";
}

class EveryMachine : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryMachine, RunsEveryPolicy) {
  const Machine machine = load_machine(GetParam());
  const auto pricer = make_pricer(machine);
  GptShape shape;
  shape.origin = Origin::modelled;
  shape.layers = 4;
  shape.hidden = 64;
  const Trace step = transferred(gpt_step(shape), nullptr, machine);
  for (const auto& [name, calls] : policy_calls()) {
    if (name == "checkmate" && !LinearProgram::is_available()) continue;
    for (const std::string& call : calls) {
      SCOPED_TRACE(call);
      const PolicySpec spec = parse_policy(call);
      SimulationOptions options;
      const auto pager = spec.info->make_pager ? spec.info->make_pager(spec.arguments) : nullptr;
      options.pager = pager.get();
      // What a machine lacks (a second GPU, a peer, NVMe) is refused in a sentence, never a crash.
      Trace rewritten;
      try {
        rewritten = pager ? step : apply_rewriters(step, {spec}, machine, *pricer);
      } catch (const UsageError& error) {
        EXPECT_GT(std::string(error.what()).size(), 30u);
        EXPECT_NE(std::string(error.what()).find(machine.name), std::string::npos) << error.what();
        continue;
      }
      EXPECT_EQ(check(rewritten), std::vector<std::string>{});
      const SimulationResult result = simulate(rewritten, machine, options);
      EXPECT_GT(result.end, Time{});
      EXPECT_TRUE(result.fits);
      for (const TierResult& tier : result.tiers) EXPECT_LE(tier.peak_usage.requested, tier.peak_allocated);
    }
  }
}

// Of the nodes that are made of another machine two: they take what their bases take.
std::vector<std::string> machine_names() {
  std::vector<std::string> names{"aws-g5-48xlarge", "dgx-a100-80gb"};
  for (const Machine& machine : whole_machines()) names.push_back(machine.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Machines, EveryMachine, ::testing::ValuesIn(machine_names()), [](const auto& machine) {
  std::string name = machine.param;
  for (char& c : name) c = c == '-' ? '_' : c;
  return name;
});

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
