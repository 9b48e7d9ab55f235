// Do the inputs that record_shapes wrote become the FLOPs, bytes and shapes that the mathematics gives?
#include "models/workload/import/timed/recorded_shapes.h"

#include <gtest/gtest.h>

#include "models/workload/import/kineto/kineto_reader.h"
#include "models/workload/import/timed/recorded_call.h"
#include "sim/error.h"
#include "sim/trace/trace_check.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/small_capture.h"
#include "models/workload/import/timed/timed_import.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

RecordedWork work(std::string_view name, OperatorClass operator_class, const std::string& dims,
                  const std::string& types, const std::string& values = "", TensorType list_type = {},
                  const ConvolutionResults& convolutions = {}) {
  return work_of({name, operator_class, recorded_arguments(dims, types, values)}, list_type, convolutions);
}

TEST(RecordedCall, MatrixProducts) {
  const RecordedWork w =
      work("aten::addmm", OperatorClass::gemm, "[[8],[4,16],[16,8],[],[]]",
           R"(["c10::BFloat16","c10::BFloat16","c10::BFloat16","Scalar","Scalar"])", R"(["","","","1","1"])");
  EXPECT_EQ(w.shape, (Shape{1, 4, 8, 16}));
  EXPECT_EQ(w.cost.flops, 2.0 * 4 * 8 * 16);
  EXPECT_EQ(w.cost.bytes, 2 * (8 + 4 * 16 + 16 * 8 + 4 * 8));
  EXPECT_EQ(w.cost.data_type, DataType::bf16);
  const RecordedWork batched = work("aten::bmm", OperatorClass::gemm, "[[3,4,16],[3,16,8]]", R"(["float","float"])");
  EXPECT_EQ(batched.shape, (Shape{3, 4, 8, 16}));
  EXPECT_EQ(batched.cost.bytes, 4 * 3 * (4 * 16 + 16 * 8 + 4 * 8));
}

const std::string kConvolutionTypes = R"(["float","float","","","","","",""])";

TEST(RecordedCall, ConvolutionsByTheirStride) {
  const RecordedWork w =
      work("aten::cudnn_convolution", OperatorClass::convolution, "[[2,3,9,9],[8,3,3,3],[],[],[],[],[],[]]",
           kConvolutionTypes, R"(["","","[1, 1]","[2, 2]","[1, 1]","1","False","False"])");
  EXPECT_EQ(w.shape, (Shape{2, 3, 8, 25, 9, 1}));  // (9 + 2 - 3) / 2 + 1 = 5
  EXPECT_EQ(w.cost.flops, 2.0 * 2 * 8 * 25 * 3 * 9);
  EXPECT_EQ(w.cost.bytes, 4 * (2 * 3 * 81 + 8 * 27 + 2 * 8 * 25));
}

TEST(RecordedCall, ConvolutionsWithoutValuesByTheirBackward) {
  const std::string dims = "[[2,3,9,9],[8,3,3,3],[],[],[],[],[],[]]";
  EXPECT_EQ(work("aten::cudnn_convolution", OperatorClass::convolution, dims, kConvolutionTypes).cost.bytes, 0);
  ConvolutionResults results;
  const RecordedCall backward{"aten::convolution_backward", OperatorClass::convolution,
                              recorded_arguments("[[2,8,5,5],[2,3,9,9],[8,3,3,3],[],[]]",
                                                 R"(["float","float","float","ScalarList","ScalarList"])", "")};
  results.learn(backward);
  const RecordedWork w =
      work("aten::cudnn_convolution", OperatorClass::convolution, dims, kConvolutionTypes, "", {}, results);
  EXPECT_EQ(w.shape, (Shape{2, 3, 8, 25, 9, 1}));
  // Another layer with the same input and weight, and another stride: nobody knows which is meant.
  RecordedCall other = backward;
  other.arguments[0].tensors[0] = {2, 8, 9, 9};
  results.learn(other);
  EXPECT_TRUE(results.result({2, 3, 9, 9}, {8, 3, 3, 3}).empty());
}

