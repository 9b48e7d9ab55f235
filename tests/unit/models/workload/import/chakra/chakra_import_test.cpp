// Does a Chakra graph, in either notation, become the program that it describes?
#include "models/workload/import/chakra/chakra_import.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "models/workload/import/chakra/chakra_graph.h"
#include "models/workload/import/chakra/chakra_order.h"
#include "models/workload/import/bytes/file_head.h"
#include "models/workload/import/chakra/python_lists.h"
#include "sim/error.h"
#include "sim/trace/trace_check.h"
#include "tests/support/chakra_writer.h"
#include "tests/support/scratch_folder.h"
#include "models/workload/import/importer.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

const ScratchFolder& folder() {
  static const ScratchFolder scratch;
  return scratch;
}

ImportedStep step_of(const std::string& content, const std::string& name = "graph") {
  write_content(folder() / name, content);
  FileHead head = read_file_head(folder() / name);
  const Importer* importer = find_importer(head);
  if (importer == nullptr) throw InputError("not recognized");
  ImportedStep step = importer->import(folder() / name, {});
  EXPECT_EQ(check(step.trace), std::vector<std::string>{});
  return step;
}

Trace trace_of(const std::vector<WrittenNode>& nodes) { return step_of(chakra_file(nodes)).trace; }

bool decided(const ImportedStep& step, const std::string& subject) {
  return std::any_of(step.decisions.begin(), step.decisions.end(),
                     [&](const Decision& d) { return d.subject == subject; });
}

