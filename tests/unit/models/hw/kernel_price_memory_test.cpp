// Is a remembered price the computed one, whatever was asked before and however few places there are?
#include "models/hw/kernel_price_memory.h"

#include <gtest/gtest.h>

#include <random>

#include "models/hw/kernel_cost.h"
#include "models/hw/machine_file.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

struct Asked {
  Op op;
  Shape shape;
};

// Kernels of few sizes, so that many are equal and many differ in one thing only.
Asked some_kernel(std::mt19937_64& random) {
  const auto pick = [&](auto... values) {
    const std::array all{values...};
    return all[random() % all.size()];
  };
  Asked asked;
  asked.op.kind = OpKind::kernel;
  asked.op.operator_class = static_cast<OperatorClass>(random() % 10);
  asked.op.data_type = static_cast<DataType>(random() % 11);
  asked.op.phase = static_cast<Phase>(random() % 5);
  asked.op.bytes = pick(Bytes{0}, Bytes{4096}, Bytes{1} << 24, Bytes{1} << 30);
  asked.op.flops = pick(0.0, 1e6, 1e12);
  asked.op.waves = pick(0.0F, 1.5F);
  asked.op.kernels = pick(std::uint16_t{1}, std::uint16_t{3});
  const auto extent = [&] { return pick(std::int64_t{1}, std::int64_t{64}, std::int64_t{1000}); };
  const std::size_t rank = pick(std::size_t{0}, std::size_t{2}, std::size_t{4}, std::size_t{6}, std::size_t{7});
  for (std::size_t i = 0; i < rank; ++i) asked.shape.push_back(extent());
  return asked;
}

void expect_computed_prices(const Machine& machine, std::size_t places) {
  KernelPriceMemory memory(machine, places);
  std::mt19937_64 random(1);
  for (int i = 0; i < 20'000; ++i) {
    const Asked asked = some_kernel(random);
    ASSERT_EQ(memory.price(asked.op, asked.shape), kernel_duration(machine, asked.op, asked.shape)) << i;
  }
}

TEST(KernelPriceMemory, GivesTheComputedPrice) { expect_computed_prices(load_machine("h100-sxm-80gb"), 1024); }

TEST(KernelPriceMemory, ForgetsButNeverMistakes) {
  expect_computed_prices(load_machine("a100-sxm-80gb"), 1);
  expect_computed_prices(load_machine("a100-sxm-80gb"), 8);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
