// Does any damage to a .mwi file end in a trace that is sound and can be replayed, or in a sentence, and in nothing
// else?
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>

#include "models/workload/import/cupti/inject_import.h"
#include "sim/engine/simulation.h"
#include "sim/error.h"
#include "sim/trace/trace_check.h"
#include "tests/support/damage.h"
#include "tests/support/gzip.h"
#include "tests/support/inject_writer.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/test_machine.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

// Every kind of record, and what joins them.
std::string every_kind() {
  constexpr std::uint64_t t = 1'700'000'000'000'000'000;
  InjectWriter w;
  w.process(4711, "./train");
  w.record(3, {1, 2, 3}, {});
  w.device(0, "NVIDIA H100 80GB HBM3", 85018279936, 132);
  w.device(1, "NVIDIA H100 80GB HBM3", 85018279936, 132);
  w.context(1, 0);
  w.context(2, 1);
  w.record(6, {}, {1, 9, 0, 1});
  w.range("step 1", t, t + 900'000);
  w.range("forward", t + 1000, t + 300'000);
  w.range("nn.Module: Linear_0", t + 1500, t + 290'000);
  w.range("aten::addmm, seq = 7, sizes = [[4, 8], [8, 2]]", t + 2000, t + 200'000);
  w.range("AddmmBackward0, seq = 7", t + 400'000, t + 500'000, 101);
  std::uint32_t correlation = 0;
  for (const std::uint64_t at : {t + 10'000, t + 100'000, t + 410'000, t + 600'000}) {
    w.call({.name = "cudaLaunchKernel_v7000",
            .start = at,
            .end = at + 5000,
            .correlation = ++correlation,
            .thread = at == t + 410'000 ? 101u : 100u});
    w.call(
        {.name = "cuLaunchKernel", .start = at + 1000, .end = at + 3000, .correlation = 50 + correlation, .domain = 1});
    w.kernel({.name = correlation == 3 ? "ncclDevKernel_AllReduce" : "gemm",
              .start = at + 9000,
              .end = at + 50'000,
              .correlation = correlation,
              .stream = correlation == 3 ? 9u : 7u,
              .blocks = 264,
              .registers = 64});
  }
  w.event(1, 2, 7, 3);
  w.event(0, 4, 7, 4);
  w.call({.name = "cudaStreamWaitEvent", .start = t + 160'000, .end = t + 161'000, .correlation = 5});
  w.synchronization(2, 0, 0, 5, 9, 1, 3);
  w.call({.name = "cudaEventSynchronize", .start = t + 700'000, .end = t + 710'000, .correlation = 6});
  w.synchronization(1, t + 700'000, t + 710'000, 6, 0xffffffff, 0, 4);
  w.call({.name = "cudaMalloc", .start = t + 711'000, .end = t + 720'000, .correlation = 7});
  w.memory(1, t + 719'000, 0x1000, 1 << 20, 7);
  w.memory(2, t + 880'000, 0x1000, 0, 8, 3, 0xabc);
  w.memory(2, t + 881'000, 0x2000, 4096, 8);
  w.call({.name = "cudaMemcpyAsync", .start = t + 730'000, .end = t + 790'000, .correlation = 9});
  w.copy({.start = t + 735'000,
          .end = t + 780'000,
          .bytes = 1 << 20,
          .kind = 2,
          .source = 3,
          .destination = 1,
          .correlation = 9});
  w.copy({.start = t + 791'000,
          .end = t + 792'000,
          .bytes = 64,
          .kind = 10,
          .source = 3,
          .destination = 3,
          .correlation = 90,
          .device = 1,
          .context = 2});
  w.memset({.start = t + 800'000, .end = t + 801'000, .bytes = 64, .correlation = 10});
  w.call({.name = "cudaGraphLaunch", .start = t + 810'000, .end = t + 815'000, .correlation = 11});
  w.kernel({.name = "a", .start = t + 820'000, .end = t + 830'000, .correlation = 11, .graph = 2});
  w.kernel({.name = "b", .start = t + 831'000, .end = t + 840'000, .correlation = 11, .graph = 2});
  w.record(19, {t + 850'000, t + 860'000}, {0, 1, 7, 12, 3, 0});
  w.record(13, {t, 0xabc, 0, 0, 0, 0}, {1, 1, 0, 0});
  w.record(14, {t, t + 5, 65536, 7}, {1, 0, 0, 7, 0, 0});
  w.record(17, {77}, {1, 3});
  w.record(18, {t, t + 100}, {65536, 100});
  w.record(20, {}, {25, 3, 1, 1});
  w.record(21, {9, 5, 2, 0, 1, 4}, {});
  w.record(99, {1, 2}, {3, 4});
  w.call({.name = "cudaDeviceSynchronize", .start = t + 870'000, .end = t + 880'000, .correlation = 13});
  w.synchronization(4, t + 870'000, t + 880'000, 13, 0xffffffff);
  w.end();
  return w.bytes();
}

// A number of a binary file becomes an extreme one, or another of the file's.
std::string with_other_number(std::string bytes, std::mt19937_64& random) {
  constexpr std::uint64_t kNumbers[] = {0,          1,          7,          100,        0x7fffffff,
                                        0xffffffff, 1ull << 44, 1ull << 60, 1ull << 62, (1ull << 62) + 1,
                                        ~0ull,      1ull << 63, 1'000'000,  0x80000000, 1'700'000'000'000'100'000};
  for (std::uint64_t changes = 1 + random() % 3; changes > 0; --changes) {
    const std::size_t size = random() % 2 == 0 ? 4 : 8, at = random() % (bytes.size() / 4 - 1) * 4;
    if (at + size > bytes.size()) continue;
    if (random() % 3 == 0) {
      const std::size_t from = random() % (bytes.size() / 4 - 1) * 4;
      if (from + size <= bytes.size()) bytes.replace(at, size, bytes.substr(from, size));
      continue;
    }
    const std::uint64_t number = kNumbers[random() % std::size(kNumbers)];
    for (std::size_t i = 0; i < size; ++i) bytes[at + i] = static_cast<char>(number >> (8 * i) & 0xff);
  }
  return bytes;
}

class InjectFuzz : public ::testing::Test {
 protected:
  // True if it was accepted. Anything but an InputError that names the file escapes and fails the test.
  bool accepted(const std::string& content) {
    write_content(folder_ / "a.mwi", content);
    try {
      const ImportedTrace imported = import_cupti_capture(read_inject(folder_ / "a.mwi"));
      EXPECT_EQ(check(imported.trace), std::vector<std::string>());
      SimulationOptions options;
      options.allocator = "ideal";
      try {
        simulate(imported.trace, test_machine(), options);
      } catch (const InfeasibleError&) {  // more memory than the machine has
      }
      return true;
    } catch (const InputError& error) {
      const std::string sentence = error.what();
      EXPECT_NE(sentence.find("a.mwi"), std::string::npos) << sentence;
      EXPECT_EQ(sentence.back(), '.') << sentence;
      return false;
    }
  }

  ScratchFolder folder_;
};

// MEMWALL_FUZZ_CASES looks further, as in tests/fuzz/snapshot_fuzz_test.cpp.
std::uint64_t cases(std::uint64_t usual) {
  const char* named = std::getenv("MEMWALL_FUZZ_CASES");
  return named == nullptr ? usual : std::strtoull(named, nullptr, 10);
}

TEST_F(InjectFuzz, WhatIsWholeIsAccepted) {
  EXPECT_TRUE(accepted(every_kind()));
  EXPECT_TRUE(accepted(gzipped(every_kind())));
}

TEST_F(InjectFuzz, EveryCutIsAcceptedOrRefused) {
  const std::string whole = every_kind();
  std::size_t taken = 0;
  for (std::size_t size = 0; size < whole.size(); ++size) taken += accepted(whole.substr(0, size));
  EXPECT_GT(taken, whole.size() / 2) << "a program that is killed leaves a file that ends anywhere";
}

TEST_F(InjectFuzz, DamageEndsInASoundTraceOrASentence) {
  std::mt19937_64 random(20240611);
  const std::string whole = every_kind();
  std::uint64_t taken = 0, refused = 0;
  for (std::uint64_t i = 0; i < cases(1500); ++i) ++(accepted(damaged(whole, random)) ? taken : refused);
  EXPECT_GT(taken, 0u);
  EXPECT_GT(refused, 0u);
}

TEST_F(InjectFuzz, OtherNumbersEndInASoundTraceOrASentence) {
  std::mt19937_64 random(7);
  const std::string whole = every_kind();
  std::uint64_t taken = 0, refused = 0;
  for (std::uint64_t i = 0; i < cases(3000); ++i) ++(accepted(with_other_number(whole, random)) ? taken : refused);
  EXPECT_GT(taken, 0u);
  EXPECT_GT(refused, 0u);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
