// Does a run file give back what was written, byte for byte the same each time, and refuse what is not one?
#include "traces/run/file/run_file.h"
#include "traces/run/file/user_block.h"

#include <fmt/format.h>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <functional>
#include <thread>

#include "sim/error.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/handmade_run.h"
#include "tests/support/random_trace.h"
#include "tests/support/run_file_editor.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/test_machine.h"
#include "traces/run/analysis/summary.h"
#include "traces/run/run_recorder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

memwall::Run simulated(int layers = 2) {
  GptShape shape;
  shape.layers = layers;
  shape.steps = 2;
  shape.host_gap = nanoseconds(10);
  shape.launch_cost = nanoseconds(20);
  RunSettings settings;
  settings.policies = {"checkpoint:mode=full", "offload:what=optimizer,to=host"};
  settings.inputs = {{"step.mwt", "xxh64:0123456789abcdef"}};
  memwall::Run run = simulate_and_record(gpt_step(shape), test_machine(), settings);
  run.trace.edit().notes = {"a note", "", "one with a \xc3\xa4 and a \"quote\""};
  return run;
}

void expect_same_records(const SimulationResult& a, const SimulationResult& b) {
  ASSERT_EQ(a.records.size(), b.records.size());
  for (std::size_t i = 0; i < a.records.size(); ++i) {
    const OpRecord &x = a.records[i], &y = b.records[i];
    ASSERT_TRUE(x.host_start == y.host_start && x.host_end == y.host_end && x.start == y.start && x.end == y.end) << i;
    ASSERT_TRUE(x.host_cause == y.host_cause && x.device_cause == y.device_cause &&
                x.host_end_cause == y.host_end_cause)
        << i;
    ASSERT_TRUE(x.host_reason == y.host_reason && x.device_reason == y.device_reason &&
                x.host_end_reason == y.host_end_reason && x.host_end_waited == y.host_end_waited)
        << i;
  }
}

