// Do whole command lines print exactly what they should, and does every bad input end in its exit
// code with a sentence and without half-written files?
//
// Exact outputs stand in tests/golden/expected. After a deliberate change: run this program with
// MEMWALL_UPDATE_GOLDEN=1 and read the difference before committing it.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <zlib.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/command.h"
#include "tests/support/golden.h"
#include "tests/support/scratch_folder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

namespace fs = std::filesystem;

// A step of one iteration: two kernels, an allocation, a free of a storage from before the window.
constexpr const char* kCapture = R"({"schemaVersion": 1,
"deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 84929347584, "numSms": 132}],
"traceEvents": [
{"ph": "X", "cat": "cpu_op", "name": "aten::relu", "pid": 1, "tid": 1, "ts": 0, "dur": 50, "args": {"External id": 1}},
{"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 1, "tid": 1, "ts": 5,
 "args": {"Total Reserved": 4194304, "Total Allocated": 3145728, "Bytes": 1048576, "Addr": 8192, "Device Id": 0, "Device Type": 1}},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 10, "dur": 5, "args": {"correlation": 7}},
{"ph": "X", "cat": "kernel", "name": "relu_kernel", "pid": 0, "tid": 7, "ts": 17, "dur": 100,
 "args": {"device": 0, "stream": 7, "correlation": 7}},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 30, "dur": 5, "args": {"correlation": 8}},
{"ph": "X", "cat": "kernel", "name": "relu_kernel", "pid": 0, "tid": 7, "ts": 119, "dur": 200,
 "args": {"device": 0, "stream": 7, "correlation": 8}},
{"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 1, "tid": 1, "ts": 40,
 "args": {"Total Reserved": 4194304, "Total Allocated": 1048576, "Bytes": -2097152, "Addr": 16384, "Device Id": 0, "Device Type": 1}},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaDeviceSynchronize", "pid": 1, "tid": 1, "ts": 60, "dur": 265, "args": {"correlation": 9}}
]})";

// Two kernels of 1 and 2 ms; the first makes what the second reads.
constexpr const char* kKernels =
    "kernel_id,name,exec_cycles_at_1.2GHz,input_tensor_ids,output_tensor_ids\n"
    "0,MatMul_Forward,1200000,0,1\n"
    "1,MatMul_Backward,2400000,0 1,2\n";
constexpr const char* kTensors =
    "tensor_id,is_global_weight,size_bytes,offset_in_its_space,birth_kernel,death_kernel\n"
    "0,1,1000000000,0,,\n"
    "1,0,500000000,0,0,2\n"
    "2,0,250000000,0,1,2\n";

class CommandLine : public ::testing::Test {
 protected:
  void SetUp() override {
    write_content(folder_ / "step.json", kCapture);
    write_content(folder_ / "tiny-4.kernels.csv", kKernels);
    write_content(folder_ / "tiny-4.tensors.csv", kTensors);
  }

  // Runs the program in the scratch folder, so that messages name files without folders.
  CommandOutcome run(const std::string& arguments) {
    return run_command("'" MEMWALL_PROGRAM "' " + arguments, folder_.path());
  }

  std::vector<std::string> files() {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_.path())) names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }

  // `arguments` must fail with this code and say this; nothing may appear on stdout or in the folder.
  void refuses(const std::string& arguments, int code, const std::vector<std::string>& sentences) {
    const auto before = files();
    const CommandOutcome o = run(arguments);
    EXPECT_EQ(o.code, code) << arguments << "\n" << o.err;
    EXPECT_EQ(o.out, "") << arguments;
    for (const std::string& sentence : sentences)
      EXPECT_NE(o.err.find(sentence), std::string::npos)
          << arguments << "\nexpected: " << sentence << "\nfound: " << o.err;
    EXPECT_EQ(files(), before) << arguments;
  }

  void equals_golden(const std::string& name, const std::string& text) { expect_golden(name + ".txt", text); }

  void prints(const std::string& name, const std::string& arguments, int code = 0) {
    const CommandOutcome o = run(arguments);
    EXPECT_EQ(o.code, code) << arguments << "\n" << o.err;
    equals_golden(name, o.out);
  }

  void gzip(const std::string& name, const std::string& text) {
    gzFile file = gzopen((folder_ / name).c_str(), "wb");
    ASSERT_EQ(gzwrite(file, text.data(), static_cast<unsigned>(text.size())), static_cast<int>(text.size()));
    gzclose(file);
  }

  static std::string replaced(std::string text, const std::string& from, const std::string& to) {
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  }

  std::string shipped_machine() {
    return content_of(fs::path(MEMWALL_SOURCE) / "models/hw/machines/h100-sxm-80gb.textproto");
  }

  ScratchFolder folder_;
};

TEST_F(CommandLine, HelpTeaches) {
  prints("help", "--help");
  for (const char* verb : {"import", "generate", "inspect", "run", "compare", "export", "render", "view", "machines",
                           "policies", "calibrate", "explain"})
    prints(std::string("help_") + verb, std::string(verb) + " --help");
  prints("help_machines_show", "machines show --help");
}

