// Do the logs of other simulators (TrioSim, DTR) and of PyTorch's memory profiler become the traces that their lines
// describe?
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "models/workload/import/tables/dtr_import.h"
#include "models/workload/import/tables/memory_timeline.h"
#include "models/workload/import/snapshot/snapshot_step.h"
#include "models/workload/import/tables/triosim_costs.h"
#include "models/workload/import/tables/triosim_import.h"
#include "sim/error.h"
#include "sim/trace/trace_check.h"
#include "tests/support/pickle_writer.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/synthetic_snapshot.h"
#include "tests/support/tensor_logs.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

using Import = ImportedStep (*)(const std::filesystem::path&, const ImportSettings&);

class TensorLog : public ::testing::Test {
 protected:
  ImportedStep step(Import import, const char* name) {
    ImportedStep step = import(folder_ / name, {});
    EXPECT_EQ(check(step.trace), std::vector<std::string>());
    return step;
  }
  ImportedStep triosim(const std::string& trace = kTrioSimTrace, const std::string& tensors = kTrioSimTensors,
                       const char* name = "trace.csv") {
    write_content(folder_ / "trace.csv", trace);
    write_content(folder_ / "tensor.csv", tensors);
    return step(import_triosim, name);
  }
  ImportedStep dtr(const std::string& text = kDtrLog) {
    write_content(folder_ / "a.log", text);
    return step(import_dtr, "a.log");
  }
  ImportedStep timeline(const std::string& text = kMemoryTimeline) {
    write_content(folder_ / "a.json", text);
    return step(import_memory_timeline, "a.json");
  }
  template <class Call>
  static std::string refusal(const Call& call) {
    try {
      call();
      return "";
    } catch (const InputError& error) {
      return error.what();
    }
  }
  static const Op& kernel(const Trace& trace, std::string_view operator_name) {
    for (const Op& op : trace.ops)
      if (op.kind == OpKind::kernel && trace.strings[op.operator_name] == operator_name) return op;
    ADD_FAILURE() << "no kernel of " << operator_name;
    return trace.ops.front();
  }
  static std::size_t of_kind(const Trace& trace, StorageKind kind, bool preexisting) {
    return static_cast<std::size_t>(std::count_if(trace.storages.begin(), trace.storages.end(), [&](const Storage& s) {
      return s.kind == kind && s.preexisting == preexisting;
    }));
  }
  static std::string replaced(std::string text, const std::string& old, const std::string& by) {
    const std::size_t at = text.find(old);
    EXPECT_NE(at, std::string::npos) << old;
    return text.replace(at, old.size(), by);
  }
  static bool contains(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

  ScratchFolder folder_;
};

TEST_F(TensorLog, TrioSimOperatorsHaveClassShapeFlopsAndBytes) {
  const Trace t = triosim().trace;
  const Op& forward = kernel(t, "aten::conv2d");
  EXPECT_EQ(forward.operator_class, OperatorClass::convolution);
  EXPECT_EQ(t.shapes[forward.shape], (Shape{2, 3, 4, 4, 1, 1}));
  EXPECT_EQ(forward.flops, 2.0 * 2 * 4 * 4 * 3);
  EXPECT_EQ(forward.bytes, 4 * (24 + 12 + 32));
  EXPECT_EQ(forward.data_type, DataType::fp32);
  // The gradient of the weight only: the input's is not asked for.
  const Op& backward = kernel(t, "aten::convolution_backward");
  EXPECT_EQ(backward.flops, forward.flops);
  EXPECT_EQ(t.shapes[backward.shape], t.shapes[forward.shape]);
  EXPECT_EQ(backward.phase, Phase::backward);
  EXPECT_EQ(kernel(t, "aten::relu_").bytes, 4 * 64);
}

TEST_F(TensorLog, TrioSimBackwardProductsAreTwiceTheForwardOne) {
  const Trace t = triosim(kTrioSimTrace, replaced(kTrioSimTensors, "20,\"[2, 16]\",32", "20,\"[4, 8]\",32")).trace;
  const Op& forward = kernel(t, "aten::linear");
  EXPECT_EQ(forward.flops, 2.0 * 4 * 8 * 8);
  EXPECT_EQ(t.shapes[forward.shape], (Shape{1, 4, 8, 8}));
  EXPECT_EQ(kernel(t, "aten::addmm_backward").flops, 2 * forward.flops);
  EXPECT_EQ(kernel(t, "aten::addmm_backward").bytes, 2 * forward.bytes);
  EXPECT_EQ(kernel(t, "aten::addmm_backward").operator_class, OperatorClass::gemm);
}

TEST_F(TensorLog, TrioSimStoragesLiveFromFirstToLastUse) {
  const ImportedStep s = triosim();
  const Trace& t = s.trace;
  EXPECT_EQ(of_kind(t, StorageKind::parameter, true), 3u);        // 7, 23, 25
  EXPECT_EQ(of_kind(t, StorageKind::input, true), 2u);            // the image and the target
  EXPECT_EQ(of_kind(t, StorageKind::optimizer_state, true), 3u);  // 71, 73, 75
  EXPECT_EQ(of_kind(t, StorageKind::gradient, false), 1u);        // 61
  // Number 50 twice, 41, 45, 32 (made inside the linear layer) and 57 (made by nobody that is listed).
  EXPECT_EQ(of_kind(t, StorageKind::activation, false), 6u);
  EXPECT_EQ(t.samples_per_step, 2);
  // The ReLU works in place: it makes the second version of what the convolution made.
  const auto uses = t.uses_of(kernel(t, "aten::relu_"));
  ASSERT_EQ(uses.size(), 2u);
  EXPECT_EQ(uses[1].access, Access::write);
  EXPECT_EQ(uses[1].version, 2u);
  // Of Adam's three lists the first is written: both weights.
  std::size_t written = 0;
  for (const Use& use : t.uses_of(kernel(t, "aten::_foreach_addcdiv_"))) written += use.access == Access::write;
  EXPECT_EQ(written, 2u);
  EXPECT_EQ(t.shapes[kernel(t, "aten::_foreach_addcdiv_").shape], (Shape{12 + 64}));
  std::size_t made_inside = 0;
  for (const Use& use : t.uses_of(kernel(t, "aten::linear")))
    made_inside += use.access == Access::write && t.strings[t.storages[use.storage].label] == "tensor 31";
  EXPECT_EQ(made_inside, 1u);
}

TEST_F(TensorLog, TrioSimTimeIsTheKernelsAndTheHostsBetweenThem) {
  const Trace t = triosim().trace;
  EXPECT_EQ(kernel(t, "aten::conv2d").duration, microseconds(90));
  EXPECT_EQ(kernel(t, "aten::conv2d").host_gap, microseconds(10));
  EXPECT_EQ(kernel(t, "aten::conv2d").wait_for, WaitFor::own_op);
  Duration all{};
  for (const Op& op : t.ops) all += op.duration + op.host_gap;
  EXPECT_EQ(all, microseconds(100 + 5 + 20 + 30 + 3 + 50 + 200 + 12 + 2));
}

TEST_F(TensorLog, TrioSimIsFoundByEitherTable) {
  const Trace a = triosim().trace, b = triosim(kTrioSimTrace, kTrioSimTensors, "tensor.csv").trace;
  EXPECT_EQ(a.ops.size(), b.ops.size());
  FileHead head;
  head.text = kTrioSimTensors;
  EXPECT_TRUE(recognizes_triosim(head));
  head.text = "kernel_id,name\n";
  EXPECT_FALSE(recognizes_triosim(head));
}

TEST_F(TensorLog, TrioSimErrorsNameFileLineAndColumn) {
  const auto why = [&](const std::string& trace, const std::string& tensors) {
    return refusal([&] { triosim(trace, tensors); });
  };
  const std::string trace = kTrioSimTrace, tensors = kTrioSimTensors;
  EXPECT_TRUE(contains(why(replaced(trace, ",100,90,", ",100,ninety,"), tensors), "trace.csv:2: Operator_cudatimeno"));
  EXPECT_TRUE(contains(why(replaced(trace, "[10],5,5", "[10],-5,5"), tensors), "trace.csv:3: Operator_cudatime is"));
  EXPECT_TRUE(contains(why(replaced(trace, "[4; 6]", "[4; 666]"), tensors), "uses tensor 666, which is not in"));
  EXPECT_TRUE(contains(why(trace, replaced(tensors, "TensorShape", "Form")), "there is no column \"TensorShape\""));
  EXPECT_TRUE(contains(why(trace, replaced(tensors, "24,4,input", "9000000000000000,4,input")), "tensor.csv:2: "));
  EXPECT_TRUE(contains(why(trace, replaced(tensors, "\"[2, 3, 2, 2]\"", "\"[2, 3, 2, 2]")), "quotation mark"));
  EXPECT_TRUE(contains(why(replaced(trace, ",0,forward,1\n", ",0\n"), tensors), "9 columns; expected 11"));
  std::filesystem::remove(folder_ / "tensor.csv");
  EXPECT_TRUE(contains(refusal([&] { import_triosim(folder_ / "trace.csv"); }), "tensor.csv is missing"));
}

TEST_F(TensorLog, AutogradNodesAreCalledByTheirOperators) {
  const std::string node = "autograd::engine::evaluate_function: ";
  EXPECT_EQ(operator_name(node + "MaxPool2DWithIndicesBackward0"), "aten::max_pool2d_with_indices_backward");
  EXPECT_EQ(operator_name(node + "CudnnBatchNormBackward0"), "aten::cudnn_batch_norm_backward");
  EXPECT_EQ(operator_name(node + "torch::autograd::AccumulateGrad"), "torch::autograd::AccumulateGrad");
  EXPECT_EQ(operator_name("aten::_foreach_sqrt"), "aten::_foreach_sqrt");
}

TEST_F(TensorLog, DtrOpsReadMakeAndMutate) {
  const Trace t = dtr().trace;
  ASSERT_EQ(t.steps.size(), 1u);
  const Op& forward = kernel(t, "aten::cudnn_convolution");
  EXPECT_EQ(forward.duration, nanoseconds(733881));
  EXPECT_EQ(forward.phase, Phase::forward);
  EXPECT_EQ(forward.operator_class, OperatorClass::convolution);
  EXPECT_EQ(forward.bytes, 1024 + 64 + 4096);
  EXPECT_EQ(t.uses_of(forward).size(), 3u);
  const Op& mutation = kernel(t, "aten::relu_");
  ASSERT_EQ(t.uses_of(mutation).size(), 2u);
  EXPECT_EQ(t.uses_of(mutation)[1].version, 2u);  // of the storage that the view shares
  EXPECT_EQ(kernel(t, "aten::cudnn_convolution_backward").phase, Phase::backward);
  std::size_t views = 0;
  for (const Op& op : t.ops) views += op.kind == OpKind::host_work;
  EXPECT_EQ(views, 1u);
}

TEST_F(TensorLog, DtrStoragesDieWithTheirLastHandle) {
  const Trace t = dtr().trace;
  // In order of the step: x10 lived before, x0 is a constant, x1 dies with x3, x4 at once, x10 when its name means x5.
  EXPECT_EQ(of_kind(t, StorageKind::unknown, true), 1u);
  EXPECT_EQ(of_kind(t, StorageKind::parameter, true), 1u);
  EXPECT_EQ(of_kind(t, StorageKind::gradient, false), 1u);
  EXPECT_EQ(of_kind(t, StorageKind::activation, false), 2u);
  std::vector<std::string> order;
  for (const Op& op : t.ops) {
    if (op.kind == OpKind::free) order.push_back("free " + std::to_string(t.storages[op.target].bytes));
    if (op.kind == OpKind::kernel) order.push_back(t.strings[op.name]);
  }
  EXPECT_EQ(order, (std::vector<std::string>{"cudnn_convolution", "relu_", "cudnn_convolution_backward", "free 4096",
                                             "free 64", "free 64"}));
}

TEST_F(TensorLog, DtrStartsBeginSteps) {
  std::string text = kDtrLog;
  text += R"({"ANNOTATION":"START","INSTRUCTION":"ANNOTATE"}
{"ARGS":["x0"],"INSTRUCTION":"MUTATE","MUTATE":[0],"NAME":"add_","TIME":"7"}
{"ANNOTATION":"BACKWARD","INSTRUCTION":"ANNOTATE"}
{"ARGS":["x0"],"INSTRUCTION":"MUTATE","MUTATE":[0],"NAME":"mul_","TIME":"7"}
)";
  const Trace t = dtr(text).trace;
  EXPECT_EQ(t.steps.size(), 2u);
  EXPECT_EQ(kernel(t, "aten::add_").phase, Phase::forward);
  EXPECT_EQ(kernel(t, "aten::mul_").phase, Phase::backward);
  // Without a START all of the log is the step.
  const Trace whole = dtr(replaced(kDtrLog, R"("ANNOTATION":"START")", R"("ANNOTATION":"NOTHING")")).trace;
  EXPECT_EQ(kernel(whole, "aten::relu").duration, nanoseconds(5));
  EXPECT_EQ(of_kind(whole, StorageKind::parameter, true), 1u);
  EXPECT_EQ(of_kind(whole, StorageKind::input, false), 1u);  // x0 comes behind an operator now
}