TEST(RecordedCall, BackwardOfConvolutionsByTheGradientsWanted) {
  const std::string dims = "[[2,8,5,5],[2,3,9,9],[8,3,3,3],[],[],[],[],[],[],[],[]]";
  const std::string types = R"(["float","float","float","","","","","","","",""])";
  const auto flops = [&](const std::string& mask) {
    return work("aten::convolution_backward", OperatorClass::convolution, dims, types,
                R"(["","","","[8]","[2, 2]","[1, 1]","[1, 1]","False","[0, 0]","1",")" + mask + "\"]")
        .cost.flops;
  };
  const double once = 2.0 * 2 * 8 * 25 * 3 * 9;
  EXPECT_EQ(flops("[True, True, True]"), 2 * once);
  EXPECT_EQ(flops("[False, True, True]"), once);  // the first layer's input needs none
  EXPECT_EQ(work("aten::convolution_backward", OperatorClass::convolution, dims, types).cost.flops, 2 * once);
}

TEST(RecordedCall, AttentionNormalizationAndReductions) {
  const RecordedWork a = work(
      "aten::_scaled_dot_product_flash_attention", OperatorClass::attention, "[[1,2,3,4],[1,2,5,4],[1,2,5,4],[],[],[]]",
      R"(["c10::Half","c10::Half","c10::Half","Scalar","Scalar","Scalar"])", R"(["","","","0.0","True","False"])");
  EXPECT_EQ(a.shape, (Shape{1, 2, 2, 3, 5, 4, 1}));
  EXPECT_EQ(a.cost.flops, 2 * 2.0 * 2 * 3 * 5 * 4);
  const RecordedWork n = work("aten::native_layer_norm", OperatorClass::normalization, "[[6,4],[],[4],[4],[]]",
                              R"(["float","ScalarList","float","float","Scalar"])", R"(["","[4]","","","1e-05"])");
  EXPECT_EQ(n.shape, (Shape{6, 4}));
  const RecordedWork s = work("aten::_softmax", OperatorClass::reduction, "[[6,4,3],[],[]]",
                              R"(["float","Scalar","Scalar"])", R"(["","1","False"])");
  EXPECT_EQ(s.shape, (Shape{18, 4}));
  EXPECT_EQ(s.cost.bytes, 2 * 4 * 72);
  const RecordedWork sum = work("aten::sum", OperatorClass::reduction, "[[6,4],[],[],[]]",
                                R"(["float","ScalarList","Scalar",""])", R"(["","[0]","False",""])");
  EXPECT_EQ(sum.shape, (Shape{4, 6}));
  EXPECT_EQ(sum.cost.bytes, 4 * (24 + 4));
}

TEST(RecordedCall, WhatWorksElementByElement) {
  const RecordedWork add =
      work("aten::add", OperatorClass::elementwise, "[[6,4],[4],[]]", R"(["float","float","Scalar"])");
  EXPECT_EQ(add.shape, Shape{24});
  EXPECT_EQ(add.cost.bytes, 4 * (24 + 4 + 24));
  const RecordedWork in_place =
      work("aten::add_", OperatorClass::elementwise, "[[6,4],[4],[]]", R"(["float","float","Scalar"])");
  EXPECT_EQ(in_place.cost.bytes, 4 * (24 + 24 + 4));
  // What is overwritten is not read.
  EXPECT_EQ(work("aten::copy_", OperatorClass::memory, "[[8],[8],[]]", R"(["float","c10::Half","Scalar"])").cost.bytes,
            8 * 6);
  EXPECT_EQ(work("aten::fill_", OperatorClass::memory, "[[8],[]]", R"(["float","Scalar"])").cost.bytes, 8 * 4);
  const RecordedWork embedding =
      work("aten::embedding", OperatorClass::embedding, "[[1000,16],[2,3]]", R"(["float","long int"])");
  EXPECT_EQ(embedding.shape, (Shape{6, 16, 1000}));
  EXPECT_EQ(embedding.cost.bytes, 4 * 6 * 16 * 2 + 8 * 6);  // of the table only the rows looked up
}

TEST(RecordedCall, ListsTakeTheirTypeFromTheKernel) {
  const std::string dims = "[[[4,2],[8]],[[4,2],[8]],[]]", types = R"(["TensorList","TensorList","Scalar"])";
  const TensorType type =
      type_in_kernel_name("multi_tensor_apply_kernel<BinaryOpListAlphaFunctor<c10::BFloat16, 2, 2, 0> >");
  EXPECT_EQ(type.type, DataType::bf16);
  const RecordedWork w = work("aten::_foreach_add_", OperatorClass::optimizer, dims, types, "", type);
  EXPECT_EQ(w.shape, Shape{16});
  EXPECT_EQ(w.cost.bytes, 2 * (16 + 16 + 16));
  EXPECT_EQ(work("aten::_foreach_add_", OperatorClass::optimizer, dims, types).cost.bytes, 0);
}