TEST_F(CommandLine, HelpFitsATerminal) {
  for (const char* verb :
       {"import", "inspect", "run", "compare", "export", "render", "view", "memory", "machines", "policies",
        "calibrate", "schedule", "validate", "forecast", "watch", "generate", "roofline", "explain"}) {
    std::istringstream help(run(std::string(verb) + " --help").out);
    for (std::string line; std::getline(help, line);) EXPECT_LE(line.size(), 120u) << verb << ": " << line;
  }
}

TEST_F(CommandLine, MachinesInEveryFormat) {
  prints("machines_table", "machines");
  prints("machines_json", "machines --format json");
  prints("machines_show_g10", "machines show g10-a100-40gb");
  prints("machines_show_csv", "machines show rtx-2080ti --set gpu.hbm.bandwidth=700GB/s --format csv");
}

TEST_F(CommandLine, ImportReportsOnStderrAndWritesTheTrace) {
  const CommandOutcome o = run("import step.json -o step.mwt");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(o.out, "");
  equals_golden("import_kineto", o.err);
  EXPECT_TRUE(fs::exists(folder_ / "step.mwt"));
  for (const auto& entry : fs::directory_iterator(folder_.path()))
    EXPECT_EQ(entry.path().filename().string().find("partial"), std::string::npos) << entry.path();
}

TEST_F(CommandLine, RunInEveryFormat) {
  prints("run_table", "run step.json --no-provenance");
  prints("run_json", "run step.json --no-provenance --format json");
  prints("run_csv", "run tiny-4.kernels.csv --no-provenance --format csv");
  prints("run_md", "run tiny-4.kernels.csv --no-provenance --format md");
}

// What eight ranks of one host take of it, and how much longer they make each other.
TEST_F(CommandLine, RunOfRanksThatShareAHost) {
  prints("run_hosts",
         "run gpt2-124m:batch=4 --machine a100-sxm-80gb --policy zero:stage=2,ranks=8 --policy offload:what=optimizer "
         "--policy offload:what=activations --no-provenance");
}

TEST_F(CommandLine, ATraceFileRunsAsItsCapture) {
  ASSERT_EQ(run("import step.json -o step.mwt").code, 0);
  const std::string direct = run("run step.json --no-provenance --format json").out;
  const std::string stored = run("run step.mwt --no-provenance --format json").out;
  const auto without_inputs = [](const std::string& json) { return json.substr(0, json.find("\"inputs\"")); };
  EXPECT_GT(direct.size(), 1000u);
  EXPECT_EQ(without_inputs(direct), without_inputs(stored));
}

TEST_F(CommandLine, GzipIsToldByContent) {
  gzip("compressed.bin", kCapture);
  const CommandOutcome o = run("run compressed.bin --no-provenance --format json");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_NE(o.out.find("\"machine\": \"h100-sxm-80gb\""), std::string::npos);
}

TEST_F(CommandLine, ScaledDurationsMoveTheStep) {
  // The host launches both kernels early; they last 100 and 200 us, and the gap between is kept.
  const auto span = [&](const std::string& flags) {
    const std::string out = run("run step.json --no-provenance --format json " + flags).out;
    const std::string key = "\"gpu_span_s\": ";
    return std::stod(out.substr(out.find(key) + key.size()));
  };
  const double plain = span("");
  EXPECT_NEAR(span("--scale kernels=2") - plain, 300e-6, 1e-9);
  EXPECT_NEAR(span("--scale host=1,kernels=1.5") - plain, 150e-6, 1e-9);
  EXPECT_GT(span("--steps 3"), 2.9 * plain);
}

TEST_F(CommandLine, EqualInputsGiveEqualBytes) {
  ASSERT_EQ(run("run step.json --no-provenance -o a.h5").code, 0);
  ASSERT_EQ(run("run step.json --no-provenance -o b.h5").code, 0);
  EXPECT_GT(content_of(folder_ / "a.h5").size(), 1000u);
  EXPECT_TRUE(content_of(folder_ / "a.h5") == content_of(folder_ / "b.h5"));
}

TEST_F(CommandLine, CompareExportAndRenderReadTheRun) {
  ASSERT_EQ(run("run tiny-4.kernels.csv --no-provenance -o a.h5").code, 0);
  ASSERT_EQ(run("run tiny-4.kernels.csv --no-provenance --scale kernels=2 -o b.h5").code, 0);
  prints("compare_table", "compare a.h5 b.h5");
  prints("export_csv", "export a.h5 --to csv");
  for (const char* form : {"perfetto", "chrome", "json"}) {
    EXPECT_EQ(run(std::string("export a.h5 --to ") + form + " -o out." + form).code, 0);
    EXPECT_GT(content_of(folder_ / (std::string("out.") + form)).size(), 100u) << form;
  }
  for (const char* what : {"timeline", "memory", "links", "tiers"}) {
    EXPECT_EQ(run(std::string("render a.h5 --what ") + what + " -o p.svg").code, 0);
    EXPECT_NE(content_of(folder_ / "p.svg").find("<svg"), std::string::npos) << what;
  }
  EXPECT_EQ(run("render a.h5 b.h5 --what compare -o p.svg").code, 0);
  refuses("render a.h5 --what memroy", 2, {"(nearest: \"memory\")"});
  refuses("render a.h5 --what memory --tier hbn", 2, {"(nearest: \"hbm\")"});
  refuses("render a.h5 -o p.jpeg", 2, {"pictures are written as .svg, .png or .pdf"});
  EXPECT_EQ(run("render a.h5 --view timeline --range step:1 -o p.svg").code, 0);
  EXPECT_NE(content_of(folder_ / "p.svg").find("Timeline, "), std::string::npos);
  refuses("render a.h5 --range stpe:1", 2, {"expected step:2"});
  refuses("render a.h5 --view tiers --range step:1", 2, {"tells of whole runs and has no --range"});
  EXPECT_EQ(run("render a.h5 --view memory --clock host -o p.svg").code, 0);
  EXPECT_EQ(run("render a.h5 --view memory --clock device --range peak:1ms -o p.svg").code, 0);
  EXPECT_NE(content_of(folder_ / "p.svg").find("by the device's clock"), std::string::npos);
  refuses("render a.h5 --view memory --clock devise", 2, {"expected host or device"});
  refuses("render a.h5 --view links --clock device", 2, {"--clock says when --view memory counts bytes"});
  refuses("render a.h5 --view memory --lane main", 2, {"--lane chooses lanes of --view timeline"});
  refuses("export a.h5 --to perfeto", 2, {"(nearest: \"perfetto\")"});
  refuses("run a.h5", 6, {"this is a run file"});
}