std::string refusal(const std::string& content) {
  write_content(folder() / "bad", content);
  try {
    import_chakra_messages(folder() / "bad", {});
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

std::string shown(const Trace& trace) {
  std::string text;
  for (const Op& op : trace.ops) {
    text += std::string(text.empty() ? "" : " ") + std::string(to_string(op.kind));
    if (runs_on_device(op.kind) || op.kind == OpKind::event_wait) text += std::to_string(op.stream);
  }
  return text;
}

WrittenNode compute(std::uint64_t id, std::vector<std::uint64_t> deps, std::uint64_t us) {
  return {.id = id, .name = "COMP_NODE", .data = std::move(deps), .duration = us};
}

TEST(Chakra, GraphsWithoutAHostRunInTheirOrderOnThreeStreams) {
  // Out of order in the file, id 0 left out, an edge on nothing, is_cpu_op missing.
  std::vector<WrittenNode> nodes{compute(2, {0, 77}, 5), compute(0, {}, 7)};
  nodes.push_back(WrittenNode{.id = 3, .name = "ALL_REDUCE", .type = 7, .data = {0}}
                      .with("comm_type", 0, 7)
                      .with("comm_size", 1000, 13));
  nodes.push_back(WrittenNode{.id = 4, .name = "load", .type = 2, .data = {3}}.with("tensor_size", 4096, 11));
  const ImportedStep step = step_of(chakra_file(nodes));
  const Trace& t = step.trace;
  EXPECT_EQ(shown(t), "mark kernel0 event_record kernel0 event_wait1 collective1 event_record event_wait2 copy2");
  EXPECT_EQ(t.ops[1].duration, microseconds(7));
  EXPECT_EQ(t.ops[1].origin, Origin::measured);
  EXPECT_EQ(t.ops[5].collective, CollectiveKind::all_reduce);
  EXPECT_EQ(t.ops[5].bytes, 1000);
  EXPECT_EQ(t.ops[5].origin, Origin::modelled) << "it has work and no duration: a machine prices it";
  EXPECT_EQ(t.ops[8].bytes, 4096);
  EXPECT_EQ(t.places[t.ops[8].from], "host");
  EXPECT_TRUE(t.knowledge.timing);
  EXPECT_TRUE(decided(step, "dependencies on nothing"));
  EXPECT_TRUE(decided(step, "size of groups"));
}

TEST(Chakra, WorkWithoutAnyDurationIsLeftToAMachine) {
  const Trace t =
      trace_of({WrittenNode{.id = 1, .name = "layer"}.with("num_ops", 2000, 13).with("tensor_size", 64, 9)});
  EXPECT_FALSE(t.knowledge.timing);
  EXPECT_TRUE(t.knowledge.shapes);
  EXPECT_EQ(t.ops[1].flops, 2000);
  EXPECT_EQ(t.ops[1].bytes, 64);
  EXPECT_EQ(t.ops[1].origin, Origin::modelled);
}

TEST(Chakra, ACircleIsBrokenAtItsFirstNode) {
  const ImportedStep step = step_of(chakra_file({compute(1, {3}, 1), compute(2, {1}, 2), compute(3, {2}, 3)}));
  EXPECT_TRUE(decided(step, "circles"));
  EXPECT_EQ(shown(step.trace), "mark kernel0 kernel0 kernel0");
  EXPECT_EQ(step.trace.ops[1].duration, microseconds(1));
}

WrittenNode without_work(std::uint64_t id, std::vector<std::uint64_t> deps) {
  return {.id = id, .name = "METADATA", .type = 1, .data = std::move(deps)};
}

TEST(Chakra, WhatANodeWithoutWorkWaitsForIsHandedOn) {
  const auto reduced_behind = [](std::uint64_t id) {
    std::vector<WrittenNode> nodes{compute(1, {}, 5), without_work(2, {1}), without_work(3, {2})};
    nodes.push_back(WrittenNode{.id = 4, .name = "ALL_REDUCE", .type = 7, .data = {id}}
                        .with("comm_type", 0, 7)
                        .with("comm_size", 1000, 13));
    return shown(trace_of(nodes));
  };
  EXPECT_EQ(reduced_behind(3), reduced_behind(1));
  EXPECT_NE(reduced_behind(3), reduced_behind(77)) << "or nothing waits";
}

TEST(Chakra, NodesWithoutWorkThatStandForAllBeforeThemEatNoMemory) {
  constexpr std::uint64_t kNodes = 9000;
  std::vector<WrittenNode> nodes;
  std::vector<std::uint64_t> all;
  for (std::uint64_t id = 1; id <= kNodes; ++id) {
    nodes.push_back(compute(id, {}, 1));
    all.push_back(id);
  }
  nodes.push_back(without_work(kNodes + 1, all));
  for (std::uint64_t id = kNodes + 2; id <= 2 * kNodes; ++id) nodes.push_back(without_work(id, {id - 1}));
  EXPECT_NE(refusal(chakra_file(nodes)).find("nodes without work stand for more than"), std::string::npos);
}

TEST(Chakra, ControlDependenciesCountWhereThereIsNoHost) {
  WrittenNode late = compute(1, {}, 1);
  late.control = {2};
  const Trace t = trace_of({late, compute(2, {}, 2)});
  EXPECT_EQ(t.ops[1].duration, microseconds(2));
}

WrittenNode host(std::uint64_t id, std::uint64_t thread, std::vector<std::uint64_t> deps, std::uint64_t us) {
  WrittenNode n{.id = id, .name = "aten::op", .data = std::move(deps), .duration = us};
  return n.with("is_cpu_op", 1, 27).with("tid", thread);
}

WrittenNode device(std::uint64_t id, std::uint64_t stream, std::vector<std::uint64_t> deps, std::uint64_t us) {
  WrittenNode n{.id = id, .name = "gemm_kernel", .data = std::move(deps), .duration = us};
  return n.with("is_cpu_op", std::uint64_t{0}, 27).with("stream", stream);
}

TEST(Chakra, HostNodesAreTimeBeforeWhatTheyLaunch) {
  WrittenNode second = host(3, 1, {1}, 20);
  second.control = {9};  // its caller, which is nothing to wait for
  const ImportedStep step = step_of(
      chakra_file({host(1, 1, {}, 10), device(2, 7, {1}, 100), second, device(4, 7, {3}, 50), host(5, 1, {4}, 5)}));
  const Trace& t = step.trace;
  EXPECT_EQ(shown(t), "mark kernel0 kernel0 event_record synchronize mark");
  EXPECT_EQ(t.ops[1].host_gap, microseconds(10));
  EXPECT_EQ(t.ops[2].host_gap, microseconds(20));
  EXPECT_EQ(t.ops[4].wait_for, WaitFor::event);
  EXPECT_EQ(t.ops[5].host_gap, microseconds(5));
  EXPECT_TRUE(decided(step, "control dependencies"));
  EXPECT_FALSE(decided(step, "dependencies on nothing"));
}

TEST(Chakra, ThreadsHandOverAndStreamsWaitOnce) {
  const Trace t = trace_of({host(1, 1, {}, 10), device(2, 7, {1}, 100), host(3, 2, {1}, 20), device(4, 20, {3, 2}, 50),
                            device(5, 20, {3, 2}, 50)});
  // Thread 2 waits for thread 1, then for its record of the event; the second kernel of the stream asks no more.
  EXPECT_EQ(shown(t), "mark mark kernel0 event_record hand_over hand_over event_wait1 kernel1 kernel1");
  EXPECT_EQ(t.threads.size(), 2U);
  EXPECT_EQ(t.streams[1].name, "stream 20");
}

std::string tensor(int id, int elements) {
  return "[" + std::to_string(id) + ", " + std::to_string(id) + ", 0, " + std::to_string(elements) + ", 4, 'cuda:0']";
}

WrittenNode product(std::uint64_t id, const std::string& name, std::vector<std::uint64_t> deps) {
  WrittenNode n = host(id, 1, std::move(deps), 4);
  n.name = name;
  n.values = "[" + tensor(1, 20) + ", " + tensor(2, 30) + ", True, '<Object>']";
  n.shapes = "[[4, 5], [5, 6], [], []]";
  n.types = "['Tensor(float)', 'Tensor(c10::Half)', 'Bool', 'Object']";
  n.out_values = "[" + tensor(3, 24) + "]";
  n.out_shapes = "[[4, 6]]";
  n.out_types = "['Tensor(float)']";
  return n.with("rf_id", 9).with("op_schema", "aten::mm(Tensor self, Tensor mat2) -> Tensor");
}

TEST(Chakra, PiecesAreOneOperatorWhoseTensorsBecomeStorages) {
  WrittenNode kernel{.id = 2, .name = "gemm_kernel", .data = {1}, .duration = 30};
  kernel.with("is_cpu_op", std::uint64_t{0}, 27).with("tid", 7);
  WrittenNode other = kernel;
  other.id = 4;
  other.data = {3};
  const ImportedStep step =
      step_of(chakra_file({product(1, "aten::mm(0)", {}), kernel, product(3, "aten::mm(1)", {1}), other}));
  const Trace& t = step.trace;
  EXPECT_TRUE(decided(step, "operators in pieces"));
  EXPECT_TRUE(t.knowledge.dataflow && t.knowledge.allocations && t.knowledge.timing);
  EXPECT_EQ(t.storages.size(), 3U);
  EXPECT_EQ(t.streams[0].name, "stream 7");
  double flops = 0;
  for (const Op& op : t.ops) flops += op.flops;
  EXPECT_DOUBLE_EQ(flops, 2.0 * 4 * 5 * 6);
  EXPECT_EQ(t.strings[t.ops[2].operator_name], "aten::mm");
  EXPECT_EQ(shown(t), "mark alloc kernel0 kernel0 free");
}

TEST(Chakra, DamageIsNamed) {
  const std::string good = chakra_file({compute(1, {}, 5), compute(2, {1}, 5)});
  EXPECT_NE(refusal(good.substr(0, good.size() - 2)).find("the file was cut off"), std::string::npos);
  EXPECT_NE(refusal("").find("bad: the file is empty"), std::string::npos);
  EXPECT_NE(refusal(delimited(wire_bytes_of(1, "x"))).find("holds no node"), std::string::npos);
  EXPECT_NE(refusal(delimited("") + "\xff\xff\xff\xff\xff\x7f").find("more than 5 bytes"), std::string::npos);
  EXPECT_NE(refusal(delimited("") + "\xff\xff\xff\xff\x0f").find("expected at most"), std::string::npos);
  EXPECT_NE(refusal(chakra_file({compute(1, {}, ~0ULL)})).find("expected no more than 100 days"), std::string::npos);
  WrittenNode wrong = compute(1, {}, 5);
  wrong.type = 9;
  EXPECT_NE(refusal(chakra_file({wrong})).find("node number 1 (id 1, 'COMP_NODE'): its type is 9"), std::string::npos);
  wrong.type = 7;
  wrong.with("comm_size", ~0ULL);
  EXPECT_NE(refusal(chakra_file({wrong})).find("\"comm_size\" is -1; expected 0 to 2^50"), std::string::npos);
}

TEST(Chakra, IsToldByContent) {
  const auto importer = [](const std::string& content) {
    write_content(folder() / "unnamed", content);
    FileHead head = read_file_head(folder() / "unnamed");
    const Importer* found = find_importer(head);
    return found == nullptr ? "" : found->name;
  };
  EXPECT_EQ(importer(chakra_file({compute(1, {}, 5)})), "Chakra trace");
  // Sizes that are white space: the reader must see them.
  EXPECT_EQ(importer(chakra_file({compute(1, {}, 5)}, "12345678")), "Chakra trace");
  EXPECT_EQ(importer(chakra_file({compute(1, {}, 5)}, std::string(30, 'x'))), "Chakra trace");
  EXPECT_EQ(importer(chakra_file({compute(1, {}, 5)}, std::string(121, 'x'))), "Chakra trace") << "begins with {";
  // A newer version's field 12, of 8 bytes, is stepped over.
  EXPECT_EQ(importer(delimited(wire_bytes_of(1, "9")) +
                     delimited(compute(1, {}, 5).message() + wire_varint(12 << 3 | 1) + "abcdefgh")),
            "Chakra trace");
  EXPECT_EQ(importer("\x07hello, world, this is no message"), "");
  EXPECT_EQ(importer(R"({"workload_graph": []})"), "Chakra trace in JSON");
  EXPECT_EQ(importer("{\"version\": \"0.0.4\"}{\n \"id\": \"1\"}"), "Chakra trace in JSON");
  EXPECT_EQ(importer(R"({"version": "0.0.4"})"), "");
}

const std::string kGraph = R"({"workload_graph": [
 {"Id": 5, "Name": "aten::mm", "NodeType": 4, "ctrlDeps": [1], "data_deps": [], "runtime": 12, "is_cpu_op": true},
 {"Id": 6, "Name": "gemm", "NodeType": 4, "data_deps": [5], "runtime": 40, "is_cpu_op": false},
 {"Id": 7, "Name": "ncclKernel_AllReduce_RING", "NodeType": 7, "data_deps": [5, 6], "runtime": 9, "is_cpu_op": false,
  "comm_size": 64, "comm_type": 0}], "ngpus": 8})";
