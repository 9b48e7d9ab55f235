// Processes that are measured at the same time: does the fork server run them together, tell what failed, and leave
// nothing behind? And the benchmarks that use it, on sizes that a test can wait for.
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <fstream>
#include <set>
#include <thread>

#include "tests/support/scratch_folder.h"
#include "validate/bench/adam_state.h"
#include "validate/bench/benchmark.h"
#include "validate/bench/computer_environment.h"
#include "validate/bench/fork_server.h"
#include "validate/bench/numa_nodes.h"
#include "validate/bench/page_locking.h"
#include "validate/bench/process_rows.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr ProcessSampling kThreeTurns{.seconds = 0, .fewest = 3, .patience = 60};

// Lasts as many milliseconds as its case says, and the process's number of them more.
class Sleeper final : public ProcessWork {
 public:
  struct Arguments {
    int milliseconds[2] = {0, 0};
    int failing = -1;
    enum { throws, absent, ends, crashes, faulty, hangs } how = throws;
  };
  Sleeper(const Arguments& a, unsigned index) : arguments_(a), index_(static_cast<int>(index)) {
    if (index_ != a.failing) return;
    if (a.how == Arguments::throws) throw std::runtime_error("what went wrong");
    if (a.how == Arguments::absent) throw NotApplicable("there is no such thing");
    if (a.how == Arguments::ends) ::_exit(0);
    if (a.how == Arguments::crashes) ::raise(SIGKILL);
  }
  void work(unsigned case_index, unsigned repetitions) override {
    if (arguments_.how == Arguments::hangs && index_ == arguments_.failing) ::pause();
    for (unsigned i = 0; i < repetitions; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(arguments_.milliseconds[case_index] + index_));
  }
  std::string fault() override {
    return arguments_.how == Arguments::faulty && index_ == arguments_.failing ? "wrong data" : "";
  }

 private:
  Arguments arguments_;
  int index_;
};

TEST(ForkServer, RunsAsManyProcessesAsEachCaseSays) {
  ForkServer server;
  const ForkedCase cases[] = {{.active = 1}, {.active = 3, .repetitions = 2}};
  const ProcessRounds rounds = server.run<Sleeper>(cases, {.milliseconds = {20, 5}}, kThreeTurns);
  EXPECT_EQ(rounds.fault, "");
  ASSERT_EQ(rounds.seconds.size(), 2u);
  for (std::size_t c = 0; c < 2; ++c) {
    EXPECT_EQ(rounds.seconds[c].size(), 3u) << "the warm-up is left out";
    for (const auto& round : rounds.seconds[c]) {
      ASSERT_EQ(round.size(), cases[c].active);
      for (std::size_t i = 0; i < round.size(); ++i)
        EXPECT_GE(round[i], 1e-3 * static_cast<double>((c == 0 ? 20 : 5) + i)) << "of one repetition";
    }
  }
}

TEST(ForkServer, ProcessesWorkAtTheSameTime) {
  ForkServer server;
  const ForkedCase cases[] = {{.active = 8}};
  const ProcessRounds rounds = server.run<Sleeper>(cases, {.milliseconds = {200, 0}}, kThreeTurns);
  double shortest = 1e9;
  for (const auto& round : rounds.seconds[0])
    shortest = std::min(shortest, *std::max_element(round.begin(), round.end()));
  EXPECT_GE(shortest, 0.2);
  EXPECT_LT(shortest, 8 * 0.2) << "one after the other they would take 1.6 s";
}

TEST(ForkServer, GoesOnUntilTheTimeIsUsed) {
  ForkServer server;
  const ForkedCase cases[] = {{.active = 1}};
  const ProcessRounds rounds =
      server.run<Sleeper>(cases, {.milliseconds = {10, 0}}, {.seconds = 0.3, .fewest = 2, .patience = 60});
  double spent = 0;
  for (const auto& round : rounds.seconds[0]) spent += round[0];
  EXPECT_GT(rounds.seconds[0].size(), 2u);
  EXPECT_LT(spent, 0.3 + 1);
}