TEST_F(CommandLine, WhatDoesNotFitIsPrintedInFullWithCode3) {
  const CommandOutcome o =
      run("run tiny-4.kernels.csv --no-provenance --format json --allocator ideal --set gpu.hbm.capacity=1GB");
  EXPECT_EQ(o.code, 3);
  // 1.0 + 0.5 + 0.25 GB live at once.
  EXPECT_NE(o.out.find("\"missing_bytes\": 750000000"), std::string::npos) << o.out;
  EXPECT_NE(o.out.find("\"fits\": false"), std::string::npos);
  EXPECT_NE(o.out.find("\"missing_cause\": \"in_use\""), std::string::npos) << o.out;
  EXPECT_NE(o.err.find("750000000 bytes (750.0 MB) are missing in tier hbm, which has 1.000 GB usable: 1.750 GB are in "
                       "use at the peak"),
            std::string::npos)
      << o.err;
}

// An 8-B Llama whose peak would fit: a request finds more than its size free, but in pieces.
TEST_F(CommandLine, WhatIsMissingInOnePieceIsCalledSo) {
  const CommandOutcome o =
      run("run llama3-8b:batch=1,sequence=4096 --machine h100-sxm-80gb --set gpu.hbm.capacity=81.8GB --no-provenance");
  EXPECT_EQ(o.code, 3);
  EXPECT_NE(o.err.find("are missing in tier hbm in one piece: a request found"), std::string::npos) << o.err;
  EXPECT_NE(o.err.find("free, but not together (fragmentation)"), std::string::npos) << o.err;
  EXPECT_NE(o.out.find("pieces free (fragmentation))"), std::string::npos) << o.out;
}

TEST_F(CommandLine, MemoryThatNobodyRecordedIsNotZero) {
  std::string capture = kCapture;
  for (std::size_t at; (at = capture.find("[memory]")) != std::string::npos;) capture.replace(at, 8, "[others]");
  write_content(folder_ / "timing.json", capture);
  const std::string step = "run timing.json --no-provenance --format ";
  const std::string table = run(step + "table").out;
  EXPECT_NE(table.find("not recorded"), std::string::npos) << table;
  EXPECT_EQ(table.find("0 B"), std::string::npos) << table;
  EXPECT_NE(run(step + "md").out.find("not recorded"), std::string::npos);
  EXPECT_NE(run(step + "csv").out.find("tiers,hbm,peak_allocated_bytes,\n"), std::string::npos);
  EXPECT_NE(run(step + "json").out.find("\"peak_allocated_bytes\": null"), std::string::npos);
  run(step + "table -o timing.h5");
  write_content(folder_ / "step.json", kCapture);
  run("run step.json --no-provenance -o step.h5");
  EXPECT_NE(run("compare step.h5 timing.h5").out.find("not recorded"), std::string::npos);
}

// No line counts what is not there, and one thing is not called several.
TEST_F(CommandLine, NotesOfAnImportCountWhatThereIs) {
  write_content(folder_ / "step.json", kCapture);
  const std::string notes = run("import step.json -o step.mwt").err;
  for (const char* part :
       {"n = 0", " 0 and 0", " 0 of them", " 0 waited", "1 steps", "1 allocations", "1 frees", " 0 did"})
    EXPECT_EQ(notes.find(part), std::string::npos) << part << "\n" << notes;
  EXPECT_NE(notes.find("1 allocation, 1 free"), std::string::npos) << notes;
  EXPECT_NE(notes.find("1 step."), std::string::npos) << notes;
  EXPECT_NE(notes.find("NVIDIA H100 80GB HBM3 with 84.93 GB is the GPU of"), std::string::npos) << notes;
}

