// Is an operator the same under the names that libraries and releases of PyTorch give it, and are others kept apart?
#include "models/workload/graft/operator_key.h"

#include <gtest/gtest.h>

namespace memwall {
namespace MEMWALL_TEST_FILE {

TEST(OperatorKey, IsTheSameForOneOperatorUnderManyNames) {
  for (const char* name : {"aten::convolution", "aten::cudnn_convolution", "aten::miopen_convolution",
                           "aten::_convolution", "aten::thnn_conv2d"})
    EXPECT_EQ(operator_key(name), "convolution") << name;
  for (const char* name : {"aten::convolution_backward", "aten::cudnn_convolution_backward",
                           "aten::cudnn_convolution_backward_input", "aten::cudnn_convolution_backward_weight"})
    EXPECT_EQ(operator_key(name), "convolution_backward") << name;
  for (const char* name : {"aten::native_batch_norm", "aten::cudnn_batch_norm", "aten::_native_batch_norm_legit"})
    EXPECT_EQ(operator_key(name), "batch_norm") << name;
  EXPECT_EQ(operator_key("aten::cudnn_batch_norm_backward"), operator_key("aten::native_batch_norm_backward"));
  for (const char* name : {"aten::relu", "aten::relu_", "aten::clamp_min", "aten::clamp_min_", "aten::threshold_"})
    EXPECT_EQ(operator_key(name), "relu") << name;
  for (const char* name : {"aten::copy_", "aten::_to_copy", "aten::clone"})
    EXPECT_EQ(operator_key(name), "copy") << name;
  EXPECT_EQ(operator_key("aten::add_"), operator_key("aten::add"));
}

TEST(OperatorKey, IsAnotherForAnotherOperator) {
  EXPECT_NE(operator_key("aten::mm"), operator_key("aten::addmm"));
  EXPECT_NE(operator_key("aten::relu"), operator_key("aten::threshold_backward"));
  EXPECT_NE(operator_key("aten::add"), operator_key("aten::_foreach_add_"));
  EXPECT_NE(operator_key("aten::native_layer_norm"), operator_key("aten::native_layer_norm_backward"));
  EXPECT_EQ(operator_key("triton_poi_fused_0"), "triton_poi_fused_0");
  EXPECT_EQ(operator_key(""), "");
  EXPECT_EQ(operator_key("_"), "_");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