std::string failure(ForkServer& server, Sleeper::Arguments arguments, double patience = 60) {
  const ForkedCase cases[] = {{.active = 1}, {.active = 3}};
  try {
    return "fault: " + server.run<Sleeper>(cases, arguments, {.seconds = 0, .fewest = 2, .patience = patience}).fault;
  } catch (const NotApplicable& reason) {
    return std::string("not applicable: ") + reason.what();
  } catch (const std::runtime_error& error) {
    return std::string("failed: ") + error.what();
  }
}

TEST(ForkServer, OneThatFailsEndsTheOthersAndTheServerGoesOn) {
  ForkServer server;
  Sleeper::Arguments arguments{.milliseconds = {1, 1}, .failing = 2};
  const auto with = [&](decltype(arguments.how) how) {
    arguments.how = how;
    return arguments;
  };
  EXPECT_EQ(failure(server, with(Sleeper::Arguments::throws)), "failed: what went wrong");
  EXPECT_EQ(failure(server, with(Sleeper::Arguments::absent)), "not applicable: there is no such thing");
  EXPECT_EQ(failure(server, with(Sleeper::Arguments::crashes)), "failed: one of the processes was ended by a signal.");
  EXPECT_EQ(failure(server, with(Sleeper::Arguments::faulty)), "fault: wrong data");
  EXPECT_EQ(failure(server, with(Sleeper::Arguments::hangs), 0.3), "failed: the processes did not end in time.");
  arguments.failing = -1;
  EXPECT_EQ(failure(server, with(Sleeper::Arguments::throws)), "fault: ") << "and all is well";
}

TEST(ForkServer, OneThatEndsWithoutAWordIsNotAwaited) {
  ForkServer server;
  EXPECT_EQ(failure(server, {.milliseconds = {1, 1}, .failing = 1, .how = Sleeper::Arguments::ends}),
            "failed: one of the processes ended before its work was done.");
}

// Writes its number, and that of its parent, to a pipe.
class Reporter final : public ProcessWork {
 public:
  struct Arguments {
    int pipe = -1;
  };
  Reporter(const Arguments& a, unsigned) {
    const pid_t pids[] = {::getppid(), ::getpid()};
    if (::write(a.pipe, pids, sizeof pids) != sizeof pids) throw std::runtime_error("the pipe is closed");
  }
  void work(unsigned, unsigned) override {}
};

TEST(ForkServer, ProcessesAreItsChildrenAndNoneIsLeft) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  std::set<pid_t> processes;
  {
    ForkServer first, second;  // one inherits what the other has open
    const ForkedCase cases[] = {{.active = 4}};
    first.run<Reporter>(cases, {ends[1]}, kThreeTurns);
    pid_t pids[2];
    std::set<pid_t> parents;
    for (int i = 0; i < 4; ++i) {
      ASSERT_EQ(::read(ends[0], pids, sizeof pids), static_cast<ssize_t>(sizeof pids));
      parents.insert(pids[0]);
      processes.insert(pids[1]);
    }
    EXPECT_EQ(processes.size(), 4u);
    ASSERT_EQ(parents.size(), 1u);
    EXPECT_NE(*parents.begin(), ::getpid());
    processes.insert(parents.begin(), parents.end());
  }
  for (const pid_t process : processes) EXPECT_NE(::kill(process, 0), 0) << process;
  ::close(ends[0]);
  ::close(ends[1]);
}

// --- the benchmarks ---

class ProcessBenchmarks : public testing::Test {
 protected:
  ProcessBenchmarks() {
    settings_.scratch = scratch_.path();
    settings_.largest_file = settings_.largest_buffer = 1 << 20;
    settings_.seconds_per_case = 0;
    settings_.fewest_samples = 2;
  }
  MeasurementSet run(const std::string& name) {
    return run_benchmarks({BenchmarkPlace::computer, BenchmarkPlace::host}, {name}, settings_,
                          std::chrono::steady_clock::now() + std::chrono::minutes(10), {});
  }
  const ScratchFolder scratch_;
  BenchmarkSettings settings_;
};

