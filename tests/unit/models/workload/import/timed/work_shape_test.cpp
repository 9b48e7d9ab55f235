// Is the shape of a captured operator's work the one that its tensors say, and do the samples' shapes give the FLOPs
// that PyTorch's own formulas gave them?
#include "models/workload/import/timed/work_shape.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "models/workload/import/mwc/mwc_import.h"
#include "sim/error.h"
#include "tests/support/scratch_folder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

namespace fs = std::filesystem;

CapturedTensor tensor(Shape shape, std::uint32_t storage = 0, Shape strides = {}) {
  return {std::move(shape), std::move(strides), 2, storage};
}

struct Work {
  OperatorClass operator_class;
  const char* name;
  std::vector<Shape> inputs, outputs;
  Shape expected;
  double flops = 0;
  bool causal = false;
};

OperatorCall record(const Work& work) {
  OperatorCall r;
  r.name = work.name;
  r.operator_class = work.operator_class;
  r.flops = work.flops;
  r.causal = work.causal;
  for (const Shape& shape : work.inputs) r.inputs.push_back(tensor(shape));
  for (const Shape& shape : work.outputs) r.outputs.push_back(tensor(shape));
  return r;
}

TEST(WorkShape, OfEveryOperatorThatIsKnown) {
  using enum OperatorClass;
  const Work all[] = {
      {gemm, "aten::mm", {{3, 5}, {5, 7}}, {{3, 7}}, {1, 3, 7, 5}},
      {gemm, "aten::addmm", {{7}, {3, 5}, {5, 7}}, {{3, 7}}, {1, 3, 7, 5}},
      {gemm, "aten::bmm", {{2, 3, 5}, {2, 5, 7}}, {{2, 3, 7}}, {2, 3, 7, 5}},
      {gemm, "aten::baddbmm", {{7}, {2, 3, 5}, {2, 5, 7}}, {{2, 3, 7}}, {2, 3, 7, 5}},
      {gemm, "aten::_scaled_mm", {{3, 5}, {5, 7}, {1}, {1}}, {{3, 7}}, {1, 3, 7, 5}},
      {gemm, "aten::linear", {{2, 3, 5}, {7, 5}, {7}}, {{2, 3, 7}}, {1, 6, 7, 5}},
      {gemm, "aten::matmul", {{2, 4, 3, 5}, {4, 5, 7}}, {{2, 4, 3, 7}}, {8, 3, 7, 5}},
      {gemm, "aten::matmul", {{2, 3, 5}, {5, 7}}, {{2, 3, 7}}, {1, 6, 7, 5}},
      {gemm, "aten::mv", {{3, 5}, {5}}, {{3}}, {1, 3, 1, 5}},
      {gemm, "aten::addmv", {{3}, {3, 5}, {5}}, {{3}}, {1, 3, 1, 5}},
      {gemm, "aten::dot", {{5}, {5}}, {{}}, {1, 1, 1, 5}},
      {gemm, "aten::addr", {{3, 7}, {3}, {7}}, {{3, 7}}, {1, 3, 7, 1}},
      {gemm, "aten::_grouped_mm", {{12, 5}, {4, 5, 7}, {4}}, {{12, 7}}, {4, 3, 7, 5}},
      {gemm, "aten::_grouped_mm", {{13, 5}, {4, 5, 7}, {4}}, {{13, 7}}, {1, 13, 7, 5}},
      {gemm, "aten::_grouped_mm", {{5, 12}, {12, 7}, {4}}, {{4, 5, 7}}, {4, 5, 7, 3}},
      {gemm, "aten::mm", {{3, 5}, {6, 7}}, {{3, 7}}, {}},
      {gemm, "aten::mm", {{3, 5}}, {}, {}},
      {gemm, "aten::linear_backward", {{3, 5}, {3, 7}, {7, 5}}, {{3, 5}, {7, 5}}, {}},
      {convolution, "aten::convolution", {{2, 6, 9, 9}, {8, 3, 5, 5}, {8}}, {{2, 8, 4, 4}}, {2, 6, 8, 16, 25, 2}},
      {convolution, "aten::convolution", {{2, 6, 9}, {8, 6, 3}}, {{2, 8, 7}}, {2, 6, 8, 7, 3, 1}},
      {convolution,
       "aten::convolution_backward",
       {{2, 8, 4, 4}, {2, 6, 9, 9}, {8, 3, 5, 5}},
       {{2, 6, 9, 9}, {8, 3, 5, 5}},
       {2, 6, 8, 16, 25, 2}},
      // Transposed: the plain convolution from what it makes to what it takes.
      {convolution, "aten::convolution", {{2, 6, 4, 4}, {6, 8, 2, 2}}, {{2, 8, 8, 8}}, {2, 8, 6, 16, 4, 1}},
      {convolution,
       "aten::convolution",
       {{2, 6, 4, 4}, {6, 6, 2, 2}},
       {{2, 6, 8, 8}},
       {2, 6, 6, 16, 4, 1},
       2. * 2 * 6 * 6 * 16 * 4},
      {convolution,
       "aten::convolution",
       {{2, 6, 8, 8}, {6, 6, 2, 2}},
       {{2, 6, 4, 4}},
       {2, 6, 6, 16, 4, 1},
       2. * 2 * 6 * 6 * 16 * 4},
      {attention,
       "aten::_scaled_dot_product_flash_attention",
       {{2, 8, 100, 64}, {2, 4, 50, 64}, {2, 4, 50, 64}},
       {{2, 8, 100, 64}},
       {2, 8, 4, 100, 50, 64, 1},
       0,
       true},
      {attention,
       "aten::_scaled_dot_product_efficient_attention_backward",
       {{2, 8, 100, 64}, {2, 8, 100, 64}, {2, 8, 50, 64}, {2, 8, 50, 64}},
       {{2, 8, 100, 64}},
       {2, 8, 8, 100, 50, 64, 0, static_cast<std::int64_t>(AttentionKernel::memory_efficient)}},
      {attention,
       "aten::_flash_attention_forward",
       {{2, 100, 8, 64}, {2, 50, 4, 64}, {2, 50, 4, 64}},
       {{2, 100, 8, 64}},
       {2, 8, 4, 100, 50, 64, 0}},
      {normalization, "aten::native_layer_norm", {{2, 3, 8}, {8}, {8}}, {{2, 3, 8}, {2, 3, 1}, {2, 3, 1}}, {6, 8}},
      {normalization,
       "aten::native_layer_norm_backward",
       {{2, 3, 8}, {2, 3, 8}, {2, 3, 1}, {2, 3, 1}},
       {{2, 3, 8}},
       {6, 8}},
      {normalization, "aten::_fused_rms_norm", {{2, 3, 8}, {8}}, {{2, 3, 8}, {2, 3, 1}}, {6, 8}},
      {normalization,
       "aten::_fused_rms_norm_backward",
       {{2, 3, 8}, {2, 3, 8}, {2, 3, 1}, {8}},
       {{2, 3, 8}, {8}},
       {6, 8}},
      {normalization, "aten::native_batch_norm", {{4, 3, 5, 5}, {3}, {3}}, {{4, 3, 5, 5}, {3}, {3}}, {3, 100}},
      {normalization, "aten::native_group_norm", {{4, 6, 5, 5}}, {{4, 6, 5, 5}, {4, 2}, {4, 2}}, {8, 75}},
      {reduction, "aten::_softmax", {{2, 3, 8}}, {{2, 3, 8}}, {6, 8}},
      {reduction, "aten::_log_softmax_backward_data", {{6, 8}, {6, 8}}, {{6, 8}}, {6, 8}},
      {reduction, "aten::nll_loss_forward", {{6, 8}, {6}}, {{}, {}}, {6, 8}},
      {reduction, "aten::nll_loss_backward", {{}, {6, 8}, {6}, {}}, {{6, 8}}, {6, 8}},
      {reduction, "aten::nll_loss2d_forward", {{2, 8, 3, 3}, {2, 3, 3}}, {{}, {}}, {18, 8}},
      {reduction, "aten::sum", {{6, 8}}, {{1, 8}}, {8, 6}},
      {reduction, "aten::mean", {{6, 8}}, {{}}, {1, 48}},
      {reduction, "aten::_foreach_norm", {{6, 8}, {2}}, {{}, {}}, {1, 50}},
      {reduction, "aten::max_pool2d_with_indices", {{1, 1, 6, 6}}, {{1, 1, 3, 3}, {1, 1, 3, 3}}, {9, 4}},
      {reduction, "aten::max_pool2d_with_indices_backward", {{1, 1, 3, 3}, {1, 1, 6, 6}}, {{1, 1, 6, 6}}, {9, 4}},
      {embedding, "aten::embedding", {{50, 8}, {2, 3}}, {{2, 3, 8}}, {6, 8, 50}},
      {embedding, "aten::embedding_dense_backward", {{2, 3, 8}, {2, 3}}, {{50, 8}}, {6, 8, 50}},
      {elementwise, "aten::add", {{2, 3}, {3}}, {{2, 3}}, {6}},
      {memory, "aten::cat", {{2, 3}, {2, 4}}, {{2, 7}}, {14}},
      {optimizer, "aten::_foreach_sqrt", {{2, 3}, {4}}, {{2, 3}, {4}}, {10}},
      {other, "aten::topk", {{2, 3}}, {{2, 1}}, {}},
  };
  for (const Work& work : all) EXPECT_EQ(work_shape(record(work)), work.expected) << work.name;
}

