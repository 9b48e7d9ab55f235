// Does libmemwall_inject record what happens, in bounded memory, and leave the program alone whatever goes wrong? Its
// own code runs here with a CUPTI that needs no GPU (tests/support/inject); the library itself is loaded where CUPTI is
// real.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <set>

#include "models/workload/import/cupti/inject_import.h"
#include "models/workload/import/cupti/inject_reader.h"
#include "tests/support/command.h"
#include "tests/support/scratch_folder.h"
#include "validate/replay/cuda_backend.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

#ifdef MEMWALL_INJECT_SCENE
constexpr const char* kScene = MEMWALL_INJECT_SCENE;
constexpr const char* kLibrary = MEMWALL_INJECT_LIBRARY;
#else
constexpr const char* kScene = nullptr;
constexpr const char* kLibrary = nullptr;
#endif

// A sanitizer brings a C++ library into every program.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

// Of a round: kernel, call, copy, two markers, memory, and one of a kind that is not written.
constexpr std::uint64_t kPerRound = 7;

class Inject : public ::testing::Test {
 protected:
  void SetUp() override {
    if (kScene == nullptr) GTEST_SKIP() << "built without CUPTI (MEMWALL_CUDA=OFF, or no CUDA toolkit)";
  }

  // The scene with MEMWALL_INJECT_OUT=a.mwi and more settings.
  CommandOutcome scene(const std::string& settings, const std::string& words) {
    return run_command(
        fmt::format("env -u NVTX_INJECTION64_PATH MEMWALL_INJECT_OUT=a.mwi {} {} {}", settings, kScene, words),
        folder_.path());
  }

  // A number that the scene printed behind a word.
  static std::uint64_t printed(const CommandOutcome& outcome, const std::string& word) {
    const std::size_t at = outcome.out.find(word + " ");
    return at == std::string::npos ? ~0ull : std::stoull(outcome.out.substr(at + word.size() + 1));
  }

  CuptiRecords records(const char* name = "a.mwi") { return read_inject_records(folder_ / name); }

  // Records of the scene that are in the file or counted as of a kind that is not written.
  static std::uint64_t kept(const CuptiRecords& r) {
    return r.work.size() + r.calls.size() + r.markers.size() + r.memory.size() + r.counts.unwritten;
  }

  ScratchFolder folder_;
};

TEST_F(Inject, WritesEveryRecordOfSeveralThreads) {
  const CommandOutcome run = scene("", "threads 3 rounds 50");
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(run.err, "");
  EXPECT_NE(run.out.find("began 1 1 made 1050 dropped 0 period 1000 kernels 1"), std::string::npos) << run.out;
  EXPECT_EQ(run.out.find("nvtx -"), std::string::npos) << "NVTX is told who listens";
  const CuptiRecords r = records();
  EXPECT_EQ(kept(r), 3 * 50 * kPerRound);
  EXPECT_EQ(r.work.size(), 300u);
  EXPECT_EQ(r.calls.size(), 150u);
  EXPECT_EQ(r.markers.size(), 300u);
  EXPECT_EQ(r.memory.size(), 150u);
  EXPECT_EQ(r.counts.unwritten, 150u);
  EXPECT_EQ(r.counts.dropped + r.counts.refused_buffers + r.counts.over_limit + r.counts.lost_names, 0u);
  EXPECT_TRUE(r.counts.ended);
  EXPECT_GT(r.process, 0u);
  EXPECT_NE(r.strings[r.command_line].find("threads 3 rounds 50"), std::string::npos);
  std::set<std::string> names;
  for (const CuptiDeviceWork& work : r.work) {
    if (work.work != CuptiWork::kernel) {
      EXPECT_EQ(work.bytes, 4096);
      EXPECT_EQ(work.source_kind, 2);
      EXPECT_EQ(work.end - work.start, 50);
      continue;
    }
    names.insert(r.strings[work.name]);
    EXPECT_EQ(work.blocks, 12);
    EXPECT_EQ(work.threads, 256u);
    EXPECT_EQ(work.registers, 40u);
    EXPECT_EQ(work.shared_memory, 1024u);
    EXPECT_EQ(work.end - work.start, 100);
  }
  EXPECT_EQ(names.erase(kSanitized ? "add(float*, float*, int)" : "_Z3addPfS_i"), 1u);
  EXPECT_EQ(names, (std::set<std::string>{"", "triton_poi_fused_add_0"}));
}