// The next batch, which the loop names in the middle of the step: it is not there before, and gone with its handle.
TEST_F(TensorLog, DtrConstantsThatAreNamedLaterLiveFromThere) {
  const std::string batch = R"({"INSTRUCTION":"CONSTANT","NAME":"x20"}
{"INSTRUCTION":"MEMORY","MEMORY":"512","NAME":"x20"}
)";
  const std::string use = R"({"ARGS":["x20"],"INSTRUCTION":"MUTATE","MUTATE":[0],"NAME":"relu_","TIME":"2000"}
{"INSTRUCTION":"RELEASE","NAME":"x20"}
)";
  const std::string behind = R"({"ARGS":["x3"],"INSTRUCTION":"MUTATE")";
  const ImportedStep step = dtr(replaced(kDtrLog, behind, batch + use + behind));
  const Trace& trace = step.trace;
  EXPECT_EQ(check(trace), std::vector<std::string>());
  const auto named = [&](const std::string& label) {
    return static_cast<StorageId>(std::find_if(trace.storages.begin(), trace.storages.end(),
                                               [&](const Storage& s) { return trace.strings[s.label] == label; }) -
                                  trace.storages.begin());
  };
  ASSERT_LT(named("x20"), trace.storages.size());
  const Storage& late = trace.storages[named("x20")];
  EXPECT_FALSE(late.preexisting);
  EXPECT_EQ(late.bytes, 512);
  EXPECT_EQ(late.kind, StorageKind::input);
  EXPECT_TRUE(trace.storages[named("x0")].preexisting);  // named before the step's first operator
  std::vector<OpKind> life;
  for (const Op& op : trace.ops)
    if ((op.kind == OpKind::alloc || op.kind == OpKind::free) && op.target == named("x20")) life.push_back(op.kind);
  EXPECT_EQ(life, (std::vector<OpKind>{OpKind::alloc, OpKind::free}));
  EXPECT_TRUE(std::any_of(step.decisions.begin(), step.decisions.end(), [](const Decision& d) {
    return d.subject == "constants" && d.covered == 2 && d.of == 3 &&
           d.sentence.find("1 are first named after an operator: they live from there") != std::string::npos;
  }));
}

