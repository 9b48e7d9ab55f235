// Does an ExecutionTrace alone become the program that PyTorch ran: kernels, copies, collectives, lives of storages?
#include "models/workload/import/execution_trace/execution_step.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "models/workload/import/execution_trace/communication_node.h"
#include "models/workload/import/execution_trace/device_work_of_nodes.h"
#include "sim/error.h"
#include "sim/trace/derived_lives.h"
#include "sim/trace/trace_check.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

// One node in the form of schema 1.0.1.
struct Node {
  std::string name;
  int id = 0, parent = 0, scope = 0, thread = 1;
  std::string inputs{}, input_shapes{}, input_types{}, outputs{}, output_shapes{}, output_types{}, schema{};
};

std::string tensor(int id, int storage, int elements, const std::string& device = "cuda:0") {
  return "[" + std::to_string(id) + "," + std::to_string(storage) + ",0," + std::to_string(elements) + ",4,\"" +
         device + "\"]";
}

// Nodes are numbered in the order in which they are given.
std::string file_of(const std::vector<Node>& nodes) {
  std::string text = R"({"schema":"1.0.1","pid":7,"nodes":[)";
  int number = 0;
  for (const Node& n : nodes) {
    ++number;
    text += std::string(number > 1 ? "," : "") + R"({"name":")" + n.name + R"(","id":)" + std::to_string(n.id) +
            R"(,"rf_id":)" + std::to_string(number) + R"(,"parent":)" + std::to_string(n.parent) +
            R"(,"fw_parent":0,"seq_id":-1,"scope":)" + std::to_string(n.scope) + R"(,"tid":)" +
            std::to_string(n.thread) + R"(,"fw_tid":0,"op_schema":")" + n.schema + R"(","inputs":[)" + n.inputs +
            R"(],"input_shapes":[)" + n.input_shapes + R"(],"input_types":[)" + n.input_types + R"(],"outputs":[)" +
            n.outputs + R"(],"output_shapes":[)" + n.output_shapes + R"(],"output_types":[)" + n.output_types + "]}";
  }
  return text + "]}";
}

Trace trace_of(const std::vector<Node>& nodes) {
  Trace trace = step_of(parse_execution_trace(file_of(nodes), "run.et.json")).trace;
  EXPECT_EQ(check(trace), std::vector<std::string>{});
  return trace;
}

const std::string kFloat = "\"Tensor(float)\"";
const std::string kTwoFloats = "\"Tensor(float)\",\"Tensor(float)\"";

Node matrix_product(int id, int parent, int a, int b, int c) {
  return {"aten::mm",    id,         parent,           0,       1,      tensor(a, a, 20) + "," + tensor(b, b, 30),
          "[4,5],[5,6]", kTwoFloats, tensor(c, c, 24), "[4,6]", kFloat, "aten::mm(Tensor self, Tensor mat2) -> Tensor"};
}

Node relu(int id, int parent, int in, int out) {
  return {"aten::relu",
          id,
          parent,
          0,
          1,
          tensor(in, in, 24),
          "[4,6]",
          kFloat,
          tensor(out, out, 24),
          "[4,6]",
          kFloat,
          "aten::relu(Tensor self) -> Tensor"};
}

std::vector<OpKind> kinds(const Trace& trace) {
  std::vector<OpKind> list;
  for (const Op& op : trace.ops) list.push_back(op.kind);
  return list;
}

const Op& device_op(const Trace& trace, std::size_t number) {
  for (const Op& op : trace.ops)
    if (runs_on_device(op.kind) && number-- == 0) return op;
  throw std::out_of_range("too few device ops");
}

