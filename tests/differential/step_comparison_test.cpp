// Does the comparison notice what differs? Of committed captures of planned steps (traces/samples/captures/planned),
// which a policy makes of the plain step to the byte: each of what the comparison looks at, changed, is told.
#include "tests/differential/step_comparison.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>

#include "models/hw/machine_file.h"
#include "models/hw/modelled_step.h"
#include "models/hw/pricer.h"
#include "models/workload/import/mwc/mwc_import.h"
#include "tests/differential/causes.h"
#include "tests/support/rewrite_checks.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

Trace committed_capture(const std::string& name) {
  return read_mwc(std::filesystem::path(MEMWALL_SOURCE) / "traces/samples/captures/planned" / (name + ".mwc.gz")).trace;
}

StepMemory made_of(const std::string& base, const std::vector<std::string>& policies) {
  const Machine machine = load_machine("h100-sxm-80gb");
  const auto pricer = make_pricer(machine);
  std::vector<PolicySpec> specs;
  for (const std::string& policy : policies) specs.push_back(parse_policy(policy));
  return step_memory(apply_rewriters(modelled_on(committed_capture(base), machine), specs, machine, *pricer));
}

// These policies were not asked for what PyTorch executes (--executable=torch): they give back in forward what
// variables of the program still name.
bool is_named_by_variables(const Difference& d) {
  const std::size_t first = std::min(d.simulated.to, d.executed.to);
  return d.kind == DifferenceKind::storage_lives_longer && d.part == StepPart::forward && d.ends_in_forward &&
         d.simulated.used_until <= first && d.executed.used_until <= first && d.kernel.phase == Phase::forward;
}

class CommittedPlan : public testing::Test {
 protected:
  const std::vector<std::string> policies = {"checkpoint:mode=full",
                                             "offload:what=activations,to=host,min_bytes=65536,prefetch=1"};
  const StepMemory simulated = made_of("gpt-base", policies);
  const StepMemory executed = step_memory(committed_capture("gpt-full_and_offload"));

  std::vector<Difference> unexplained(const StepMemory& ran) const {
    std::vector<Difference> all = differences(simulated, ran);
    std::erase_if(all, [](const Difference& d) { return cause_of(d) != nullptr || is_named_by_variables(d); });
    return all;
  }

  // With one thing changed: is a difference of that kind left that no cause explains?
  bool tells(DifferenceKind kind, const std::function<void(StepMemory&)>& change) const {
    StepMemory changed = executed;
    change(changed);
    const std::vector<Difference> all = unexplained(changed);
    return std::any_of(all.begin(), all.end(), [&](const Difference& d) { return d.kind == kind; });
  }

  StorageSpan& of_backward(StepMemory& step) const {
    return *std::find_if(step.lives.begin(), step.lives.end(), [&](const StorageSpan& life) {
      return life.maker == StorageSpan::Maker::kernel && life.from > step.backward + 20 && life.to < step.optimizer &&
             step.kernels[life.maker_number].phase == Phase::backward;
    });
  }
};

TEST_F(CommittedPlan, DiffersByNamedCausesAlone) {
  for (const Difference& d : unexplained(executed)) ADD_FAILURE() << text_of(d);
}

TEST_F(CommittedPlan, AKernelMoreOrLessIsTold) {
  EXPECT_TRUE(tells(DifferenceKind::kernel_left_out, [](StepMemory& s) { s.kernels.erase(s.kernels.begin() + 7); }));
  EXPECT_TRUE(tells(DifferenceKind::kernel_added,
                    [](StepMemory& s) { s.kernels.insert(s.kernels.begin() + 40, s.kernels[39]); }));
  EXPECT_TRUE(tells(DifferenceKind::kernel_of_other, [](StepMemory& s) { s.kernels[7].module = "elsewhere"; }));
  EXPECT_TRUE(tells(DifferenceKind::kernel_of_other, [](StepMemory& s) {
    std::find_if(s.kernels.begin(), s.kernels.end(), [](const StepKernel& k) {
      return k.phase == Phase::recompute;
    })->repeats = "h.0 aten::add 7";
  }));
}

TEST_F(CommittedPlan, AStorageThatLivesOtherwiseIsTold) {
  EXPECT_TRUE(tells(DifferenceKind::storage_lives_longer, [&](StepMemory& s) { ++of_backward(s).to; }));
  EXPECT_TRUE(tells(DifferenceKind::storage_ends_earlier, [&](StepMemory& s) { --of_backward(s).to; }));
  EXPECT_TRUE(tells(DifferenceKind::storage_begins_earlier, [&](StepMemory& s) { --of_backward(s).from; }));
  EXPECT_TRUE(tells(DifferenceKind::storage_begins_later, [&](StepMemory& s) { ++of_backward(s).from; }));
  EXPECT_TRUE(tells(DifferenceKind::storage_left_out, [&](StepMemory& s) { of_backward(s).bytes += 4; }));
  EXPECT_TRUE(tells(DifferenceKind::storage_added, [&](StepMemory& s) { of_backward(s).bytes += 4; }));
  EXPECT_TRUE(tells(DifferenceKind::storage_of_other_kind,
                    [&](StepMemory& s) { of_backward(s).kind = StorageKind::optimizer_state; }));
  // In forward a storage may live longer than it is used, and no shorter.
  EXPECT_TRUE(tells(DifferenceKind::storage_ends_earlier, [](StepMemory& s) {
    --std::find_if(s.lives.begin(), s.lives.end(), [](const StorageSpan& life) {
        return life.maker == StorageSpan::Maker::kernel && life.to > life.from + 1;
      })->to;
  }));
}

TEST_F(CommittedPlan, ACopyMoreOrElsewhereIsTold) {
  ASSERT_GT(executed.out.size(), 2u);
  EXPECT_TRUE(tells(DifferenceKind::copies_out, [](StepMemory& s) { s.out.pop_back(); }));
  EXPECT_TRUE(tells(DifferenceKind::copies_out, [](StepMemory& s) { s.out[0].bytes += 1; }));
  EXPECT_TRUE(tells(DifferenceKind::copies_back, [](StepMemory& s) { s.back.pop_back(); }));
  EXPECT_TRUE(tells(DifferenceKind::copy_issued_elsewhere, [](StepMemory& s) { ++s.back[1].before; }));
  EXPECT_TRUE(tells(DifferenceKind::copy_issued_elsewhere, [](StepMemory& s) { --s.out[1].before; }));
}

TEST_F(CommittedPlan, APeakBetweenKernelsIsTold) {
  StepMemory changed = simulated;
  changed.peak[1] += 512;
  const std::vector<Difference> all = differences(simulated, changed);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].kind, DifferenceKind::peak);
  EXPECT_EQ(cause_of(all[0]), nullptr);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