// What the reader says; empty if it accepts the file.
template <class Read>
std::string refusal(Read read) {
  try {
    read();
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

// `in_ops`: whoever reads no more than ops sees it too, and says the same; else has nothing to say.
void expect_refused(const std::filesystem::path& path, const std::string& words, bool in_ops = true) {
  const std::string said = refusal([&] { read_run(path); });
  EXPECT_NE(said.find(words), std::string::npos) << "said: " << said;
  EXPECT_EQ(refusal([&] { read_run_ops(path); }), in_ops ? said : "");
}

TEST(RunFile, GivesBackEveryAnswer) {
  const ScratchFolder folder;
  const memwall::Run run = simulated();
  write_run(run, folder / "run.h5");
  const memwall::Run back = read_run(folder / "run.h5");
  EXPECT_EQ(to_json(summarize(back)), to_json(summarize(run)));
  expect_same_records(run.result, back.result);
  EXPECT_EQ(back.trace->notes, run.trace->notes);
  EXPECT_EQ(back.trace->places, run.trace->places);
  ASSERT_EQ(back.residency.size(), run.residency.size());
  EXPECT_EQ(back.at_peak, run.at_peak);
  for (std::size_t i = 0; i < run.residency.size(); ++i) {
    EXPECT_EQ(back.residency[i].storage, run.residency[i].storage);
    EXPECT_EQ(back.residency[i].end, run.residency[i].end);
  }
}

// What the step was before its policies, and what the allocator was told.
TEST(RunFile, GivesBackTheUnchangedStepAndTheAllocator) {
  const ScratchFolder folder;
  memwall::Run run = simulated();
  run.allocator_settings = "max_split_size_mb:200";
  run.unchanged = run.result.tiers;
  run.unchanged[0].peak_reserved = 12345;
  run.unchanged[0].pressure = {{1, 2, 12345}, nanoseconds(7), 3};
  run.unchanged_step = microseconds(7000);
  run.steady_step = microseconds(7500);
  run.changes.step_without = microseconds(8000);
  run.tried = {{"--policy zero:stage=3,ranks=8", true, 5, "", 0, microseconds(3000)},
               {"--policy checkpoint:mode=full", false, 9, "hbm", 4, microseconds(2000), 12.5}};
  run.speedups = {{"host", microseconds(900)}};
  write_run(run, folder / "run.h5");
  const memwall::Run back = read_run(folder / "run.h5");
  EXPECT_EQ(back.allocator_settings, "max_split_size_mb:200");
  EXPECT_EQ(back.unchanged_step, microseconds(7000));
  EXPECT_EQ(back.steady_step, microseconds(7500));
  EXPECT_EQ(back.changes.step_without, microseconds(8000));
  ASSERT_EQ(back.tried.size(), 2u);
  EXPECT_EQ(back.tried[1].options, "--policy checkpoint:mode=full");
  EXPECT_EQ(back.tried[1].missing_in, "hbm");
  EXPECT_TRUE(back.tried[0].fits);
  EXPECT_EQ(back.tried[1].samples_per_second, 12.5);
  ASSERT_EQ(back.speedups.size(), 1u);
  EXPECT_EQ(back.speedups[0].what, "host");
  EXPECT_EQ(back.speedups[0].step_time, microseconds(900));
  EXPECT_EQ(back.tried[0].step_time, microseconds(3000));
  EXPECT_EQ(to_json(summarize(back)), to_json(summarize(run)));
  EXPECT_NE(to_json(summarize(back)).find("12345"), std::string::npos);
  EXPECT_EQ(back.result.tiers[0].pressure.at_peak_reserved.reserved, run.result.tiers[0].peak_reserved);
  run.unchanged.clear();
  run.unchanged_step = {};
  write_run(run, folder / "plain.h5");
  EXPECT_TRUE(read_run(folder / "plain.h5").unchanged.empty());
  EXPECT_EQ(to_json(summarize(read_run(folder / "plain.h5"))).find("unchanged"), std::string::npos);
}

TEST(RunFile, GivesBackTheTraceAndTheMachineAsTheyWere) {
  const ScratchFolder folder;
  memwall::Run run = simulated();
  run.trace.edit().constants.launch_latency[1] = nanoseconds(-321);
  run.trace.edit().constants.stream_gap[2][0] = nanoseconds(77);
  run.machine.routes[0].efficiency.points = {{1024, 0.25}, {1 << 20, 0.75}};
  run.machine.gpu.aliases = {"one", "other"};
  Tier& tier = run.machine.tiers[2];
  tier.drives = 3;
  tier.endurance = 1'000'000;
  tier.write_link = 1;
  run.machine.links[1].write_cache = 1000;
  run.machine.links[1].sustained = 0.5;
  run.result.links[1].cached = 12.5;
  run.result.links[1].cache_full = nanoseconds(3);
  write_run(run, folder / "run.h5");
  const memwall::Run back = read_run(folder / "run.h5");
  EXPECT_EQ(back.machine.tiers, run.machine.tiers);
  EXPECT_EQ(back.machine.links, run.machine.links);
  EXPECT_EQ(back.result.links[1].cached, 12.5);
  EXPECT_EQ(back.result.links[1].cache_full, nanoseconds(3));
  ASSERT_EQ(back.trace->ops.size(), run.trace->ops.size());
  for (std::size_t i = 0; i < run.trace->ops.size(); ++i) {
    const Op &a = run.trace->ops[i], &b = back.trace->ops[i];
    ASSERT_TRUE(a.kind == b.kind && a.phase == b.phase && a.name == b.name && a.module == b.module &&
                a.host_gap == b.host_gap && a.duration == b.duration && a.bytes == b.bytes && a.flops == b.flops &&
                a.target == b.target && a.first_use == b.first_use && a.use_count == b.use_count &&
                a.thread == b.thread && a.operator_name == b.operator_name && a.waves == b.waves)
        << i;
  }
  EXPECT_EQ(back.trace->constants.launch_latency[1], nanoseconds(-321));
  EXPECT_EQ(back.trace->constants.stream_gap[2][0], nanoseconds(77));
  EXPECT_EQ(back.machine.routes[0].efficiency.points, run.machine.routes[0].efficiency.points);
  EXPECT_EQ(back.machine.routes[1].links, run.machine.routes[1].links);
  EXPECT_EQ(back.machine.gpu.aliases, run.machine.gpu.aliases);
  EXPECT_EQ(back.machine.fabrics.size(), run.machine.fabrics.size());
  EXPECT_EQ(back.machine.host.optimizer_bandwidth, run.machine.host.optimizer_bandwidth);
  // A run that is simulated again from its own file comes out the same.
  const memwall::Run again = simulate_and_record(simulated().trace, back.machine, {});
  expect_same_records(again.result, simulated().result);
}

TEST(RunFile, HoldsLongColumnsInChunks) {
  const ScratchFolder folder;
  const memwall::Run run = simulated(120);
  ASSERT_GT(run.trace->ops.size(), 5000u);  // beyond the length from which columns are chunked
  write_run(run, folder / "run.h5");
  const memwall::Run back = read_run(folder / "run.h5");
  expect_same_records(run.result, back.result);
  EXPECT_EQ(to_json(summarize(back)), to_json(summarize(run)));
}

TEST(RunFile, IsTheSameBytesForTheSameRun) {
  const ScratchFolder folder;
  const memwall::Run run = simulated();
  write_run(run, folder / "a.h5");
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));  // HDF5 keeps time stamps in seconds, if any
  write_run(simulated(), folder / "b.h5");
  EXPECT_TRUE(content_of(folder / "a.h5") == content_of(folder / "b.h5"));
}

