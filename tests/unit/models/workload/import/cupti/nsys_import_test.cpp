// Does an SQLite export of Nsight Systems become the trace that its rows describe, whatever version wrote it, and is a
// database that is none refused with a sentence?
#include "models/workload/import/cupti/nsys_import.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "models/workload/import/timed/import_decisions.h"
#include "sim/error.h"
#include "sim/trace/trace_check.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/sqlite_writer.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

class NsysImport : public ::testing::Test {
 protected:
  CuptiCapture read(const std::string& file, const std::string& step_range = "",
                    std::optional<std::uint32_t> rank = {}) {
    write_content(folder_ / "a.sqlite", file);
    return read_nsys(folder_ / "a.sqlite", step_range, rank);
  }
  ImportedTrace import(const std::string& more = "", const std::string& step_range = "") {
    ImportedTrace imported = import_cupti_capture(read(nsys_report(more), step_range));
    EXPECT_EQ(check(imported.trace), std::vector<std::string>());
    return imported;
  }
  std::string refusal(const std::string& file) {
    try {
      read(file);
      return "";
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find("a.sqlite"), std::string::npos) << error.what();
      return error.what();
    }
  }
  static std::string notes(const Trace& trace) {
    std::string all;
    for (const std::string& note : trace.notes) all += note + "\n";
    return all;
  }
  static std::map<std::string, Phase> phases_of_kernels(const Trace& trace) {
    std::map<std::string, Phase> phases;
    for (const Op& op : trace.ops)
      if (op.kind == OpKind::kernel) phases[trace.strings[op.operator_name]] = op.phase;
    return phases;
  }
  static bool contains(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

  ScratchFolder folder_;
};

TEST_F(NsysImport, RowsBecomeCallsWorkAndRanges) {
  const CuptiCapture capture = read(nsys_report());
  const TimedCapture& c = capture.capture;
  ASSERT_EQ(c.device_ops.size(), 5u);
  EXPECT_EQ(c.text(c.device_ops[0].name), "ampere_sgemm_128x64");
  EXPECT_EQ(c.device_ops[0].duration, microseconds(40));
  EXPECT_EQ(c.device_ops[0].start, microseconds(60));  // the first range begins at -100 us
  EXPECT_DOUBLE_EQ(c.launches[c.device_ops[0].launch].blocks_per_multiprocessor, 2);
  // 64 registers and 2 KiB of shared memory: 4 blocks of 8 warps of the 64 could stay, 2 are there.
  EXPECT_DOUBLE_EQ(c.launches[c.device_ops[0].launch].occupancy_percent, 25);
  EXPECT_EQ(c.text(c.device_ops[1].name), "Memcpy HtoD (Pageable -> Device)");
  EXPECT_EQ(c.device_ops[1].bytes, 1 << 20);
  EXPECT_EQ(c.text(c.device_ops[2].name), "Memset (Device)");
  EXPECT_EQ(c.text(c.device_ops[4].name), "void add<float>");  // without a demangled name the short one
  EXPECT_EQ(c.calls.size(), 7u);                               // the driver's is part of the runtime's
  ASSERT_EQ(c.devices.size(), 1u);
  EXPECT_EQ(c.devices[0].name, "NVIDIA A100-SXM4-40GB");
  EXPECT_EQ(c.devices[0].memory, 42404806656);
  ASSERT_EQ(c.syncs.size(), 1u);
  EXPECT_EQ(c.syncs[0].kind, SyncKind::context);
  ASSERT_EQ(c.memory.size(), 1u);
  EXPECT_EQ(c.memory[0].bytes, 2 << 20);
  EXPECT_TRUE(c.memory[0].on_device());
}

TEST_F(NsysImport, RangesAreOperatorsPhasesAndSteps) {
  const ImportedTrace imported = import();
  const auto phases = phases_of_kernels(imported.trace);
  EXPECT_EQ(phases.at("aten::addmm"), Phase::forward);
  EXPECT_EQ(phases.at("autograd::engine::evaluate_function: AddmmBackward0"), Phase::backward);
  EXPECT_EQ(phases.at("optimizer step"), Phase::optimizer);  // a registered name, by its textId
  ASSERT_EQ(imported.trace.steps.size(), 1u);
  EXPECT_EQ(imported.trace.name, "a");
  EXPECT_TRUE(contains(notes(imported.trace), "process 5."));
  std::string rule;
  for (const Decision& d : import_decisions(read(nsys_report()).capture, imported))
    if (d.subject == "phase optimizer") rule = d.sentence;
  EXPECT_TRUE(contains(rule, "Ranges called so")) << rule;
}

