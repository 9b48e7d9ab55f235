// .mwi files, written record by record: what becomes of each kind, what is counted, and what is refused.
#include "models/workload/import/cupti/inject_import.h"

#include <gtest/gtest.h>

#include "models/workload/import/cupti/cupti_records.h"
#include "models/workload/import/cupti/occupancy.h"
#include "sim/error.h"
#include "sim/trace/trace_check.h"
#include "tests/support/command.h"
#include "tests/support/inject_writer.h"
#include "tests/support/scratch_folder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr std::uint64_t kUs = 1000, kStart = 1'700'000'000'000'000'000;

class InjectFile : public ::testing::Test {
 protected:
  InjectFile() {
    w.process(4711, "./train --fast");
    w.device(0, "NVIDIA H100 80GB HBM3", 85018279936, 132);
    w.context(1, 0);
  }

  static std::uint64_t at(std::uint64_t us) { return kStart + us * kUs; }

  // A call of 10 us that launches a kernel of 50 us, 3 us later.
  void launch(std::string_view kernel, std::uint64_t us, std::uint32_t correlation, std::uint32_t thread = 100,
              std::uint32_t stream = 7) {
    w.call({.name = "cudaLaunchKernel_v7000",
            .start = at(us),
            .end = at(us + 10),
            .correlation = correlation,
            .thread = thread});
    w.kernel({.name = kernel, .start = at(us + 13), .end = at(us + 63), .correlation = correlation, .stream = stream});
  }

  CuptiCapture read(const std::string& step_range = "") {
    w.save(folder / "a.mwi");
    return read_inject(folder / "a.mwi", step_range);
  }
  ImportedTrace import(const std::string& step_range = "") {
    ImportedTrace imported = import_cupti_capture(read(step_range));
    EXPECT_EQ(check(imported.trace), std::vector<std::string>());
    return imported;
  }

  static bool says(const std::vector<std::string>& notes, std::string_view part) {
    for (const std::string& note : notes)
      if (note.find(part) != std::string::npos) return true;
    return false;
  }

  static const Op& named(const Trace& trace, std::string_view name) {
    for (const Op& op : trace.ops)
      if (trace.strings[op.name] == name) return op;
    throw std::runtime_error("no op is called " + std::string(name));
  }

