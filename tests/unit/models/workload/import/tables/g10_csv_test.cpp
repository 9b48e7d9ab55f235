// Do G10's tables become the program that they describe, and is a damaged table refused with its place?
#include "models/workload/import/tables/g10_csv.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "sim/error.h"
#include "sim/trace/trace_check.h"
#include "tests/support/shared_data.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

const std::string kKernelColumns = "kernel_id,name,exec_cycles_at_1.2GHz,input_tensor_ids,output_tensor_ids\n";
const std::string kTensorColumns =
    "tensor_id,is_global_weight,size_bytes,offset_in_its_space,birth_kernel,death_kernel\n";

// Forward (weight 0, input 1 -> activation 2, workspace 3), loss, backward (-> gradient 4), update.
const std::string kKernels = kKernelColumns +
                             "0,Conv2d_Forward,12,1 0,2 3\n"
                             "1,makeLoss,3,2,2\n"
                             "2,Conv2d_Backward_Weight,1,2 1,4\n"
                             "3,Conv2d_Apply_Grad,2,4 0,0\n";
const std::string kTensors = kTensorColumns +
                             "0,1,1000,0,,\n"
                             "1,0,64,0,0,3\n"
                             "2,0,256,64,0,3\n"
                             "3,0,4096,320,0,-1\n"
                             "4,0,1000,4416,2,4\n";

Trace read(const std::string& kernels, const std::string& tensors) {
  return read_g10(kernels, tensors, "tiny-8.kernels.csv", "tiny-8.tensors.csv");
}

