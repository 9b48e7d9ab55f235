// Does a profile of rocprofv3 become the trace that its records describe, in each form of its files, and is what is
// none refused with a sentence?
#include "models/workload/import/rocm/rocm_import.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>

#include "models/workload/import/importer.h"
#include "sim/error.h"
#include "sim/trace/trace_check.h"
#include "tests/support/rocm_writer.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/sqlite_writer.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

class RocmImport : public ::testing::Test {
 protected:
  CuptiCapture read(const std::string& file, const std::string& name = "a.db", const std::string& step_range = "",
                    std::optional<std::uint32_t> rank = {}) {
    write_content(folder_ / name, file);
    return read_rocm(folder_ / name, step_range, rank);
  }
  ImportedStep import(const std::string& file, const std::string& name = "a.db") {
    write_content(folder_ / name, file);
    ImportedStep step = import_rocm(folder_ / name);
    EXPECT_EQ(check(step.trace), std::vector<std::string>());
    return step;
  }
  std::string refusal(const std::string& file, const std::string& name = "a.db") {
    try {
      read(file, name);
      return "";
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find(name), std::string::npos) << error.what();
      return error.what();
    }
  }
  const Importer* importer(const std::string& file, const std::string& name) {
    write_content(folder_ / name, file);
    FileHead head = read_file_head(folder_ / name);
    return find_importer(head);
  }
  static std::string notes(const CuptiCapture& capture) {
    std::string all;
    for (const std::string& note : capture.notes) all += note + "\n";
    return all;
  }
  static bool contains(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

  ScratchFolder folder_;
};

TEST_F(RocmImport, RecordsBecomeCallsWorkAndRanges) {
  const CuptiCapture capture = read(rocpd_database());
  const TimedCapture& c = capture.capture;
  ASSERT_EQ(c.device_ops.size(), 4u);
  EXPECT_EQ(c.text(c.device_ops[0].name), "Memcpy HtoD (Unknown -> Device)");
  EXPECT_EQ(c.device_ops[0].bytes, 1 << 20);
  EXPECT_EQ(c.device_ops[0].stream, 1);
  EXPECT_EQ(c.text(c.device_ops[1].name), "Cijk_Ailk_Bljk_SB_MT128x128x16");
  EXPECT_EQ(c.device_ops[1].start, microseconds(70));  // the step's range begins at 0
  EXPECT_EQ(c.device_ops[1].duration, microseconds(200));
  const CapturedLaunch& launch = c.launches[c.device_ops[1].launch];
  EXPECT_DOUBLE_EQ(launch.blocks_per_multiprocessor, 2);  // 608 workgroups on 304 compute units
  EXPECT_EQ(launch.threads_per_block, 256u);
  EXPECT_EQ(launch.registers_per_thread, 32u);
  EXPECT_EQ(launch.shared_memory, 16384u);
  EXPECT_EQ(c.device_ops[2].stream, 2);
  EXPECT_DOUBLE_EQ(c.launches[c.device_ops[2].launch].blocks_per_multiprocessor, 8.0 / 304);  // 1000 items by 128
  ASSERT_EQ(c.devices.size(), 1u);
  EXPECT_EQ(c.devices[0].name, "AMD Instinct MI300X");
  EXPECT_EQ(c.devices[0].memory, 206141652992);
  EXPECT_EQ(c.devices[0].multiprocessors, 304u);
  ASSERT_EQ(c.threads.size(), 1u);  // the runtime's own thread is left out
  EXPECT_EQ(c.calls.size(), 9u);    // without HSA's, which is part of HIP's
}

// A kernel is launched by the call of HSA that its record names, which is inside one of HIP's.
TEST_F(RocmImport, WorkBelongsToTheCallOfHip) {
  const CuptiCapture capture = read(rocpd_database());
  const TimedCapture& c = capture.capture;
  std::map<std::int64_t, std::string> calls;
  for (const CapturedCall& call : c.calls) calls[call.correlation] = c.text(call.name);
  for (const CapturedDeviceOp& op : c.device_ops)
    EXPECT_EQ(calls[op.correlation], op.work == DeviceWork::copy ? "hipMemcpyAsync" : "hipLaunchKernel");
  EXPECT_TRUE(contains(notes(capture), "counted as part of them: 1 call of HSA")) << notes(capture);
  EXPECT_TRUE(contains(notes(capture), "1 call of HSA outside of HIP's")) << notes(capture);
  EXPECT_TRUE(contains(notes(capture), "1 region of other kinds")) << notes(capture);
}

