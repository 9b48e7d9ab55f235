// Is an ExecutionTrace of every schema read field by field, and a damaged one refused with its node?
#include "models/workload/import/execution_trace/execution_trace.h"

#include <zlib.h>

#include <filesystem>
#include <fstream>

#include "models/workload/import/execution_trace/operator_cost.h"
#include "models/workload/import/execution_trace/operator_schema.h"
#include "sim/error.h"
#include "tests/support/shared_data.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

const std::string kAddmmSchema =
    "aten::addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor";

// One matrix product in the form of schema 1.0.1, and in that of 1.0.2 and later.
const std::string kFlat = R"j({"schema":"1.0.1","pid":7,"start_ts":1,"finish_ts":2,"nodes":[
 {"name":"aten::relu_","id":20,"rf_id":6,"parent":2,"fw_parent":0,"seq_id":-1,"scope":0,"tid":1,"fw_tid":0,
  "op_schema":"aten::relu_(Tensor(a!) self) -> Tensor(a!)",
  "inputs":[[18,19,0,24,4,"cuda:0"]],"input_shapes":[[4,6]],"input_types":["Tensor(float)"],
  "outputs":[[18,19,0,24,4,"cuda:0"]],"output_shapes":[[4,6]],"output_types":["Tensor(float)"]},
 {"name":"aten::addmm","id":14,"rf_id":5,"parent":2,"fw_parent":9,"seq_id":661,"scope":0,"tid":1,"fw_tid":3,"op_schema":")j" +
                          kAddmmSchema + R"j(",
  "inputs":[[7,8,0,6,4,"cuda:0"],[3,4,0,20,4,"cuda:0"],[13,6,0,30,4,"cuda:0"],1,1],
  "input_shapes":[[6],[4,5],[5,6],[],[]],"input_types":["Tensor(float)","Tensor(float)","Tensor(float)","Int","Int"],
  "outputs":[[18,19,0,24,4,"cuda:0"]],"output_shapes":[[4,6]],"output_types":["Tensor(float)"]}]})j";

const std::string kAttributes = R"j({"schema":"1.1.1-chakra.0.0.4","pid":7,"nodes":[
 {"id":14,"name":"aten::addmm","ctrl_deps":2,
  "inputs":{"values":[[7,8,0,6,4,"cuda:0"],[3,4,0,20,4,"cuda:0"],[13,6,0,30,4,"cuda:0"],1,1],
            "shapes":[[6],[4,5],[5,6],[],[]],"strides":[[1],[5,1],[6,1],[],[]],
            "types":["Tensor(float)","Tensor(float)","Tensor(float)","Int","Int"]},
  "outputs":{"values":[[18,19,0,24,4,"cuda:0"]],"shapes":[[4,6]],"strides":[[6,1]],"types":["Tensor(float)"]},
  "attrs":[{"name":"rf_id","type":"uint64","value":5},{"name":"fw_parent","type":"uint64","value":9},
           {"name":"seq_id","type":"int64","value":661},{"name":"scope","type":"uint64","value":0},
           {"name":"tid","type":"uint64","value":1},{"name":"fw_tid","type":"uint64","value":3},
           {"name":"op_schema","type":"string","value":")j" +
                                kAddmmSchema + R"j("},
           {"name":"kernel_backend","type":"string","value":""}]}]})j";

ExecutionTrace parse(const std::string& text) { return parse_execution_trace(text, "run.et.json"); }