const std::string kPrinted = R"({
  "version": "0.0.4",
  "attr": [{"name": "schema", "stringVal": "1.0.1"}]
}{
  "id": "5", "name": "aten::mm", "type": "COMP_NODE", "ctrlDeps": ["1"], "durationMicros": "12",
  "attr": [{"name": "is_cpu_op", "boolVal": true}]
}{
  "id": "6", "name": "gemm", "type": "COMP_NODE", "dataDeps": ["5"], "durationMicros": "40",
  "attr": [{"name": "is_cpu_op", "boolVal": false}]
}{
  "id": "7", "name": "ncclKernel_AllReduce_RING", "type": "COMM_COLL_NODE", "dataDeps": ["5", "6"],
  "durationMicros": "9", "attr": [{"name": "is_cpu_op", "boolVal": false},
  {"name": "comm_size", "uint64Val": "64"}, {"name": "comm_type", "int64Val": "0"}]
})";

TEST(Chakra, BothJsonNotationsSayTheSame) {
  for (const std::string& text : {kGraph, kPrinted}) {
    const Trace t = step_of(text).trace;
    EXPECT_EQ(shown(t), "mark kernel0 event_record event_wait1 collective1");
    EXPECT_EQ(t.ops[1].host_gap, microseconds(12));
    EXPECT_EQ(t.ops[1].duration, microseconds(40));
    EXPECT_EQ(t.ops[4].bytes, 64);
    EXPECT_EQ(t.ops[1].phase, Phase::unknown);
  }
}