  // The sentence with which a file is refused.
  std::string refusal(const std::string& content) {
    write_content(folder / "bad.mwi", content);
    try {
      read_inject(folder / "bad.mwi");
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  }

  InjectWriter w;
  ScratchFolder folder;
};

TEST_F(InjectFile, BecomesAProgramWithItsOwnTimes) {
  launch("gemm", 100, 1);
  launch("softmax", 130, 2);
  w.call({.name = "cudaStreamSynchronize_v3020", .start = at(150), .end = at(250), .correlation = 3});
  w.synchronization(3, at(151), at(249), 3, 7);
  w.call({.name = "cudaMemcpyAsync_ptsz_v7000", .start = at(300), .end = at(310), .correlation = 4});
  w.copy({.start = at(314), .end = at(334), .bytes = 4096, .source = 2, .correlation = 4, .stream = 9});
  w.call({.name = "cudaMemsetAsync", .start = at(320), .end = at(326), .correlation = 5});
  w.memset({.start = at(330), .end = at(331), .bytes = 64, .destination = 3, .correlation = 5});
  w.end();
  const ImportedTrace imported = import();
  const Trace& t = imported.trace;
  EXPECT_EQ(t.name, "a");
  EXPECT_EQ(imported.gpu, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(t.streams.size(), 2u);
  EXPECT_EQ(imported.summary.trace_kernels, 2u);
  const Op& gemm = named(t, "gemm");
  EXPECT_EQ(gemm.kind, OpKind::kernel);
  EXPECT_EQ(gemm.duration, microseconds(50));
  EXPECT_EQ(gemm.host_cost, microseconds(10));
  EXPECT_EQ(named(t, "softmax").host_gap, microseconds(20));
  const Op& wait = named(t, "cudaStreamSynchronize");
  EXPECT_EQ(wait.kind, OpKind::synchronize);
  EXPECT_EQ(wait.wait_for, WaitFor::stream);
  const Op& copy = named(t, "Memcpy HtoD (Pinned -> Device)");
  EXPECT_EQ(copy.bytes, 4096);
  EXPECT_FALSE(copy.pageable);
  EXPECT_EQ(named(t, "Memset (Device)").bytes, 64);
  EXPECT_EQ(t.constants.launch_latency[0], microseconds(3));
  EXPECT_TRUE(says(t.notes, "process 4711: ./train --fast; the driver's CUDA is 13.0, the runtime's 12.8"));
  EXPECT_FALSE(says(t.notes, "killed"));
  EXPECT_TRUE(says(t.notes, "no NVTX ranges"));
}

TEST_F(InjectFile, ADriverCallInsideARuntimeCallIsPartOfIt) {
  w.call({.name = "cuLaunchKernel", .start = at(102), .end = at(108), .correlation = 12, .domain = 1});
  w.call({.name = "cudaLaunchKernel", .start = at(100), .end = at(110), .correlation = 11});
  w.kernel({.name = "by_inner_number", .start = at(120), .end = at(130), .correlation = 12});
  w.call({.name = "cuMemAlloc_v2", .start = at(201), .end = at(219), .correlation = 14, .domain = 1});
  w.call({.name = "cudaMalloc", .start = at(200), .end = at(220), .correlation = 13});
  w.memory(1, at(219), 0x7000, 1 << 20, 14);
  w.call({.name = "cuLaunchKernel", .start = at(300), .end = at(305), .correlation = 15, .domain = 1});
  w.kernel({.name = "by_the_driver", .start = at(310), .end = at(320), .correlation = 15});
  w.call({.name = "cuLaunchKernel", .start = at(302), .end = at(304), .correlation = 16, .thread = 200, .domain = 1});
  const CuptiCapture capture = read();
  ASSERT_EQ(capture.capture.calls.size(), 4u) << "another thread's call is inside of nothing";
  EXPECT_TRUE(says(capture.notes, "counted as part of them: 2 calls of the driver"));
  const ImportedTrace imported = import_cupti_capture(capture);
  EXPECT_EQ(imported.summary.placed_ops, 0u) << "the kernel is launched by the outer call";
  EXPECT_EQ(named(imported.trace, "by_inner_number").host_cost, microseconds(10));
  EXPECT_EQ(named(imported.trace, "by_the_driver").host_cost, microseconds(5));
  EXPECT_EQ(named(imported.trace, "cudaMalloc").host_cost, microseconds(20));
  EXPECT_EQ(imported.summary.allocs, 1u);
  EXPECT_EQ(capture.capture.memory[0].thread, capture.capture.calls[1].thread);
}

TEST_F(InjectFile, RangesNameStepsPhasesOperatorsAndModules) {
  w.range("load data", at(10), at(90));
  w.range("ProfilerStep#9", at(2200), at(2300));
  for (std::uint32_t step = 0; step < 2; ++step) {
    const std::uint64_t t = 100 + 1000 * step;
    w.range("Iteration " + std::to_string(step), at(t), at(t + 900));
    w.range("step", at(t + 1), at(t + 2));  // inside of a step: none of its own
    w.range("Forward", at(t + 10), at(t + 300));
    w.range("nn.Module: Linear_0", at(t + 15), at(t + 200));
    w.range("aten::addmm, seq = 7, op_id = 9, sizes = [[4, 8], [8, 2]]", at(t + 20), at(t + 100));
    launch("gemm", t + 30, 1 + 10 * step);
    w.range("backward()", at(t + 310), at(t + 600));
    launch("on_main", t + 320, 2 + 10 * step);
    launch("by_autograd", t + 420, 3 + 10 * step, 101);
    w.range("optimizer.step", at(t + 610), at(t + 800));
    launch("adam", t + 620, 4 + 10 * step);
  }
  w.range("crosses threads", at(2000), at(2100), 100, 101);
  const ImportedTrace imported = import();
  const Trace& t = imported.trace;
  ASSERT_EQ(t.steps.size(), 2u) << "nothing is launched in the profiler's last one";
  EXPECT_EQ(t.steps[1].name, "Iteration 1");
  EXPECT_EQ(named(t, "gemm").phase, Phase::forward);
  EXPECT_EQ(named(t, "on_main").phase, Phase::backward);
  EXPECT_EQ(named(t, "by_autograd").phase, Phase::backward) << "on another thread, while a range says so";
  EXPECT_EQ(named(t, "adam").phase, Phase::optimizer);
  EXPECT_EQ(t.strings[named(t, "gemm").operator_name], "aten::addmm");
  EXPECT_EQ(named(t, "gemm").operator_class, OperatorClass::gemm);
  EXPECT_EQ(t.strings[named(t, "gemm").module], "Linear_0");
  EXPECT_TRUE(says(t.notes, "NVTX ranges: 16, of them 2 operators, 2 modules, 5 steps, 6 phases"));
  EXPECT_TRUE(says(t.notes, "1 that end on another thread"));

  const CuptiCapture chosen = read({"load"});
  EXPECT_EQ(import_cupti_capture(chosen).trace.steps.size(), 1u);
  try {
    read({"epoch"});
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("begins with \"epoch\" among 16"), std::string::npos) << error.what();
  }
}

TEST_F(InjectFile, OperatorsKeepWhatEmitNvtxSays) {
  w.range("aten::addmm, seq = 7, op_id = 9, sizes = [[4, 8], [8, 2]], input_op_ids = []", at(10), at(20));
  w.range("AddmmBackward0, seq = 7", at(30), at(40), 101);
  w.range("sizes = nothing", at(50), at(60));
  const TimedCapture c = read().capture;
  ASSERT_EQ(c.operators.size(), 3u);
  EXPECT_EQ(c.text(c.operators[0].name), "aten::addmm");
  EXPECT_EQ(c.operators[0].sequence_number, 7);
  EXPECT_EQ(c.text(c.operators[0].input_dims), "[[4, 8], [8, 2]]");
  EXPECT_FALSE(c.operators[0].annotation);
  EXPECT_GT(c.operators[1].forward_thread, 0);
  EXPECT_TRUE(c.operators[2].annotation);
}

TEST_F(InjectFile, WaitsFindTheRecordThatTheyMean) {
  // One event, recorded twice on stream 7: the wait on stream 9 lies between, the later one behind both.
  launch("first", 100, 1);
  w.call({.name = "cudaEventRecord", .start = at(115), .end = at(116), .correlation = 2});
  w.event(0, 2, 7, 5);
  w.call({.name = "cudaStreamWaitEvent", .start = at(117), .end = at(118), .correlation = 3});
  w.synchronization(2, 0, 0, 3, 9, 0, 5);
  launch("second", 120, 4);
  w.call({.name = "cudaEventRecord", .start = at(131), .end = at(132), .correlation = 5});
  w.event(0, 5, 7, 5);
  launch("waits", 140, 6, 100, 9);
  w.call({.name = "cudaEventSynchronize", .start = at(160), .end = at(260), .correlation = 7});
  w.synchronization(1, at(160), at(260), 7, 0xffffffff, 0, 5);
  w.call({.name = "cudaEventSynchronize", .start = at(270), .end = at(271), .correlation = 8});
  w.synchronization(1, at(270), at(271), 8, 0xffffffff, 0, 6);  // never recorded
  const CuptiCapture capture = read();
  ASSERT_EQ(capture.capture.syncs.size(), 3u);
  for (const CapturedSync& sync : capture.capture.syncs)
    if (sync.correlation != 8)
      EXPECT_EQ(sync.record_correlation, sync.kind == SyncKind::stream_wait_event ? 2 : 5);
    else
      EXPECT_EQ(sync.record_correlation, -1);
  EXPECT_TRUE(says(capture.notes, "For events whose recording is not in the file: 1 wait."));
  const ImportedTrace imported = import_cupti_capture(capture);
  EXPECT_EQ(imported.summary.given_edges, 1u);
  EXPECT_EQ(imported.summary.inferred_edges, 0u);
}

TEST_F(InjectFile, CuptisOwnNumberOfARecordCountsBeforeTheEvents) {
  launch("first", 100, 1);
  launch("other", 120, 2, 100, 9);
  w.event(77, 1, 7, 5);
  w.event(78, 2, 9, 5);
  w.call({.name = "cudaStreamWaitEvent", .start = at(140), .end = at(141), .correlation = 9});
  w.synchronization(2, at(140), at(141), 9, 11, 77, 5);
  const CuptiCapture capture = read();
  ASSERT_EQ(capture.capture.syncs.size(), 1u);
  EXPECT_EQ(capture.capture.syncs[0].awaited_stream, 7);
}

TEST_F(InjectFile, AllocationsBecomeStorages) {
  launch("k", 100, 1);
  w.call({.name = "cudaMalloc", .start = at(200), .end = at(220), .correlation = 2});
  w.memory(1, at(219), 0x1000, 4096, 2);
  w.call({.name = "cudaMallocAsync", .start = at(230), .end = at(232), .correlation = 3});
  w.memory(1, at(231), 0x9000, 512, 3, 3, 0xabc);  // from a pool
  w.call({.name = "cudaFree", .start = at(240), .end = at(250), .correlation = 4});
  w.memory(2, at(249), 0x1000, 0, 4);        // does not say how much
  w.memory(2, at(260), 0x5000, 64, 0);       // from before the capture
  w.memory(2, at(261), 0x6000, 0, 0);        // likewise, of unknown size
  w.memory(1, at(262), 0x7000, 1000, 0, 5);  // managed
  w.memory(1, at(263), 0x8000, 100, 0, 2);   // pinned
  w.record(13, {at(264), 0xabc, 0, 0, 0, 0}, {1, 1, 0, 0});
  w.record(14, {at(265), at(266), 65536, 0x7000}, {1, 0, 0, 7, 0, 0});
  w.record(14, {at(265), at(266), 3, 0x7000}, {4, 0, 0, 7, 0, 0});
  const ImportedTrace imported = import();
  EXPECT_EQ(imported.summary.allocs, 2u);
  EXPECT_EQ(imported.summary.frees, 2u);
  EXPECT_EQ(imported.summary.preexisting, 1u);
  EXPECT_EQ(imported.summary.host_memory_events, 1u);
  ASSERT_EQ(imported.trace.storages.size(), 3u);
  EXPECT_TRUE(imported.trace.knowledge.allocations);
  EXPECT_TRUE(says(imported.trace.notes, "without saying how large those were: 1 release."));
  EXPECT_TRUE(says(imported.trace.notes, "Through memory pools: 1 allocation or release (1 record"));
  EXPECT_TRUE(says(imported.trace.notes, "left out: 1 allocation or release, 1.000 kB in all"));
  EXPECT_TRUE(says(imported.trace.notes, "2 events, 65.54 kB migrated to devices, 0 B to the host, 3 page"));
}

TEST_F(InjectFile, GraphsAreLaunchedAsAWhole) {
  w.call({.name = "cudaGraphLaunch_v10000", .start = at(100), .end = at(120), .correlation = 1});
  w.kernel({.name = "a", .start = at(130), .end = at(140), .correlation = 1, .graph = 3});
  w.kernel({.name = "b", .start = at(141), .end = at(150), .correlation = 1, .graph = 3});
  w.call({.name = "cudaGraphLaunch_v10000", .start = at(200), .end = at(220), .correlation = 2});
  w.record(19, {at(230), at(250)}, {0, 1, 7, 2, 3, 0});
  const ImportedTrace imported = import();
  EXPECT_TRUE(named(imported.trace, "b").graph_member);
  EXPECT_EQ(named(imported.trace, "cudaGraphLaunch").kind, OpKind::graph_launch);
  EXPECT_EQ(named(imported.trace, "CUDA graph").duration, microseconds(20));
  EXPECT_TRUE(says(imported.trace.notes, "Nodes of CUDA graphs: 2 pieces of device work"));
  EXPECT_TRUE(says(imported.trace.notes, "Recorded as one piece of work each: 1 launch of CUDA graphs"));
}

TEST_F(InjectFile, WhatIsMissingIsSaid) {
  launch("k", 100, 1);
  w.kernel({.name = "still running", .start = at(500), .end = 0, .correlation = 2});
  w.call({.name = "cudaLaunchKernel", .start = at(500), .end = 0, .correlation = 2});
  w.record(20, {}, {25, 3, w.name("UNIFIED_MEMORY_COUNTER"), w.name("CUPTI_ERROR_NOT_SUPPORTED")});
  w.record(99, {1, 2}, {3, 4});  // of a later library
  w.record(18, {at(5), at(7)}, {65536, 100});
  w.record(21, {9, 5, 2, 0, 1, 4}, {});
  const CuptiCapture open = read();
  EXPECT_TRUE(says(open.notes, "The file has no end: the program was killed"));
  EXPECT_TRUE(says(open.notes, "no end: 1 piece of device work and 1 call."));
  EXPECT_TRUE(
      says(open.notes, "CUPTI did not record UNIFIED_MEMORY_COUNTER on that machine: CUPTI_ERROR_NOT_SUPPORTED"));
  EXPECT_TRUE(says(open.notes, "does not know: 2 records."));
  EXPECT_TRUE(says(open.notes, "CUPTI counts 5 of them; 2 times no buffer was free"));
  EXPECT_TRUE(says(open.notes, "1 overheads of its own and of the driver, 2.0 us"));
  w.end(6, 3, 1000);
  const CuptiCapture ended = read();
  EXPECT_FALSE(says(ended.notes, "killed"));
  EXPECT_TRUE(says(ended.notes, "CUPTI counts 6 of them; 3 times"));
  EXPECT_TRUE(says(ended.notes, "the file reached its limit (MEMWALL_INJECT_LIMIT): 1,000 records"));

  const std::string bytes = w.bytes();
  write_content(folder / "cut.mwi", bytes.substr(0, bytes.size() - 60));
  EXPECT_TRUE(says(read_inject(folder / "cut.mwi").notes, "breaks off inside a record"));
}

TEST_F(InjectFile, ALaterLibraryMayAddFields) {
  InjectWriter longer;
  const std::uint32_t name = longer.name("k");
  longer.record(7, {kStart, kStart + 5000, 0}, {0, 1, 7, 1, name, 0, 2, 1, 1, 64, 1, 1, 8, 0, 0, 0, 123, 456, 789, 1});
  longer.save(folder / "a.mwi");
  const TimedCapture c = read_inject(folder / "a.mwi").capture;
  ASSERT_EQ(c.device_ops.size(), 1u);
  EXPECT_EQ(c.launches[c.device_ops[0].launch].threads_per_block, 64u);
}

TEST_F(InjectFile, NamesAreText) {
  w.kernel({.name = std::string_view("a\0b", 3), .start = at(1), .end = at(2)});
  w.kernel({.name = "caf\xc3\xa9", .start = at(3), .end = at(4)});
  w.kernel({.name = "cut \xc3", .start = at(5), .end = at(6)});
  const TimedCapture c = read().capture;
  EXPECT_EQ(c.text(c.device_ops[0].name), "a?b");
  EXPECT_EQ(c.text(c.device_ops[1].name), "caf\xc3\xa9");
  EXPECT_EQ(c.text(c.device_ops[2].name), "cut ?");
}

TEST_F(InjectFile, DamageIsRefusedInASentence) {
  const std::string good = w.bytes();
  EXPECT_NE(refusal("\x89MW").find("this is no .mwi file"), std::string::npos);
  EXPECT_NE(refusal(good.substr(0, 20)).find("ends inside its header"), std::string::npos);
  std::string other = good;
  other[8] = 1;
  EXPECT_NE(refusal(other).find("another byte order"), std::string::npos);
  other = good;
  other[12] = 2;
  EXPECT_NE(refusal(other).find("version 2 of the format; expected 1"), std::string::npos);
  other = good;
  other[16] = 31;
  EXPECT_NE(refusal(other).find("a header of 31 bytes"), std::string::npos);
  other = good;
  other[36] = 9;  // the size of the first record
  EXPECT_NE(refusal(other).find("at byte 32: found a record of kind 1 (string) with 9 bytes"), std::string::npos)
      << refusal(other);

  const auto with = [](std::uint16_t kind, std::initializer_list<std::uint64_t> wide,
                       std::initializer_list<std::uint64_t> narrow) {
    InjectWriter bad;
    bad.record(kind, wide, narrow);
    return bad.bytes();
  };
  EXPECT_NE(refusal(with(7, {1, 2, 0}, {0, 1, 7, 1, 44, 0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0})).find("the name 44"),
            std::string::npos);
  EXPECT_NE(refusal(with(1, {}, {2, 0})).find("found string 2; expected 1"), std::string::npos);
  EXPECT_NE(refusal(with(1, {}, {1, 500})).find("a string of 500 bytes in a record with room for 0"),
            std::string::npos);
  EXPECT_NE(refusal(with(7, {1, 2}, {0})).find("expected a multiple of 8, at least 96"), std::string::npos);
  EXPECT_NE(refusal(with(15, {~0ull, 2}, {2, 0, 0, 0, 0, 0})).find("expected less than 2^62"), std::string::npos);
  EXPECT_NE(refusal(with(8, {1, 2, ~0ull, 0}, {0, 0, 0, 0, 0, 0, 0, 0})).find("expected at most 2^60"),
            std::string::npos);
  EXPECT_NE(refusal(with(12, {1, 2, 1ull << 50, 0}, {1, 3, 0, 0, 0, 0, 0, 0})).find("17.6 TB"), std::string::npos);
  EXPECT_NE(refusal(with(15, {1, 1ull << 61}, {2, 0, 0, 0, 0, 0})).find("days apart"), std::string::npos);
  InjectWriter threads;
  for (std::uint32_t i = 0; i < 4097; ++i) threads.call({.name = "c", .start = 1, .end = 2, .thread = i});
  EXPECT_NE(refusal(threads.bytes()).find("4,097th host thread"), std::string::npos);
  for (const std::string& content : {good.substr(0, 20), with(1, {}, {2, 0})}) {
    EXPECT_NE(refusal(content).find("bad.mwi"), std::string::npos);
    EXPECT_EQ(refusal(content).back(), '.');
  }
}

TEST(InjectOccupancy, FollowsTheLimits) {
  CuptiDevice h100;
  h100.multiprocessors = 132;
  h100.threads = 2048;
  h100.blocks = 32;
  h100.registers = 65536;
  h100.shared_memory = 233472;
  h100.capability = 90;
  CuptiDeviceWork kernel;
  kernel.blocks = 132 * 100;
  kernel.threads = 256;
  kernel.registers = 32;
  EXPECT_DOUBLE_EQ(occupancy_percent(h100, kernel), 100);  // 8 blocks of 256
  kernel.registers = 255;                                  // 8 warps of 8,192 registers: one block
  EXPECT_DOUBLE_EQ(occupancy_percent(h100, kernel), 12.5);
  kernel.registers = 32;
  kernel.shared_memory = 100 << 10;  // 101 KiB with what the system keeps: two of 228
  EXPECT_DOUBLE_EQ(occupancy_percent(h100, kernel), 25);
  kernel.shared_memory = 0;
  kernel.threads = 32;  // 32 blocks at most
  EXPECT_DOUBLE_EQ(occupancy_percent(h100, kernel), 50);
  kernel.threads = 256;
  kernel.blocks = 66;  // half a block per multiprocessor
  EXPECT_DOUBLE_EQ(occupancy_percent(h100, kernel), 6.25);
  kernel.threads = 0;
  EXPECT_EQ(occupancy_percent(h100, kernel), 0);
}

// The reader in FORMAT.md, taken from the page.
TEST_F(InjectFile, ThePythonOnTheFormatPageReadsIt) {
  if (run_command("python3 -c 'import struct'", ".").code != 0) GTEST_SKIP() << "no python3 here";
  launch("gemm", 100, 1);
  launch("softmax", 130, 2);
  w.range("step", at(1), at(2));
  w.synchronization(3, at(151), at(249), 3, 7);
  w.event(1, 2, 3, 4);
  w.memory(1, at(1), 1, 1, 1);
  w.copy({.start = at(1), .end = at(2)});
  w.memset({.start = at(1), .end = at(2)});
  w.record(99, {1}, {});
  w.end(5, 0, 7);
  w.save(folder / "a.mwi");
  const std::string page = content_of(std::string(MEMWALL_SOURCE) + "/traces/capture/inject/FORMAT.md");
  const std::size_t begin = page.find("```python\n") + 10;
  ASSERT_NE(page.find("```python\n"), std::string::npos);
  write_content(folder / "read.py", page.substr(begin, page.find("```", begin) - begin));
  const CommandOutcome read = run_command("python3 read.py a.mwi", folder.path());
  EXPECT_EQ(read.code, 0) << read.err;
  EXPECT_NE(read.out.find("50.000 us  stream 7  gemm"), std::string::npos) << read.out;
  EXPECT_NE(read.out.find("softmax"), std::string::npos);
  EXPECT_NE(read.out.find("end: 1 records, 5 dropped by CUPTI, 7 over the limit"), std::string::npos) << read.out;
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