TEST_F(RocmImport, ArgumentsTellWhatIsWaitedFor) {
  const CuptiCapture capture = read(rocpd_database());
  const TimedCapture& c = capture.capture;
  ASSERT_EQ(c.syncs.size(), 2u);
  EXPECT_EQ(c.syncs[0].kind, SyncKind::stream_wait_event);
  EXPECT_EQ(c.syncs[0].stream, 2);
  EXPECT_EQ(c.syncs[0].awaited_stream, 1);
  EXPECT_EQ(c.syncs[1].kind, SyncKind::stream);
  EXPECT_EQ(c.syncs[1].stream, 2);
  const ImportedStep step = import(rocpd_database());
  EXPECT_EQ(import_cupti_capture(capture).summary.given_edges, 1u);
  // Without arguments the wait is there, and what it waits for is concluded.
  const CuptiCapture untold = read(rocprof_json(false), "b.json");
  EXPECT_TRUE(untold.capture.syncs.empty());
  EXPECT_EQ(import_cupti_capture(untold).summary.given_edges, 0u);
  EXPECT_TRUE(contains(notes(untold), "Of 1 wait of a stream for an event, one is not told")) << notes(untold);
}

TEST_F(RocmImport, RangesAreOperatorsPhasesAndSteps) {
  const ImportedStep step = import(rocpd_database());
  std::map<std::string, Phase> phases;
  for (const Op& op : step.trace.ops)
    if (op.kind == OpKind::kernel || op.kind == OpKind::collective) phases[step.trace.strings[op.name]] = op.phase;
  EXPECT_EQ(phases.at("Cijk_Ailk_Bljk_SB_MT128x128x16"), Phase::forward);
  EXPECT_EQ(phases.at("void add<float>"), Phase::backward);
  EXPECT_EQ(step.trace.steps.size(), 1u);
  EXPECT_EQ(step.gpu, "AMD Instinct MI300X");
  EXPECT_EQ(step.trace.name, "a");
  // The sizes of the range, and the type by the name that Tensile gave the kernel.
  for (const Op& op : step.trace.ops)
    if (step.trace.strings[op.name] == "Cijk_Ailk_Bljk_SB_MT128x128x16") {
      EXPECT_EQ(step.trace.shapes[op.shape], (Shape{1, 4, 8, 16}));
      EXPECT_EQ(op.data_type, DataType::fp32);
      EXPECT_EQ(op.flops, 1024);
    }
  EXPECT_EQ(std::count_if(step.trace.ops.begin(), step.trace.ops.end(),
                          [](const Op& op) { return op.kind == OpKind::collective; }),
            1);
  EXPECT_THROW(read(rocpd_database(), "a.db", "no such name"), UsageError);
}

TEST_F(RocmImport, AllocationsAreThoseOfHsa) {
  const CuptiCapture capture = read(rocpd_database());
  const TimedCapture& c = capture.capture;
  ASSERT_EQ(c.memory.size(), 3u);
  EXPECT_EQ(c.memory[0].bytes, 2 << 20);
  EXPECT_TRUE(c.memory[0].on_device());
  EXPECT_EQ(c.memory[1].bytes, 64 << 10);
  EXPECT_FALSE(c.memory[1].on_device());
  EXPECT_EQ(c.memory[2].bytes, -(2 << 20));  // the file does not say how large
  EXPECT_TRUE(c.memory[2].on_device());
  EXPECT_TRUE(contains(notes(capture), "those of the HSA interface"));
}

TEST_F(RocmImport, TheFormsOfAFileGiveOneTrace) {
  const ImportedStep direct = import(rocpd_database(RocpdForm::direct));
  const ImportedStep referred = import(rocpd_database(RocpdForm::referred));
  const ImportedStep json = import(rocprof_json(), "a.json");
  for (const ImportedStep* other : {&referred, &json}) {
    ASSERT_EQ(other->trace.ops.size(), direct.trace.ops.size());
    for (std::size_t i = 0; i < direct.trace.ops.size(); ++i) {
      const Op &a = direct.trace.ops[i], &b = other->trace.ops[i];
      EXPECT_EQ(a.kind, b.kind) << i;
      EXPECT_EQ(direct.trace.strings[a.name], other->trace.strings[b.name]) << i;
      EXPECT_EQ(a.stream, b.stream) << i;
      EXPECT_EQ(a.duration, b.duration) << i;
      EXPECT_EQ(a.host_gap, b.host_gap) << i;
      EXPECT_EQ(a.phase, b.phase) << i;
    }
    EXPECT_EQ(other->gpu, direct.gpu);
    EXPECT_EQ(other->gpu_memory, direct.gpu_memory);
    EXPECT_EQ(other->trace.name, direct.trace.name);
  }
}

TEST_F(RocmImport, FilesAreToldByContent) {
  ASSERT_NE(importer(rocpd_database(), "a.sqlite"), nullptr);
  EXPECT_EQ(importer(rocpd_database(), "a.sqlite")->name, "ROCm profile");
  EXPECT_EQ(importer(rocprof_json(), "a.log")->name, "ROCm profile in JSON");
  EXPECT_EQ(importer(nsys_report(), "a.db")->name, "Nsight Systems export");
}

