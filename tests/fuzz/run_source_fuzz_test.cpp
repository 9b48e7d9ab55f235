// Does a run file that was made to do harm stop at the probe, or do none? Seeded, so that a failure can be repeated.
// MEMWALL_FUZZ_MUTANTS asks for more mutants than the tests take, MEMWALL_FUZZ_SEED for others.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "gui/model/guarded_open.h"
#include "sim/error.h"
#include "tests/support/hdf5_mutation.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/varied_runs.h"
#include "traces/run/analysis/summary.h"
#include "traces/run/file/run_file.h"
#include "traces/run/run_source.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

std::uint64_t setting(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

template <class Ask>
void ask(Ask question) {
  try {
    question();
  } catch (const InputError& error) {
    if (std::string(error.what()).size() < 15) std::_Exit(9);
  } catch (const LoadCancelled&) {
  }
}

// Everything that a source can be asked.
void use(const RunSource& source) {
  const RunOutline& outline = source.outline();
  const Time end = outline.run.result.end;
  for (std::uint32_t lane = 0; lane < outline.lanes.size(); ++lane)
    for (std::uint8_t level = 0; level < outline.lanes[lane].levels; ++level)
      ask([&] { source.cells(lane, level, 3, 100000); });
  for (std::uint32_t b = 0; std::uint64_t{b} * kSpanBlock < std::min<std::uint64_t>(outline.ops, 100000); ++b)
    ask([&] { source.spans(b); });
  for (std::uint32_t t = 0; t < outline.run.machine.tiers.size(); ++t) {
    ask([&] { source.memory(t, Time{}, end, 500); });
    ask([&] { source.memory(t, end / 3, end / 2, 7); });
    ask([&] { source.at_peak(t); });
  }
  for (std::uint32_t l = 0; l < outline.run.machine.links.size(); ++l)
    ask([&] { source.link_rates(l, end / 4, end, 50); });
  ask([&] { source.moves(0, 10000); });
  ask([&] { source.storages({}); });
  ask([&] { source.residency({}); });
  ask([&] { source.texts({}); });
  ask([&] { source.ops_with(std::vector<bool>(50, true), 100, {}); });
  for (OpId id = 0; id < std::min<std::uint64_t>(outline.ops, 40); ++id) {
    ask([&] { source.op(id); });
    ask([&] { source.followers(id, 5); });
    ask([&] { source.uses_of(id, 5); });
    ask([&] { source.text(id); });
  }
  ask([&] { summarize(*source.whole({})); });
}

// How a child that opens and uses the file ends; 0: well.
int ending_of_use(const std::filesystem::path& path) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit time{20, 20};
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // their shadow takes terabytes of addresses
    const rlimit memory{rlim_t{4} << 30, rlim_t{4} << 30};
    ::setrlimit(RLIMIT_AS, &memory);
#endif
    ::setrlimit(RLIMIT_CPU, &time);
    ask([&] { use(*open_run(path)); });
    std::_Exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

struct Tally {
  int refused = 0, crashed = 0, starved = 0, accepted = 0;
};

// One mutant from the first file to the last word.
void try_mutant(const std::string& whole, std::uint64_t seed, const std::filesystem::path& path, Tally& tally) {
  std::mt19937_64 random(seed);
  write_content(path, mutated_run_file(whole, random));
  const auto refusal = gui::refused_by_probe(MEMWALL_PROBE, path, {std::uint64_t{1} << 30, 5});
  if (refusal) {
    EXPECT_GT(refusal->size(), 20u) << "seed " << seed;
    const auto says = [&](const char* words) { return refusal->find(words) != std::string::npos; };
    const bool crash = says("crashed"), starved = says("of memory;") || says("processor time");
    ++(crash ? tally.crashed : starved ? tally.starved : tally.refused);
    if (crash || starved) std::printf("seed %llu: %s\n", static_cast<unsigned long long>(seed), refusal->c_str());
    return;
  }
  ++tally.accepted;
  EXPECT_EQ(ending_of_use(path), 0) << "what the probe accepted did harm; seed " << seed;
}

TEST(RunSourceFuzz, HostileFilesStopAtTheProbeOrDoNoHarm) {
  const ScratchFolder folder;
  std::vector<std::string> wholes;
  for (const int layers : {1, 130}) {
    write_run(gpt_run(layers, 1), folder / "run.h5");
    wholes.push_back(content_of(folder / "run.h5"));
  }
  const std::uint64_t first = setting("MEMWALL_FUZZ_SEED", 1), count = setting("MEMWALL_FUZZ_MUTANTS", 160);
  Tally tally;
  for (std::uint64_t seed = first; seed < first + count; ++seed)
    try_mutant(wholes[seed % wholes.size()], seed, folder / "mutant.h5", tally);
  std::printf("%d refused with a sentence, %d crashed the probe, %d starved it, %d accepted and used\n", tally.refused,
              tally.crashed, tally.starved, tally.accepted);
  // Mutants that all end alike would test nothing.
  EXPECT_GT(tally.refused, static_cast<int>(count / 10));
  EXPECT_GT(tally.accepted, static_cast<int>(count / 20));
}

TEST(RunSourceFuzz, DamagedFilesAreRefusedByTheirChecksums) {
  const ScratchFolder folder;
  write_run(gpt_run(1, 1), folder / "run.h5");
  const std::string whole = content_of(folder / "run.h5");
  std::mt19937_64 random(7);
  for (int i = 0; i < 300; ++i) {
    std::string bytes = whole;
    if (i % 3 == 0) {
      bytes.resize(random() % whole.size());
    } else {
      const std::size_t at = random() % (i % 3 == 1 ? 4096 : bytes.size());
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
    }
    write_content(folder / "damaged.h5", bytes);
    EXPECT_THROW(open_run(folder / "damaged.h5"), InputError) << i;
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