TEST_F(Inject, WhatItWritesBecomesATrace) {
  ASSERT_EQ(scene("", "threads 2 rounds 20").code, 0);
  const CuptiCapture capture = read_inject(folder_ / "a.mwi");
  const ImportedTrace imported = import_cupti_capture(capture);
  EXPECT_EQ(imported.summary.trace_kernels, 40u);
  EXPECT_EQ(imported.summary.trace_copies, 40u);
  EXPECT_EQ(imported.summary.allocs + imported.summary.frees, 40u);
  EXPECT_EQ(imported.trace.steps.size(), 20u) << "the ranges called step of the first thread";
}

TEST_F(Inject, ReadsCxxNamesOnlyWhereTheProgramHasACxxLibrary) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer's library must come before all others";
  ASSERT_EQ(scene("LD_PRELOAD=libstdc++.so.6", "threads 1 rounds 3").code, 0);
  std::set<std::string> names;
  const CuptiRecords r = records();
  for (const CuptiDeviceWork& work : r.work) names.insert(r.strings[work.name]);
  EXPECT_EQ(names, (std::set<std::string>{"", "add(float*, float*, int)", "triton_poi_fused_add_0"}));
}

TEST_F(Inject, MemoryIsBoundedAndWhatIsDroppedIsCounted) {
  const CommandOutcome run = scene("MEMWALL_INJECT_BUFFERS=2 MEMWALL_INJECT_BUFFER=4K", "threads 8 rounds 5000");
  ASSERT_EQ(run.code, 0) << run.err;
  const std::uint64_t made = printed(run, "made");
  EXPECT_EQ(made, 8 * 5000 * kPerRound);
  const CuptiRecords r = records();
  EXPECT_GT(r.counts.dropped, 0u) << "eight threads share two buffers of 4 KiB";
  EXPECT_GT(r.counts.refused_buffers, 0u);
  EXPECT_EQ(r.counts.dropped, printed(run, "dropped"));
  EXPECT_EQ(kept(r) + r.counts.dropped, made);
  EXPECT_TRUE(r.counts.ended);
}

TEST_F(Inject, BuffersAreUsedAgain) {
  const CommandOutcome run =
      scene("MEMWALL_INJECT_BUFFERS=4 MEMWALL_INJECT_BUFFER=4K", "threads 1 rounds 10 repeat 100");
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_GT(kept(records()), 4u * 4096 / 64 * 4) << "four times what all buffers hold, at 64 bytes or more a record";
}

TEST_F(Inject, TheFileStaysUnderItsLimit) {
  const CommandOutcome run = scene("MEMWALL_INJECT_LIMIT=64K MEMWALL_INJECT_BUFFERS=4096", "threads 2 rounds 1000");
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_LE(std::filesystem::file_size(folder_ / "a.mwi"), 64u << 10);
  EXPECT_GT(std::filesystem::file_size(folder_ / "a.mwi"), 60u << 10);
  const CuptiRecords r = records();
  EXPECT_TRUE(r.counts.ended);
  EXPECT_GT(r.counts.over_limit, 0u);
  // The second clock and the counts of losses find no room either.
  EXPECT_GE(kept(r) + r.counts.over_limit, printed(run, "made"));
  EXPECT_LE(kept(r) + r.counts.over_limit, printed(run, "made") + 1);
}

TEST_F(Inject, AFileThatCannotBeMadeOrWrittenIsNoReasonToFail) {
  const CommandOutcome nowhere =
      run_command(fmt::format("MEMWALL_INJECT_OUT=no/such/folder/a.mwi {}", kScene), folder_.path());
  EXPECT_EQ(nowhere.code, 0);
  EXPECT_NE(nowhere.out.find("began 0"), std::string::npos);
  EXPECT_NE(
      nowhere.err.find("no capture: no/such/folder/a.mwi: No such file or directory; the program is not affected"),
      std::string::npos)
      << nowhere.err;
  const CommandOutcome full = run_command(fmt::format("MEMWALL_INJECT_OUT=/dev/full {}", kScene), folder_.path());
  EXPECT_EQ(full.code, 0);
  EXPECT_NE(full.err.find("cannot be written on: No space left on device"), std::string::npos) << full.err;
  EXPECT_EQ(full.err.find("memwall", 1), std::string::npos) << "said once: " << full.err;
}