TEST(ExecutionStep, AStorageLivesFromItsFirstUseToItsLast) {
  const Trace trace = trace_of({matrix_product(10, 0, 1, 2, 3), relu(11, 0, 3, 4), relu(12, 0, 4, 5)});
  using K = OpKind;
  EXPECT_EQ(kinds(trace), (std::vector<K>{K::mark, K::alloc, K::kernel, K::alloc, K::kernel, K::free, K::alloc,
                                          K::kernel, K::free, K::free}));
  const Op& product = device_op(trace, 0);
  EXPECT_DOUBLE_EQ(product.flops, 2.0 * 4 * 5 * 6);
  EXPECT_EQ(product.bytes, (20 + 30 + 24) * 4);
  EXPECT_EQ(trace.shapes[product.shape], (Shape{1, 4, 6, 5}));
  EXPECT_EQ(product.dispatch, Dispatch::eager);
  EXPECT_EQ(product.framework_calls, 1);
  EXPECT_EQ(product.origin, Origin::modelled);
  EXPECT_TRUE(trace.knowledge.dataflow && trace.knowledge.allocations && trace.knowledge.shapes);
  EXPECT_TRUE(has_derived_lives(trace));
  EXPECT_FALSE(trace.knowledge.timing);
  EXPECT_EQ(std::count_if(trace.storages.begin(), trace.storages.end(), [](const Storage& s) { return s.preexisting; }),
            2);
}

TEST(ExecutionStep, AnIdThatComesBackIsAnotherStorage) {
  const Trace trace =
      trace_of({matrix_product(10, 0, 1, 2, 3), relu(11, 0, 3, 4), relu(12, 0, 4, 3), relu(13, 0, 3, 5)});
  EXPECT_EQ(trace.storages.size(), 2U + 4U);  // 3 means two of them
  EXPECT_EQ(trace.uses_of(device_op(trace, 3))[0].version, 1U);
}

// Wrappers run nothing; an operator whose result the ones inside merely filled does.
TEST(ExecutionStep, OnlyOperatorsThatWriteByThemselvesRunKernels) {
  std::vector<Node> nodes{matrix_product(10, 9, 1, 2, 3)};
  nodes.insert(nodes.begin(), nodes[0]);
  nodes[0].name = "aten::matmul";
  nodes[0].id = 9;
  nodes[0].parent = 0;
  Node view = relu(20, 0, 3, 3);  // gives back what it received
  view.name = "aten::view";
  view.schema = "aten::view(Tensor(a) self, int[] size) -> Tensor(a)";
  nodes.push_back(view);
  Node pool = relu(30, 0, 3, 40);
  pool.name = "aten::max_pool2d_with_indices_backward";
  pool.schema = "aten::max_pool2d_with_indices_backward(Tensor grad) -> Tensor";
  nodes.push_back(pool);
  Node fill = relu(31, 30, 40, 40);
  fill.name = "aten::zero_";
  fill.schema = "aten::zero_(Tensor(a!) self) -> Tensor(a!)";
  nodes.push_back(fill);
  Node stream = relu(32, 0, 40, 40);
  stream.name = "aten::record_stream";
  stream.schema = "aten::record_stream(Tensor(a!) self, Stream s) -> ()";
  stream.outputs = stream.output_shapes = stream.output_types = "";
  nodes.push_back(stream);
  const Trace trace = trace_of(nodes);
  std::vector<std::string> names;
  for (const Op& op : trace.ops)
    if (op.kind == OpKind::kernel) names.push_back(trace.strings[op.name]);
  EXPECT_EQ(names, (std::vector<std::string>{"aten::mm", "aten::zero_", "aten::max_pool2d_with_indices_backward"}));
  EXPECT_EQ(device_op(trace, 1).framework_calls, 1) << "the view; zero_ is called from within a kernel's operator";
  EXPECT_EQ(device_op(trace, 2).framework_calls, 1);
}

Node copy(int id, const std::string& to, const std::string& from, bool asynchronous) {
  return {"aten::copy_",
          id,
          0,
          0,
          1,
          tensor(id + 1, id + 1, 24, to) + "," + tensor(id + 2, id + 2, 24, from) + (asynchronous ? ",true" : ",false"),
          "[4,6],[4,6],[]",
          kTwoFloats + ",\"Bool\"",
          tensor(id + 1, id + 1, 24, to),
          "[4,6]",
          kFloat,
          "aten::copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)"};
}