TEST_F(RocmImport, QueuesStandForStreamsThatAreNotKnown) {
  const std::string set = kRocpdSet;
  const CuptiCapture capture = read(
      rocpd_database(RocpdForm::direct, "UPDATE rocpd_kernel_dispatch" + set + " SET queue_id = stream_id + 4, " +
                                            "stream_id = 0; UPDATE rocpd_memory_copy" + set + " SET stream_id = 0;"));
  const TimedCapture& c = capture.capture;
  EXPECT_EQ(c.device_ops[0].stream, 0);
  EXPECT_EQ(c.device_ops[1].stream, 5);
  EXPECT_EQ(c.device_ops[2].stream, 6);
  EXPECT_TRUE(contains(notes(capture), "HSA's queues stand for them")) << notes(capture);
  ASSERT_EQ(c.syncs.size(), 2u);  // streams are still told by what was launched with them
  EXPECT_EQ(c.syncs[0].awaited_stream, 5);
}

// A second process with a kernel of `ns` on the second GPU.
std::string second_process(std::int64_t ns) {
  const std::string set = kRocpdSet;
  return "INSERT INTO rocpd_info_process" + set + " VALUES (4800,'',7,1,4800,'python other.py');" +
         "INSERT INTO rocpd_info_agent" + set +
         " VALUES (5,'',7,4800,'GPU',5,5,1,'gfx942','','AMD Instinct MI300X','{}');" +
         "INSERT INTO rocpd_kernel_dispatch" + set + " VALUES (50,'',7,4800,4800,5,1,1,1,50,5000100000," +
         std::to_string(5'000'100'000 + ns) + ",0,64,1,1,64,1,1,NULL);";
}

TEST_F(RocmImport, AProcessThatDoesLittleIsNoRank) {
  const CuptiCapture capture = read(rocpd_database(RocpdForm::direct, second_process(5'000)));
  EXPECT_EQ(capture.capture.device_ops.size(), 4u);
  EXPECT_TRUE(contains(notes(capture), "process 4711: python train.py.")) << notes(capture);
  EXPECT_TRUE(contains(notes(capture), "holds 2 processes")) << notes(capture);
}

TEST_F(RocmImport, OfSeveralRanksOneIsAskedFor) {
  const std::string file = rocpd_database(RocpdForm::direct, second_process(500'000));
  const std::string told = refusal(file);
  EXPECT_TRUE(contains(told, "holds 2 ranks: 0 (process 4711, GPU 0), 1 (process 4800, GPU 1)")) << told;
  const CuptiCapture second = read(file, "a.db", "", 1);
  ASSERT_EQ(second.capture.device_ops.size(), 1u);
  EXPECT_TRUE(contains(notes(second), "process 4800: python other.py.")) << notes(second);
  EXPECT_EQ(read(file, "a.db", "", 0).capture.device_ops.size(), 4u);
}

TEST_F(RocmImport, RecordsWithoutPossibleTimesAreCounted) {
  const std::string set = kRocpdSet;
  const CuptiCapture capture =
      read(rocpd_database(RocpdForm::direct, "UPDATE rocpd_kernel_dispatch" + set + " SET start = 0 WHERE id = 2;"));
  EXPECT_EQ(capture.capture.device_ops.size(), 3u);
  EXPECT_TRUE(contains(notes(capture), "1 record without possible times")) << notes(capture);
}

TEST_F(RocmImport, WhatIsNoProfileIsRefused) {
  EXPECT_TRUE(contains(refusal(sqlite_file("CREATE TABLE rocpd_api (id INTEGER); CREATE TABLE rocpd_op (id INTEGER);")),
                       "rocmProfileData (RPD), which is not read"));
  EXPECT_TRUE(contains(refusal(sqlite_file("CREATE TABLE rocpd_string_01 (id INTEGER, string TEXT);")),
                       "expected tables rocpd_kernel_dispatch"));
  EXPECT_TRUE(
      contains(refusal(sqlite_file("CREATE TABLE rocpd_region_01 (id INTEGER);")), "no kernels, copies or calls"));
  EXPECT_TRUE(contains(refusal(R"({"rocprofiler-sdk-tool":[]})", "a.json"), "no process"));
  EXPECT_TRUE(
      contains(refusal(R"({"rocprofiler-sdk-tool":[{"metadata":7}]})", "a.json"), "no kernels, copies or calls"));
  EXPECT_TRUE(contains(refusal(R"({"rocprofiler-sdk-tool":[{"metadata" 7}]})", "a.json"), "byte"));
  std::string cut = rocpd_database();
  cut.resize(cut.size() / 2);
  EXPECT_NE(refusal(cut), "");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