TEST_F(Inject, ProcessesDoNotWriteOverEachOther) {
  const int other = open((folder_ / "a.mwi").c_str(), O_CREAT | O_WRONLY, 0644);
  ASSERT_EQ(write(other, "mine", 4), 4);
  ASSERT_EQ(flock(other, LOCK_EX), 0);
  ASSERT_EQ(scene("", "threads 1 rounds 1").code, 0);
  close(other);
  EXPECT_EQ(content_of(folder_ / "a.mwi"), "mine");
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
    const std::string name = entry.path().filename();
    if (!name.starts_with("a.mwi.")) continue;
    ++files;
    EXPECT_EQ(name, "a.mwi." + std::to_string(records(name.c_str()).process));
  }
  EXPECT_EQ(files, 1u);

  const CommandOutcome named = run_command(fmt::format("MEMWALL_INJECT_OUT='b-%p-%d.mwi' {}", kScene), folder_.path());
  ASSERT_EQ(named.code, 0);
  files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
    const std::string name = entry.path().filename();
    if (!name.starts_with("b-")) continue;
    ++files;
    EXPECT_EQ(name, "b-" + std::to_string(records(name.c_str()).process) + "-%d.mwi");
  }
  EXPECT_EQ(files, 1u);
}

TEST_F(Inject, ForkedChildrenAndLateWorkLeaveTheFileWhole) {
  const CommandOutcome run = scene("", "fork late threads 2 rounds 10");
  ASSERT_EQ(run.code, 0) << run.err;
  const CuptiRecords r = records();
  EXPECT_EQ(kept(r), 2 * 10 * kPerRound) << "what comes after the end is nobody's";
  EXPECT_TRUE(r.counts.ended);
  EXPECT_FALSE(r.counts.cut);
}

TEST_F(Inject, WhatCuptiRefusesIsInTheFile) {
  ASSERT_EQ(scene("", "refuse 25 threads 1 rounds 2").code, 0);
  const CuptiRecords r = records();
  ASSERT_EQ(r.refusals.size(), 1u);
  EXPECT_EQ(r.strings[r.refusals[0].activity], "UNIFIED_MEMORY_COUNTER");
  EXPECT_EQ(r.strings[r.refusals[0].reason], "CUPTI_ERROR_NOT_COMPATIBLE");
  EXPECT_EQ(kept(r), 2 * kPerRound);

  const CommandOutcome none = scene("", "refuse -1");
  EXPECT_EQ(none.code, 0);
  EXPECT_NE(none.out.find("began 0"), std::string::npos);
  EXPECT_NE(none.err.find("CUPTI takes no buffers: CUPTI_ERROR_NOT_INITIALIZED"), std::string::npos) << none.err;
}

TEST_F(Inject, SettingsThatMakeNoSenseAreSaid) {
  const CommandOutcome run =
      scene("MEMWALL_INJECT_BUFFERS=many MEMWALL_INJECT_LIMIT=-1 MEMWALL_INJECT_PERIOD=250 MEMWALL_INJECT_NVTX=0",
            "threads 1 rounds 1");
  EXPECT_EQ(run.code, 0);
  EXPECT_NE(run.err.find("MEMWALL_INJECT_BUFFERS=many: expected a whole number from 2 to 4096"), std::string::npos)
      << run.err;
  EXPECT_NE(run.err.find("MEMWALL_INJECT_LIMIT=-1: expected"), std::string::npos) << run.err;
  EXPECT_NE(run.out.find("period 250 kernels 1 nvtx -"), std::string::npos) << run.out;
  EXPECT_EQ(kept(records()), kPerRound);
}

