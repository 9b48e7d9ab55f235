// Does the Kineto importer conclude from a small capture what can be worked out by hand?
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "models/workload/import/kineto/kineto_reader.h"
#include "models/workload/import/timed/kernel_properties.h"
#include "models/workload/import/timed/timed_import.h"
#include "sim/engine/simulation.h"
#include "sim/error.h"
#include "sim/trace/scale.h"
#include "sim/trace/trace_check.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/small_capture.h"
#include "tests/support/test_machine.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

ImportedTrace import_text(const std::string& text, const TimedImportOptions& options = {}) {
  const ScratchFolder folder;
  write_content(folder / "capture.json", text);
  return import_timed_capture(read_kineto(folder / "capture.json"), options);
}

Time end_of(const Trace& trace) {
  SimulationOptions options;
  options.allocator = "ideal";
  return simulate(trace, test_machine(), options).end;
}

std::vector<Op> ops_of(const ImportedTrace& t, OpKind kind) {
  std::vector<Op> found;
  std::copy_if(t.trace.ops.begin(), t.trace.ops.end(), std::back_inserter(found),
               [&](const Op& op) { return op.kind == kind; });
  return found;
}

// One more event behind a line that contains `anchor`.
std::string with_event(std::string text, const std::string& anchor, const std::string& event) {
  const std::size_t line = text.find('\n', text.find(anchor));
  text.insert(line + 1, "  " + event + ",\n");
  return text;
}

TEST(TimedImport, ConstantsComeFromTheFile) {
  const ImportedTrace t = import_text(small_capture());
  EXPECT_EQ(t.trace.constants.launch_latency[0], microseconds(3));
  EXPECT_EQ(t.trace.constants.stream_gap[0][0], microseconds(2));
  EXPECT_EQ(t.summary.samples.launch_latency[0], 3u);
  EXPECT_EQ(t.summary.samples.stream_gap[0][0], 1u);
}

TEST(TimedImport, ACallThatWaitedKeepsItsOwnCostOnly) {
  const ImportedTrace t = import_text(small_capture());
  const std::vector<Op> copies = ops_of(t, OpKind::copy);
  ASSERT_EQ(copies.size(), 1u);
  EXPECT_EQ(copies[0].wait_for, WaitFor::own_op);
  EXPECT_EQ(copies[0].host_cost, microseconds(8));
  EXPECT_EQ(copies[0].return_delay, microseconds(8));
  EXPECT_TRUE(copies[0].pageable);
  const BlockingCalls& item = t.summary.blocking.at("cudaMemcpyAsync, Memcpy DtoH (Device -> Pageable)");
  EXPECT_EQ(item.waited, 1u);
  const BlockingCalls& device = t.summary.blocking.at("cudaDeviceSynchronize");
  EXPECT_EQ(device.did_not_wait, 1u);
  EXPECT_EQ(ops_of(t, OpKind::synchronize).at(0).host_cost, microseconds(5));
}

TEST(TimedImport, ReplaysExactlyAndIsASimulation) {
  const ImportedTrace t = import_text(small_capture());
  EXPECT_TRUE(check(t.trace).empty());
  EXPECT_EQ(t.captured.total, microseconds(1000));
  EXPECT_EQ(end_of(t.trace), microseconds(1000));
  // .item() waits for 300 us of kernels; what follows hides behind host work.
  ScaleFactors slower;
  slower.kernels = 1.1;
  EXPECT_EQ(end_of(scaled(t.trace, slower)), microseconds(1030));
}

TEST(TimedImport, ThreadsHandOverAfterTheCapturedDelay) {
  const ImportedTrace t = import_text(small_capture());
  EXPECT_EQ(t.trace.threads.size(), 2u);  // the one that only asks for events is dropped
  EXPECT_EQ(t.summary.dropped_threads, 1u);
  const std::vector<Op> hand_overs = ops_of(t, OpKind::hand_over);
  ASSERT_EQ(hand_overs.size(), 2u);
  for (const Op& op : hand_overs) {
    EXPECT_EQ(op.host_gap, microseconds(100));
    EXPECT_NE(t.trace.ops[op.target].thread, op.thread);
  }
}