// The shipped sample does not say how many elements its small operators work on: inspect knows what fusion will say.
TEST_F(CommandLine, InspectSaysWhatAPolicyWouldSay) {
  const std::string sample = (fs::path(MEMWALL_SOURCE) / "traces/samples/gpt_124m.mwt").string();
  const CommandOutcome refused = run("run '" + sample + "' --policy fusion");
  EXPECT_EQ(refused.code, 2);
  const CommandOutcome inspected = run("inspect '" + sample + "' --format csv");
  EXPECT_NE(inspected.out.find("policies,fusion,possible,no\n"), std::string::npos) << inspected.out;
  EXPECT_NE(inspected.out.find("does not say how many elements its elementwise ops work on"), std::string::npos);
  for (const char* policy : {"checkpoint", "zero", "offload", "batch"})
    EXPECT_NE(inspected.out.find(std::string("policies,") + policy + ",possible,yes"), std::string::npos) << policy;
}

TEST_F(CommandLine, RunsOfDifferentStepsAreMatchedByNamesAndSaySo) {
  run("run step.json --no-provenance -o one.h5");
  run("run tiny-4.kernels.csv --no-provenance -o two.h5");
  const std::string text = run("compare one.h5 two.h5").out;
  EXPECT_NE(text.find("The runs are of different steps, step and tiny-4: ops are matched by thread, kind, name and "
                      "order alone, "),
            std::string::npos)
      << text;
  EXPECT_EQ(run("compare one.h5 one.h5").out.find("alone"), std::string::npos);
}

TEST_F(CommandLine, TheLruPagerMakesRoom) {
  const CommandOutcome o =
      run("run tiny-4.kernels.csv --no-provenance --format json --allocator ideal --set gpu.hbm.capacity=1800MB "
          "--pager lru");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_NE(o.out.find("\"pager\": \"lru\""), std::string::npos);
}

// Three sizes of copies at 1 GB/s after 20 us, one product, one working set: the least that is enough.
constexpr const char* kResults =
    "# memwall results 1\n"
    "# date: 2026-11-21T10:00:00Z\n"
    "# backend: host\n"
    "benchmark,parameters,unit,median,low,high,samples,bytes,flops,status,note\n"
    "copy_host_hbm_pinned,bytes=1000000,s,0.00102,0.00102,0.00102,5,1000000,0,measured,\n"
    "copy_host_hbm_pinned,bytes=10000000,s,0.01002,0.01002,0.01002,5,10000000,0,measured,\n"
    "copy_host_hbm_pinned,bytes=100000000,s,0.10002,0.10002,0.10002,5,100000000,0,measured,\n"
    "copy_hbm_host_pinned,bytes=1000000,s,0.00102,0.00102,0.00102,5,1000000,0,measured,\n"
    "copy_hbm_host_pinned,bytes=10000000,s,0.01002,0.01002,0.01002,5,10000000,0,measured,\n"
    "copy_hbm_host_pinned,bytes=100000000,s,0.10002,0.10002,0.10002,5,100000000,0,measured,\n"
    "copy_hbm_hbm,bytes=1000000,s,1,1,1,1,1000000,0,failed,byte 17 is wrong\n"
    "gemm_fp32,k=1000;m=1000;n=1000,s,0.1,0.1,0.1,5,0,2000000000,measured,\n"
    "hbm_triad,working_set=64000000,s,0.008002,0.008002,0.008002,5,64000000,0,measured,\n";

TEST_F(CommandLine, MeasurementsBecomeAMachine) {
  fs::create_directories(folder_ / "results");
  write_content(folder_ / "results/results.csv", kResults);
  prints("calibrate_table", "calibrate results");
  prints("calibrate_file", "calibrate results/results.csv -o - --name mine");
  EXPECT_EQ(run("calibrate results -o mine.textproto").code, 0);
  EXPECT_EQ(run("run tiny-4.kernels.csv --machine ./mine.textproto").code, 0);
  refuses("calibrate nothing -o x.textproto", 6, {"nothing"});
  refuses("calibrate results --base h100-sxm-80g -o x.textproto", 2, {"(nearest: \"h100-sxm-80gb\""});
  refuses("calibrate results --name 'a b' -o x.textproto", 2, {"expected letters, digits"});
  refuses("calibrate results -o results/results.csv", 2, {"the output would replace what is read"});
  write_content(folder_ / "results/results.csv", replaced(kResults, "0.10002,0.10002,0.10002", "0.0001,0.0001,0.0001"));
  refuses("calibrate results -o x.textproto", 6, {"copy_host_hbm_pinned (bytes=100000000): 100 us are less than"});
}

// Tables of sentences give way in every column of words; nothing is cut.
TEST_F(CommandLine, WideTablesFitATerminal) {
  for (const char* verb : {"import --formats", "machines show h100-sxm-80gb", "policies", "inspect step.json"}) {
    const std::string out = run(verb).out;
    ASSERT_FALSE(out.empty()) << verb;
    for (std::size_t at = 0; at < out.size();) {
      const std::size_t end = std::min(out.find('\n', at), out.size());
      EXPECT_LE(end - at, 120u) << verb << ": " << out.substr(at, end - at);
      at = end + 1;
    }
  }
  const std::string formats = run("import --formats").out;
  for (const char* word : {"export_chrome_trace", "tensorboard_trace_handler:", "ExecutionTraceObserver:", "(MICRO"})
    EXPECT_NE(formats.find(word), std::string::npos) << word;
}