TEST_F(Inject, TheLibraryNeedsCuptiAndLibcOnly) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer links its own libraries";
  const CommandOutcome needed = run_command(fmt::format("readelf -d '{}' | grep NEEDED", kLibrary), ".");
  if (needed.code != 0) GTEST_SKIP() << "no readelf here";
  std::size_t libraries = 0;
  for (std::size_t at = needed.out.find('['); at != std::string::npos; at = needed.out.find('[', at + 1)) {
    const std::string name = needed.out.substr(at + 1, needed.out.find(']', at) - at - 1);
    EXPECT_TRUE(name.starts_with("libcupti.so") || name.starts_with("libc.so") || name.starts_with("libdl.so") ||
                name.starts_with("libpthread.so"))  // the latter two are libc's own, apart before glibc 2.34
        << name;
    ++libraries;
  }
  EXPECT_GE(libraries, 2u);
  const CommandOutcome symbols = run_command(fmt::format("nm -D --defined-only '{}'", kLibrary), ".");
  EXPECT_NE(symbols.out.find("T InitializeInjection\n"), std::string::npos) << symbols.out;
  EXPECT_EQ(symbols.out.find('\n'), symbols.out.size() - 1) << "nothing else is exported: " << symbols.out;
}

// On a GPU: CUPTI's own records. Skipped elsewhere.
TEST_F(Inject, RecordsAProgramOnAGpu) {
  if (const std::string reason = cuda_unavailable_reason(); !reason.empty()) GTEST_SKIP() << reason;
  if (kSanitized) GTEST_SKIP() << "a sanitized library needs a sanitized program around it";
  const CommandOutcome program = run_command(
      fmt::format("CUDA_INJECTION64_PATH='{}' MEMWALL_INJECT_OUT=a.mwi '{}' --backend cuda --filter call_launch "
                  "--filter copy_host_hbm_pinned --largest 16MiB --seconds 20 -o out",
                  kLibrary, MEMWALL_BENCH_PROGRAM),
      folder_.path());
  ASSERT_EQ(program.code, 0) << program.err;
  EXPECT_EQ(program.err.find("no capture"), std::string::npos) << program.err;
  const CuptiRecords r = records();
  EXPECT_TRUE(r.counts.ended);
  EXPECT_GT(r.driver_version, 0);
  ASSERT_FALSE(r.devices.empty());
  EXPECT_GT(r.devices[0].memory, Bytes{1} << 30);
  EXPECT_GT(r.devices[0].multiprocessors, 0u);
  std::set<std::uint32_t> launching;
  for (const CuptiCall& call : r.calls) launching.insert(call.correlation);
  std::size_t kernels = 0, copies = 0, joined = 0;
  for (const CuptiDeviceWork& work : r.work) {
    kernels += work.work == CuptiWork::kernel;
    copies += work.work == CuptiWork::copy;
    joined += launching.contains(work.correlation);
    EXPECT_LE(work.start, work.end);
  }
  EXPECT_GT(kernels, 0u);
  EXPECT_GT(copies, 0u);
  if (r.counts.dropped == 0) {
    EXPECT_EQ(joined, r.work.size()) << "every piece of work has its call";
  }
  const ImportedTrace imported = import_cupti_capture(read_inject(folder_ / "a.mwi"));
  EXPECT_EQ(imported.summary.trace_kernels, kernels);
  for (const RefusedActivity& refusal : r.refusals)
    std::printf("not recorded here: %s (%s)\n", r.strings[refusal.activity].c_str(), r.strings[refusal.reason].c_str());
}

TEST_F(Inject, IsHarmlessWithoutADriver) {
  if (kSanitized) GTEST_SKIP() << "a sanitized library needs a sanitized program around it";
  // The driver loads it; where there is none, nothing happens.
  const CommandOutcome program = run_command(
      fmt::format("CUDA_INJECTION64_PATH='{}' MEMWALL_INJECT_OUT=a.mwi '{}' --help", kLibrary, MEMWALL_BENCH_PROGRAM),
      folder_.path());
  EXPECT_EQ(program.code, 0);
  // Loaded all the same, with the real CUPTI: it may find no driver, and must come to an orderly end.
  const CommandOutcome loaded =
      run_command(fmt::format("MEMWALL_INJECT_OUT=b.mwi {} load '{}'", kScene, kLibrary), folder_.path());
  if (loaded.code == 2) GTEST_SKIP() << "CUPTI cannot be loaded here: " << loaded.out;
  EXPECT_EQ(loaded.code, 0) << loaded.err;
  if (loaded.out.find("began 1") == std::string::npos) {
    EXPECT_NE(loaded.err.find("no capture"), std::string::npos) << loaded.err;
    return;
  }
  const CuptiRecords r = records("b.mwi");
  EXPECT_TRUE(r.counts.ended);
  EXPECT_GT(r.process, 0u);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