TEST_F(ProcessBenchmarks, LeaveTheTotalAndTheTimeOfOneForEachNumberOfProcesses) {
  for (const char* name :
       {"memcpy_host_host_processes", "adam_host_processes", "copy_host_hbm_processes", "copy_hbm_host_processes"}) {
    const MeasurementSet set = run(name);
    SCOPED_TRACE(name);
    const bool threads = std::string(name).find("host_processes") != std::string::npos &&
                         std::string(name).find("copy") == std::string::npos;
    std::map<std::string, std::set<double>> counts;
    for (const Measurement& m : set.measurements) {
      if (m.note.find("memcpy leaves room") != std::string::npos) continue;  // a busy computer, or a sanitizer
      EXPECT_EQ(m.status, MeasurementStatus::measured) << m.note;
      EXPECT_GT(m.median, 0);
      const double processes = m.number("processes");
      const std::string measured = m.parameters.at("measured");
      EXPECT_EQ(m.bytes, (measured == "all" ? processes : 1) * m.number("bytes"));
      EXPECT_EQ(m.samples, measured == "all" ? 2u : 2u * static_cast<unsigned>(processes));
      EXPECT_EQ(m.parameters.contains("threads"), threads);
      counts[measured].insert(processes);
    }
    if (counts.empty()) continue;
    EXPECT_EQ(counts["all"], (std::set<double>{1, 2, 4, 8}));
    EXPECT_EQ(counts["each"], counts["all"]);
  }
}

TEST_F(ProcessBenchmarks, OneProcessIsMeasuredWithAsManyThreadsAsAnyOfSeveral) {
  std::set<std::string> alone, beside;
  for (const Measurement& m : run("adam_host_processes").measurements)
    (m.number("processes") == 1 ? alone : beside).insert(m.parameters.at("threads"));
  for (const std::string& threads : beside) EXPECT_TRUE(alone.contains(threads)) << threads;
}

TEST_F(ProcessBenchmarks, PageLockedMemoryIsMeasuredFromAPageOnAndSaysWhatItIs) {
  std::vector<double> sizes;
  for (const Measurement& m : run("host_alloc_pinned").measurements) {
    EXPECT_EQ(m.status, MeasurementStatus::measured) << m.note;
    EXPECT_GT(m.median, 0);
    EXPECT_EQ(m.bytes, 0) << "nothing is moved";
    sizes.push_back(m.number("bytes"));
    const std::string method = m.parameters.at("method");
    EXPECT_TRUE(method == "mmap_and_mlock" || (method == "mmap_and_touch" && !m.note.empty())) << method;
  }
  EXPECT_EQ(sizes, (std::vector<double>{4096, 16384, 65536, 262144, 1048576}));
}

// Resident kilobytes of this process, as the kernel says.
double resident_bytes() {
  std::ifstream file("/proc/self/statm");
  double all = 0, resident = 0;
  file >> all >> resident;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

TEST_F(ProcessBenchmarks, AnAllocationIsOverWhenItsPagesAreThereAndGivesThemBack) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer locks no memory";
#endif
  const double before = resident_bytes();
  for (const bool locked : {false, true}) {
    if (locked && !can_lock(std::size_t{64} << 20)) continue;
    EXPECT_GT(seconds_of_allocation(std::size_t{64} << 20, locked), 64 * 1024 / 4 * 10e-9)
        << "16384 pages at no less than 10 ns each";
  }
  EXPECT_LT(resident_bytes() - before, 32 << 20);
}

TEST(AdamStateTest, StepsAreThoseOfTheReferenceAndADamagedParameterIsFound) {
  ThreadTeam team(2);
  AdamState state(4096);
  state.randomize(team, 4096, 7);
  state.step(team);
  state.step(team, 3);
  EXPECT_EQ(state.fault(), "");
  state.arrays().parameters[4095] += 1e-3f;
  EXPECT_NE(state.fault().find("parameters differ from the reference"), std::string::npos);
  state.randomize(team, 1024, 7);
  state.step(team);
  EXPECT_EQ(state.fault(), "") << "begun anew";
  state.arrays().parameters[0] = std::nanf("");
  EXPECT_NE(state.fault(), "");
}