TEST(ExecutionStep, CopiesBetweenHostAndDeviceAreCopiesAndTheHostWaitsForBlockingOnes) {
  const Trace trace = trace_of({copy(10, "cuda:0", "cpu", false), copy(20, "cuda:0", "cpu", true),
                                copy(30, "cpu", "cuda:0", false), copy(40, "cuda:0", "cuda:0", false),
                                copy(50, "cuda:1", "cuda:0", false), copy(60, "cpu", "cpu", false)});
  const auto expect_copy = [&](std::size_t number, const char* from, const char* to, WaitFor wait) {
    const Op& op = device_op(trace, number);
    EXPECT_EQ(op.kind, OpKind::copy) << number;
    EXPECT_EQ(trace.places[op.from], from) << number;
    EXPECT_EQ(trace.places[op.to], to) << number;
    EXPECT_EQ(op.wait_for, wait) << number;
    EXPECT_EQ(op.bytes, 96) << number;
  };
  expect_copy(0, "host", "hbm", WaitFor::own_op);
  expect_copy(1, "host", "hbm", WaitFor::nothing);
  expect_copy(2, "hbm", "host", WaitFor::own_op);
  EXPECT_EQ(device_op(trace, 3).kind, OpKind::kernel) << "within a device it is a kernel";
  expect_copy(4, "hbm", "peer_hbm", WaitFor::nothing);
  EXPECT_EQ(std::count_if(trace.ops.begin(), trace.ops.end(), [](const Op& op) { return runs_on_device(op.kind); }), 5);
  EXPECT_EQ(trace.streams.size(), 2U) << "one per device";
  EXPECT_EQ(device_op(trace, 4).stream, 1);
}

Node record(int id, int parent, const std::string& values, int count) {
  Node n{"record_param_comms", id, parent};
  n.inputs = values;
  for (int i = 0; i < count; ++i) {
    n.input_shapes += i == 0 ? "[]" : ",[]";
    n.input_types += i == 0 ? "\"Int\"" : ",\"Int\"";
  }
  return n;
}

TEST(ExecutionStep, CollectivesRunBesideAndWhoeverNeedsThemWaits) {
  Node outer{"c10d::allreduce_", 20, 0, 0, 1, tensor(3, 3, 24), "[4,6]", kFloat, tensor(3, 3, 24), "[4,6]", kFloat, ""};
  Node range{"nccl:all_reduce", 22, 21, 7, 1, tensor(3, 3, 24), "[4,6]", kFloat, "", "", "", ""};
  const std::string values = tensor(3, 3, 24) + ",147,[\"5\",\"pipe\"],2,\"allreduce\",[],[],2,4,3";
  const Node inner = record(21, 20, values, 10);
  const Trace trace = trace_of({matrix_product(10, 0, 1, 2, 3), outer, inner, range, relu(30, 0, 1, 6),
                                record(31, 0, "147,0,0,\"wait\",[],[]", 6), relu(32, 0, 3, 7)});
  ASSERT_EQ(trace.groups.size(), 1U);
  EXPECT_EQ(trace.groups[0].name, "5");
  EXPECT_EQ(trace.groups[0].ranks, 3U);
  EXPECT_EQ(trace.groups[0].members, (std::vector<std::uint32_t>{2, 6, 10}));
  EXPECT_EQ(trace.job_ranks, 11U);
  const Op& collective = device_op(trace, 1);
  EXPECT_EQ(collective.kind, OpKind::collective) << "one, not one per node that names it";
  EXPECT_EQ(collective.collective, CollectiveKind::all_reduce);
  EXPECT_EQ(collective.bytes, 2 * 96 * 2 / 3);
  EXPECT_NE(collective.stream, device_op(trace, 0).stream);
  std::vector<std::pair<OpKind, int>> order;  // kind, stream
  for (const Op& op : trace.ops)
    if (op.kind == OpKind::event_record || op.kind == OpKind::event_wait || runs_on_device(op.kind))
      order.emplace_back(op.kind, op.stream);
  using K = OpKind;
  EXPECT_EQ(order, (std::vector<std::pair<K, int>>{{K::kernel, 0},
                                                   {K::event_record, 0},
                                                   {K::event_wait, 1},
                                                   {K::collective, 1},
                                                   {K::event_record, 1},
                                                   {K::kernel, 0},
                                                   {K::event_wait, 0},
                                                   {K::kernel, 0}}));
}

