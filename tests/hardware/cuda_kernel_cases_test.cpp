// Are the shapes, and the work that is claimed for them, those of the layers and kernels that they name?
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "validate/bench/kernel_cases.h"
#include "validate/replay/matmul_shape.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

const DataType kDataTypes[] = {DataType::bf16, DataType::fp16, DataType::tf32, DataType::fp32, DataType::fp8};
const StreamingKernel kKernels[] = {StreamingKernel::normalization, StreamingKernel::softmax,
                                    StreamingKernel::elementwise, StreamingKernel::reduction,
                                    StreamingKernel::optimizer};

const GemmCase* find(const std::vector<GemmCase>& cases, const std::string& origin, std::int64_t m) {
  const auto at = std::find_if(cases.begin(), cases.end(), [&](const GemmCase& c) {
    return c.m == m && ("; " + c.origin + ";").find("; " + origin + ";") != std::string::npos;
  });
  return at == cases.end() ? nullptr : &*at;
}

TEST(GemmCases, ALargeSquareComesFirstAndNoShapeTwice) {
  for (const DataType data_type : kDataTypes) {
    const auto cases = gemm_cases(data_type);
    ASSERT_GT(cases.size(), 40u);
    EXPECT_EQ(cases.front().m, 8192);
    EXPECT_EQ(cases.front().n, 8192);
    std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t>> seen;
    for (const GemmCase& c : cases) EXPECT_TRUE(seen.emplace(c.m, c.n, c.k).second) << c.origin;
  }
}

TEST(GemmCases, SquaresReachFrom256To16384) {
  std::set<std::int64_t> sizes;
  for (const GemmCase& c : gemm_cases(DataType::fp8))
    if (c.origin.starts_with("square")) sizes.insert(c.m);
  EXPECT_EQ(sizes, (std::set<std::int64_t>{256, 512, 1024, 2048, 4096, 8192, 16384}));
}

TEST(GemmCases, LayersAreThoseOfThePublishedModels) {
  const auto cases = gemm_cases(DataType::bf16);
  const GemmCase* c = find(cases, "GPT-2 124M QKV", 8192);
  ASSERT_TRUE(c);
  EXPECT_EQ(c->n, 2304);
  EXPECT_EQ(c->k, 768);
  c = find(cases, "GPT-2 1.5B MLP down", 16384);
  ASSERT_TRUE(c);
  EXPECT_EQ(c->n, 1600);
  EXPECT_EQ(c->k, 6400);
  c = find(cases, "Llama 8B QKV", 4096);  // 32 query heads and 2 * 8 key and value heads of 128
  ASSERT_TRUE(c);
  EXPECT_EQ(c->n, 6144);
  EXPECT_EQ(c->k, 4096);
  c = find(cases, "Llama 3B LM head", 4096);
  ASSERT_TRUE(c);
  EXPECT_EQ(c->n, 128256);
  EXPECT_EQ(c->k, 3072);
  // dW[out][in] = sum over tokens.
  c = find(cases, "Llama 8B MLP up, weight gradient", 14336);
  ASSERT_TRUE(c);
  EXPECT_EQ(c->n, 4096);
  EXPECT_EQ(c->k, 8192);
}

// Parameters of Llama 8B's linear layers, from the shapes: what the model card calls 8.03 billion, less the input
// embedding and the gate projection that has the shape of the up projection.
TEST(GemmCases, WeightsOfLlama8BAddUpToItsSize) {
  const auto cases = gemm_cases(DataType::bf16);
  const auto weights = [&](const std::string& layer) {
    const GemmCase* c = find(cases, "Llama 8B " + layer, 4096);
    return c ? static_cast<double>(c->n * c->k) : std::nan("");
  };
  const double block = weights("QKV") + weights("output projection") + 2 * weights("MLP up") + weights("MLP down");
  const double norms = 65 * 4096.0;
  EXPECT_DOUBLE_EQ(32 * block + 2 * weights("LM head") + norms, 8030261248.0);
}

TEST(GemmCases, WorkIsTwoFlopsPerMultiplyAndEachMatrixOnce) {
  const GemmCase c{3, 5, 7, ""};
  EXPECT_DOUBLE_EQ(gemm_flops(c), 2.0 * 3 * 5 * 7);
  EXPECT_DOUBLE_EQ(gemm_bytes(c, DataType::bf16), 2.0 * (21 + 35 + 15));
  EXPECT_DOUBLE_EQ(gemm_bytes(c, DataType::tf32), 4.0 * (21 + 35 + 15));
  EXPECT_DOUBLE_EQ(gemm_bytes(c, DataType::fp8), 21 + 35 + 2.0 * 15);
}

TEST(GemmCases, Fp8ShapesHaveTheAlignmentThatItNeeds) {
  // Rows of 16 bytes: k of A and B a multiple of 16. The vocabulary of GPT-2 is odd, which only D may be.
  for (const GemmCase& c : gemm_cases(DataType::fp8)) EXPECT_TRUE(c.k % 16 == 0) << c.origin << " " << c.k;
}