TEST(TimedImport, MemoryEventsBecomeOpsAtTheirPlace) {
  const ImportedTrace t = import_text(small_capture());
  EXPECT_EQ(t.summary.allocs, 1u);
  EXPECT_EQ(t.summary.frees, 2u);
  EXPECT_EQ(t.summary.device_memory_events, 3u);
  EXPECT_EQ(t.summary.host_memory_events, 1u);
  ASSERT_EQ(t.trace.storages.size(), 2u);
  EXPECT_EQ(t.trace.storages[0].bytes, 1024);
  EXPECT_FALSE(t.trace.storages[0].preexisting);
  EXPECT_EQ(t.trace.storages[1].bytes, 512);
  EXPECT_TRUE(t.trace.storages[1].preexisting);
  EXPECT_EQ(t.trace.untracked_bytes, 512);  // 1,024 held before the first event, 512 of it freed later
  EXPECT_EQ(t.trace.reserved_at_start, 2097152);
  // The allocation comes before the first kernel, the free after the backward kernel.
  std::vector<OpKind> order;
  for (const Op& op : t.trace.ops)
    if (op.kind == OpKind::alloc || op.kind == OpKind::free || op.kind == OpKind::kernel) order.push_back(op.kind);
  EXPECT_EQ(order, (std::vector<OpKind>{OpKind::alloc, OpKind::kernel, OpKind::kernel, OpKind::kernel, OpKind::free,
                                        OpKind::kernel, OpKind::free}));
}

TEST(TimedImport, PhasesOperatorsAndWaves) {
  const ImportedTrace t = import_text(small_capture());
  const std::vector<Op> kernels = ops_of(t, OpKind::kernel);
  ASSERT_EQ(kernels.size(), 4u);
  EXPECT_EQ(kernels[0].phase, Phase::forward);
  EXPECT_EQ(kernels[2].phase, Phase::backward);
  EXPECT_EQ(kernels[3].phase, Phase::optimizer);
  EXPECT_EQ(t.trace.strings[kernels[0].operator_name], "aten::mm");
  EXPECT_EQ(kernels[0].operator_class, OperatorClass::gemm);
  EXPECT_EQ(kernels[3].operator_class, OperatorClass::optimizer);
  EXPECT_FLOAT_EQ(kernels[0].waves, 4);  // 16 blocks over 50 % of 2,048 threads in blocks of 256
  ASSERT_EQ(t.trace.steps.size(), 1u);
  EXPECT_EQ(t.trace.steps[0].name, "ProfilerStep#1");
  EXPECT_EQ(t.captured.steps[0].host_time, microseconds(1000));
  EXPECT_EQ(t.gpu, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(t.trace.machine, "") << "a GPU's product name is not a machine's";
}

TEST(TimedImport, AnAnnotationNamesTheModuleOfForwardAndBackward) {
  // aten::mm (sequence number 7) lies in the module; the backward function of that number follows it.
  const ImportedTrace imported = import_text(with_event(
      small_capture(), "ProfilerStep#1",
      R"({"ph":"X","cat":"user_annotation","name":"nn.Module: Linear_0","pid":1,"tid":100,"ts":1669783687001095,"dur":60,"args":{}})"));
  const Trace& t = imported.trace;
  EXPECT_TRUE(t.knowledge.modules);
  std::vector<std::string> modules;
  for (const Op& op : t.ops)
    if (op.kind == OpKind::kernel) modules.push_back(t.strings[op.module]);
  EXPECT_EQ(modules, (std::vector<std::string>{"Linear_0", "", "Linear_0", ""}));
}

TEST(TimedImport, WithoutNamedStepsAnIterationEndsWithItsOptimizer) {
  std::string text = small_capture();
  text.replace(text.find("ProfilerStep#1"), 14, "my own range");
  text = with_event(
      text, "SGD.step",
      R"({"ph":"X","cat":"cpu_op","name":"aten::relu","pid":1,"tid":100,"ts":1669783687001806,"dur":20,"args":{"External id":8}})");
  text = with_event(
      text, "aten::relu",
      R"({"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":100,"ts":1669783687001810,"dur":5,"args":{"correlation":40}})");
  text = with_event(
      text, "\"correlation\":40",
      R"({"ph":"X","cat":"kernel","name":"next","pid":0,"tid":7,"ts":1669783687001818,"dur":5,"args":{"device":0,"stream":7,"correlation":40}})");
  const ImportedTrace t = import_text(text);
  ASSERT_EQ(t.trace.steps.size(), 1u);
  EXPECT_EQ(t.trace.steps[0].name, "window of one iteration");
  std::vector<Phase> phases;
  for (const Op& op : ops_of(t, OpKind::kernel)) phases.push_back(op.phase);
  EXPECT_EQ(phases,
            (std::vector<Phase>{Phase::forward, Phase::forward, Phase::backward, Phase::optimizer, Phase::forward}));
}

TEST(TimedImport, AnAllocationIsNoWaitAndAFreeUnderWorkIsFlagged) {
  std::string text = small_capture();
  text = with_event(
      text, "\"correlation\":2}",
      R"({"ph":"X","cat":"cuda_runtime","name":"cudaMalloc","pid":1,"tid":100,"ts":1669783687001182,"dur":2,"args":{"correlation":50}})");
  text = with_event(
      text, "cudaMalloc",
      R"({"ph":"X","cat":"cuda_runtime","name":"cudaFree","pid":1,"tid":100,"ts":1669783687001185,"dur":3,"args":{"correlation":51}})");
  const ImportedTrace t = import_text(text);
  const std::vector<Op> calls = ops_of(t, OpKind::host_work);
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0].wait_for, WaitFor::nothing);
  EXPECT_EQ(calls[0].host_cost, microseconds(2));
  EXPECT_EQ(t.summary.frees_with_pending_work, 1u);
}