// --- NUMA ---

TEST(NumaNodes, ListsOfNumbersAreReadAndNonsenseIsNone) {
  EXPECT_EQ(numbers_of_list("0-3,8,10-11"), (std::vector<int>{0, 1, 2, 3, 8, 10, 11}));
  EXPECT_EQ(numbers_of_list("5"), std::vector<int>{5});
  for (const char* text : {"", "x", "1-", "3-1", "-1", "1,,2", "1-2-3", "99999999999", "0-70000"})
    EXPECT_TRUE(numbers_of_list(text).empty()) << text;
}

TEST(NumaNodes, AreReadAsTheKernelDescribesThem) {
  const ScratchFolder root;
  const auto node = [&](const char* name, const char* cores, const char* distance, const char* memory) {
    std::filesystem::create_directories(root / name);
    write_content(root / name / "cpulist", std::string(cores) + "\n");
    write_content(root / name / "distance", std::string(distance) + "\n");
    write_content(root / name / "meminfo", std::string(memory) + "\n");
  };
  node("node1", "2-3", "21 10 28", "Node 1 MemTotal:       131072 kB");
  node("node0", "0-1", "10 21 28", "Node 0 MemTotal:       131072 kB");
  node("node2", "", "28 28 10", "Node 2 MemTotal:       65536 kB");
  node("node10", "4", "", "Node 10 MemTotal:       0 kB");
  node("nodes", "7", "", "");
  write_content(root / "online", "0-2\n");
  const std::vector<NumaNode> nodes = numa_nodes(root.path(), {0, 2, 3, 4});
  ASSERT_EQ(nodes.size(), 4u);
  EXPECT_EQ(nodes[0].number, 0);
  EXPECT_EQ(nodes[0].cores, std::vector<int>{0}) << "1 may not be used";
  EXPECT_EQ(nodes[1].cores, (std::vector<int>{2, 3}));
  EXPECT_EQ(nodes[1].distances, (std::vector<int>{21, 10, 28}));
  EXPECT_TRUE(nodes[2].cores.empty());
  EXPECT_TRUE(nodes[2].has_memory);
  EXPECT_EQ(nodes[3].number, 10);
  EXPECT_FALSE(nodes[3].has_memory);
  EXPECT_TRUE(numa_nodes(root / "absent", {0}).empty());
}

TEST_F(ProcessBenchmarks, WhereThereIsOneNumaNodeTheRowSaysSo) {
  std::size_t with_memory = 0;
  for (const NumaNode& node : numa_nodes()) with_memory += node.has_memory;
  const MeasurementSet set = run("adam_host_numa");
  ASSERT_FALSE(set.measurements.empty());
  if (with_memory < 2) {
    EXPECT_EQ(set.measurements[0].status, MeasurementStatus::not_applicable);
    EXPECT_NE(set.measurements[0].note.find("one NUMA node"), std::string::npos);
  } else {
    EXPECT_TRUE(set.measurements[0].parameters.contains("memory_of_node"));
  }
}

TEST(NumaNodes, MemoryIsBoundOrRefused) {
  PageBuffer buffer(1 << 20);
  const std::vector<NumaNode> nodes = numa_nodes();
  if (!nodes.empty() && bind_memory(buffer.as(), 1 << 20, nodes.front().number)) {
    std::memset(buffer.as(), 1, 1 << 20);
  }
  EXPECT_FALSE(bind_memory(buffer.as(), 1 << 20, -1));
  EXPECT_FALSE(bind_memory(buffer.as(), 1 << 20, 1023)) << "no such node";
}

TEST(NumaNodes, TheEnvironmentCountsThem) {
  const ScratchFolder scratch;
  EXPECT_GE(std::stoi(value_of(computer_environment(scratch.path()), "cpu.numa_nodes")), 1);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
