// Is the readable part of a kernel's name what people call it?
#include "gui/model/readable_name.h"

#include <gtest/gtest.h>

namespace memwall::gui {
namespace MEMWALL_TEST_FILE {

TEST(ReadableName, DropsReturnTypeNamespacesTemplatesAndParameters) {
  EXPECT_EQ(readable_name("void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, "
                          "std::array<char*, 1ul> >(int, at::native::FillFunctor<float>, std::array<char*, 1ul>)"),
            "vectorized_elementwise_kernel");
  EXPECT_EQ(readable_name("void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, false, false>"
                          "(float*, float const*, int, int, int, bool const*, int, bool)"),
            "softmax_warp_forward");
  EXPECT_EQ(readable_name("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"),
            "ncclDevKernel_AllReduce_Sum_bf16_RING_LL");
  EXPECT_EQ(readable_name("void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm>(Params)"), "Kernel2");
}

TEST(ReadableName, AMemberOfATemplateIsCalledByItsOwnName) {
  EXPECT_EQ(readable_name("void flash::Kernel<128, 64>::run<true>(flash::Params)"), "run");
  EXPECT_EQ(readable_name("cub::Agent<int>::Scan"), "Scan");
}

TEST(ReadableName, NamesThatAreNoFunctionsStay) {
  EXPECT_EQ(readable_name("Memcpy HtoD (Pinned -> Device)"), "Memcpy HtoD (Pinned -> Device)");
  EXPECT_EQ(readable_name("autograd::engine::evaluate_function: AddmmBackward0"),
            "autograd::engine::evaluate_function: AddmmBackward0");
  EXPECT_EQ(readable_name("sm80_xmma_gemm_bf16bf16_bf16f32_f32_tn_n"), "sm80_xmma_gemm_bf16bf16_bf16f32_f32_tn_n");
  EXPECT_EQ(readable_name("layers.0 forward"), "layers.0 forward");
  EXPECT_EQ(readable_name("aten::mm"), "mm");
}

// Names from files are cut, empty, or no names at all.
TEST(ReadableName, AlwaysLeavesSomething) {
  EXPECT_EQ(readable_name(""), "");
  EXPECT_EQ(readable_name("void at::native::reduce_kernel<512, 1, at::native::Reduc"), "reduce_kernel");
  for (const char* odd : {"<", "(", "::", "a::", "<<<>>>", "()", " ", "operator()", "x<", "x::<y>"})
    EXPECT_NE(readable_name(odd), "") << odd;
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall::gui