// Ranges of emit_nvtx say extents and no types: those of a product are in its kernel's name, if anywhere.
TEST_F(NsysImport, SizesOfRangesGiveProductsTheirShape) {
  const auto product = [&](const std::string& kernel) {
    write_content(folder_ / "a.sqlite", nsys_report("UPDATE StringIds SET value = '" + kernel + "' WHERE id = 6;"));
    const ImportedStep step = import_nsys(folder_ / "a.sqlite", ImportSettings{});
    for (const Op& op : step.trace.ops)
      if (op.kind == OpKind::kernel && step.trace.strings[op.operator_name] == "aten::addmm")
        return std::make_tuple(step.trace.shapes[op.shape], op.flops, op.data_type, op.bytes);
    return std::make_tuple(Shape{}, -1.0, DataType::int8, Bytes{-1});
  };
  const Shape shape{1, 4, 8, 16};
  EXPECT_EQ(product("ampere_sgemm_128x64"), std::make_tuple(shape, 1024.0, DataType::fp32, Bytes{0}));
  EXPECT_EQ(product("ampere_bf16_s16816gemm_bf16_128x64"), std::make_tuple(shape, 1024.0, DataType::bf16, Bytes{0}));
  EXPECT_EQ(product("cutlass_80_tensorop_s1688gemm_128x64"), std::make_tuple(shape, 0.0, DataType::unknown, Bytes{0}));
}

TEST_F(NsysImport, TheStepsAreTheRangesThatAreNamed) {
  const std::string more =
      "INSERT INTO NVTX_EVENTS VALUES (590000,715000,59,'my turn 2',83886101,NULL,NULL,0),"
      "(-95000,585000,59,'my turn 1',83886101,NULL,NULL,0);";
  EXPECT_EQ(import(more, "my turn").trace.steps.size(), 2u);
  EXPECT_EQ(import(more).trace.steps.size(), 1u);
  write_content(folder_ / "a.sqlite", nsys_report());
  EXPECT_THROW(read_nsys(folder_ / "a.sqlite", "no such name"), UsageError);
}

TEST_F(NsysImport, OfSeveralProcessesTheBusiestIsTaken) {
  // Process 6 (100663296), thread 1.
  const std::string more =
      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES "
      "(100000,8100000,0,1,7,1,100663296,7,7,16,10,1,1,128,1,1,0,0,NULL);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (90000,95000,0,100663297,1,1,0);";
  const ImportedTrace imported = import(more);
  EXPECT_EQ(imported.summary.captured_kernels, 1u);
  EXPECT_TRUE(contains(notes(imported.trace), "process 6. The report holds 2 processes"));
  EXPECT_TRUE(contains(notes(imported.trace), "96.")) << notes(imported.trace);
}

// As torchrun starts them: each process calls its GPU 0, and the report says which one of the machine that is.
TEST_F(NsysImport, OfSeveralRanksOneIsAskedFor) {
  const std::string report = nsys_report(
      "CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId INTEGER, cudaId INTEGER, pid INTEGER);"
      "INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (3,0,5),(2,0,6);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES "
      "(100000,300000,0,1,7,1,100663296,7,7,16,10,1,1,128,1,1,0,0,NULL);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (90000,95000,0,100663297,1,1,0);");
  const std::string told = refusal(report);
  EXPECT_TRUE(contains(told, "holds 2 ranks: 0 (process 6, GPU 2), 1 (process 5, GPU 3)")) << told;
  EXPECT_TRUE(contains(told, "--rank 0")) << told;
  EXPECT_EQ(read(report, "", 0).capture.device_ops.size(), 1u);
  const CuptiCapture second = read(report, "", 1);
  EXPECT_EQ(second.capture.device_ops.size(), 5u);
  EXPECT_TRUE(contains(second.notes.front(), "process 5. The report holds 2 processes")) << second.notes.front();
  EXPECT_TRUE(contains(second.notes.front(), "rank 1 of 2, process 5, GPU 3, by --rank")) << second.notes.front();
  EXPECT_THROW(read(report, "", 2), UsageError);
  EXPECT_EQ(read(nsys_report(), "", 0).capture.device_ops.size(), 5u);  // of one rank
  EXPECT_THROW(read(nsys_report(), "", 1), UsageError);
}

TEST_F(NsysImport, TablesAndColumnsMayBeMissing) {
  // The least that schema 2 had: no processes of kernels, no kinds of ranges, no GPU.
  const ImportedTrace imported = import_cupti_capture(read(
      sqlite_file("CREATE TABLE StringIds (id, value); INSERT INTO StringIds VALUES (1,'cudaLaunchKernel'),(2,'k');"
                  "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (START, End, globalTid, correlationId, nameId);"
                  "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (100,200,83886101,1,1),(300,400,83886101,2,1);"
                  "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, streamId, correlationId, shortName);"
                  "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (250,450,7,1,2),(460,500,7,2,2);")));
  EXPECT_EQ(check(imported.trace), std::vector<std::string>());
  EXPECT_EQ(imported.summary.trace_kernels, 2u);
  EXPECT_EQ(imported.trace.strings[imported.trace.ops[1].name], "k");
}