TEST_F(TensorLog, DtrErrorsNameFileAndLine) {
  const auto why = [&](const std::string& old, const std::string& by) {
    return refusal([&] { dtr(replaced(kDtrLog, old, by)); });
  };
  EXPECT_TRUE(contains(why("[\"x0\",\"x10\"]", "[\"x0\",\"y\"]"), "a.log, line 10: tensor 'y' is used"));
  EXPECT_TRUE(contains(why("\"733881\"", "\"-3\""), "\"TIME\" is not a whole number"));
  EXPECT_TRUE(contains(why("\"4096\",\"NAME\":\"x1\"", "\"4096\",\"NAME\":\"x2\""), "line 11: found 'MEMORY' of 'x2'"));
  EXPECT_TRUE(contains(why("\"MUTATE\":[0]", "\"MUTATE\":[1]"), "none of the 1"));
  EXPECT_TRUE(contains(why("\"ALIAS\":\"0\"", "\"ALIAS\":\"5\""), "\"ALIAS\" is not"));
  EXPECT_TRUE(contains(why("\"RESULT\":[\"x3\"]", "\"RESULT\":[\"x2\"]"), "found 'MEMORY' of 'x3'"));
  EXPECT_TRUE(contains(refusal([&] { dtr("{\"INSTRUCTION\":\"RELEASE\",\"NAME\":\"x\"}\n"); }), "without any CALL"));
  EXPECT_TRUE(contains(refusal([&] { dtr("{\"INSTRUCTION\":\"CALL\"\n"); }), "expected a JSON object"));
}