TEST(WorkShape, OfListsWhatIsWrittenOrWhatTheRecordSays) {
  OperatorCall r;
  r.operator_class = OperatorClass::optimizer;
  r.name = "aten::_foreach_lerp_";
  r.inputs = {tensor({2, 3}, 1), tensor({4}, 2), tensor({2, 3}, 3), tensor({4}, 4)};
  r.writes = {1, 2};
  EXPECT_EQ(work_shape(r), Shape{10});
  r.name = "aten::_fused_adamw_";
  r.writes = {1, 2, 3, 4};
  EXPECT_EQ(work_shape(r), Shape{}) << "which tensors are parameters is not known";
  r.elements = 10;
  EXPECT_EQ(work_shape(r), Shape{10});
  r.operator_class = OperatorClass::elementwise;
  r.name = "aten::zero_";
  r.elements = 0;
  EXPECT_EQ(work_shape(r), Shape{6}) << "the largest";
}

TEST(WorkShape, ASoftmaxAlongAnotherExtentSaysSo) {
  OperatorCall r = record({OperatorClass::reduction, "aten::_softmax", {{2, 8, 3}}, {{2, 8, 3}}, {}});
  EXPECT_EQ(work_shape(r), (Shape{16, 3}));
  r.width = 8;
  EXPECT_EQ(work_shape(r), (Shape{6, 8}));
}