// Traces in which every field is in use: what was read is written again, and must be the same file.
TEST(RunFile, LosesNothingOnTheWay) {
  const ScratchFolder folder;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    memwall::Run run;
    run.trace = random_trace(seed, 300);
    run.machine = machine_of_ranks(test_machine(), run.trace);
    run.machine.routes[0].efficiency.points = {{1024, 0.25}, {1 << 20, 0.75}};
    run.result.end = microseconds(1000);
    run.result.records.assign(run.trace->ops.size(), OpRecord{});
    run.result.records[0] = {nanoseconds(1),        nanoseconds(5),    nanoseconds(7),          nanoseconds(9), 1, 2,
                             WaitReason::hand_over, WaitReason::event, WaitReason::synchronize, true,           3};
    for (const Step& step : run.trace->steps) run.result.steps.push_back({step.name, nanoseconds(3), nanoseconds(2)});
    run.result.moves = {{nanoseconds(1), nanoseconds(2), 0, 1, 2, 77, 4}};
    run.result.tiers.resize(4);
    run.result.tiers[2] = {{1, 2, 3}, 4,
                           5,         {1, 2, 3, 4, 5, 6, 7, 8},
                           6,         nanoseconds(7),
                           {0},       {8, 9, 10, 0, 0, 0, 0},
                           {},        {{11, 12, 13}, nanoseconds(14), 15},
                           {}};
    run.result.links.assign(run.machine.links.size(), {11, nanoseconds(12)});
    run.result.fits = false;
    run.memory.assign(4, {{nanoseconds(1), 2, 3, 4}});
    run.link_rates.assign(run.machine.links.size(), {{nanoseconds(1), 0.1}});
    run.residency = {{0, 3, nanoseconds(1), nanoseconds(4)}};
    run.at_peak.assign(4, {0});
    write_run(run, folder / "a.h5");
    const memwall::Run back = read_run(folder / "a.h5");
    write_run(back, folder / "b.h5");
    EXPECT_TRUE(content_of(folder / "a.h5") == content_of(folder / "b.h5")) << seed;
    EXPECT_EQ(back.trace->name, run.trace->name);
    EXPECT_EQ(back.result.records[0].host_end_cause, 3u);
    EXPECT_EQ(back.result.tiers[2].peak_by_kind[7], 8);
    EXPECT_EQ(back.trace->knowledge.modules, run.trace->knowledge.modules);
    ASSERT_EQ(back.trace->ops.size(), run.trace->ops.size());
    for (std::size_t i = 0; i < run.trace->ops.size(); ++i) {
      const Op &x = run.trace->ops[i], &y = back.trace->ops[i];
      ASSERT_TRUE(x.source == y.source && x.group == y.group && x.from == y.from && x.to == y.to &&
                  x.return_delay == y.return_delay && x.pageable == y.pageable && x.collective == y.collective &&
                  x.data_type == y.data_type && x.operator_class == y.operator_class && x.placed == y.placed &&
                  x.graph_member == y.graph_member && x.inferred == y.inferred && x.added == y.added &&
                  x.origin == y.origin && x.wait_for == y.wait_for && x.host_cost == y.host_cost &&
                  x.stream == y.stream)
          << i;
    }
  }
}