std::string refusal(const std::string& text) {
  try {
    parse(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

void expect_refused(const std::string& text, const std::string& sentence) {
  const std::string found = refusal(text);
  EXPECT_NE(found.find(sentence), std::string::npos) << "said: " << found;
  EXPECT_EQ(found.substr(0, 13), "run.et.json: ");
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

void expect_addmm(const ExecutionTrace& trace, const ExecutionNode& node) {
  EXPECT_EQ(trace.name(node), "aten::addmm");
  EXPECT_EQ(node.id, 14);
  EXPECT_EQ(node.parent, 2);
  EXPECT_EQ(node.record_function_id, 5);
  EXPECT_EQ(node.forward_parent, 9);
  EXPECT_EQ(node.sequence_number, 661);
  EXPECT_EQ(node.thread, 1);
  EXPECT_EQ(node.forward_thread, 3);
  EXPECT_EQ(trace.strings[node.schema], kAddmmSchema);
  ASSERT_EQ(trace.inputs(node).size(), 3U);
  const TensorUse& weight = trace.inputs(node)[2];
  EXPECT_EQ(weight.tensor, 13);
  EXPECT_EQ(weight.storage, 6);
  EXPECT_EQ(weight.bytes(), 120);
  EXPECT_EQ(weight.argument, 2);
  EXPECT_EQ(weight.type, DataType::fp32);
  EXPECT_TRUE(weight.on_device);
  EXPECT_EQ(std::vector<std::int64_t>(trace.shape(weight).begin(), trace.shape(weight).end()),
            (std::vector<std::int64_t>{5, 6}));
  ASSERT_EQ(trace.outputs(node).size(), 1U);
  EXPECT_EQ(trace.outputs(node)[0].storage, 19);
  EXPECT_EQ(trace.value(node, 3), "1");
  EXPECT_EQ(trace.value(node, 0), "");
  EXPECT_EQ(trace.value(node, 9), "");
}

TEST(ExecutionTraceReader, ReadsTheFlatNodesOfSchema101InHostOrder) {
  const ExecutionTrace trace = parse(kFlat);
  EXPECT_EQ(trace.schema, "1.0.1");
  EXPECT_EQ(trace.process, 7);
  ASSERT_EQ(trace.nodes.size(), 2U);
  expect_addmm(trace, trace.nodes[0]);  // rf_id 5 before 6, whatever the order of the file
  EXPECT_EQ(trace.name(trace.nodes[1]), "aten::relu_");
}

TEST(ExecutionTraceReader, ReadsTheAttributesOfSchema111) {
  const ExecutionTrace trace = parse(kAttributes);
  ASSERT_EQ(trace.nodes.size(), 1U);
  expect_addmm(trace, trace.nodes[0]);
}

TEST(ExecutionTraceReader, FindsTensorsInListsWithTheirOwnShapes) {
  const std::string list = R"j([[1,2,0,3,4,"cuda:0"],"<None>",[4,5,0,8,2,"cpu"]])j";
  std::string text = replaced(kFlat, R"j([7,8,0,6,4,"cuda:0"])j", list);
  text = replaced(text, "[6],[4,5]", "[[3],[],[2,4]],[4,5]");
  text = replaced(text, R"j("input_types":["Tensor(float)","Tensor(float)")j",
                  R"j("input_types":["GenericList[Tensor(c10::Half),None,Tensor(c10::Half)]","Tensor(float)")j");
  const ExecutionTrace trace = parse(text);
  const auto inputs = trace.inputs(trace.nodes[0]);
  ASSERT_EQ(inputs.size(), 4U);
  EXPECT_EQ(inputs[0].argument, 0);
  EXPECT_EQ(inputs[1].argument, 0);
  EXPECT_EQ(inputs[2].argument, 1);
  EXPECT_EQ(inputs[1].type, DataType::fp16);
  EXPECT_FALSE(inputs[1].on_device);
  EXPECT_EQ(trace.shape(inputs[1]).size(), 2U);
  EXPECT_EQ(trace.shape(inputs[1])[1], 4);
}

TEST(ExecutionTraceReader, ReadsWhatItKnowsOfNewerSchemas) {
  EXPECT_FALSE(parse(kAttributes).newer);
  const ExecutionTrace trace = parse(replaced(replaced(kAttributes, "1.1.1-chakra.0.0.4", "1.2.0-chakra.0.1.0"),
                                              R"("name":"kernel_backend")", R"("name":"colour")"));
  EXPECT_TRUE(trace.newer);
  EXPECT_EQ(trace.attributes_skipped, 1U);
  ASSERT_EQ(trace.nodes.size(), 1U);
  EXPECT_EQ(trace.inputs(trace.nodes[0]).size(), 3U);
}

TEST(ExecutionTraceReader, KeepsWhatNodesSayOfCollectivesAndCompilers) {
  std::string text = replaced(kAttributes, R"({"name":"kernel_backend","type":"string","value":""})",
                              R"({"name":"kernel_backend","type":"string","value":"triton"},
       {"name":"pg_name","type":"string","value":"7"},{"name":"pg_size","type":"uint64","value":16},
       {"name":"global_rank_start","type":"uint64","value":"3"},{"name":"global_rank_stride","type":"uint64","value":4})");
  const ExecutionTrace trace = parse(text);
  EXPECT_EQ(trace.strings[trace.nodes.at(0).kernel_backend], "triton");
  ASSERT_EQ(trace.collectives.size(), 1U);
  EXPECT_EQ(trace.strings[trace.collectives[0].group], "7");
  EXPECT_EQ(trace.collectives[0].ranks, 16);
  EXPECT_EQ(trace.collectives[0].first_rank, 3);  // a number written as text counts
  EXPECT_EQ(trace.collectives[0].step, 4);
  EXPECT_EQ(trace.collectives[0].sent, -1);
  EXPECT_EQ(trace.inputs(trace.nodes[0])[0].device, 0);
}

TEST(ExecutionTraceReader, AcceptsTheBareInfinitiesThatOldObserversPrint) {
  const ExecutionTrace trace = parse(replaced(kFlat, "\"cuda:0\"],1,1]", "\"cuda:0\"],-inf,nan]"));
  ASSERT_EQ(trace.nodes.size(), 2U);
  EXPECT_EQ(trace.inputs(trace.nodes[0]).size(), 3U);
  expect_refused(replaced(kFlat, "\"cuda:0\"],1,1]", "\"cuda:0\"],-inf,cut"), "not a complete JSON document");
}

TEST(ExecutionTraceReader, RefusesDamageWithFileNodeFoundAndExpected) {
  expect_refused("", "not a complete JSON document (0 bytes)");
  expect_refused(kFlat.substr(0, kFlat.size() / 2), "not a complete JSON document");
  expect_refused("[1,2]", "the document is no JSON object");
  expect_refused(R"j({"traceEvents":[]})j", "a Kineto capture has 'traceEvents' instead");
  expect_refused(replaced(kFlat, "1.0.1", "0.9.1"), "schema '0.9.1' is not known; expected 1.0.1 to 1.1.1 or newer");
  expect_refused(replaced(kFlat, "1.0.1", "newest"), "schema 'newest' is not known");
  expect_refused(R"j({"schema":"1.0.1"})j", "there is no list 'nodes'");
  expect_refused(replaced(kFlat, "\"rf_id\":6", "\"rf_id\":\"six\""),
                 "node number 1 (id 20, 'aten::relu_'): 'rf_id' is '\"six\"'; expected a whole number.");
  expect_refused(replaced(kFlat, "\"rf_id\":6,", ""), "there is no 'rf_id'");
  expect_refused(replaced(kFlat, "[18,19,0,24,4", "[18,19,0,-24,4"), "tensor 18 has -24 elements of 4 bytes");
  expect_refused(replaced(kFlat, "[[4,6]]", "[[4,-6]]"), "tensor 18 has the shape '[4,-6]'");
  expect_refused(replaced(kFlat, "[[4,6]]", "[]"), "1 inputs, but 0 shapes and 1 types; expected equally many");
  expect_refused(replaced(kFlat, "[18,19,0,24,4", "[18,19,0,99999999999999999,4"), "at most");
}

TEST(ExecutionTraceReader, ATruncatedGzipFileIsNamedSo) {
  const auto path = std::filesystem::path(testing::TempDir()) / "memwall_execution_trace_test.json.gz";
  gzFile out = gzopen(path.c_str(), "wb");
  ASSERT_NE(out, nullptr);
  ASSERT_EQ(gzwrite(out, kFlat.data(), static_cast<unsigned>(kFlat.size())), static_cast<int>(kFlat.size()));
  gzclose(out);
  EXPECT_EQ(read_execution_trace(path).nodes.size(), 2U);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
  try {
    read_execution_trace(path);
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("truncated gzip file"), std::string::npos) << error.what();
  }
  std::filesystem::remove(path);
  EXPECT_THROW(read_execution_trace(path), InputError);
}

TEST(ExecutionTraceReader, ReadsTheCapturesCompletely) {
  const auto data = shared_data();
  if (!data) GTEST_SKIP() << "MEMWALL_SHARED names no folder with captures";
  const auto folder = *data / "traces/execution_trace";
  EXPECT_EQ(read_execution_trace(folder / "vgg13_h100_bs512.json").nodes.size(), 903U);
  EXPECT_EQ(read_execution_trace(folder / "linear_2080ti.json.gz").nodes.size(), 931U);
  const ExecutionTrace resnet = read_execution_trace(folder / "resnet_1gpu_1.0.3.json.gz");
  EXPECT_EQ(resnet.nodes.size(), 14391U);
  EXPECT_EQ(resnet.schema, "1.0.3-chakra.0.0.4");
  EXPECT_EQ(read_execution_trace(*data / "traces/dlrm_8xv100/rank0.et.json.gz").nodes.size(), 1675U);
}

TEST(OperatorSchema, TellsNamesAndWhatIsWritten) {
  const OperatorSchema add =
      parse_schema("aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)");
  ASSERT_EQ(add.arguments.size(), 3U);
  EXPECT_EQ(add.name(0), "self");
  EXPECT_EQ(add.name(2), "alpha");
  EXPECT_EQ(add.name(3), "");
  EXPECT_TRUE(writes_argument(add, "aten::add_", 0));
  EXPECT_FALSE(writes_argument(add, "aten::add_", 1));
  const OperatorSchema pool = parse_schema(
      "aten::max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] dilation=[1, 1], bool "
      "ceil_mode=False) -> Tensor");
  EXPECT_EQ(pool.position("ceil_mode"), 4U);
  EXPECT_EQ(pool.position("padding"), pool.arguments.size());
  const OperatorSchema lists =
      parse_schema("aten::_foreach_lerp_.Scalar(Tensor(a!)[] self, Tensor[] tensors1, Scalar weight) -> ()");
  EXPECT_TRUE(writes_argument(lists, "aten::_foreach_lerp_", 0));
  EXPECT_EQ(lists.name(1), "tensors1");
}

TEST(OperatorSchema, WithoutOneTheNameDecides) {
  EXPECT_TRUE(writes_argument(parse_schema(""), "mine::scale_", 0));
  EXPECT_FALSE(writes_argument(parse_schema(""), "mine::scale_", 1));
  EXPECT_FALSE(writes_argument(parse_schema(""), "mine::scale", 0));
  EXPECT_FALSE(writes_argument(parse_schema(""), "mine::__and__", 0));
  EXPECT_TRUE(parse_schema("aten::broken(Tensor self, ").arguments.empty());
}

// A node with tensors of these shapes; the outputs are fp16, so 2 bytes an element.
OperatorCost cost(const std::string& name, const std::string& schema, const std::string& inputs,
                  const std::string& shapes, const std::string& types, const std::string& outputs,
                  const std::string& output_shapes, const std::string& output_types) {
  const ExecutionTrace trace =
      parse(R"j({"schema":"1.0.1","nodes":[{"name":")j" + name +
            R"j(","id":1,"rf_id":1,"parent":0,"fw_parent":0,"seq_id":0,"scope":0,"tid":1,"fw_tid":0,"op_schema":")j" +
            schema + R"j(","inputs":)j" + inputs + R"j(,"input_shapes":)j" + shapes + R"j(,"input_types":)j" + types +
            R"j(,"outputs":)j" + outputs + R"j(,"output_shapes":)j" + output_shapes + R"j(,"output_types":)j" +
            output_types + "}]}");
  return cost_of(trace, trace.nodes[0]);
}

TEST(OperatorCost, OfAMatrixProduct) {
  const ExecutionTrace trace = parse(kFlat);
  const OperatorCost product = cost_of(trace, trace.nodes[0]);
  EXPECT_EQ(product.flops, 2.0 * 4 * 5 * 6);
  EXPECT_EQ(product.bytes, 4 * (6 + 20 + 30 + 24));
  EXPECT_EQ(product.data_type, DataType::fp32);
  const OperatorCost relu = cost_of(trace, trace.nodes[1]);
  EXPECT_EQ(relu.flops, 0);
  EXPECT_EQ(relu.bytes, 2 * 4 * 24);  // read and written
}

TEST(OperatorCost, OfABatchedProductCountsEveryBatch) {
  const OperatorCost c = cost("aten::bmm", "aten::bmm(Tensor self, Tensor mat2) -> Tensor",
                              R"j([[1,2,0,70,2,"cuda:0"],[3,4,0,84,2,"cuda:0"]])j", "[[7,2,5],[7,5,3]]",
                              R"j(["Tensor(c10::Half)","Tensor(c10::Half)"])j", R"j([[5,6,0,42,2,"cuda:0"]])j",
                              "[[7,2,3]]", R"j(["Tensor(c10::Half)"])j");
  EXPECT_EQ(c.flops, 2.0 * 7 * 2 * 5 * 3);
  EXPECT_EQ(c.data_type, DataType::fp16);
}

const std::string kConvolutionBackward =
    "aten::convolution_backward(Tensor grad_output, Tensor input, Tensor weight, SymInt[]? bias_sizes, bool "
    "transposed, "
    "bool[3] output_mask) -> (Tensor, Tensor, Tensor)";

OperatorCost convolution_backward(const std::string& first_output) {
  return cost(
      "aten::convolution_backward", kConvolutionBackward,
      R"j([[1,2,0,1152,4,"cuda:0"],[3,4,0,600,4,"cuda:0"],[5,6,0,216,4,"cuda:0"],[8],false,[true,true,true]])j",
      "[[2,8,6,12],[2,3,10,10],[8,3,3,3],[[]],[],[[],[],[]]]",
      R"j(["Tensor(float)","Tensor(float)","Tensor(float)","GenericList[Int]","Bool","GenericList[Bool,Bool,Bool]"])j",
      "[" + first_output + R"j(,[9,10,0,216,4,"cuda:0"],[11,12,0,8,4,"cuda:0"]])j",
      "[" + std::string(first_output.find("cuda") == std::string::npos ? "[]" : "[2,3,10,10]") + ",[8,3,3,3],[8]]",
      R"j(["Tensor(float)","Tensor(float)","Tensor(float)"])j");
}

TEST(OperatorCost, OfAConvolutionsBackwardPassCountsTheGradientsThatExist) {
  const double one = 2.0 * 2 * 6 * 12 * 8 * 3 * 3 * 3;
  EXPECT_EQ(convolution_backward(R"j([7,8,0,600,4,"cuda:0"])j").flops, 2 * one);
  EXPECT_EQ(convolution_backward(R"j([7,0,0,0,0,""])j").flops, one);
}

TEST(OperatorCost, OfAttentionCountsBothProducts) {
  const std::string tensor = R"j([1,2,0,4096,2,"cuda:0"])j";
  const OperatorCost c =
      cost("aten::_scaled_dot_product_flash_attention",
           "aten::_scaled_dot_product_flash_attention(Tensor query, Tensor key, Tensor value) -> Tensor",
           "[" + tensor + "," + tensor + "," + tensor + "]", "[[2,4,16,32],[2,4,64,32],[2,4,64,32]]",
           R"j(["Tensor(c10::BFloat16)","Tensor(c10::BFloat16)","Tensor(c10::BFloat16)"])j", "[]", "[]", "[]");
  EXPECT_EQ(c.flops, 2 * (2.0 * 2 * 4 * 16 * 64 * 32));
  EXPECT_EQ(c.data_type, DataType::bf16);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
