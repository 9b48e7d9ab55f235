// Does a comparison see what is wrong, whatever it is, and pass what is right? The measurements are made up from a
// known machine, so that nothing depends on the computer that runs the tests.
#include "validate/report/validation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "models/hw/machine_file.h"
#include "sim/error.h"
#include "sim/trace/trace_builder.h"
#include "tests/support/gzip.h"
#include "tests/support/validation_folder.h"
#include "validate/report/deviations.h"
#include "validate/report/replay_cases.h"
#include "validate/report/tolerance.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

std::set<std::string> outside(const std::vector<ValidationRow>& rows) {
  std::set<std::string> metrics;
  for (const ValidationRow& row : rows)
    if (row.status == ValidationStatus::outside) metrics.insert(row.metric);
  return metrics;
}

const ValidationRow* find(const std::vector<ValidationRow>& rows, const std::string& metric) {
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const ValidationRow& row) { return row.metric == metric; });
  return found == rows.end() ? nullptr : &*found;
}

TEST(Tolerances, EveryKindHasItsRowAndReason) {
  for (std::size_t i = 0; i < tolerances().size(); ++i) {
    EXPECT_EQ(static_cast<std::size_t>(tolerances()[i].kind), i);
    EXPECT_FALSE(tolerances()[i].reason.empty());
    EXPECT_EQ(tolerance_of(tolerances()[i].kind, "host"), tolerances()[i].host);
    EXPECT_EQ(tolerance_of(tolerances()[i].kind, "cuda"), tolerances()[i].cuda);
  }
}

TEST(Judge, KnowsRelativeErrorsSharesAndNothing) {
  ValidationRow row;
  row.unit = "s";
  row.measured = 1;
  row.predicted = 1.04;
  judge(row, 0.05);
  EXPECT_EQ(row.status, ValidationStatus::within);
  row.predicted = 0.94;
  judge(row, 0.05);
  EXPECT_EQ(row.status, ValidationStatus::outside);
  judge(row, 0.05, false);
  EXPECT_EQ(row.status, ValidationStatus::reported);
  judge(row, 0);
  EXPECT_EQ(row.status, ValidationStatus::reported);
  row.measured = 0;
  judge(row, 0.05);
  EXPECT_EQ(row.status, ValidationStatus::outside) << "predicted, and never happened";
  row.unit = "share";
  row.predicted = 0.04;
  judge(row, 0.05);
  EXPECT_EQ(row.status, ValidationStatus::within);
}

class Replay : public ::testing::Test {
 protected:
  const Machine machine_ = host_like_machine();
  const Trace step_ = offloaded_step();
  const Trace schedule_ = without_times(step_);
  const Execution execution_ = synthetic_execution(step_, machine_);

  std::vector<ValidationRow> rows(const Execution& execution, const Machine& machine) const {
    return compare_replay("case", schedule_, execution, machine, {}).rows;
  }
};

TEST_F(Replay, AsPredictedIsWithinEverything) {
  const auto result = rows(execution_, machine_);
  EXPECT_EQ(outside(result), std::set<std::string>{});
  for (const char* metric : {"step time", "forward", "backward", "optimizer", "pcie_h2d bytes", "pcie_h2d busy",
                             "copies host to hbm", "copies hbm to host", "overlap", "hbm peak allocated",
                             "hbm peak reserved", "host peak allocated", "kernels alone, priced"}) {
    const ValidationRow* row = find(result, metric);
    ASSERT_NE(row, nullptr) << metric;
    EXPECT_EQ(row->case_name, "case");
    EXPECT_EQ(row->date, "2026-01-02");
    EXPECT_GT(row->measured, 0) << metric;
  }
}

TEST_F(Replay, ThePhasesAddUpToTheStep) {
  const auto result = rows(execution_, machine_);
  double sum = 0;
  for (const char* phase : {"forward", "recompute", "backward", "optimizer"})
    if (const ValidationRow* row = find(result, phase)) sum += row->measured;
  EXPECT_NEAR(sum, find(result, "step time")->measured, 1e-9);
}

TEST_F(Replay, TwoPercentSlowerIsWithinAndHalfAsFastIsNot) {
  EXPECT_EQ(outside(rows(slowed(execution_, 1.02), machine_)), std::set<std::string>{});
  const auto slow = outside(rows(slowed(execution_, 2), machine_));
  for (const char* metric : {"step time", "forward", "backward", "optimizer", "pcie_h2d busy", "copies host to hbm"})
    EXPECT_TRUE(slow.contains(metric)) << metric;
}