// What the reader says about damaged input; empty if it accepts it.
std::string refusal(const std::string& kernels, const std::string& tensors) {
  try {
    read(kernels, tensors);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

void expect_refused(const std::string& kernels, const std::string& tensors, const std::string& sentence) {
  const std::string found = refusal(kernels, tensors);
  EXPECT_NE(found.find(sentence), std::string::npos) << "said: " << found;
}

Bytes peak(const Trace& trace) {
  Bytes now = 0, most = 0;
  for (const Storage& s : trace.storages) now += s.preexisting ? s.bytes : 0;
  most = now;
  for (const Op& op : trace.ops) {
    if (op.kind == OpKind::alloc) now += trace.storages[op.target].bytes;
    if (op.kind == OpKind::free) now -= trace.storages[op.target].bytes;
    most = std::max(most, now);
  }
  return most;
}

TEST(G10Csv, OpsStandInTheOrderOfTheKernelsWithTheirAllocationsAround) {
  const Trace trace = read(kKernels, kTensors);
  std::string order;
  for (const Op& op : trace.ops) {
    order += to_string(op.kind);
    if (op.kind == OpKind::alloc || op.kind == OpKind::free) order += std::to_string(op.target);
    order += ' ';
  }
  EXPECT_EQ(order,
            "mark alloc1 alloc2 alloc3 kernel free3 kernel alloc4 kernel free1 free2 kernel free4 "
            "synchronize mark ");
  EXPECT_EQ(check(trace), std::vector<std::string>());
  EXPECT_EQ(trace.name, "tiny-8");
  EXPECT_EQ(trace.machine, "g10-a100-40gb");
  EXPECT_EQ(trace.samples_per_step, 8);
  ASSERT_EQ(trace.steps.size(), 1U);
  EXPECT_EQ(trace.steps[0].first, 0U);
  EXPECT_EQ(trace.steps[0].last, trace.ops.size() - 1);
}

TEST(G10Csv, DurationsAreCyclesAt1200MegahertzRoundedToThePicosecond) {
  const Trace trace = read(kKernels, kTensors);
  std::vector<std::int64_t> durations;
  for (const Op& op : trace.ops)
    if (op.kind == OpKind::kernel) durations.push_back(op.duration.count());
  EXPECT_EQ(durations, (std::vector<std::int64_t>{10'000, 2'500, 833, 1'667}));
  for (const Op& op : trace.ops) EXPECT_EQ(op.host_cost.count() + op.host_gap.count(), 0);
}

TEST(G10Csv, KindsAndPhasesFollowFromUseAndName) {
  const Trace trace = read(kKernels, kTensors);
  std::vector<StorageKind> kinds;
  for (const Storage& s : trace.storages) kinds.push_back(s.kind);
  EXPECT_EQ(kinds, (std::vector<StorageKind>{StorageKind::parameter, StorageKind::input, StorageKind::activation,
                                             StorageKind::workspace, StorageKind::gradient}));
  std::vector<Phase> phases;
  for (const Op& op : trace.ops)
    if (op.kind == OpKind::kernel) phases.push_back(op.phase);
  EXPECT_EQ(phases, (std::vector<Phase>{Phase::forward, Phase::forward, Phase::backward, Phase::optimizer}));
}

TEST(G10Csv, WhatIsLoadedIsTheInput) {
  const Trace trace = read(replaced(kKernels, "0,Conv2d_Forward,", "0,LoadData_A0,"), kTensors);
  EXPECT_EQ(trace.storages[2].kind, StorageKind::input);
}

TEST(G10Csv, ATensorThatItsBirthKernelOnlyReadsIsWrittenByThatKernel) {
  const Trace trace = read(kKernels, kTensors);
  const auto kernel =
      std::find_if(trace.ops.begin(), trace.ops.end(), [](const Op& op) { return op.kind == OpKind::kernel; });
  std::string uses;
  for (const Use& use : trace.uses_of(*kernel))
    uses += (use.access == Access::read ? "r" : "w") + std::to_string(use.storage) + "v" + std::to_string(use.version) +
            " ";
  EXPECT_EQ(uses, "r0v0 w2v1 w3v1 w1v1 ");
  ASSERT_FALSE(trace.notes.empty());
  EXPECT_EQ(trace.notes[0].substr(0, 9), "1 tensors");
}

TEST(G10Csv, WritingAWeightInPlaceMakesItsNextVersion) {
  const Trace trace = read(kKernels, kTensors);
  const Use last = trace.uses.back();
  EXPECT_EQ(last.storage, 0U);
  EXPECT_EQ(last.version, 1U);
  EXPECT_EQ(last.access, Access::write);
}

TEST(G10Csv, DamagedTablesAreRefusedWithFileLineFoundAndExpected) {
  expect_refused("", kTensors, "tiny-8.kernels.csv:1: the file is empty; expected the columns kernel_id,name");
  expect_refused(kKernels, "", "tiny-8.tensors.csv:1: the file is empty");
  expect_refused(kKernelColumns, kTensors, "the file lists no kernels");
  expect_refused(replaced(kKernels, "name", "title"), kTensors, "column 2 is 'title'; expected 'name'");
  expect_refused(replaced(kKernels, "makeLoss,3,", "makeLoss,"), kTensors, "kernels.csv:3: 4 columns; expected 5");
  expect_refused(replaced(kKernels, ",12,", ",-12,"), kTensors, "kernels.csv:2: exec_cycles_at_1.2GHz is '-12'");
  expect_refused(replaced(kKernels, "\n1,makeLoss", "\n2,makeLoss"), kTensors, "kernel_id is 2; expected 1");
  expect_refused(replaced(kKernels, "1 0,2 3", "1 0,2 9"), kTensors,
                 "tensor 9, which tiny-8.tensors.csv does not list");
  expect_refused(kKernels, replaced(kTensors, "1,1000,", "1,-1000,"), "tensors.csv:2: size_bytes is '-1000'");
  expect_refused(kKernels, replaced(kTensors, "4,0,1000", "3,0,1000"),
                 "tensors.csv:6: tensor 3 is listed a second time");
  expect_refused(kKernels, replaced(kTensors, "64,0,0,3", "64,0,0,99"), "lists 4 kernels");
  expect_refused(kKernels, replaced(kTensors, "64,0,0,3", "64,0,0,0"), "expected a later death");
  expect_refused(kKernels, replaced(kTensors, "64,0,0,3", "64,0,,"), "birth or death kernel is missing");
  expect_refused(kKernels, replaced(kTensors, "0,1,1000,0,,", "0,1,1000,0,1,2"), "expected none");
}

TEST(G10Csv, UsingATensorOutsideItsLifeIsRefused) {
  expect_refused(
      kKernels, replaced(kTensors, "64,0,0,3", "64,0,0,2"),
      "kernels.csv:4: kernel 2 (Conv2d_Backward_Weight) uses tensor 1, which lives from kernel 0 until before "
      "kernel 2 only (tiny-8.tensors.csv:3)");
}

TEST(G10Csv, ReadingATensorThatNobodyMadeIsRefused) {
  expect_refused(replaced(kKernels, "1 0,2 3", "0,2 3"), kTensors,
                 "reads tensor 1, which no kernel has written since its birth at kernel 0");
}

TEST(G10Csv, WindowsLineEndsAndBlankLinesAreAccepted) {
  std::string tensors;
  for (const char c : kTensors) tensors += c == '\n' ? std::string("\r\n") : std::string(1, c);
  EXPECT_EQ(refusal(kKernels + "\n\n", tensors), "");
}

TEST(G10Csv, AMissingTensorsFileIsNamed) {
  const auto folder = std::filesystem::path(testing::TempDir()) / "memwall_g10_csv_test";
  std::filesystem::create_directories(folder);
  const auto kernels = folder / "lonely-1.kernels.csv";
  std::ofstream(kernels) << kKernels;
  try {
    import_g10(kernels);
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("lonely-1.tensors.csv is missing"), std::string::npos) << error.what();
  }
  EXPECT_THROW(import_g10(folder / "absent.kernels.csv"), InputError);
  EXPECT_THROW(import_g10(folder), InputError);
  std::filesystem::remove_all(folder);
}

// Counts, bytes and cycles summed from the tables by an independent script.
struct Totals {
  const char* name;
  std::size_t kernels, tensors, globals;
  Bytes global_bytes, peak_bytes;
  std::int64_t cycles;
};

TEST(G10Csv, EveryPublishedWorkloadHasTheTotalsOfItsTables) {
  const auto data = shared_data();
  if (!data) GTEST_SKIP() << "MEMWALL_SHARED names no folder with captures";
  const Totals all[] = {{"BERT-128", 1369, 1463, 156, 9'115'529'216, 25'859'059'712, 7'087'159'999},
                        {"BERT-256", 1369, 1463, 156, 17'823'494'144, 51'282'243'584, 8'742'558'777},
                        {"BERT-512", 1369, 1463, 156, 35'239'424'000, 102'128'611'328, 11'799'396'628},
                        {"Inceptionv3-512", 929, 2171, 378, 96'358'400, 47'995'326'464, 64'334'907'021},
                        {"ResNet152-256", 1299, 3366, 622, 242'307'072, 58'919'215'104, 127'328'819'564},
                        {"ResNet152-512", 1299, 3330, 622, 242'307'072, 117'595'430'912, 130'102'121'477},
                        {"VIT-1024", 1489, 1563, 157, 14'618'632'192, 49'319'354'368, 3'919'374'961}};
  for (const Totals& expected : all) {
    SCOPED_TRACE(expected.name);
    const Trace trace = import_g10(*data / "g10" / (std::string(expected.name) + ".kernels.csv"));
    EXPECT_EQ(check(trace), std::vector<std::string>());
    Bytes global_bytes = 0;
    std::size_t kernels = 0, globals = 0;
    Duration busy{};
    for (const Storage& s : trace.storages) {
      globals += s.preexisting;
      global_bytes += s.preexisting ? s.bytes : 0;
    }
    for (const Op& op : trace.ops) {
      kernels += op.kind == OpKind::kernel;
      busy += op.kind == OpKind::kernel ? op.duration : Duration{};
      EXPECT_NE(op.kind == OpKind::kernel && op.phase == Phase::unknown, true) << trace.strings[op.name];
    }
    EXPECT_EQ(kernels, expected.kernels);
    EXPECT_EQ(trace.storages.size(), expected.tensors);
    EXPECT_EQ(globals, expected.globals);
    EXPECT_EQ(global_bytes, expected.global_bytes);
    EXPECT_EQ(peak(trace), expected.peak_bytes);
    // Each kernel is rounded to the picosecond, so the sum is off by less than one per kernel.
    EXPECT_NEAR(static_cast<double>(busy.count()), static_cast<double>(expected.cycles) * 2500 / 3,
                static_cast<double>(kernels));
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