TEST(TimedImport, EveryOpHasItsOperatorAndItsCapturedTime) {
  const TimedImportOptions options;
  const ScratchFolder folder;
  write_content(folder / "capture.json", small_capture());
  const TimedCapture c = read_kineto(folder / "capture.json");
  const ImportedTrace t = import_timed_capture(c, options);
  ASSERT_EQ(t.operator_of_op.size(), t.trace.ops.size());
  ASSERT_EQ(t.memory_of_op.size(), t.trace.ops.size());
  ASSERT_EQ(t.captured.start.size(), t.trace.ops.size());
  for (OpId id = 0; id < t.trace.ops.size(); ++id) {
    const OpKind kind = t.trace.ops[id].kind;
    EXPECT_EQ(t.captured.start[id] != kNever, runs_on_device(kind));
    EXPECT_EQ(t.memory_of_op[id] != kNoIndex, kind == OpKind::alloc || kind == OpKind::free);
    if (kind == OpKind::alloc) {
      EXPECT_EQ(c.text(c.operators[t.operator_of_op[id]].name), "aten::empty");
    }
  }
}

// A second stream with one short kernel, and rows that say that it waits for the first kernel.
std::string two_streams() {
  std::string text = small_capture();
  text = with_event(
      text, "\"ts\":1669783687001110,\"dur\":10",
      R"({"ph":"X","cat":"cuda_runtime","name":"cudaEventRecord","pid":1,"tid":100,"ts":1669783687001121,"dur":1,"args":{"correlation":20}})");
  text = with_event(
      text, "cudaEventRecord",
      R"({"ph":"X","cat":"cuda_runtime","name":"cudaStreamWaitEvent","pid":1,"tid":100,"ts":1669783687001123,"dur":1,"args":{"correlation":21}})");
  text = with_event(
      text, "cudaStreamWaitEvent",
      R"({"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":100,"ts":1669783687001126,"dur":4,"args":{"correlation":22}})");
  return with_event(
      text, "\"correlation\":22",
      R"({"ph":"X","cat":"kernel","name":"other","pid":0,"tid":20,"ts":1669783687001325,"dur":10,"args":{"device":0,"stream":20,"correlation":22}})");
}

std::string stated_edge() {
  return with_event(
      two_streams(), "\"correlation\":21",
      R"({"ph":"X","cat":"cuda_sync","name":"Stream Wait Event","pid":0,"tid":20,"ts":1669783687001123,"dur":1,"args":{"cuda_sync_kind":"Stream Wait Event","wait_on_stream":7,"wait_on_cuda_event_record_corr_id":20,"stream":20,"correlation":21,"device":0}})");
}