// Numbers as a hostile file may have them: the reader lets extents up to 2^50 through.
TEST(WorkShape, LargestAndEmptyExtentsAreCounted) {
  const std::int64_t most = std::int64_t{1} << 50;
  EXPECT_EQ(work_shape(record({OperatorClass::gemm, "mm", {{most, 0}, {0, most}}, {{most, most}}, {}})),
            (Shape{1, most, most, 0}));
  EXPECT_EQ(work_shape(record({OperatorClass::gemm, "matmul", {{most, 1}, {1, most}}, {{1}}, {}})),
            (Shape{1, most, most, 1}));
  EXPECT_EQ(work_shape(record({OperatorClass::reduction, "sum", {{most}}, {{0}}, {}})), Shape{});
  EXPECT_EQ(work_shape(record({OperatorClass::convolution, "convolution", {{1, 0, 1}, {1, 0, 1}}, {{1, 1, 1}}, {}})),
            Shape{});
  OperatorCall r;
  r.operator_class = OperatorClass::optimizer;
  r.name = "_foreach_add_";
  r.writes = {0};
  r.inputs.assign(1 << 14, tensor({most}));
  EXPECT_EQ(work_shape(r), Shape{std::int64_t{1} << 60});
}

TEST(WorkShape, AStorageHasTheShapeOfWhatFillsIt) {
  EXPECT_EQ(storage_shape(tensor({3, 5}), 30, true), (Shape{3, 5}));
  EXPECT_EQ(storage_shape(tensor({}), 2, true), Shape{1});
  EXPECT_EQ(storage_shape(tensor({3, 5}), 32, true), Shape{}) << "a part of it";
  EXPECT_EQ(storage_shape(tensor({5, 3}, 0, {1, 5}), 30, false), (Shape{3, 5})) << "transposed";
  EXPECT_EQ(storage_shape(tensor({5, 3}, 0, {1, 5}), 30, true), (Shape{5, 3})) << "made so";
  EXPECT_EQ(storage_shape(tensor({5, 3}, 0, {6, 1}), 30, false), Shape{}) << "with a hole";
  EXPECT_EQ(storage_shape(tensor({5, 3}, 0, {0, 1}), 30, false), Shape{}) << "repeated";
  CapturedTensor unknown = tensor({3, 5});
  unknown.element_bytes = 0;
  EXPECT_EQ(storage_shape(unknown, 30, true), Shape{});
}