TEST_F(CommandLine, MistakenWordsNameTheNearest) {
  refuses("", 2, {"a verb is missing; expected one of import, inspect, run"});
  refuses("runn step.json", 2, {"the verb \"runn\" is unknown (nearest: \"run\")"});
  refuses("run step.json --polcy lru", 2, {"the flag \"--polcy\" is unknown (nearest: \"--policy\")"});
  refuses("compare a.h5 b.h5 extra", 2, {"\"extra\" is unknown"});
  refuses("run step.json extra", 6, {"extra: there is no such file"});
  refuses("run", 2, {"step is required", "Try `memwall run --help`."});
  refuses("run step.json --format jsn", 2, {"(nearest: \"json\")"});
  refuses("run step.json --machine H100-sxm-80g", 2, {"(nearest: \"h100-sxm-80gb\""});
  refuses("run step.json --machine T4x", 2, {"(nearest: \"t4\")"});
  refuses("run step.json --machine h200", 2, {"(nearest: \"h200-sxm-141gb\", \"hgx-h200\")"});
  refuses("run step.json --machine v100-smx2-16gb", 2, {"(nearest: \"v100-sxm2-16gb\")"});
  refuses("run step.json --policy checkpoint=full", 2,
          {"Parameters stand behind a colon: 'checkpoint:KEY=VALUE', with keys mode"});
  refuses("run llama3-8b:tp=8 --machine hgx-h100", 2, {"(it is called \"tensor\" here)"});
  refuses("run meta-llama/Llama-3.1-8B --machine hgx-h100", 6, {"no such workload (nearest: \"llama3.1-8b\")"});
  refuses("run llama-3-8b:batch=2 --machine hgx-h100", 6, {"no such workload (nearest: \"llama3-8b\")"});
  refuses("run step.json --allocator pytroch", 2, {"pytorch"});
  refuses("run tiny-4.kernels.csv --allocator arena --pager lru", 2, {"'arena'", "pager"});
  refuses("run step.json --allocator ideal --alloc-conf expandable_segments:True", 2, {"expandable_segments", "ideal"});
  refuses("run step.json --alloc-conf expandable_segment:True", 2, {"expandable_segments"});
  refuses("run step.json --steps 0", 2, {"--steps"});
  refuses("run step.json --steps many", 2, {"--steps"});
  ASSERT_EQ(run("run tiny-4.kernels.csv --steps 2").code, 0);
  refuses("run step.json --scale kernel=2", 2, {"(nearest: \"kernels\")"});
  refuses("run step.json --scale kernels=-1", 2, {"expected a number from 0"});
  refuses("run step.json --set gpu.hbm.bandwith=4TB/s", 2, {"(nearest: \"gpu.hbm.bandwidth\")"});
  refuses("run step.json --set gpu.hbm.bandwidth=4", 2, {"has no unit; expected a bandwidth such as \"3.35 TB/s\""});
  refuses("machines show h100-sxm-80g", 2, {"(nearest: \"h100-sxm-80gb\""});
  refuses("policies show chekpoint", 2, {"checkpoint"});
}

TEST_F(CommandLine, PoliciesThatMakeNoSenseAreRefused) {
  refuses("run tiny-4.kernels.csv --policy chekpoint:mode=full", 2, {"checkpoint"});
  refuses("run tiny-4.kernels.csv --policy checkpoint:mood=full", 2, {"mode"});
  refuses("run tiny-4.kernels.csv --policy checkpoint:mode=fully", 2, {"full"});
  refuses("run tiny-4.kernels.csv --policy checkpoint:mode=full --policy checkpoint:mode=sqrt", 2,
          {"'checkpoint' is given twice"});
  refuses("run tiny-4.kernels.csv --policy lru", 2, {"give it with --pager"});
  refuses("run tiny-4.kernels.csv --pager checkpoint", 2, {"give it with --policy"});
}

TEST_F(CommandLine, ATraceTooPoorForAPolicyIsRefused) {
  refuses("run step.json --policy checkpoint:mode=full -o run.h5", 2, {"needs dataflow", "(--et) adds dataflow"});
  refuses("run step.json --pager lru", 2, {"needs dataflow"});
  const std::string inspected = run("inspect step.json --format csv").out;
  for (const char* policy : {"checkpoint", "offload", "zero", "lru"})
    EXPECT_NE(inspected.find("policies," + std::string(policy) + ",possible,no\n"), std::string::npos) << policy << "\n"
                                                                                                       << inspected;
}

TEST_F(CommandLine, TheMachineMustBeKnown) {
  write_content(folder_ / "nowhere.json", replaced(kCapture, "NVIDIA H100 80GB HBM3", "Accelerator of Tomorrow"));
  const std::string sentence = "It was measured on Accelerator of Tomorrow";
  refuses("run nowhere.json", 2, {sentence, "give --measured-on"});
  refuses("run nowhere.json --machine h100-sxm-80gb", 2, {sentence, "give --measured-on"});
  EXPECT_EQ(run("run nowhere.json --measured-on h100-sxm-80gb --no-provenance").code, 0);
  write_content(folder_ / "near.json", replaced(kCapture, "NVIDIA H100 80GB HBM3", "NVIDIA H900"));
  refuses("run near.json", 2, {"It was measured on NVIDIA H900", "the nearest is h800-"});
  write_content(folder_ / "nameless.json", replaced(kCapture, "NVIDIA H100 80GB HBM3", ""));
  refuses("run nameless.json", 2, {"does not say on which machine it was measured", "`memwall machines` lists them"});
  const CommandOutcome o = run("run nameless.json --machine h100-sxm-80gb --no-provenance");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_NE(o.out.find("its times are taken as h100-sxm-80gb's"), std::string::npos);
}