TEST(TimedImport, AStatedEdgeBindsAndItsLossShows) {
  const ImportedTrace t = import_text(stated_edge());
  EXPECT_EQ(t.summary.given_edges, 1u);
  EXPECT_EQ(t.summary.inferred_edges, 0u);
  ASSERT_EQ(ops_of(t, OpKind::event_wait).size(), 1u);
  EXPECT_FALSE(ops_of(t, OpKind::event_wait)[0].inferred);
  TimedImportOptions without;
  without.drop_edge = 0;
  const ImportedTrace loose = import_text(stated_edge(), without);
  const auto start_of_other = [](const ImportedTrace& imported) {
    SimulationOptions options;
    options.allocator = "ideal";
    const SimulationResult result = simulate(imported.trace, test_machine(), options);
    for (OpId id = 0; id < imported.trace.ops.size(); ++id)
      if (imported.trace.strings[imported.trace.ops[id].name] == "other") return result.records[id].start;
    return kNever;
  };
  // The producer ends at 323 us; an event takes 1.5 us more.
  EXPECT_EQ(start_of_other(t), nanoseconds(324500));
  EXPECT_LT(start_of_other(loose), microseconds(323));
}

TEST(TimedImport, AnInferredEdgeSaysSoAndCanBeDropped) {
  const ImportedTrace t = import_text(two_streams());
  EXPECT_EQ(t.summary.given_edges, 0u);
  EXPECT_EQ(t.summary.inferred_edges, 1u);
  EXPECT_TRUE(ops_of(t, OpKind::event_wait).at(0).inferred);
  TimedImportOptions without;
  without.drop_inferred_edges = true;
  EXPECT_TRUE(ops_of(import_text(two_streams(), without), OpKind::event_wait).empty());
}

TEST(TimedImport, WorkWithoutACallIsPlacedAtTheHead) {
  std::string text = small_capture();
  text = with_event(
      text, "\"tid\":100,\"ts\":1669783687001010",
      R"({"ph":"X","cat":"kernel","name":"early","pid":0,"tid":7,"ts":1669783687001005,"dur":10,"args":{"device":0,"stream":7,"correlation":77}})");
  const ImportedTrace t = import_text(text);
  EXPECT_EQ(t.summary.placed_ops, 1u);
  const std::vector<Op> kernels = ops_of(t, OpKind::kernel);
  EXPECT_TRUE(kernels[0].placed);
  EXPECT_EQ(kernels[0].host_gap, microseconds(5));
  EXPECT_EQ(end_of(t.trace), microseconds(1000));
}

TEST(TimedImport, ACaptureThatDoesNotExplainItselfIsRecognised) {
  EXPECT_EQ(import_text(small_capture()).trace.completeness, Completeness::complete);
  // Without the record of the first kernel, nothing explains why the second began so late.
  std::string text = small_capture();
  const std::size_t line = text.rfind('\n', text.find("sgemm_"));
  text.erase(line, text.find('\n', line + 1) - line);
  const ImportedTrace t = import_text(text);
  EXPECT_NE(t.trace.completeness, Completeness::complete);
  EXPECT_EQ(t.summary.launches_without_record, 1u);
  EXPECT_GT(t.summary.unexplained_share, 0.02);
  EXPECT_NE(t.trace.completeness_reason.find("1 of 4 launches of kernels have no kernel in the file"),
            std::string::npos)
      << t.trace.completeness_reason;
}

TEST(TimedImport, AGraphIsOneLaunchOfManyKernels) {
  std::string text = small_capture();
  text = with_event(
      text, "SGD.step",
      R"({"ph":"X","cat":"cuda_runtime","name":"cudaGraphLaunch","pid":1,"tid":100,"ts":1669783687001742,"dur":8,"args":{"correlation":30}})");
  for (const char* start : {"1753", "1756", "1759"})
    text = with_event(text, "cudaGraphLaunch",
                      std::string(R"({"ph":"X","cat":"kernel","name":"node","pid":0,"tid":7,"ts":166978368700)") +
                          start + R"(,"dur":2,"args":{"device":0,"stream":7,"correlation":30}})");
  const ImportedTrace t = import_text(text);
  EXPECT_EQ(ops_of(t, OpKind::graph_launch).size(), 1u);
  EXPECT_EQ(std::count_if(t.trace.ops.begin(), t.trace.ops.end(), [](const Op& op) { return op.graph_member; }), 3);
  EXPECT_EQ(t.trace.constants.graph_gap, microseconds(1));
  EXPECT_EQ(end_of(t.trace), microseconds(1000));
}

