// Does what an operator makes follow from its name and the shapes of its inputs, and is what does not left alone?
#include "models/workload/import/inference/operator_results.h"

#include <gtest/gtest.h>

#include "models/workload/operator_class.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

using Shapes = std::vector<Shape>;

std::optional<std::vector<OperatorResult>> results(const char* name, const std::string& dims, const std::string& types,
                                                   const std::string& values = "") {
  const RecordedCall call{name, operator_class(name, ""), recorded_arguments(dims, types, values)};
  return operator_results(call, ConvolutionResults());
}

Shapes shapes(const char* name, const std::string& dims, const std::string& types, const std::string& values = "") {
  Shapes all;
  const auto found = results(name, dims, types, values);
  EXPECT_TRUE(found) << name;
  for (const OperatorResult& result : found.value_or(std::vector<OperatorResult>())) all.push_back(result.shape);
  return all;
}

TEST(OperatorResults, OfProductsAndConvolutions) {
  EXPECT_EQ(shapes("aten::mm", "[[4,5],[5,6]]", R"(["float","float"])"), (Shapes{{4, 6}}));
  EXPECT_EQ(shapes("aten::addmm", "[[6],[4,5],[5,6],[],[]]", R"(["float","float","float","Scalar","Scalar"])"),
            (Shapes{{4, 6}}));
  EXPECT_EQ(shapes("aten::bmm", "[[2,4,5],[2,5,6]]", R"(["float","float"])"), (Shapes{{2, 4, 6}}));
  const std::string values = R"(["","","","[2, 2]","[1, 1]","[1, 1]","False","[0, 0]","1"])";
  EXPECT_EQ(shapes("aten::convolution", "[[8,3,32,32],[16,3,3,3],[16],[],[],[],[],[],[]]",
                   R"(["float","float","float","","","","","",""])", values),
            (Shapes{{8, 16, 16, 16}}));
}

TEST(OperatorResults, OfAConvolutionsBackwardAreTheGradientsWanted) {
  const std::string dims = "[[8,16,16,16],[8,3,32,32],[16,3,3,3],[],[],[],[],[],[],[],[]]";
  const std::string types = R"(["float","float","float","","","","","","","",""])";
  const auto wanted = [&](const std::string& mask) {
    return shapes("aten::convolution_backward", dims, types,
                  R"(["","","","[16]","[2, 2]","[1, 1]","[1, 1]","False","[0, 0]","1",")" + mask + "\"]");
  };
  EXPECT_EQ(wanted("[True, True, True]"), (Shapes{{8, 3, 32, 32}, {16, 3, 3, 3}, {16}}));
  EXPECT_EQ(wanted("[False, True, True]"), (Shapes{{16, 3, 3, 3}, {16}}));
  EXPECT_EQ(wanted("[False, True, False]"), (Shapes{{16, 3, 3, 3}}));
}

TEST(OperatorResults, OfElementsAreBroadcast) {
  EXPECT_EQ(shapes("aten::add", "[[4,1,6],[5,6],[]]", R"(["float","float","Scalar"])"), (Shapes{{4, 5, 6}}));
  EXPECT_EQ(shapes("aten::threshold_backward", "[[4,6],[4,6],[]]", R"(["float","float","Scalar"])"), (Shapes{{4, 6}}));
  const auto mask = results("aten::gt", "[[4,6],[]]", R"(["float","Scalar"])");
  ASSERT_TRUE(mask);
  EXPECT_EQ(mask->front().element_bytes, 1);
}

TEST(OperatorResults, OfPoolsReductionsAndLosses) {
  EXPECT_EQ(shapes("aten::max_pool2d_with_indices", "[[8,16,15,15],[],[],[],[],[]]", R"(["float","","","","",""])",
                   R"(["","[2, 2]","[2, 2]","[0, 0]","[1, 1]","False"])"),
            (Shapes{{8, 16, 7, 7}, {8, 16, 7, 7}}));
  EXPECT_EQ(shapes("aten::sum", "[[4,6],[],[],[]]", R"(["float","","",""])", R"(["","[0]","True",""])"),
            (Shapes{{1, 6}}));
  EXPECT_EQ(shapes("aten::sum", "[[4,6],[],[],[]]", R"(["float","","",""])", R"(["","[0]","False",""])"),
            (Shapes{{6}}));
  EXPECT_EQ(shapes("aten::mse_loss", "[[4,6],[4,6],[]]", R"(["float","float",""])", R"(["","","1"])"), (Shapes{{}}));
  EXPECT_EQ(shapes("aten::mse_loss", "[[4,6],[4,6],[]]", R"(["float","float",""])", R"(["","","0"])"),
            (Shapes{{4, 6}}));
}

TEST(OperatorResults, OfEmptyTensorsHaveTheirType) {
  const auto floats =
      results("aten::empty", "[[],[],[],[],[]]", R"(["ScalarList","","","",""])", R"(["[5, 128]","","","","False"])");
  ASSERT_TRUE(floats);
  EXPECT_EQ(floats->front().bytes(), 5 * 128 * 4);
  const auto halves = results("aten::empty", "[[],[],[],[],[]]", R"(["ScalarList","Int","","",""])",
                              R"(["[5, 128]","5","","","False"])");
  ASSERT_TRUE(halves);
  EXPECT_EQ(halves->front().bytes(), 5 * 128 * 2);
  const auto strided = results("aten::empty_strided", "[[],[],[],[],[],[]]",
                               R"(["ScalarList","ScalarList","Int","","",""])", R"(["[128]","[1]","4","","","False"])");
  ASSERT_TRUE(strided);
  EXPECT_EQ(strided->front().bytes(), 128 * 8) << "its strides are not its type";
}

TEST(OperatorResults, WhatWritesItsInputMakesNone) {
  EXPECT_EQ(shapes("aten::add_", "[[4,6],[4,6]]", R"(["float","float"])"), Shapes());
  EXPECT_EQ(shapes("aten::copy_", "[[4,6],[4,6]]", R"(["float","float"])"), Shapes());
  EXPECT_EQ(shapes("aten::view", "[[4,6],[]]", R"(["float",""])", R"(["","[24]"])"), Shapes());
}

TEST(OperatorResults, WithoutARuleNothingIsSupposed) {
  EXPECT_FALSE(results("fbgemm::permute_sparse_features", "[[4,6]]", R"(["float"])"));
  EXPECT_FALSE(results("CompiledFunction", "[[4,6]]", R"(["float"])"));
  EXPECT_FALSE(results("aten::sum", "[[4,6],[],[],[]]", R"(["float","","",""])")) << "over which extents is not said";
  EXPECT_FALSE(results("aten::convolution", "[[8,3,32,32],[16,3,3,3]]", R"(["float","float"])")) << "nor the stride";
  EXPECT_FALSE(results("aten::add", "[[4,6],[5,6]]", R"(["float","float"])")) << "what cannot be added";
  EXPECT_FALSE(results("aten::add", "[[4000000,1],[1,4000000]]", R"(["float","float"])")) << "what no memory holds";
  const std::string types = R"(["float","","","","",""])", dims = "[[8,16,15,15],[],[],[],[],[]]";
  for (const char* window : {R"("[2, 2]","[0, 0]","[0, 0]","[1, 1]")", R"("[2, 2]","[2, 2]","[-1, 0]","[1, 1]")",
                             R"("[9223372036854775807]","[2]","[0]","[9223372036854775807]")"})
    EXPECT_FALSE(
        results("aten::max_pool2d_with_indices", dims, types, R"(["",)" + std::string(window) + R"(,"False"])"))
        << window;
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
