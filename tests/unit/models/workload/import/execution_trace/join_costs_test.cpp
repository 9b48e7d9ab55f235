// Does the join give the FLOPs of an operator to those of its kernels that compute?
#include <gtest/gtest.h>

#include "tests/support/operator_scene.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

void set_shape(Scene& s, std::size_t tensor, std::initializer_list<std::uint32_t> extents) {
  TensorUse& use = s.execution.tensors[tensor];
  use.first_dimension = static_cast<std::uint32_t>(s.execution.dimensions.size());
  use.dimensions = static_cast<std::uint16_t>(extents.size());
  for (const std::uint32_t extent : extents) s.execution.dimensions.push_back(extent);
}

// A product whose inputs are brought into another layout first: that kernel is a copy, and as it bounds by memory.
TEST(JoinCosts, AChangeOfLayoutIsACopy) {
  for (const bool other_computes : {true, false}) {
    Scene s;
    s.begin("aten::mm", "aten::mm(Tensor self, Tensor mat2) -> Tensor", {{{100, 20}}, {{101, 30}}}, {{{102, 24}}});
    set_shape(s, 0, {4, 5});
    set_shape(s, 1, {5, 6});
    set_shape(s, 2, {4, 6});
    s.alloc(512);
    const OpId layout = s.kernel(), product = s.kernel();
    s.end();
    Trace& t = s.imported.trace;
    t.ops[layout].name = t.strings.intern("void cudnn::nchwToNhwcKernel<float>");
    t.ops[product].name = t.strings.intern(other_computes ? "sgemm" : "void cudnn::nhwcToNchwKernel<float>");
    for (const OpId id : {layout, product}) t.ops[id].operator_class = OperatorClass::gemm;
    s.join();
    if (other_computes) {
      EXPECT_EQ(t.ops[layout].operator_class, OperatorClass::memory);
      EXPECT_EQ(t.ops[layout].flops, 0);
      EXPECT_EQ(t.ops[product].operator_class, OperatorClass::gemm);
    }
    EXPECT_DOUBLE_EQ(t.ops[layout].flops + t.ops[product].flops, 2.0 * 4 * 5 * 6);
    EXPECT_EQ(t.ops[layout].bytes, t.ops[product].bytes) << "of the same time";
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