// --- the samples

double product_flops(const Shape& s) {
  double flops = 2;
  for (const std::int64_t extent : s) flops *= static_cast<double>(extent);
  return flops;
}

// The standard formulas; attention in full, a causal mask not deducted: two products forward, five backward.
double flops_of(const Trace& t, const Op& op) {
  const Shape& s = t.shapes[op.shape];
  const bool backward = op.phase == Phase::backward;
  if (op.operator_class == OperatorClass::gemm) return product_flops(s);
  if (op.operator_class == OperatorClass::attention)
    return (backward ? 5 : 2) * product_flops({s[0], s[1], s[3], s[4], s[5]});
  const double once = product_flops({s[0], s[1], s[2], s[3], s[4]}) / static_cast<double>(s[5]);
  std::size_t gradients = 0;  // of the images and of the kernel, but not of the bias
  for (const Use& use : t.uses_of(op))
    gradients += use.access == Access::write && t.shapes[t.storages[use.storage].shape].size() > 1;
  return backward ? static_cast<double>(gradients) * once : once;
}

class SampleShapes : public ::testing::TestWithParam<const char*> {};

TEST_P(SampleShapes, GiveTheFlopsOfTheRecords) {
  const Trace t =
      read_mwc(fs::path(MEMWALL_SOURCE) / "traces/samples/captures" / (std::string(GetParam()) + ".mwc.gz")).trace;
  std::map<OperatorClass, int> seen;
  for (const Op& op : t.ops) {
    if (op.kind != OpKind::kernel) continue;
    ++seen[op.operator_class];
    if (op.operator_class == OperatorClass::other) continue;
    ASSERT_NE(op.shape, 0U) << t.strings[op.name];
    EXPECT_EQ(op.dispatch, Dispatch::eager);
    EXPECT_GT(op.framework_calls, 0);
    const bool product = op.operator_class == OperatorClass::gemm || op.operator_class == OperatorClass::attention ||
                         op.operator_class == OperatorClass::convolution;
    if (product) {
      EXPECT_EQ(flops_of(t, op), op.flops) << t.strings[op.name] << " in " << t.strings[op.module];
    }
  }
  EXPECT_GT(seen[OperatorClass::gemm], 0);
  EXPECT_GT(seen[OperatorClass::attention] + seen[OperatorClass::convolution], 0);
  std::size_t shaped = 0;
  for (const Storage& s : t.storages) shaped += s.shape != 0;
  EXPECT_GT(static_cast<double>(shaped), 0.99 * static_cast<double>(t.storages.size()));
}

TEST_P(SampleShapes, AdamWorksOnEveryParameter) {
  const Trace t =
      read_mwc(fs::path(MEMWALL_SOURCE) / "traces/samples/captures" / (std::string(GetParam()) + ".mwc.gz")).trace;
  double parameters = 0;
  for (const Storage& s : t.storages) {
    if (s.kind != StorageKind::gradient) continue;
    ASSERT_NE(s.shape, 0U) << t.strings[s.label];
    parameters += product_flops(t.shapes[s.shape]) / 2;
  }
  int lists = 0;
  for (const Op& op : t.ops) {
    if (op.operator_class != OperatorClass::optimizer) continue;
    ++lists;
    EXPECT_EQ(static_cast<double>(t.shapes[op.shape][0]), parameters) << t.strings[op.name];
    EXPECT_GT(op.kernels, 1);
  }
  EXPECT_EQ(lists, 8);
}

INSTANTIATE_TEST_SUITE_P(All, SampleShapes,
                         ::testing::Values("gpt2_124m", "llama3_8b", "bert_large", "vit_l", "resnet50",
                                           "mixtral_small"));

// --- what else comes with the records