TEST_F(Replay, HalfABandwidthIsSeen) {
  Machine half = machine_;
  half.links[half.link("pcie_h2d")].bandwidth /= 2;
  for (Route& route : half.routes)
    for (const std::uint16_t link : route.links)
      route.bandwidth = std::min(route.bandwidth, half.links[link].bandwidth);
  const auto wrong = outside(rows(execution_, half));
  EXPECT_TRUE(wrong.contains("copies host to hbm"));
  EXPECT_TRUE(wrong.contains("pcie_h2d busy"));
  EXPECT_TRUE(wrong.contains("step time"));
  EXPECT_FALSE(wrong.contains("copies hbm to host"));
  EXPECT_FALSE(wrong.contains("hbm peak allocated"));
}

TEST_F(Replay, EveryKindOfRowCanFail) {
  Execution peaks = execution_;
  for (PlacePeak& peak : peaks.peaks) peak.allocated = peak.allocated * 11 / 10;
  EXPECT_TRUE(outside(rows(peaks, machine_)).contains("hbm peak allocated"));
  EXPECT_TRUE(outside(rows(peaks, machine_)).contains("host peak allocated"));
  peaks = execution_;
  peaks.peaks[0].reserved *= 2;
  EXPECT_EQ(outside(rows(peaks, machine_)), std::set<std::string>{"hbm peak reserved"});

  // The copies happen one after the other once everything else is done: nothing overlaps any more.
  Execution serial = execution_;
  Time end = serial.totals[0];
  for (OpId id = 0; id < schedule_.ops.size(); ++id) {
    if (schedule_.ops[id].kind != OpKind::copy) continue;
    OpTimes& t = serial.times[id];
    const Duration length = t.end - t.start;
    t.start = end;
    t.end = end += length;
  }
  EXPECT_THROW(rows(serial, machine_), InputError) << "later than its total";
  serial.totals[0] = end;
  const auto wrong = outside(rows(serial, machine_));
  EXPECT_TRUE(wrong.contains("overlap"));
  EXPECT_TRUE(wrong.contains("step time"));
  EXPECT_FALSE(wrong.contains("copies host to hbm")) << "each copy is as fast as before";
}

TEST_F(Replay, WhatIsShortInAStepIsNotJudged) {
  // One copy of a few bytes in a step of seconds: five times as long as predicted, and no matter.
  Chain chain;
  chain.make(kGB, StorageKind::activation, Phase::forward, "a");
  chain.kernel(Phase::forward, {}, {0}, milliseconds(2000));
  Op copy;
  copy.kind = OpKind::copy;
  copy.bytes = 4096;
  copy.from = chain.b.trace().place("hbm");
  copy.to = chain.b.trace().place("host");
  const OpId id = chain.b.append(copy);
  const Trace step = chain.finish();
  Execution execution = synthetic_execution(step, machine_);
  execution.times[id].end = execution.times[id].start + 5 * (execution.times[id].end - execution.times[id].start);
  execution.totals[0] = std::max(execution.totals[0], execution.times[id].end);
  const auto result = compare_replay("short", without_times(step), execution, machine_, {}).rows;
  EXPECT_EQ(outside(result), std::set<std::string>{});
  EXPECT_EQ(find(result, "copies hbm to host")->status, ValidationStatus::reported);
}

// A kernel of 100 ms, and beside it a collective of 8 ranks for which something stands in during 50 ms.
Trace reduced_beside_a_kernel(double share) {
  TraceBuilder b;
  b.trace().name = "reduced";
  b.trace().ranks = 8;
  b.add_thread("main");
  b.add_stream("compute", StreamRole::compute);
  Op collective;
  collective.kind = OpKind::collective;
  collective.collective = CollectiveKind::all_reduce;
  collective.stream = b.add_stream("communication", StreamRole::communication);
  collective.duration = milliseconds(50);
  collective.bytes = 1'000'000;
  b.append(collective);
  Op kernel;
  kernel.kind = OpKind::kernel;
  kernel.phase = Phase::backward;
  kernel.flops = 1e9;
  b.append(kernel);
  return schedule_of(std::move(b).finish(), {}, share);
}

Execution executed(const Trace& schedule, const Machine& machine) {
  Execution e;
  e.environment = {{"backend", "host"}, {"date", "2026-01-02"}};
  e.alone = {milliseconds(50), milliseconds(100)};
  e.times.resize(schedule.ops.size());
  const Run run = simulated_run(schedule, e, machine);
  for (OpId id = 0; id < schedule.ops.size(); ++id) {
    const OpRecord& r = run.result.records[id];
    e.times[id] = {whole_nanoseconds(r.host_start), whole_nanoseconds(r.host_end), whole_nanoseconds(r.start),
                   whole_nanoseconds(r.end)};
  }
  e.totals = {whole_nanoseconds(run.result.end)};
  return e;
}