TEST_F(NsysImport, RowsThatSayNothingAreCountedAndLeftOut) {
  const std::string more =
      "CREATE TABLE E (a); INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES "
      "('text',5,0,1,7,90,83886080,6,6,1,1,1,1,1,1,1,0,0,NULL),(x'00ff',x'01',0,1,7,91,83886080,6,6,1,1,1,1,1,1,1,0,0,"
      "0),"
      "(9223372036854775807,-9223372036854775807,0,1,7,92,83886080,6,6,1,1,1,1,1,1,1,0,0,0),"
      "(-9223372036854775807,9223372036854775807,0,1,7,93,83886080,6,6,1,1,1,1,1,1,1,0,0,0);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (660000,661000,-7,1e99,'x',-1,83886080,-5,77,99,-1);";
  const ImportedTrace imported = import(more);
  EXPECT_EQ(imported.summary.trace_kernels, 3u);
  EXPECT_EQ(imported.summary.trace_copies, 2u);
  EXPECT_TRUE(contains(notes(imported.trace), "4 rows whose times are missing or impossible")) << notes(imported.trace);
}

TEST_F(NsysImport, WorkWithoutACorrelationHasNoCall) {
  const ImportedTrace imported = import(
      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES "
      "(660000,670000,0,1,7,NULL,83886080,6,6,1,1,1,1,1,1,1,0,0,NULL);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (652000,655000,0,83886101,NULL,1,0);");
  EXPECT_EQ(imported.summary.trace_kernels, 4u);
  EXPECT_EQ(imported.summary.placed_ops, 1u);
}

TEST_F(NsysImport, UnifiedMemoryIsCounted) {
  const ImportedTrace imported = import(
      "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (660000,661000,0,1,7,0,83886080,65536,11,4,4),"
      "(662000,663000,0,1,7,0,83886080,4096,12,4,4);");
  EXPECT_EQ(imported.summary.trace_copies, 1u);
  EXPECT_TRUE(contains(notes(imported.trace), "65.54 kB migrated to devices, 4.096 kB to the host"));
}

TEST_F(NsysImport, WhatIsNoReportIsRefused) {
  EXPECT_TRUE(contains(refusal(sqlite_file("CREATE TABLE songs (a)")), "holds no CUDA activity")) << "songs";
  EXPECT_TRUE(contains(refusal(sqlite_file("CREATE TABLE songs (a)")), "found songs"));
  EXPECT_TRUE(contains(refusal(sqlite_file("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start)")), "has no column end"));
  // A view would run what its author likes.
  const std::string view = "CREATE TABLE t (a); CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS SELECT a start, a end FROM t";
  EXPECT_TRUE(contains(refusal(sqlite_file(view)), "holds no CUDA activity"));
  const std::string computed =
      "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end AS (zeroblob(1000000000)), deviceId);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL (start, deviceId) VALUES (1,2)";
  EXPECT_TRUE(contains(refusal(sqlite_file(computed)), "SQLite found"));
  const std::string report = nsys_report();
  EXPECT_TRUE(contains(refusal(report.substr(0, 5000)), "SQLite found"));
  std::string pages = report;
  for (std::size_t i = 4096; i < pages.size(); i += 97) pages[i] = static_cast<char>(i);
  EXPECT_NE(refusal(pages), "");
}

// A root whose children are all one inner page, whose children are all one leaf: two megabytes that seem to hold
// eighty million rows.
TEST_F(NsysImport, PagesThatRepeatThemselvesComeToAnEnd) {
  std::string file = sqlite_file(
      "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end);"
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 250000) "
      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT 0, 0 FROM n;");
  constexpr std::size_t kPage = 4096, kRoot = kPage;  // the table's root is the second page
  const auto at = [&](std::size_t i) { return static_cast<std::size_t>(static_cast<unsigned char>(file[i])); };
  const auto point_all = [&](std::size_t page, std::size_t target) {
    const std::size_t number = target / kPage + 1;
    std::string bytes(4, '\0');
    for (std::size_t i = 0; i < 4; ++i) bytes[i] = static_cast<char>(number >> (24 - 8 * i));
    for (std::size_t i = 0; i < at(page + 3) * 256 + at(page + 4); ++i)
      file.replace(page + at(page + 12 + 2 * i) * 256 + at(page + 13 + 2 * i), 4, bytes);
    file.replace(page + 8, 4, bytes);  // the right-most child
  };
  std::size_t inner = 0, leaf = 0;  // types 5 and 13
  for (std::size_t page = kRoot + kPage; page < file.size(); page += kPage) {
    if (file[page] == 13 && leaf == 0) leaf = page;
    if (file[page] == 5 && (inner == 0 || at(page + 3) > at(inner + 3))) inner = page;
  }
  ASSERT_EQ(file[kRoot], 5);
  ASSERT_NE(inner, 0u);
  ASSERT_NE(leaf, 0u);
  point_all(inner, leaf);
  file.replace(kRoot, kPage, file, inner, kPage);
  point_all(kRoot, inner);
  EXPECT_TRUE(contains(refusal(file), "more rows than a file of this size can"));
}

TEST_F(NsysImport, IsToldByItsContent) {
  FileHead head;
  head.raw = nsys_report().substr(0, 100);
  EXPECT_TRUE(recognizes_nsys(head));
  head.raw[3] = 'x';
  EXPECT_FALSE(recognizes_nsys(head));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