TEST(ExecutionStep, WithoutARecordTheFirstUserOfACollectivesTensorWaits) {
  Node outer{"c10d::allreduce_", 20, 0, 0, 1, tensor(3, 3, 24), "[4,6]", kFloat, tensor(3, 3, 24), "[4,6]", kFloat, ""};
  const Trace trace = trace_of({matrix_product(10, 0, 1, 2, 3), outer, relu(30, 0, 1, 6), relu(32, 0, 3, 7)});
  const auto kernel = [&](int number) {
    return std::find_if(trace.ops.begin(), trace.ops.end(),
                        [&](const Op& op) { return op.kind == OpKind::kernel && number-- == 0; });
  };
  EXPECT_EQ(std::count_if(kernel(0), kernel(1), [](const Op& op) { return op.kind == OpKind::event_wait; }), 1);
  EXPECT_EQ(std::count_if(kernel(1), kernel(2), [](const Op& op) { return op.kind == OpKind::event_wait; }), 1);
}

TEST(ExecutionStep, ThreadsTakeTurnsAndTheBackwardPassIsFound) {
  Node engine{"autograd::engine::evaluate_function: MmBackward0", 40, 0, 0, 2};
  Node backward = matrix_product(41, 40, 1, 2, 9);
  backward.thread = 2;
  Node step{"Optimizer.step#SGD.step", 50, 0, 7, 1};
  Node update = relu(51, 50, 9, 10);
  const Trace trace = trace_of({matrix_product(10, 0, 1, 2, 3), engine, backward, step, update});
  EXPECT_EQ(device_op(trace, 0).phase, Phase::forward);
  EXPECT_EQ(device_op(trace, 1).phase, Phase::backward);
  EXPECT_EQ(device_op(trace, 2).phase, Phase::optimizer);
  EXPECT_EQ(
      std::count_if(trace.ops.begin(), trace.ops.end(), [](const Op& op) { return op.kind == OpKind::hand_over; }), 2);
}

// A profiler begins a last step that the program does not go through: a mean over both would be half the true time.
TEST(ExecutionStep, AnEmptyLastProfilerStepIsNone) {
  const auto range = [](int id, const char* name) { return Node{name, id, 0, 7, 1}; };
  const std::vector<Node> steps{range(10, "ProfilerStep#1"), matrix_product(11, 10, 1, 2, 3),
                                range(20, "ProfilerStep#2"), matrix_product(21, 20, 1, 2, 4)};
  const Trace two = trace_of(steps);
  ASSERT_EQ(two.steps.size(), 2u);
  std::vector<Node> with_empty = steps;
  with_empty.push_back(range(30, "ProfilerStep#3"));
  with_empty.push_back({"aten::t", 31, 30, 0, 1, tensor(1, 1, 20), "[4,5]", kFloat, tensor(5, 1, 20), "[5,4]", kFloat,
                        "aten::t(Tensor(a) self) -> Tensor(a)"});
  const Trace three = trace_of(with_empty);
  ASSERT_EQ(three.steps.size(), 2u);
  EXPECT_EQ(three.steps.back().name, "ProfilerStep#2");
  EXPECT_EQ(three.steps.back().last, three.ops.size());
  // Of one whole step and an empty one there is one.
  const Trace one = trace_of({steps[0], steps[1], range(20, "ProfilerStep#2")});
  ASSERT_EQ(one.steps.size(), 1u);
  EXPECT_EQ(one.steps.front().name, "ProfilerStep#1");
}

TEST(ExecutionStep, AGradientLivesUntilTheNextZeroGrad) {
  Node accumulate{"torch::autograd::AccumulateGrad", 40, 0, 1, 2, tensor(3, 3, 24), "[4,6]", kFloat, "", "", "", ""};
  const auto freed = [](const Trace& trace) {
    for (std::size_t i = 0; i < trace.ops.size(); ++i)
      if (trace.ops[i].kind == OpKind::free && trace.storages[trace.ops[i].target].kind == StorageKind::gradient)
        return static_cast<int>(i);
    return -1;
  };
  const std::vector<Node> once{matrix_product(10, 0, 1, 2, 3), accumulate, relu(60, 0, 1, 6)};
  EXPECT_EQ(freed(trace_of(once)), -1);
  std::vector<Node> twice = once;
  twice.push_back({"Optimizer.zero_grad#SGD.zero_grad", 70, 0, 7, 1});
  twice.push_back(relu(71, 0, 1, 8));
  const Trace trace = trace_of(twice);
  const int end = freed(trace);
  ASSERT_GT(end, 0);
  EXPECT_GT(end, 5) << "not behind its last use";
}