TEST_F(Replay, AStandInForACollectiveSlowsKernelsByItsShare) {
  for (const double share : {0.0, 0.25}) {
    const Trace schedule = reduced_beside_a_kernel(share);
    const Execution execution = executed(schedule, machine_);
    const ReplayCase result = compare_replay("reduced", schedule, execution, machine_, {});
    // Of the first 50 ms a quarter is lost to the collective.
    EXPECT_NEAR(result.predicted, share > 0 ? 0.1125 : 0.1, 0.0005) << share;
    const ValidationRow* row = find(result.rows, "stand-ins for collectives");
    ASSERT_NE(row, nullptr);
    EXPECT_NEAR(row->measured, 0.05, 1e-6);
    EXPECT_EQ(row->status, ValidationStatus::reported);
    for (const ValidationRow& other : result.rows)
      EXPECT_EQ(other.metric.find("nvlink"), std::string::npos) << "nothing crosses a link: " << other.metric;
  }
  EXPECT_EQ(find(rows(execution_, machine_), "stand-ins for collectives"), nullptr);
}

ReplayCase timed(const std::string& name, double measured, double predicted, double spread = 0.01) {
  ReplayCase c;
  c.name = name;
  c.executed = true;
  c.backend = "host";
  c.measured = measured;
  c.predicted = predicted;
  c.low = measured - spread;
  c.high = measured + spread;
  return c;
}

TEST(Ranking, CountsPairsPerGroupAndLetsTiesPass) {
  auto rows = ranking_rows({timed("g.a", 1, 1.1), timed("g.b", 2, 1.9), timed("g.c", 3, 3), timed("h.a", 9, 1)});
  ASSERT_EQ(rows.size(), 1u) << "one case alone has no order";
  EXPECT_EQ(rows[0].case_name, "g");
  EXPECT_EQ(rows[0].predicted, 1);
  EXPECT_EQ(rows[0].status, ValidationStatus::within);
  rows = ranking_rows({timed("g.a", 1, 2.5), timed("g.b", 2, 1.9), timed("g.c", 3, 3)});
  EXPECT_NEAR(rows[0].predicted, 2.0 / 3, 1e-12);
  EXPECT_EQ(rows[0].status, ValidationStatus::outside);
  rows = ranking_rows({timed("g.a", 1, 2.5, 1.1), timed("g.b", 2, 1.9), timed("g.c", 3, 3)});
  EXPECT_EQ(rows[0].status, ValidationStatus::within) << "a's passes reach beyond b";
}

TEST(Folder, OfAMachineAsMeasuredPasses) {
  const ScratchFolder scratch;
  const auto folder = make_validation_folder(scratch / "known", 1.02);
  const auto rows = validate_folder(folder, {});
  EXPECT_EQ(outside(rows), std::set<std::string>{});
  std::set<std::string> rungs;
  for (const ValidationRow& row : rows) {
    rungs.insert(row.rung);
    EXPECT_EQ(row.machine, "known");
  }
  EXPECT_EQ(rungs, (std::set<std::string>{"microbenchmark", "ranking", "replay"}));
  EXPECT_GT(std::count_if(rows.begin(), rows.end(),
                          [](const ValidationRow& row) { return row.status == ValidationStatus::within; }),
            20);
}

TEST(Folder, WhatWasNotExecutedIsNotMeasuredYet) {
  const ScratchFolder scratch;
  const auto folder = make_validation_folder(scratch / "known", 1);
  std::filesystem::remove(folder / "replay" / "chain.offload.execution.csv");
  const auto status_of = [&](const std::string& name) {
    for (const ValidationRow& row : validate_folder(folder, {}))
      if (row.rung == "replay" && row.case_name == name && row.metric == "step time") return to_string(row.status);
    return std::string("no row");
  };
  EXPECT_EQ(status_of("chain.offload"), "not measured yet");
  EXPECT_EQ(status_of("chain.resident"), "within");
  std::filesystem::remove_all(folder / "replay");
  EXPECT_EQ(status_of("all"), "not measured yet");
}