TEST(RecordedCall, WhatIsNotKnownOrHostileHasNoWork) {
  EXPECT_TRUE(work("mine::gemm", OperatorClass::gemm, "[[4,4],[4,4]]", R"(["float","float"])").shape.empty());
  for (const char* dims : {"[[4,-4],[4,4]]", "[[9007199254740993],[4]]", "[[4", "{}", "[[1e9,1],[1]]", "[[\"4\"]]",
                           "[[4611686018427387904,4611686018427387904],[4,4]]"}) {
    const RecordedWork w = work("aten::mm", OperatorClass::gemm, dims, R"(["float","float"])");
    EXPECT_TRUE(w.shape.empty()) << dims;
    EXPECT_EQ(w.cost.bytes, 0) << dims;
  }
}

// The small capture with a second kernel, much shorter, inside aten::mm ([16,32] times [32,8]).
std::string with_second_kernel(const std::string& name) {
  std::string text = small_capture();
  const std::string after = R"("est. achieved occupancy %":50}},)";
  text.insert(
      text.find(after) + after.size(),
      R"(
  {"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":100,"ts":1669783687001130,"dur":10,"args":{"correlation":77}},
  {"ph":"X","cat":"kernel","name":")" +
          name +
          R"(","pid":0,"tid":7,"ts":1669783687001324,"dur":0.5,"args":{"device":0,"stream":7,"correlation":77}},)");
  return text;
}

TEST(RecordedShapes, AKernelThatChangesALayoutHasNoFlops) {
  const ScratchFolder folder;
  write_content(folder / "a.json", with_second_kernel("void nchwToNhwcKernel<float, float>"));
  const TimedCapture capture = read_kineto(folder / "a.json");
  ImportedTrace imported = import_timed_capture(capture);
  add_recorded_shapes(capture, imported);
  std::vector<const Op*> kernels;
  for (const Op& op : imported.trace.ops)
    if (op.kind == OpKind::kernel && imported.trace.strings[op.operator_name] == "aten::mm") kernels.push_back(&op);
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(kernels[0]->flops, 2.0 * 16 * 32 * 8);
  EXPECT_EQ(kernels[1]->flops, 0);
  EXPECT_EQ(kernels[1]->operator_class, OperatorClass::memory);
  EXPECT_GT(kernels[1]->bytes, 0);
}

TEST(RecordedShapes, SeveralKernelsShareWhatTheirOperatorDoes) {
  const std::string text = with_second_kernel("splitKreduce");
  const ScratchFolder folder;
  write_content(folder / "a.json", text);
  const TimedCapture capture = read_kineto(folder / "a.json");
  ImportedTrace imported = import_timed_capture(capture);
  const RecordedShapes counts = add_recorded_shapes(capture, imported);
  EXPECT_EQ(check(imported.trace), std::vector<std::string>());
  double flops = 0;
  Bytes bytes = 0;
  std::vector<const Op*> kernels;
  for (const Op& op : imported.trace.ops)
    if (op.kind == OpKind::kernel && imported.trace.strings[op.operator_name] == "aten::mm") kernels.push_back(&op);
  ASSERT_EQ(kernels.size(), 2u);
  for (const Op* op : kernels) {
    flops += op->flops;
    bytes += op->bytes;
    EXPECT_EQ(imported.trace.shapes[op->shape], (Shape{1, 16, 8, 32}));
  }
  EXPECT_NEAR(flops, 2.0 * 16 * 32 * 8, 1e-6);
  EXPECT_NEAR(static_cast<double>(bytes), 4 * (16 * 32 + 32 * 8 + 16 * 8), 2);
  EXPECT_NEAR(kernels[0]->flops / kernels[1]->flops, 400, 1e-6);
  EXPECT_EQ(counts.kernels, 5u);
  EXPECT_EQ(counts.with_bytes, 2u);
  EXPECT_EQ(counts.products, 2u);
  EXPECT_FALSE(imported.trace.knowledge.shapes);  // of most of the kernels' time nothing is known
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