TEST(ExecutionStep, KernelsOfACompilerWriteTheirLastTensor) {
  const std::string node =
      R"j({"schema":"1.1.1-chakra.0.0.4","nodes":[{"id":5,"name":"triton_poi_fused_relu_0","ctrl_deps":0,
   "inputs":{"values":[)j" +
      tensor(1, 1, 24) + "," + tensor(2, 2, 24) + R"j(,24],"shapes":[[4,6],[4,6],[]],
   "types":["Tensor(float)","Tensor(float)","Int"]},"outputs":{"values":[],"shapes":[],"types":[]},
   "attrs":[{"name":"rf_id","type":"uint64","value":1},{"name":"kernel_backend","type":"string","value":"triton"}]}]})j";
  const Trace trace = step_of(parse_execution_trace(node, "run.et.json")).trace;
  const Op& kernel = device_op(trace, 0);
  EXPECT_EQ(kernel.dispatch, Dispatch::compiled);
  ASSERT_EQ(kernel.use_count, 2);
  EXPECT_EQ(trace.uses_of(kernel)[1].access, Access::write);
  EXPECT_FALSE(trace.storages[trace.uses_of(kernel)[1].storage].preexisting);
}

TEST(ExecutionStep, AStepOfTheHostAloneIsRefused) {
  Node host = copy(60, "cpu", "cpu", false);
  try {
    trace_of({host});
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("run.et.json: none of its 1 nodes has a tensor on a GPU"),
              std::string::npos)
        << error.what();
  }
}

TEST(ExecutionStep, ListedGroupsHaveTheirMembers) {
  Node init{"## process_group:init ##", 3, 0, 7};
  init.inputs =
      R"("[{\"pg_name\": \"0\", \"ranks\": [], \"group_size\": 8}, {\"pg_name\": \"1\", \"ranks\": [5, 1]}]")";
  init.input_shapes = "[]";
  init.input_types = "\"String\"";
  const auto groups = listed_groups(parse_execution_trace(file_of({init}), "run.et.json"));
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].ranks, 8U);
  EXPECT_EQ(groups[1].members, (std::vector<std::uint32_t>{1, 5}));
  EXPECT_EQ(groups[1].ranks, 2U);
}

// A convolution of single precision; `allow` is what it says of TF32, "" nothing.
Node convolution(int id, const std::string& allow) {
  const bool says = !allow.empty();
  return {"aten::cudnn_convolution",
          id,
          1,
          0,
          1,
          tensor(1, 1, 192) + "," + tensor(2, 2, 108) + (says ? "," + allow : ""),
          std::string("[1,3,8,8],[4,3,3,3]") + (says ? ",[]" : ""),
          kTwoFloats + (says ? ",\"Bool\"" : ""),
          tensor(3, 3, 144),
          "[1,4,6,6]",
          kFloat,
          std::string("aten::cudnn_convolution(Tensor self, Tensor weight") + (says ? ", bool allow_tf32" : "") +
              ") -> Tensor"};
}

TEST(ExecutionStep, WhetherConvolutionsUseTf32IsDecided) {
  struct Case {
    std::string allow;
    DataType type;
    std::uint64_t covered;
    const char* why;
  };
  for (const Case& c :
       {Case{"true", DataType::tf32, 1, "allow_tf32=true"}, Case{"false", DataType::fp32, 0, "allow_tf32=false"},
        Case{"", DataType::tf32, 1, "PyTorch's default"}}) {
    const ImportedStep step = step_of(parse_execution_trace(file_of({convolution(4, c.allow)}), "run.et.json"));
    const auto decision = std::find_if(step.decisions.begin(), step.decisions.end(),
                                       [](const Decision& d) { return d.subject == "convolutions in TF32"; });
    ASSERT_NE(decision, step.decisions.end()) << c.allow;
    EXPECT_EQ(decision->covered, c.covered);
    EXPECT_EQ(decision->of, 1u);
    EXPECT_NE(decision->sentence.find(c.why), std::string::npos) << decision->sentence;
    const auto kernel = std::find_if(step.trace.ops.begin(), step.trace.ops.end(),
                                     [](const Op& op) { return op.kind == OpKind::kernel; });
    ASSERT_NE(kernel, step.trace.ops.end());
    EXPECT_EQ(kernel->data_type, c.type);
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