TEST(RunFile, KeepsProvenanceApart) {
  const ScratchFolder folder;
  memwall::Run run = simulated();
  write_run(run, folder / "without.h5");
  EXPECT_FALSE(read_run(folder / "without.h5").provenance.has_value());
  run.provenance = Provenance{1.5, "host", "2026-01-02", "memwall run x", "0.1.0", "step=x"};
  write_run(run, folder / "with.h5");
  const memwall::Run back = read_run(folder / "with.h5");
  ASSERT_TRUE(back.provenance.has_value());
  EXPECT_EQ(back.provenance->command_line, "memwall run x");
  EXPECT_EQ(back.provenance->scenario, "step=x");
  EXPECT_EQ(back.provenance->wall_seconds, 1.5);
}

TEST(RunFile, LeavesNothingBehindWhereItCannotWrite) {
  const ScratchFolder folder;
  EXPECT_THROW(write_run(simulated(), folder / "no such folder" / "run.h5"), UsageError);
  std::filesystem::create_directory(folder / "taken");
  write_content(folder / "taken" / "x", "x");
  EXPECT_THROW(write_run(simulated(), folder / "taken"), UsageError);
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder.path())) ++files;
  EXPECT_EQ(files, 1u);  // the folder "taken"
}

TEST(RunFile, RefusesWhatIsNoRunFile) {
  const ScratchFolder folder;
  expect_refused(folder / "absent.h5", "there is no such file");
  expect_refused(folder.path(), "this is a folder");
  write_content(folder / "empty.h5", "");
  expect_refused(folder / "empty.h5", "it is empty");
  write_content(folder / "text.h5", "{\"traceEvents\": []}                       ");
  expect_refused(folder / "text.h5", "does not begin like a run file");
  EXPECT_FALSE(is_run_file(folder / "text.h5"));
  write_content(folder / "hdf5.h5", std::string("\x89HDF\r\n\x1a\n", 8) + std::string(5000, '\0'));
  expect_refused(folder / "hdf5.h5", "does not begin like a run file");
}

TEST(RunFile, RefusesDamageWithItsPlace) {
  const ScratchFolder folder;
  write_run(simulated(), folder / "run.h5");
  EXPECT_TRUE(is_run_file(folder / "run.h5"));
  const std::string whole = content_of(folder / "run.h5");
  write_content(folder / "cut.h5", whole.substr(0, whole.size() - 1));
  expect_refused(folder / "cut.h5", "it is truncated");
  write_content(folder / "head.h5", whole.substr(0, 100));
  expect_refused(folder / "head.h5", "it is truncated");
  write_content(folder / "longer.h5", whole + "x");
  expect_refused(folder / "longer.h5", "appended");
  std::string flipped = whole;
  flipped[4096 + 1000] = static_cast<char>(flipped[4096 + 1000] ^ 1);
  write_content(folder / "flipped.h5", flipped);
  expect_refused(folder / "flipped.h5", "the checksum of bytes 4096 to");
  std::string line_ends = whole;
  line_ends.erase(11, 1);
  write_content(folder / "line_ends.h5", line_ends);
  expect_refused(folder / "line_ends.h5", "line ends");
}

TEST(RunFile, RefusesAnotherVersionByName) {
  const ScratchFolder folder;
  write_run(simulated(), folder / "run.h5");
  std::string bytes = content_of(folder / "run.h5");
  for (const char version : {1, 99}) {
    bytes[16] = version;
    reseal(bytes);
    write_content(folder / "other.h5", bytes);
    expect_refused(folder / "other.h5",
                   fmt::format("format version is {}, expected {}; run it again", +version, kRunFormatVersion));
  }
}