TEST(Chakra, DamagedJsonIsNamed) {
  const auto said = [](const std::string& content) {
    write_content(folder() / "bad", content);
    try {
      import_chakra_json(folder() / "bad", {});
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(said(kPrinted.substr(0, kPrinted.size() - 9)).find("it was cut off"), std::string::npos);
  EXPECT_NE(said(R"({"workload_graph": [{"Id": 1, "NodeType": "X"}]})").find("\"NodeType\" is '\"X\"'"),
            std::string::npos);
  EXPECT_NE(said(R"({"workload_graph": 5})").find("is no list"), std::string::npos);
  EXPECT_NE(said(R"({"workload_graph": [{"Id": 1, "data_deps": ["a"]}]})").find("expected a whole number"),
            std::string::npos);
}

TEST(Chakra, FilesOfAJobTellHowManyRanksTakePart) {
  const std::string content =
      chakra_file({WrittenNode{.id = 1, .name = "r", .type = 7}.with("comm_type", 0, 9).with("comm_size", 800, 9)});
  for (const char* name : {"job.0.et", "job.1.et", "job.2.et", "job.3.et", "other.0.et"})
    write_content(folder() / name, content);
  const ImportedStep step = step_of(content, "job.2.et");
  EXPECT_EQ(step.trace.groups.at(0).ranks, 4U);
  EXPECT_EQ(step.trace.job_ranks, 4U);
  EXPECT_EQ(step.trace.ops[1].bytes, 2 * 800 * 3 / 4);
  EXPECT_TRUE(decided(step, "rank"));
}

TEST(PythonLists, ReadWhatTheyCanAndSayWhatNot) {
  ExecutionTrace trace;
  ExecutionNode node;
  EXPECT_TRUE(read_python_arguments(
      "[[[1, 2, 0, 3, 4, 'cuda:1'], [5, 6, 0, 7, 2, 'cpu']], (1, 2), 'it\\'s', -1e-05]", "[[[3], [7]], [], [], []]",
      "['GenericList[Tensor(float),Tensor(c10::Half)]', 'Tuple', 'String', 'Double']", true, trace, node));
  ASSERT_EQ(node.input_count, 2U);
  EXPECT_EQ(trace.tensors[0].device, 1);
  EXPECT_EQ(trace.tensors[1].element_bytes, 2U);
  EXPECT_EQ(trace.shape(trace.tensors[1])[0], 7);
  EXPECT_EQ(trace.value(node, 2), "\"it's\"");
  for (const char* damaged : {"", "[", "[[1, 2, 0, 3, 4, 'cuda:0'", "[[1, 2, 0, -3, 4, 'cuda:0']]",
                              "[[[[[[[[[[[[[[[[[[[[", "nonsense", "[1 2]["}) {
    ExecutionTrace other;
    ExecutionNode n;
    EXPECT_FALSE(read_python_arguments(damaged, "[[3]]", "['Tensor(float)']", false, other, n)) << damaged;
    EXPECT_LE(n.output_count, 1U) << damaged;  // a whole tensor in a list that was cut counts
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