TEST(TimedImport, NothingToReplayIsRefused) {
  EXPECT_THROW(import_text(R"({"traceEvents":[]})"), InputError);
  EXPECT_THROW(import_text(R"({"traceEvents":[{"ph":"M","name":"process_name","pid":1,"args":{}}]})"), InputError);
}

TEST(TimedImport, SameCaptureSameTrace) {
  const ImportedTrace a = import_text(two_streams()), b = import_text(two_streams());
  EXPECT_EQ(a.trace.notes, b.trace.notes);
  ASSERT_EQ(a.trace.ops.size(), b.trace.ops.size());
  for (OpId id = 0; id < a.trace.ops.size(); ++id) EXPECT_EQ(a.trace.ops[id].host_gap, b.trace.ops[id].host_gap);
}

// A program long enough that what is drained is given away several times: two threads in turn, work that begins long
// after its launch, calls at the same instant.
TimedCapture long_capture() {
  TimedCapture c;
  const StringId run = c.strings.intern("aten::mul"), launch = c.strings.intern("cudaLaunchKernel"),
                 kernel = c.strings.intern("mul_kernel");
  c.threads = {{1, 100}, {1, 200}};
  for (std::uint32_t i = 0; i < 50'000; ++i) {
    const Time at = microseconds(20 * (i + 1));
    const auto thread = static_cast<std::uint16_t>(i / 1000 % 2);
    c.operators.push_back({.start = at, .duration = microseconds(18), .name = run, .thread = thread});
    for (const std::int64_t k : {1, 2})
      c.calls.push_back({.start = at + microseconds(5),
                         .duration = microseconds(3),
                         .correlation = 2 * i + k,
                         .name = launch,
                         .thread = thread});
    for (const std::int64_t k : {1, 2})
      c.device_ops.push_back({.start = at + microseconds(2000 + 7 * k),
                              .duration = microseconds(6),
                              .stream = 7,
                              .correlation = 2 * i + k,
                              .name = kernel});
    const Bytes bytes = 512 * (1 + i % 9);
    c.memory.push_back({.time = at + microseconds(1), .address = 4096, .bytes = bytes});
    c.memory.push_back({.time = at + microseconds(16), .address = 4096, .bytes = -bytes});
    for (std::size_t k = c.memory.size() - 2; k < c.memory.size(); ++k) {
      c.memory[k].thread = thread;
      c.memory[k].device_type = 1;
      c.memory[k].device = 0;
      c.memory[k].has_address = true;
    }
  }
  return c;
}

