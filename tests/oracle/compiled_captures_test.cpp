// Does the policy `compile` make of a captured step what torch.compile makes of its program? Captures of both on fake
// tensors (traces/samples/captures/recipes/make_recipes.py): Inductor's own kernels and buffers beside the policy's.
// Products and attention are the same to the byte; of the rest the differences that docs/recipes.md states are
// measured.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "models/hw/machine_file.h"
#include "models/hw/modelled_step.h"
#include "models/hw/pricer.h"
#include "models/workload/import/mwc/mwc_import.h"
#include "sim/error.h"
#include "sim/policy/registry.h"
#include "sim/trace/trace_check.h"
#include "tests/support/step_memory.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

struct Work {
  int kernels = 0;
  Bytes bytes = 0;
  double flops = 0;
  bool operator==(const Work&) const = default;
};

void PrintTo(const Work& w, std::ostream* out) { *out << w.kernels << " kernels, " << w.bytes << " B, " << w.flops; }

Trace captured(const std::string& name) {
  const auto folder = std::filesystem::path(MEMWALL_SOURCE) / "traces/samples/captures/recipes";
  return modelled_on(read_mwc(folder / (name + ".mwc.gz")).trace, load_machine("h100-sxm-80gb"));
}

Trace with_policy(const std::string& name, const std::string& policy) {
  const Machine machine = load_machine("h100-sxm-80gb");
  return apply_rewriters(captured(name), {parse_policy(policy)}, machine, *make_pricer(machine));
}

bool is_of_model(const Op& op) { return op.kind == OpKind::kernel && op.phase != Phase::optimizer; }

// Of forward and backward; recomputation counts as backward, where the compiler merges it with what asks for it.
std::map<std::string, Work> work(const Trace& trace) {
  std::map<std::string, Work> sums;
  for (const Op& op : trace.ops) {
    if (!is_of_model(op)) continue;
    Work& sum = sums[std::string(op.phase == Phase::forward ? "forward " : "backward ") +
                     std::string(to_string(op.operator_class))];
    sum.kernels += op.kernels;
    sum.bytes += op.bytes;
    sum.flops += op.flops;
  }
  return sums;
}

struct CompiledCase {
  const char* network;
  const char* capture;
  const char* policy;
  double traffic;  // of the policy's elementwise ops, normalizations, reductions, ... by Inductor's, at most
};

void PrintTo(const CompiledCase& c, std::ostream* out) { *out << c.network << "_" << c.capture; }

class CompiledCaptures : public testing::TestWithParam<CompiledCase> {};

bool of_libraries(const std::string& key) { return key.ends_with("gemm") || key.ends_with("attention"); }

Work rest(const Trace& trace) {
  Work sum;
  for (const auto& [key, part] : work(trace)) {
    if (of_libraries(key)) continue;
    sum.kernels += part.kernels;
    sum.bytes += part.bytes;
  }
  return sum;
}

double ratio(double found, double expected) { return found / expected; }

TEST_P(CompiledCaptures, HaveTheSameProductsAndAttention) {
  const CompiledCase c = GetParam();
  const auto found = work(with_policy(std::string(c.network) + "-base", c.policy)),
             expected = work(captured(std::string(c.network) + "-" + c.capture));
  int compared = 0;
  for (const auto& [key, part] : expected) {
    if (!of_libraries(key)) continue;
    EXPECT_EQ(found.at(key), part) << key;
    ++compared;
  }
  EXPECT_EQ(compared, 4);
}

// The bounds are what was measured, rounded up; docs/recipes.md states the figures and their causes.
TEST_P(CompiledCaptures, KeepAndMoveAboutAsMuch) {
  const CompiledCase c = GetParam();
  const Trace eager = captured(std::string(c.network) + "-base"),
              found = with_policy(std::string(c.network) + "-base", c.policy),
              expected = captured(std::string(c.network) + "-" + c.capture);
  EXPECT_EQ(check(expected), std::vector<std::string>{});
  const Work a = rest(found), b = rest(expected), without = rest(eager);
  const auto moved = ratio(static_cast<double>(a.bytes), static_cast<double>(b.bytes));
  EXPECT_LE(moved, c.traffic);
  EXPECT_GE(moved, 0.95);
  EXPECT_NEAR(ratio(a.kernels, b.kernels), 1, 0.33);
  const StepMemory m = step_memory(found), n = step_memory(expected), e = step_memory(eager);
  EXPECT_NEAR(ratio(static_cast<double>(m.saved), static_cast<double>(n.saved)), 1, 0.03);
  const auto peaks = ratio(static_cast<double>(peak(m)), static_cast<double>(peak(n)));
  EXPECT_LE(peaks, 1.07);
  EXPECT_GE(peaks, 0.99);
  // The same comparison tells the step that is not compiled from the one that is.
  EXPECT_GT(ratio(static_cast<double>(without.bytes), static_cast<double>(b.bytes)), c.traffic + 0.1);
  EXPECT_GT(e.saved, n.saved);
  EXPECT_GT(peak(e), peak(n));
}

// What changes kernels one by one has no place in a program that a compiler wrote.
TEST(CompiledSteps, RefuseWhatWouldChangeTheirKernels) {
  for (const char* const policy : {"compile", "attention:math", "precision:fp8"}) {
    SCOPED_TRACE(policy);
    try {
      with_policy("gpt-compiled", policy);
      ADD_FAILURE() << "it was taken";
    } catch (const UsageError& error) {
      EXPECT_NE(std::string(error.what()).find("compiled"), std::string::npos) << error.what();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, CompiledCaptures,
                         testing::Values(CompiledCase{"gpt", "compiled", "compile", 1.10},
                                         CompiledCase{"llama", "compiled", "compile", 1.49},
                                         CompiledCase{"gpt", "compiled_layers", "compile:modules=h.*", 1.03},
                                         CompiledCase{"llama", "compiled_layers", "compile:modules=layers.*", 1.30}),
                         [](const auto& pair) { return std::string(pair.param.network) + "_" + pair.param.capture; });

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