TEST_F(TensorLog, MemoryTimelineSumsAreTheFilesOwn) {
  const ImportedStep s = timeline();
  const Trace& t = s.trace;
  ASSERT_EQ(t.storages.size(), 4u);
  EXPECT_TRUE(t.storages[0].preexisting && t.storages[1].preexisting);
  EXPECT_EQ(t.storages[0].kind, StorageKind::parameter);
  EXPECT_EQ(t.storages[2].kind, StorageKind::activation);  // a temporary until its second version
  EXPECT_EQ(t.storages[3].kind, StorageKind::gradient);
  std::vector<std::pair<OpKind, Duration>> ops;
  for (const Op& op : t.ops)
    if (op.kind != OpKind::mark) ops.emplace_back(op.kind, op.host_gap);
  EXPECT_EQ(ops, (std::vector<std::pair<OpKind, Duration>>{{OpKind::alloc, nanoseconds(0)},
                                                           {OpKind::alloc, nanoseconds(4000)},
                                                           {OpKind::free, nanoseconds(4000)},
                                                           {OpKind::free, nanoseconds(500)}}));
  EXPECT_FALSE(t.knowledge.dataflow);
  EXPECT_TRUE(contains(s.report.back(),
                       "parameter 4096, optimizer state 0, input 0, temporary 0, activation 0, "
                       "gradient 1024"));
}