TEST(Folder, HalfABandwidthIsOutside) {
  const ScratchFolder scratch;
  const auto folder = make_validation_folder(scratch / "known", 1.02);
  const double bandwidth = host_like_machine().links[host_like_machine().link("pcie_h2d")].bandwidth;
  const auto wrong = outside(
      validate_folder(folder, {{"link.pcie_h2d.bandwidth=" + std::to_string(bandwidth / 2e9) + "GB/s"}, "", ""}));
  EXPECT_TRUE(wrong.contains("copies host to hbm"));
  EXPECT_TRUE(wrong.contains("step time"));
  EXPECT_TRUE(wrong.contains("64 MiB")) << "the microbenchmark";
}

TEST(Folder, AMachineFileThatWasEditedIsOutside) {
  const ScratchFolder scratch;
  const auto folder = make_validation_folder(scratch / "known", 1);
  write_content(folder / "machine.textproto", content_of(folder / "machine.textproto") + "# by hand\n");
  EXPECT_TRUE(outside(validate_folder(folder, {})).contains("equal to what calibrate makes of results.csv"));
}

TEST(Folder, AcceptsWhatIsExplained) {
  const ScratchFolder scratch;
  const auto folder = make_validation_folder(scratch / "known", 1);
  write_content(folder / "machine.textproto", content_of(folder / "machine.textproto") + "# by hand\n");
  const std::string row =
      "| known | machine.textproto | equal to what calibrate makes of results.csv | 1 | 0 | a test | ";
  write_content(scratch / "DEVIATIONS.md",
                "# Deviations\n\n| machine | case | metric | ours | theirs | why | state |\n"
                "|---|---|---|---|---|---|---|\n" +
                    row + "open |\n");
  EXPECT_EQ(outside(validate_folder(folder, {{}, scratch / "DEVIATIONS.md", ""})).size(), 1u) << "open is no excuse";
  write_content(scratch / "DEVIATIONS.md", "| another" + row.substr(7) + "accepted |\n");
  EXPECT_EQ(outside(validate_folder(folder, {{}, scratch / "DEVIATIONS.md", ""})).size(), 1u) << "of another machine";
  write_content(scratch / "DEVIATIONS.md", row + "accepted |\n");
  EXPECT_EQ(outside(validate_folder(folder, {{}, scratch / "DEVIATIONS.md", ""})).size(), 0u);
}

TEST(Folder, ReadsCompressedFilesAndKeepsRuns) {
  const ScratchFolder scratch;
  const auto folder = make_validation_folder(scratch / "known", 1);
  const auto plain = folder / "replay" / "chain.offload.schedule";
  write_content(folder / "replay" / "chain.offload.schedule.gz", gzipped(content_of(plain)));
  EXPECT_THROW(validate_folder(folder, {}), InputError) << "twice";
  std::filesystem::remove(plain);
  EXPECT_EQ(outside(validate_folder(folder, {{}, "", scratch / "runs"})).size(), 0u);
  EXPECT_TRUE(std::filesystem::exists(scratch / "runs" / "known" / "chain.offload.measured.h5"));
  EXPECT_TRUE(std::filesystem::exists(scratch / "runs" / "known" / "chain.offload.simulated.h5"));
}

TEST(Folder, RefusesWhatDoesNotBelongTogether) {
  const ScratchFolder scratch;
  EXPECT_THROW(validate_folder(scratch / "absent", {}), InputError);
  EXPECT_THROW(validate_folder(scratch.path(), {}), InputError) << "no results.csv";
  const auto folder = make_validation_folder(scratch / "known", 1);
  std::filesystem::copy_file(folder / "replay" / "chain.resident.schedule",
                             folder / "replay" / "chain.offload.schedule",
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_THROW(validate_folder(folder, {}), InputError) << "the execution is of another schedule";
}

TEST(Data, OfMachinesThatAreWantedSaysSo) {
  const ScratchFolder scratch;
  const auto rows = validate_all(scratch.path(), {});
  ASSERT_FALSE(rows.empty());
  for (const ValidationRow& row : rows) {
    EXPECT_EQ(row.machine, "h200-sxm-141gb");
    EXPECT_EQ(to_string(row.status), "not measured yet");
    EXPECT_EQ(row.measured, 0);
  }
}

TEST(Deviations, AreRefusedWithTheirLine) {
  const auto refused = [](const std::string& text, const std::string& part) {
    try {
      parse_deviations(text, "DEVIATIONS.md");
      ADD_FAILURE() << "expected to be refused: " << text;
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  };
  refused("prose\n| a | b | c |\n", "DEVIATIONS.md:2: found 3 cells");
  refused("| m | c | x | 1 | 2 | why | perhaps |\n", "DEVIATIONS.md:1: found 'perhaps'");
  EXPECT_TRUE(parse_deviations("prose only\n", "x").empty());
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