// Of a capture without a GPU's name the user says where it was measured, and then it is transferred.
TEST_F(CommandLine, WhereItWasMeasuredCanBeSaid) {
  write_content(folder_ / "nowhere.json", replaced(kCapture, "NVIDIA H100 80GB HBM3", ""));
  const std::string known = run("run step.json --machine a100-sxm-40gb --no-provenance --format csv").out;
  const CommandOutcome transferred =
      run("run nowhere.json --measured-on h100-sxm-80gb --machine a100-sxm-40gb --no-provenance --format csv");
  EXPECT_EQ(transferred.code, 0) << transferred.err;
  const auto step_time = [](const std::string& csv) {
    const std::size_t at = csv.find("overview,step time,value,");
    return at == std::string::npos ? csv : csv.substr(at, csv.find('\n', at) - at);
  };
  EXPECT_NE(transferred.out.find("as --measured-on says"), std::string::npos) << transferred.out;
  EXPECT_EQ(step_time(transferred.out), step_time(known));
  const std::string taken = run("run nowhere.json --machine a100-sxm-40gb --no-provenance --format csv").out;
  EXPECT_NE(step_time(taken), step_time(known)) << "or the comparison above says nothing";

  ASSERT_EQ(run("import nowhere.json --measured-on h100-sxm-80gb -o said.mwt").code, 0);
  const std::string inspected = run("inspect said.mwt").out;
  EXPECT_NE(inspected.find("h100-sxm-80gb"), std::string::npos);
  EXPECT_EQ(inspected.find("does not say which device"), std::string::npos) << inspected;
  EXPECT_EQ(run("inspect step.json --measured-on h100-sxm-80gb").code, 0) << "what the file says itself may be said";
}

// What inspect says can be asked must be what run takes.
TEST_F(CommandLine, RanksOfAJobAreNamedAndPoliciesThatNeedMoreAreNotOffered) {
  const auto rank = [](const char* number) {
    const std::string job = replaced(
        kCapture, "\"schemaVersion\": 1,",
        "\"distributedInfo\": {\"backend\": \"nccl\", \"rank\": " + std::string(number) + ", \"world_size\": 4},");
    return replaced(job, R"("name": "relu_kernel", "pid": 0, "tid": 7, "ts": 119)",
                    R"("name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "pid": 0, "tid": 7, "ts": 119)");
  };
  write_content(folder_ / "a.json", rank("0"));
  write_content(folder_ / "b.json", rank("2"));
  const auto row = [](const std::string& csv, const std::string& begin) {
    const std::size_t at = csv.find(begin);
    return at == std::string::npos ? csv : csv.substr(at, csv.find('\n', at) - at);
  };
  const std::string job = run("inspect a.json b.json --format csv").out;
  EXPECT_NE(row(job, "trace,ranks,").find("2 of 4 in the job: 0, 2"), std::string::npos) << job;
  EXPECT_NE(row(job, "policies,lru,comment,").find("needs dataflow"), std::string::npos) << job;
  refuses("run a.json b.json --pager lru", 2, {"needs"});
  const std::string alone = run("inspect a.json --format csv").out;
  EXPECT_NE(row(alone, "trace,ranks,").find("1 of 4 in the job"), std::string::npos) << alone;
  EXPECT_NE(row(alone, "policies,zero,comment,").find("needs dataflow"), std::string::npos)
      << "two settings without default";
}

TEST_F(CommandLine, WhereItWasMeasuredMustMakeSense) {
  refuses("run step.json --measured-on h100-sxm-80g", 2, {"(nearest: \"h100-sxm-80gb\""});
  refuses("import step.json --measured-on a100-sxm-40gb -o step.mwt", 2,
          {"--measured-on a100-sxm-40gb", "NVIDIA H100 80GB HBM3", "expected h100-sxm-80gb"});
  ASSERT_EQ(run("import step.json -o kept.mwt").code, 0);
  refuses("run kept.mwt --measured-on a100-sxm-40gb", 2, {"another machine with that GPU"});
  refuses("run gpt2-124m --measured-on a100-sxm-40gb", 2, {"nothing in", "was measured; give --machine"});
  write_content(folder_ / "new.json", replaced(kCapture, "NVIDIA H100 80GB HBM3", "Accelerator of Tomorrow"));
  const CommandOutcome o = run("run new.json --measured-on h100-sxm-80gb --no-provenance");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_NE(o.out.find("Accelerator of Tomorrow, a GPU that no machine file names"), std::string::npos) << o.out;
}

TEST_F(CommandLine, AnotherMachineChangesTheTimes) {
  const std::string out = run("run step.json --machine a100-sxm-40gb --no-provenance --format json").out;
  EXPECT_NE(out.find("\"machine\": \"a100-sxm-40gb\""), std::string::npos);
  EXPECT_NE(out.find("\"transferred\": 1,"), std::string::npos) << out.substr(out.find("\"origin\""), 120);
}