TEST(GemmCases, DataTypesNeedTheirGeneration) {
  EXPECT_EQ(gemm_unsupported(DataType::bf16, 8, 0), "");
  EXPECT_EQ(gemm_unsupported(DataType::bf16, 7, 5), "bf16 products need compute capability 8.0, this device has 7.5");
  EXPECT_EQ(gemm_unsupported(DataType::fp8, 8, 9), "");
  EXPECT_EQ(gemm_unsupported(DataType::fp8, 8, 6), "fp8 products need compute capability 8.9, this device has 8.6");
  EXPECT_EQ(gemm_unsupported(DataType::fp32, 5, 0), "");
}

TEST(GemmTolerance, TellsARandomResultFromARightOne) {
  // An element has standard deviation sqrt(k) / 3: a wrong one is rarely as near as this.
  for (const DataType data_type : kDataTypes)
    EXPECT_LT(gemm_tolerance(data_type).per_root_k, 0.01 * 3) << to_string(data_type);
}

TEST(GemmTolerance, OfFp32SeesThatTf32WasUsed) {
  // Products of inputs rounded to 11 bits against exact ones, as the tensor core would have it.
  const std::int64_t k = 4096;
  double exact = 0, rounded = 0;
  std::uint32_t state = 1;
  const auto next = [&] {
    state = state * 1664525u + 1013904223u;
    return static_cast<float>(static_cast<std::int32_t>(state)) / 2147483648.0f;
  };
  const auto tf32 = [](float x) {
    int exponent = 0;
    const float mantissa = std::frexp(x, &exponent);
    return std::ldexp(std::round(mantissa * 2048) / 2048, exponent);
  };
  double worst = 0;
  for (int sample = 0; sample < 64; ++sample) {
    exact = rounded = 0;
    for (std::int64_t i = 0; i < k; ++i) {
      const float a = next(), b = next();
      exact += static_cast<double>(a) * b;
      rounded += static_cast<double>(tf32(a)) * tf32(b);
    }
    worst = std::max(worst, std::abs(rounded - exact));
  }
  const auto allowed = [&](DataType t) { return gemm_tolerance(t).per_root_k * std::sqrt(static_cast<double>(k)); };
  EXPECT_GT(worst, 2 * allowed(DataType::fp32));
  EXPECT_LT(worst, allowed(DataType::tf32));
}

TEST(StreamingCases, GoFromOneRowToAGibibyteInAscendingOrder) {
  for (const StreamingKernel kernel : kKernels) {
    const auto cases = streaming_cases(kernel, 1 << 30);
    ASSERT_GE(cases.size(), 8u) << to_string(kernel);
    for (std::size_t i = 1; i < cases.size(); ++i) EXPECT_LT(streaming_bytes(cases[i - 1]), streaming_bytes(cases[i]));
    EXPECT_LE(streaming_bytes(cases.front()), 64 << 10);
    EXPECT_LE(streaming_bytes(cases.back()), 1 << 30);
    EXPECT_GT(streaming_bytes(cases.back()), 0.99 * (1 << 30));
  }
}

TEST(StreamingCases, AreLimitedByTheLargestBuffer) {
  for (const StreamingKernel kernel : kKernels) {
    for (const StreamingCase& c : streaming_cases(kernel, 1 << 20)) EXPECT_LE(streaming_bytes(c), 1 << 20);
    EXPECT_EQ(streaming_cases(kernel, 0).size(), 1u) << "the smallest is always there";
  }
}

TEST(StreamingCases, TrafficIsWhatMustBeReadAndWritten) {
  // Adam: four fp32 values read, three written.
  EXPECT_DOUBLE_EQ(streaming_bytes({StreamingKernel::optimizer, 3, 1024}), 3 * 1024 * 28.0);
  EXPECT_DOUBLE_EQ(streaming_bytes({StreamingKernel::elementwise, 3, 2048}), 3 * 2048 * 4.0);
  EXPECT_DOUBLE_EQ(streaming_bytes({StreamingKernel::softmax, 5, 2048}), 5 * 2048 * 4.0);
  EXPECT_DOUBLE_EQ(streaming_bytes({StreamingKernel::reduction, 5, 4096}), 5 * (4096 * 2.0 + 4));
  // Two statistics of each row; weight and bias once.
  EXPECT_DOUBLE_EQ(streaming_bytes({StreamingKernel::normalization, 5, 4096}), 5 * (4096 * 4.0 + 8) + 2 * 4096 * 2);
}

TEST(StreamingCases, RowsAreWholeBlocksOfTheKernels) {
  for (const StreamingKernel kernel : kKernels)
    for (const StreamingCase& c : streaming_cases(kernel, 1 << 30)) EXPECT_EQ(c.columns % 1024, 0);
}

TEST(RotatingSets, TogetherExceedTheCacheTwice) {
  EXPECT_EQ(rotating_sets(1e6, 50e6), 100);
  EXPECT_EQ(rotating_sets(3e6, 50e6), 34);
  EXPECT_EQ(rotating_sets(1e9, 50e6), 1);
  EXPECT_EQ(rotating_sets(16, 50e6), 8192) << "bounded";
}

TEST(NcclWireBytes, AreBusBytes) {
  EXPECT_DOUBLE_EQ(nccl_wire_bytes(NcclCollective::all_gather, 800, 8), 700);
  EXPECT_DOUBLE_EQ(nccl_wire_bytes(NcclCollective::reduce_scatter, 800, 8), 700);
  EXPECT_DOUBLE_EQ(nccl_wire_bytes(NcclCollective::all_reduce, 800, 2), 800);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
