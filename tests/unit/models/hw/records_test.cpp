// Is nothing priced faster than the fastest that was measured, on any machine, of any kernel that has a record?
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "models/hw/attention_cost.h"
#include "models/hw/gemm_cost.h"
#include "models/hw/kernel_cost.h"
#include "models/hw/machine_file.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

std::vector<std::string> shipped_machines() {
  std::vector<std::string> names;
  for (const auto& file :
       std::filesystem::directory_iterator(std::filesystem::path(MEMWALL_SOURCE) / "models" / "hw" / "machines"))
    if (file.path().extension() == ".textproto") names.push_back(file.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

double rate(const Machine& machine, const Op& op, const Shape& shape, double flops) {
  return flops / to_seconds(kernel_duration(machine, op, shape));
}

Op kernel(OperatorClass operator_class, DataType type, Phase phase) {
  Op op;
  op.kind = OpKind::kernel;
  op.operator_class = operator_class;
  op.data_type = type;
  op.phase = phase;
  return op;
}

TEST(Records, NoProductAndNoConvolutionIsPricedFaster) {
  std::size_t asked = 0;
  for (const std::string& name : shipped_machines())
    for (const Machine& machine : {load_machine(name), in_short_runs(load_machine(name))})
      for (const MatrixUnits::MainLoop& loop : machine.gpu.matrix.main_loops) {
        if (loop.record <= 0) continue;
        SCOPED_TRACE(name + ", " + std::string(to_string(loop.data_type)));
        for (const std::int64_t n : {2048, 4096, 8192, 16384, 16896}) {
          const double flops = 2 * std::pow(static_cast<double>(n), 3);
          const Op product = kernel(OperatorClass::gemm, loop.data_type, Phase::forward);
          EXPECT_LE(rate(machine, product, {1, n, n, n}, flops), 1.0001 * loop.record) << n;
          const Op convolution = kernel(OperatorClass::convolution, loop.data_type, Phase::forward);
          // One tap: an implicit product of the same size.
          EXPECT_LE(rate(machine, convolution, {1, n, n, n, 1, 1}, flops), 1.0001 * loop.record) << n;
          ++asked;
        }
      }
  EXPECT_GT(asked, 20u) << "machines have records";
}

TEST(Records, NoAttentionIsPricedFaster) {
  std::size_t asked = 0;
  for (const std::string& name : shipped_machines()) {
    const Machine machine = load_machine(name);
    for (const AttentionCost& cost : machine.gpu.attention) {
      if (cost.record <= 0) continue;
      SCOPED_TRACE(name + ", " + std::string(to_string(cost.kernel)));
      for (const std::int64_t length : {1024, 8192, 65536})
        for (const std::int64_t head : {64, 128, 256})
          for (const std::int64_t causal : {0, 1}) {
            const Shape shape = with_attention_kernel({8, 32, 32, length, length, head, causal}, cost.kernel);
            for (const Phase phase : {Phase::forward, Phase::backward}) {
              const double flops = attention_flops(shape) * (phase == Phase::backward ? kAttentionBackward : 1);
              EXPECT_LE(rate(machine, kernel(OperatorClass::attention, DataType::bf16, phase), shape, flops),
                        1.0001 * cost.record)
                  << length << " " << head << " " << causal;
              ++asked;
            }
          }
    }
  }
  EXPECT_GT(asked, 20u) << "machines have records";
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