TEST_F(CommandLine, DamagedCapturesEndIn6WithoutOutput) {
  gzip("whole.json.gz", kCapture);
  const std::string whole = content_of(folder_ / "whole.json.gz");
  write_content(folder_ / "cut.json.gz", whole.substr(0, whole.size() / 2));
  refuses("import cut.json.gz -o step.mwt", 6, {"cut.json.gz"});
  refuses("run cut.json.gz -o run.h5", 6, {"cut.json.gz"});
  write_content(folder_ / "cut.json", std::string(kCapture).substr(0, 1200));
  refuses("import cut.json -o step.mwt", 6, {"cut.json"});
  write_content(folder_ / "empty.json", "");
  refuses("run empty.json", 6, {"the file is empty"});
  write_content(folder_ / "noise.bin", std::string("\x7f\x45LF\x01\x02 nothing", 14));
  refuses("run noise.bin", 6, {"unknown kind", "expected a memwall trace (.mwt)"});
  write_content(folder_ / "other.json", R"({"a": 1})");
  refuses("run other.json", 6, {"an object with \"a\"", "expected a memwall trace (.mwt)"});
  refuses("run nothing.json", 6, {"there is no such file"});
  fs::create_directory(folder_ / "empty");
  refuses("run empty", 6, {"the folder holds no capture of a rank"});
  fs::create_directory(folder_ / "g10");
  write_content(folder_ / "g10/tiny-4.kernels.csv", kKernels);
  refuses("run g10", 6, {"the folder holds no capture of a rank", "g10/tiny-4.kernels.csv (G10 workload)"});
  fs::create_directory(folder_ / "model");
  write_content(folder_ / "model/config.json", "{}");
  refuses("run model", 6,
          {"the folder holds no capture of a rank", "its configuration by its own path: model/config.json"});
}

TEST_F(CommandLine, SizesOfAMachineAreInOneUnit) {
  const std::string out = run("machines show a100-sxm-40gb").out;
  EXPECT_NE(out.find("42.30 GB"), std::string::npos) << out;
  EXPECT_NE(out.find("471.9 MB"), std::string::npos) << "450 MiB";
  EXPECT_NE(out.find("1555 GB/s"), std::string::npos) << "rates stay as their source has them";
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);)
    EXPECT_EQ(line.substr(0, 80).find("iB "), std::string::npos) << line;
  EXPECT_NE(run("machines show a100-sxm-40gb --format csv").out.find(",42297524224 B,"), std::string::npos);
}

TEST_F(CommandLine, AScheduleSaysThatAReplayNeedsMoreThanThereIs) {
  const std::string sample = "'" MEMWALL_SOURCE "/traces/samples/gpt_124m.mwt'";
  const CommandOutcome paged = run("schedule " + sample + " --pager lru --set gpu.hbm.capacity=6GB -o paged.schedule");
  EXPECT_NE(paged.err.find("memwall schedule: A replay "), std::string::npos) << paged.err;
  EXPECT_NE(paged.out.find("- A replay does not fit a100-sxm-40gb: "), std::string::npos) << paged.out;
  EXPECT_EQ(run("schedule " + sample + " -o whole.schedule").err.find("A replay "), std::string::npos);
}

TEST_F(CommandLine, ZeroStandsInForTheRecipesDataParallelism) {
  const std::string step = "run gpt2-124m:layers=1,batch=1,sequence=64,data_parallel=4 --machine a100-sxm-40gb ";
  const auto headline = [&](const std::string& policy) {
    const std::string out = run(step + policy).out;
    return out.substr(0, out.find("\n  "));
  };
  EXPECT_NE(headline("").find("(data_parallel=4)"), std::string::npos);
  EXPECT_EQ(headline("--policy zero:stage=2,ranks=8").find("data_parallel"), std::string::npos);
}

TEST_F(CommandLine, ActivationsThatAreAllocatedOnceCount) {
  const std::string out = run("generate gpt2-llmc --format csv").out;
  const std::string before = "step,activations at the start of backward,value,";
  ASSERT_NE(out.find(before), std::string::npos) << out;
  EXPECT_GT(std::stod(out.substr(out.find(before) + before.size())), 1e9) << out;
}

TEST_F(CommandLine, AFolderSaysWhatOfItIsLeftOut) {
  fs::create_directory(folder_ / "job");
  write_content(folder_ / "job/rank0.json", kCapture);
  const std::string whole = run("run job --no-provenance --full").out;
  EXPECT_EQ(whole.find("left out, as no capture"), std::string::npos) << whole;
  write_content(folder_ / "job/rank1.json", R"({"a": 1})");
  const std::string out = run("run job --no-provenance --full").out;
  EXPECT_NE(out.find("job: left out, as no capture of a rank: rank1.json."), std::string::npos) << out;
}

TEST_F(CommandLine, ImpossibleValuesEndIn6) {
  write_content(folder_ / "negative.json", replaced(kCapture, "\"dur\": 100", "\"dur\": -100"));
  refuses("run negative.json -o run.h5", 6, {"negative.json"});
  write_content(folder_ / "tiny-4.tensors.csv", replaced(kTensors, "500000000", "-500000000"));
  refuses("run tiny-4.kernels.csv -o run.h5", 6, {"tiny-4.tensors.csv", "-500000000"});
}