TEST_F(TensorLog, MemoryTimelineOfAnotherVersion) {
  const ImportedStep s = timeline("[[5, 9, 1, 1], [5, 2, 8, 42], [7, 3, -8, 7], [9, 4, -64, 1], [3, 1, 16, 0]]");
  EXPECT_EQ(s.trace.storages.size(), 2u);
  EXPECT_EQ(s.trace.storages[0].kind, StorageKind::unknown);
  EXPECT_FALSE(s.trace.storages[1].preexisting);  // it is called so after something was made
  std::size_t decisions = 0;
  for (const Decision& d : s.decisions) decisions += d.subject == "rows";
  EXPECT_EQ(decisions, 5u);
  const auto why = [&](const char* text) { return refusal([&] { timeline(text); }); };
  EXPECT_TRUE(contains(why("[[1, 2, 3]]"), "row 1: found '[1, 2, 3]'"));
  EXPECT_TRUE(contains(why("[[1, 2, 3, 4], [1, 2, \"a\", 4]]"), "row 2: "));
  EXPECT_TRUE(contains(why("[[1, 2, 99999999999999999, 4]]"), "expected at most 2^44"));
  EXPECT_TRUE(contains(why("[]"), "the list is empty"));
  FileHead head;
  head.text = kMemoryTimeline;
  EXPECT_TRUE(recognizes_memory_timeline(head));
  head.text = "[[1, 2, 3, 4, 5], [2, 2]]";
  EXPECT_FALSE(recognizes_memory_timeline(head));
}

TEST_F(TensorLog, SnapshotsAreAllocationsAndFrees) {
  write_content(folder_ / "a.pickle", pickled(small_snapshot()));
  const ImportedStep s = step(import_snapshot, "a.pickle");
  std::size_t allocs = 0, frees = 0;
  for (const Op& op : s.trace.ops) {
    allocs += op.kind == OpKind::alloc;
    frees += op.kind == OpKind::free;
  }
  EXPECT_EQ(allocs, 3u);
  EXPECT_EQ(frees, 1u);
  EXPECT_FALSE(s.trace.steps.empty());
  EXPECT_TRUE(s.trace.knowledge.allocations);
  EXPECT_TRUE(contains(s.trace.notes.front(), "memwall memory"));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