// A file whose checksums are right and whose numbers are not.
TEST(RunFile, RefusesNumbersThatPointNowhere) {
  struct Case {
    const char* words;
    std::function<void(memwall::Run&)> break_it;
    bool in_ops = true;
  };
  const Case cases[] = {
      {"/ops/name", [](memwall::Run& r) { r.trace.edit().ops[0].name = 1'000'000; }},
      {"/ops/first_use", [](memwall::Run& r) { r.trace.edit().ops[5].first_use = 0xffffffff; }, false},
      {"/uses/storage", [](memwall::Run& r) { r.trace.edit().uses[0].storage = kNoStorage; }, false},
      {"/storages/place", [](memwall::Run& r) { r.trace.edit().storages[0].place = 7; }},
      {"/spans/cause", [](memwall::Run& r) { r.result.records[4].device_cause = 0xfffffffe; }},
      {"/spans/call_begin_ps", [](memwall::Run& r) { r.result.records[4].host_start = nanoseconds(-1); }},
      {"/residency/tier", [](memwall::Run& r) { r.residency[0].tier = 200; }, false},
      {"/residency/begin_ps", [](memwall::Run& r) { r.residency[0].end = r.result.end + picoseconds(1); }, false},
      {"/at_peak", [](memwall::Run& r) { r.at_peak[0][0] = 0xffffffff; }, false},
      {"/storages/bytes", [](memwall::Run& r) { r.trace.edit().storages[0].bytes = -1; }},
      {"/ops/bytes', row 3: found -5", [](memwall::Run& r) { r.trace.edit().ops[3].bytes = -5; }},
      {"/ops/duration_ps", [](memwall::Run& r) { r.trace.edit().ops[3].duration = nanoseconds(-1); }, false},
      {"/ops/host_gap_ps", [](memwall::Run& r) { r.trace.edit().ops[3].host_gap = nanoseconds(-1); }, false},
      {"/ops/flops", [](memwall::Run& r) { r.trace.edit().ops[3].flops = -1; }, false},
      {"/ops/flops", [](memwall::Run& r) { r.trace.edit().ops[3].flops = std::nan(""); }, false},
      {"/trace/untracked_bytes", [](memwall::Run& r) { r.trace.edit().untracked_bytes = -1; }},
      {"/tier_results/peak_allocated", [](memwall::Run& r) { r.result.tiers[0].peak_allocated = -1; }},
      {"/tier_results/missing", [](memwall::Run& r) { r.result.tiers[0].missing = -1; }},
      {"/link_results/bytes", [](memwall::Run& r) { r.result.links[0].bytes = -1; }},
      {"/link_results/busy_ps", [](memwall::Run& r) { r.result.links[0].busy = nanoseconds(-1); }},
      {"/step_results/step_time_ps", [](memwall::Run& r) { r.result.steps[0].step_time = nanoseconds(-1); }},
      {"/memory/0/allocated", [](memwall::Run& r) { r.memory[0][0].allocated = -1; }, false},
      {"/machine/tiers/capacity", [](memwall::Run& r) { r.machine.tiers[0].capacity = -1; }},
      {"/machine/routes/from", [](memwall::Run& r) { r.machine.routes[0].from = 99; }},
      {"/machine/fabric_links/link", [](memwall::Run& r) { r.machine.fabrics[0].links[0] = 999; }},
      {"/machine/tiers/memory_link", [](memwall::Run& r) { r.machine.tiers[0].memory_link = 999; }},
      {"/machine/tiers/write_link", [](memwall::Run& r) { r.machine.tiers[0].write_link = 999; }},
      {"/link_results/cached", [](memwall::Run& r) { r.result.links[0].cached = -1; }},
      {"/machine/links/sustained", [](memwall::Run& r) { r.machine.links[0].sustained = std::nan(""); }},
      {"/machine/route_link_shares", [](memwall::Run& r) { r.machine.routes[0].link_shares.assign(9, 1.0); }},
      {"/machine/hbm_link", [](memwall::Run& r) { r.machine.hbm_link = 999; }},
      {"/steps/last", [](memwall::Run& r) { r.trace.edit().steps[0].last = 0xfffffff0; }},
      {"/ops/kind", [](memwall::Run& r) { r.trace.edit().ops[0].kind = static_cast<OpKind>(14); }},
      {"/spans", [](memwall::Run& r) { r.result.records.pop_back(); }},
      {"machine of 5", [](memwall::Run& r) { r.machine.tiers.push_back({}); }},
  };
  const ScratchFolder folder;
  for (const Case& c : cases) {
    memwall::Run run = simulated();
    c.break_it(run);
    write_run(run, folder / "run.h5");
    expect_refused(folder / "run.h5", c.words, c.in_ops);
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