TEST_F(CommandLine, AReadOfWhatNobodyMadeEndsIn6) {
  write_content(folder_ / "tiny-4.kernels.csv", replaced(kKernels, "0 1,2", "0 7,2"));
  refuses("import tiny-4.kernels.csv -o step.mwt", 6, {"tiny-4.kernels.csv", "7"});
  fs::remove(folder_ / "tiny-4.tensors.csv");
  refuses("import tiny-4.kernels.csv -o step.mwt", 6, {"tiny-4.tensors.csv"});
}

TEST_F(CommandLine, AFreeOfAnUnknownAddressIsAStorageFromBefore) {
  const CommandOutcome o = run("import step.json -o step.mwt");
  EXPECT_NE(o.err.find("1 free, 1 of them of storages from before the window"), std::string::npos) << o.err;
}

TEST_F(CommandLine, DamagedTracesAndRunsEndIn6) {
  ASSERT_EQ(run("import step.json -o step.mwt").code, 0);
  ASSERT_EQ(run("run step.json -o run.h5").code, 0);
  std::string trace = content_of(folder_ / "step.mwt"), file = content_of(folder_ / "run.h5");
  write_content(folder_ / "cut.mwt", trace.substr(0, trace.size() - 7));
  refuses("run cut.mwt", 6, {"cut.mwt"});
  trace[trace.size() / 2] ^= 1;
  write_content(folder_ / "bent.mwt", trace);
  refuses("run bent.mwt", 6, {"bent.mwt"});
  file[file.size() / 2] ^= 1;
  write_content(folder_ / "bent.h5", file);
  refuses("compare run.h5 bent.h5", 6, {"bent.h5"});
  refuses("export bent.h5 --to csv -o x.csv", 6, {"bent.h5"});
  refuses("render step.mwt", 6, {"step.mwt"});
}

TEST_F(CommandLine, MistakenMachineFilesEndIn6WithTheirLine) {
  write_content(folder_ / "typo.textproto", replaced(shipped_machine(), "multiprocessors {", "multiprocesors {"));
  refuses("run step.json --machine typo.textproto", 6, {"typo.textproto:15:", "(nearest: \"multiprocessors\")"});
  write_content(folder_ / "unit.textproto", replaced(shipped_machine(), "3.35 TB/s", "3.35"));
  refuses("run step.json --machine unit.textproto", 6, {"unit.textproto:23:", "has no unit; expected a bandwidth"});
}

TEST_F(CommandLine, AnOutputThatCannotBeWrittenIsToldAndLeavesNothing) {
  refuses("import step.json -o nowhere/step.mwt", 2, {"nowhere/step.mwt"});
  refuses("run step.json --format json -o nowhere/run.h5", 2, {"nowhere/run.h5"});
}

TEST_F(CommandLine, AnOutputNeverReplacesWhatIsReadNorADevice) {
  ASSERT_EQ(run("import step.json -o step.mwt").code, 0);
  ASSERT_EQ(run("run step.mwt -o run.h5").code, 0);
  fs::create_directory(folder_ / "folder");
  fs::create_symlink(folder_ / "step.mwt", folder_ / "link.mwt");
  const std::string precious = content_of(folder_ / "step.mwt"), kept = content_of(folder_ / "run.h5");
  refuses("import step.json -o ./step.json", 2, {"would replace what is read"});
  refuses("import tiny-4.kernels.csv -o tiny-4.tensors.csv", 2, {"would replace what is read"});
  refuses("run step.mwt -o step.mwt", 2, {"would replace what is read"});
  refuses("run step.mwt -o link.mwt", 2, {"would replace what is read"});
  refuses("export run.h5 --to csv -o run.h5", 2, {"would replace what is read"});
  refuses("import step.json -o folder", 2, {"this is a folder"});
  refuses("run step.mwt -o folder", 2, {"this is a folder"});
  refuses("export run.h5 --to csv -o folder", 2, {"this is a folder"});
  // A pipe stands for a device: replacing /dev/null would be a disaster if this check failed.
  ASSERT_EQ(::mkfifo((folder_ / "pipe.svg").c_str(), 0600), 0);
  refuses("run step.mwt -o pipe.svg", 2, {"no ordinary file"});
  refuses("render run.h5 -o pipe.svg", 2, {"no ordinary file"});
  EXPECT_EQ(content_of(folder_ / "step.mwt"), precious);
  EXPECT_EQ(content_of(folder_ / "run.h5"), kept);
  EXPECT_EQ(content_of(folder_ / "step.json"), kCapture);
}

TEST_F(CommandLine, AFailedImportKeepsTheFormerFile) {
  write_content(folder_ / "step.mwt", "precious");
  write_content(folder_ / "cut.json", std::string(kCapture).substr(0, 1200));
  EXPECT_EQ(run("import cut.json -o step.mwt").code, 6);
  EXPECT_EQ(content_of(folder_ / "step.mwt"), "precious");
}

TEST_F(CommandLine, AnEmptyExecutionTraceIsNoStep) {
  write_content(folder_ / "et.json", R"({"schema": "1.0.1", "pid": 1, "nodes": []})");
  refuses("run et.json", 6, {"none of its 0 nodes has a tensor on a GPU"});
  refuses("run tiny-4.kernels.csv --et et.json", 2, {"expected beside a Kineto capture"});
  refuses("run step.json --et et.json", 6, {"et.json"});
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