class CaptureCalls : public ::testing::Test {
 protected:
  Trace trace(const std::string& records, const std::string& header = "") {
    write_content(folder_ / "a.mwc", R"({"format":"memwall-capture","version":1,"mode":"fake")" + header + "}\n" +
                                         R"({"storage":0,"bytes":64,"place":"hbm","preexisting":true})" + "\n" +
                                         records);
    return read_mwc(folder_ / "a.mwc").trace;
  }
  std::string refusal(const std::string& records, const std::string& header = "") {
    try {
      trace(records, header);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  }
  ScratchFolder folder_;
};

TEST_F(CaptureCalls, ViewsCountForTheNextOpOfTheirThread) {
  const Trace t = trace(
      "{\"op\":\"view\",\"reads\":[0],\"kernels\":0}\n"
      "{\"op\":\"other\",\"reads\":[0],\"thread\":1}\n"
      "{\"op\":\"view\",\"reads\":[0],\"kernels\":0,\"calls\":2}\n"
      "{\"op\":\"foreach\",\"reads\":[0],\"kernels\":7,\"calls\":3}\n"
      "{\"op\":\"next\",\"reads\":[0]}\n"
      "{\"op\":\"fused\",\"reads\":[0],\"compiled\":true}\n"
      "{\"op\":\"many\",\"reads\":[0],\"kernels\":70000,\"calls\":70000}\n");
  std::vector<std::pair<int, int>> found;  // calls, kernels
  for (const Op& op : t.ops)
    if (op.kind == OpKind::kernel) found.emplace_back(op.framework_calls, op.kernels);
  const std::vector<std::pair<int, int>> expected{{1, 1}, {6, 7}, {1, 1}, {0, 1}, {65535, 65535}};
  EXPECT_EQ(found, expected);
  EXPECT_EQ(t.ops[t.ops.size() - 2].dispatch, Dispatch::compiled);
  EXPECT_EQ(t.ops.back().dispatch, Dispatch::eager);
}

TEST_F(CaptureCalls, AFileThatWasCutOffIsNoticed) {
  const std::string end = R"(,"end":true)";
  const std::string op = "{\"op\":\"a\",\"reads\":[0]}\n";
  EXPECT_EQ(trace(op + "{\"end\":2}\n", end).ops.size(), 2U);
  EXPECT_EQ(trace(op + "{\"end\":2}\n").ops.size(), 2U) << "not announced, checked all the same";
  EXPECT_EQ(trace(op).ops.size(), 2U) << "of an older writer";
  EXPECT_NE(refusal(op, end).find("a.mwc, line 4: the file ends without its \"end\" record"), std::string::npos)
      << refusal(op, end);
  EXPECT_NE(refusal("{\"end\":2}\n", end).find("line 3: \"end\" counts 2 records, but the file has 1 before it"),
            std::string::npos);
  EXPECT_NE(refusal(op + "{\"end\":2}\n" + op, end).find("line 5: a record follows behind \"end\""), std::string::npos);
}

TEST_F(CaptureCalls, TensorsThatMakeNoSenseAreRefused) {
  const auto of = [&](const std::string& tensors) {
    return refusal("{\"op\":\"a\",\"reads\":[0],\"inputs\":" + tensors + "}\n");
  };
  EXPECT_EQ(of(R"([[[2],"fp32",0],[[],"fp32",0,[]],[[2,0],"new",0,[1,1],"more"]])"), "");
  EXPECT_NE(of("3").find("line 3: \"inputs\" is '3'; expected a list of tensors"), std::string::npos);
  EXPECT_NE(of("[3]").find("\"inputs\" is '3'; expected a list of tensors"), std::string::npos);
  EXPECT_NE(of(R"([[[2],"fp32"]])").find("a tensor of 2 parts; expected"), std::string::npos);
  EXPECT_NE(of(R"([[[2],"fp32",0,[1,1]]])").find("with other than one stride per extent"), std::string::npos);
  EXPECT_NE(of(R"([[[-2],"fp32",0]])").find("\"inputs\" is '-2'; expected a whole number"), std::string::npos);
  EXPECT_NE(of(R"([[2,"fp32",0]])").find("\"inputs\" is '2'; expected a list of extents"), std::string::npos);
  EXPECT_NE(of(R"([[[1125899906842624,2],"fp32",0]])").find("more than 2^50 elements"), std::string::npos);
  EXPECT_NE(of(R"([[[1125899906842624,2,0],"fp32",0]])").find("more than 2^50 elements"), std::string::npos);
  EXPECT_NE(of(R"([[[2],"fp32",17]])").find("line 3: storage 17 is unknown"), std::string::npos);
  std::string deep = "1";
  for (int i = 0; i < 64; ++i) deep += ",1";
  EXPECT_NE(of("[[[" + deep + R"(],"fp32",0]])").find("more than 64 dimensions"), std::string::npos);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