TEST(TimedImport, DrainingACaptureMakesTheSameTrace) {
  TimedCapture capture = long_capture();
  const ImportedTrace kept = import_timed_capture(capture);
  const ImportedTrace drained = import_and_release_capture(capture);
  EXPECT_TRUE(drained.memory_of_op.empty());
  EXPECT_TRUE(drained.captured.start.empty());
  EXPECT_EQ(drained.captured.total, kept.captured.total);
  EXPECT_EQ(drained.captured.gpu_span, kept.captured.gpu_span);
  EXPECT_EQ(drained.trace.notes, kept.trace.notes);
  EXPECT_EQ(drained.operator_of_op, kept.operator_of_op);
  EXPECT_EQ(drained.device_of_op, kept.device_of_op);
  ASSERT_EQ(drained.trace.ops.size(), kept.trace.ops.size());
  ASSERT_GE(drained.trace.ops.size(), 200'000u);
  const auto fields = [](const Op& op) {
    return std::tuple(op.kind, op.phase, op.wait_for, op.thread, op.stream, op.name, op.operator_name, op.host_gap,
                      op.host_cost, op.return_delay, op.duration, op.bytes, op.target);
  };
  for (OpId id = 0; id < kept.trace.ops.size(); ++id)
    ASSERT_EQ(fields(drained.trace.ops[id]), fields(kept.trace.ops[id])) << "op " << id;
  // What is given away is gone, what may be asked for again is not.
  EXPECT_EQ(capture.calls.size(), 100'000u);
  EXPECT_EQ(capture.calls[1000].duration, Duration{});
  EXPECT_EQ(capture.memory[1000].bytes, 0);
  EXPECT_EQ(capture.operators[1000].duration, microseconds(18));
  EXPECT_EQ(capture.device_ops[1000].duration, microseconds(6));
}

TEST(KinetoKernel, NamesTellCopiesAndCollectives) {
  EXPECT_TRUE(copy_direction("Memcpy HtoD (Pageable -> Device)").pageable);
  EXPECT_TRUE(copy_direction("Memcpy HtoD (Host -> Device)").from_host);
  EXPECT_FALSE(copy_direction("Memcpy DtoD (Device -> Device)").to_host);
  EXPECT_EQ(collective_kind("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", ""), CollectiveKind::all_reduce);
  EXPECT_EQ(collective_kind("ncclDevKernel_ReduceScatter_Sum_f16_RING_LL(...)", ""), CollectiveKind::reduce_scatter);
  EXPECT_EQ(collective_kind("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t", "nccl:all_to_all"),
            CollectiveKind::all_to_all);
  EXPECT_EQ(collective_kind("ncclDevKernel_Generic", ""), CollectiveKind::none);
  // nccl-tests' doc/PERFORMANCE.md: an all-reduce of n ranks moves 2 (n - 1) / n of the message.
  EXPECT_EQ(wire_bytes(CollectiveKind::all_reduce, 1000, 4), 1500);
  EXPECT_EQ(wire_bytes(CollectiveKind::all_gather, 1000, 4), 3000);
  EXPECT_EQ(first_tensor_elements("[[16,32],[]]"), 512);
  EXPECT_EQ(first_tensor_elements("[[[4,4],[2]],[]]"), 16);
  EXPECT_EQ(first_tensor_elements("[[],[]]"), -1);
  EXPECT_EQ(first_tensor_type("[\"c10::Half\",\"\"]"), "c10::Half");
  EXPECT_EQ(element_size("c10::Half"), 2);
}

// The host alone between the backward's end (1,641 us) and the optimizer (1,741), under a name.
std::string with_loader(int microseconds) {
  std::string text =
      with_event(small_capture(), "traceEvents",
                 R"({"ph":"X","cat":"cpu_op","name":"aten::stack","pid":1,"tid":100,"ts":1669783687001650,)"
                 R"("dur":5,"args":{"External id":40}})");
  return with_event(text, "traceEvents",
                    R"({"ph":"X","cat":"user_annotation","name":"enumerate(DataLoader)#next","pid":1,"tid":100,)"
                    R"("ts":1669783687001641,"dur":)" +
                        std::to_string(microseconds) + R"(,"args":{"External id":41}})");
}

TEST(TimedImport, WhatTheHostDoesAloneForLongHasAName) {
  const ImportedTrace without = import_text(small_capture()), t = import_text(with_loader(100));
  const std::vector<Op> work = ops_of(t, OpKind::host_work);
  ASSERT_EQ(work.size(), ops_of(without, OpKind::host_work).size() + 1);
  const auto loader = std::find_if(work.begin(), work.end(), [&](const Op& op) {
    return t.trace.strings[op.operator_name] == "enumerate(DataLoader)#next";
  });
  ASSERT_NE(loader, work.end());
  EXPECT_EQ(loader->host_cost, microseconds(100));
  EXPECT_EQ(end_of(t.trace), end_of(without.trace)) << "the same time, with a name";
}

TEST(TimedImport, AShortRangeAndOneInWhichTheDeviceIsCalledAreNoWork) {
  EXPECT_EQ(ops_of(import_text(with_loader(99)), OpKind::host_work).size(),
            ops_of(import_text(small_capture()), OpKind::host_work).size());
  EXPECT_EQ(ops_of(import_text(with_loader(120)), OpKind::host_work).size(),
            ops_of(import_text(small_capture()), OpKind::host_work).size())
      << "it reaches into the optimizer's launch";
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
