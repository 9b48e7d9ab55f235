// Several captures of one job, made up: do collectives meet whatever the clocks, windows and groups are, and is what
// does not fit told?
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <random>

#include "models/workload/import/ranks/collective_match.h"
#include "models/workload/import/ranks/collective_rendezvous.h"
#include "models/workload/import/ranks/job_files.h"
#include "models/workload/import/execution_trace/capture_rank.h"
#include "models/workload/import/kineto/kineto_step.h"
#include "models/workload/import/ranks/rank_join.h"
#include "sim/error.h"
#include "sim/trace/ranks.h"
#include "sim/trace/trace_builder.h"
#include "tests/support/capture_of_rank.h"
#include "tests/support/scratch_folder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

// A collective as it happened, on a clock that no rank has: who took part, and when each arrived.
struct Event {
  std::string group;
  std::vector<std::uint32_t> ranks;
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::int64_t elements = 1000;
  std::vector<Time> arrivals;  // as ranks
  Duration cost{};
};

struct Clock {
  Duration offset{};  // of the host's clock
  double drift = 0;
  Duration jitter{};  // of recorded ends
};

// A rank's capture of what happened between two instants.
struct Window {
  Time from{}, to = microseconds(1'000'000'000);
};

class Job {
 public:
  explicit Job(std::uint32_t world) : world_(world) {}

  // All of a group, `interval` after the one before, each arriving a little later than another.
  void add(std::string group, std::vector<std::uint32_t> ranks, CollectiveKind kind, std::int64_t elements,
           Duration cost = microseconds(100)) {
    now_ += microseconds(1000 + static_cast<std::int64_t>(random_() % 700));
    Event e{.group = std::move(group),
            .ranks = std::move(ranks),
            .kind = kind,
            .elements = elements,
            .arrivals = {},
            .cost = cost};
    for (std::size_t i = 0; i < e.ranks.size(); ++i)
      e.arrivals.push_back(now_ + microseconds(static_cast<std::int64_t>(random_() % 300)));
    events_.push_back(std::move(e));
  }

  const std::vector<Event>& events() const { return events_; }

  // `named`: the file names groups. `skipped`: numbers of events that it lacks.
  ImportedStep capture(std::uint32_t rank, Clock clock = {}, Window window = {}, bool named = true,
                       std::vector<std::size_t> skipped = {}) {
    ImportedStep step;
    RankCapture& c = step.rank.emplace();
    c.rank = rank;
    c.world_size = world_;
    c.devices = 1;
    c.start_ns = 1'700'000'000'000'000'000 + (window.from + clock.offset).count() / 1000;
    TraceBuilder builder;
    builder.trace().name = "rank" + std::to_string(rank);
    builder.trace().place("hbm");
    builder.trace().knowledge.timing = true;
    builder.add_thread("main");
    std::map<std::string, std::uint16_t> groups;
    Op mark;
    mark.name = builder.trace().strings.intern("window");
    builder.append(mark);
    for (std::size_t i = 0; i < events_.size(); ++i) {
      const Event& e = events_[i];
      const auto me = std::find(e.ranks.begin(), e.ranks.end(), rank);
      if (me == e.ranks.end() || std::find(skipped.begin(), skipped.end(), i) != skipped.end()) continue;
      const Time arrival = e.arrivals[static_cast<std::size_t>(me - e.ranks.begin())];
      const Time end = *std::max_element(e.arrivals.begin(), e.arrivals.end()) + e.cost;
      if (arrival < window.from || end > window.to) continue;
      const auto [group, is_new] = groups.try_emplace(e.group, static_cast<std::uint16_t>(groups.size()));
      if (is_new) {
        builder.add_stream("stream " + std::to_string(group->second), StreamRole::communication);
        CapturedGroup g;
        if (named) {
          g.name = e.group;
          g.members = e.ranks;
          g.ranks = static_cast<std::uint32_t>(e.ranks.size());
        }
        c.groups.push_back(g);
      }
      const auto on_clock = [&](Time t) {
        const double since = static_cast<double>((t - window.from).count());
        return t - window.from + Duration(static_cast<std::int64_t>(clock.drift * since));
      };
      const auto jitter = clock.jitter.count() == 0
                              ? Duration{}
                              : Duration(static_cast<std::int64_t>(random_()) % clock.jitter.count());
      CapturedCollective captured{.op = static_cast<OpId>(builder.trace().ops.size()),
                                  .kind = e.kind,
                                  .type = DataType::fp32,
                                  .group = group->second,
                                  .elements = e.elements,
                                  .start = on_clock(arrival),
                                  .end = on_clock(end) + jitter};
      Op op;
      op.kind = OpKind::collective;
      op.collective = e.kind;
      op.stream = group->second;
      op.host_gap = microseconds(10);
      op.duration = captured.end - captured.start;
      builder.append(op);
      c.collectives.push_back(captured);
    }
    builder.trace().steps.push_back({"window", 0, static_cast<OpId>(builder.trace().ops.size())});
    step.trace = std::move(builder).finish();
    step.files.emplace_back("rank" + std::to_string(rank) + ".json");
    return step;
  }

 private:
  std::uint32_t world_;
  std::mt19937 random_{42};
  Time now_ = microseconds(5000);
  std::vector<Event> events_;
};

// Four ranks, tensor parallel in pairs {0,1} and {2,3}, data parallel in {0,2} and {1,3}; equal messages all over.
Job grid(int steps) {
  Job job(4);
  for (int s = 0; s < steps; ++s) {
    for (int layer = 0; layer < 3; ++layer) {
      job.add("tp0", {0, 1}, CollectiveKind::all_reduce, 4096);
      job.add("tp1", {2, 3}, CollectiveKind::all_reduce, 4096);
    }
    job.add("dp0", {0, 2}, CollectiveKind::reduce_scatter, 1 << 20);
    job.add("dp1", {1, 3}, CollectiveKind::reduce_scatter, 1 << 20);
  }
  return job;
}

std::vector<ImportedStep> all_of(Job& job, std::uint32_t ranks, Clock clock = {}, bool named = true) {
  std::vector<ImportedStep> steps;
  for (std::uint32_t r = 0; r < ranks; ++r) steps.push_back(job.capture(r, r == 0 ? Clock{} : clock, {}, named));
  return steps;
}

// RendezvousTable by number, as (rank, captured start) of the members' ops, with the joined trace.
std::map<std::uint32_t, std::vector<OpId>> rendezvous(const Trace& trace) {
  std::map<std::uint32_t, std::vector<OpId>> found;
  for (OpId id = 0; id < trace.ops.size(); ++id)
    if (trace.ops[id].kind == OpKind::collective && trace.ops[id].target != kNoRendezvous)
      found[trace.ops[id].target].push_back(id);
  return found;
}

std::size_t standing_alone(const Trace& trace) {
  return static_cast<std::size_t>(std::count_if(trace.ops.begin(), trace.ops.end(), [](const Op& op) {
    return op.kind == OpKind::collective && op.target == kNoRendezvous;
  }));
}

const Decision& decision(const ImportedStep& step, const std::string& subject) {
  const auto found = std::find_if(step.decisions.begin(), step.decisions.end(),
                                  [&](const Decision& d) { return d.subject == subject; });
  EXPECT_NE(found, step.decisions.end()) << subject;
  return *found;
}

// The k-th event is the k-th rendezvous (they are sorted by their last arriver), and costs what it did.
void expect_as_happened(const Job& job, const ImportedStep& joined, Duration tolerance = {}) {
  const auto found = rendezvous(joined.trace);
  ASSERT_EQ(found.size(), job.events().size());
  std::size_t k = 0;
  for (const auto& [number, ops] : found) {
    const Event& e = job.events()[k++];
    ASSERT_EQ(ops.size(), e.ranks.size()) << "rendezvous " << number;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const Op& op = joined.trace.ops[ops[i]];
      EXPECT_EQ(joined.trace.rank_table[rank_of(joined.trace, op)].number, e.ranks[i]);
      EXPECT_EQ(op.collective, e.kind);
      EXPECT_LE(op.duration, e.cost + tolerance);
      EXPECT_GE(op.duration, e.cost - tolerance);
    }
  }
}

TEST(RankJoin, GroupsThatInterleaveMeetAsTheyDid) {
  Job job = grid(5);
  const ImportedStep joined = joined_steps(all_of(job, 4));
  expect_as_happened(job, joined);
  EXPECT_EQ(joined.trace.groups.size(), 4u);
  EXPECT_EQ(joined.trace.job_ranks, 4u);
  EXPECT_EQ(decision(joined, "collectives matched").covered, decision(joined, "collectives matched").of);
  EXPECT_NE(decision(joined, "absent ranks").sentence.find("All ranks"), std::string::npos);
}

TEST(RankJoin, GroupsWithoutNamesAreToldByTheirEnds) {
  Job job = grid(5);
  expect_as_happened(job, joined_steps(all_of(job, 4, {}, false)));
}

TEST(RankJoin, OrderOfTheFilesMakesNoDifference) {
  Job a = grid(3), b = grid(3);
  std::vector<ImportedStep> steps = all_of(b, 4);
  std::reverse(steps.begin(), steps.end());
  const ImportedStep forward = joined_steps(all_of(a, 4)), backward = joined_steps(std::move(steps));
  ASSERT_EQ(forward.trace.ops.size(), backward.trace.ops.size());
  for (OpId id = 0; id < forward.trace.ops.size(); ++id) {
    EXPECT_EQ(forward.trace.ops[id].target, backward.trace.ops[id].target);
    EXPECT_EQ(forward.trace.ops[id].duration, backward.trace.ops[id].duration);
  }
}

TEST(RankJoin, ClocksOfHostsMayDifferAndDrift) {
  for (const Duration offset : {microseconds(-3'000'000), microseconds(37), microseconds(1'234'567)})
    for (const double drift : {0.0, 150e-6, -200e-6}) {
      Job job = grid(30);
      const ImportedStep joined =
          joined_steps(all_of(job, 4, {.offset = offset, .drift = drift, .jitter = microseconds(5)}));
      expect_as_happened(job, joined, microseconds(6));
      const std::string sentence = decision(joined, "clocks").sentence;
      EXPECT_EQ(sentence.find("drifts") != std::string::npos, drift != 0) << sentence;
    }
}

TEST(RankJoin, LaterProgramsBeginLater) {
  Job job = grid(4);
  const Time later = microseconds(6000);
  std::vector<ImportedStep> steps;
  for (std::uint32_t r = 0; r < 4; ++r) steps.push_back(job.capture(r, {}, {.from = r == 2 ? later : Time{}}));
  const ImportedStep joined = joined_steps(std::move(steps));
  std::vector<Duration> gaps;
  for (const Op& op : joined.trace.ops)
    if (op.kind == OpKind::mark) gaps.push_back(op.host_gap);
  ASSERT_EQ(gaps.size(), 4u);
  EXPECT_EQ(gaps[0], Duration{});
  EXPECT_EQ(gaps[2], later);
}

TEST(RankJoin, CutWindowsAndMissingRecordsAreFlagged) {
  Job job = grid(6);
  std::vector<ImportedStep> steps;
  steps.push_back(job.capture(0));
  steps.push_back(job.capture(1, {.offset = microseconds(900'000)}, {.from = microseconds(15'000)}));
  steps.push_back(job.capture(2, {}, {.from = {}, .to = microseconds(50'000)}));
  steps.push_back(job.capture(3, {}, {}, true, {9, 17, 23}));
  std::size_t expected = 0, lone = 0;
  for (std::size_t i = 0; i < job.events().size(); ++i) {
    const Event& e = job.events()[i];
    std::size_t present = 0;
    for (std::size_t k = 0; k < e.ranks.size(); ++k) {
      const Time end = *std::max_element(e.arrivals.begin(), e.arrivals.end()) + e.cost;
      const bool cut = (e.ranks[k] == 1 && e.arrivals[k] < microseconds(15'000)) ||
                       (e.ranks[k] == 2 && end > microseconds(50'000)) ||
                       (e.ranks[k] == 3 && (i == 9 || i == 17 || i == 23));
      present += !cut;
    }
    expected += present == 2;
    lone += present == 1;
  }
  const ImportedStep joined = joined_steps(std::move(steps));
  EXPECT_EQ(rendezvous(joined.trace).size(), expected);
  EXPECT_EQ(standing_alone(joined.trace), lone);
  EXPECT_GT(lone, 5u);
  const Decision& matched = decision(joined, "collectives matched");
  EXPECT_EQ(matched.of - matched.covered, lone);
  EXPECT_NE(matched.sentence.find("stand alone"), std::string::npos);
}

TEST(RankJoin, AnAbsentRankIsCountedAndItsWaitSuspected) {
  Job job(3);
  for (int i = 0; i < 8; ++i) job.add("world", {0, 1, 2}, CollectiveKind::all_reduce, 1 << 20, microseconds(100));
  std::vector<ImportedStep> steps{job.capture(0), job.capture(1)};
  // In three collectives rank 2 was far behind: the two that are present both waited 2 ms more.
  for (ImportedStep& step : steps)
    for (std::size_t k = 0; k < 3; ++k) step.rank->collectives[2 * k].start -= microseconds(900);
  for (ImportedStep& step : steps) step.rank->collectives[0].start = std::max(step.rank->collectives[0].start, Time{});
  const ImportedStep joined = joined_steps(std::move(steps));
  EXPECT_EQ(decision(joined, "ranks of the job").covered, 2u);
  EXPECT_NE(decision(joined, "ranks of the job").sentence.find("absent: 2"), std::string::npos);
  EXPECT_EQ(decision(joined, "absent ranks").of, 8u);
  EXPECT_GE(decision(joined, "absent ranks").covered, 3u);
}

TEST(RankJoin, PairsOfPipelinesMeetByPeers) {
  // One group of three; rank 1 receives from 0 and sends to 2. Sends of a batch that name nobody stay alone.
  Job job(3);
  for (int i = 0; i < 6; ++i) {
    job.add("pp", {0, 1}, CollectiveKind::send_receive, 500);
    job.add("pp", {1, 2}, CollectiveKind::send_receive, 500);
  }
  std::vector<ImportedStep> steps = all_of(job, 3);
  for (std::uint32_t r = 0; r < 3; ++r) {
    RankCapture& c = *steps[r].rank;
    c.groups[0].members = {0, 1, 2};
    c.groups[0].ranks = 3;
    for (std::size_t k = 0; k < c.collectives.size(); ++k) {
      const bool first_pair = r == 0 || (r == 1 && k % 2 == 0);
      c.collectives[k].source = first_pair ? 0 : 1;
      c.collectives[k].destination = first_pair ? 1 : 2;
    }
  }
  std::vector<ImportedStep> nameless;
  for (const ImportedStep& step : steps) nameless.push_back(step);
  EXPECT_EQ(rendezvous(joined_steps(std::move(steps)).trace).size(), 12u);
  for (ImportedStep& step : nameless)
    for (CapturedCollective& c : step.rank->collectives) c.source = c.destination = -1;
  EXPECT_THROW(joined_steps(std::move(nameless)), InputError);
}

TEST(RankJoin, AGroupOfWhichNobodyKnowsWhomItMeetsIsOneToo) {
  Job job(3);
  for (int i = 0; i < 3; ++i) {
    job.add("world", {0, 1, 2}, CollectiveKind::all_reduce, 64);
    job.add("pp", {0, 1, 2}, CollectiveKind::send_receive, 500);
  }
  const ImportedStep joined = joined_steps(all_of(job, 3));
  ASSERT_EQ(joined.trace.groups.size(), 2u);
  EXPECT_EQ(joined.trace.groups[1].name, "pp");
  EXPECT_EQ(rendezvous(joined.trace).size(), 3u);
  EXPECT_EQ(standing_alone(joined.trace), 9u);
}

TEST(RankJoin, NumbersOfTheLibraryAreUsedUnlessTheyContradictTheTimes) {
  Job job(2);
  for (int i = 0; i < 12; ++i) job.add("world", {0, 1}, CollectiveKind::all_reduce, 64);
  for (const std::int64_t wrong : {0, 1}) {
    std::vector<ImportedStep> steps{job.capture(0), job.capture(1, {.offset = microseconds(5'000'000)})};
    for (std::uint32_t r = 0; r < 2; ++r)
      for (std::size_t k = 0; k < 12; ++k)
        steps[r].rank->collectives[k].sequence = static_cast<std::int64_t>(k) + (r == 1 ? wrong : 0);
    const ImportedStep joined = joined_steps(std::move(steps));
    expect_as_happened(job, joined);
    EXPECT_EQ(decision(joined, "collectives matched").sentence.find("12 matches by") != std::string::npos, wrong == 0);
  }
}

// --- what cannot be joined ---

template <class Error>
void expect_refusal(std::vector<ImportedStep> steps, const std::string& part) {
  try {
    joined_steps(std::move(steps));
    FAIL() << "accepted: " << part;
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

TEST(RankJoin, WhatIsNotOneJobIsRefused) {
  Job job = grid(3);
  expect_refusal<UsageError>({job.capture(1), job.capture(1)}, "both of rank 1");
  ImportedStep other = job.capture(1);
  other.rank->world_size = 8;
  expect_refusal<UsageError>({job.capture(0), other}, "of a job of 4 ranks");
  ImportedStep outside = job.capture(1);
  outside.rank->rank = 4;
  expect_refusal<InputError>({job.capture(0), outside}, "rank 4 of 4");
  ImportedStep untimed = job.capture(1);
  untimed.rank.reset();
  expect_refusal<UsageError>({job.capture(0), untimed}, "rank1.json");
  ImportedStep several = job.capture(1);
  several.rank->devices = 2;
  expect_refusal<InputError>({job.capture(0), several}, "uses 2 devices");
  ImportedStep silent = job.capture(1);
  silent.rank->collectives.clear();
  expect_refusal<InputError>({job.capture(0), silent}, "found no collective");
  expect_refusal<InputError>({job.capture(0), job.capture(3)}, "none of its");  // no group in common
  Job another(4);
  for (int i = 0; i < 20; ++i) another.add("tp0", {0, 1}, CollectiveKind::broadcast, 7);
  expect_refusal<InputError>({job.capture(0), another.capture(1)}, "none of its");
}

TEST(RankJoin, AnotherRunOfTheSameJobIsRefused) {
  Job job(2), again(2);
  again.add("warm up", {0}, CollectiveKind::barrier, 0);  // other random times
  for (int i = 0; i < 30; ++i) {
    job.add("world", {0, 1}, CollectiveKind::all_reduce, 64);
    again.add("world", {0, 1}, CollectiveKind::all_reduce, 64);
  }
  expect_refusal<InputError>({job.capture(0), again.capture(1)}, "not of the same time of the same run");
}

// A clock that is set while the job runs: what follows in the capture is so much later.
void set_clock(ImportedStep& step, std::size_t from, Duration by) {
  std::vector<CapturedCollective>& collectives = step.rank->collectives;
  for (std::size_t i = from; i < collectives.size(); ++i) {
    collectives[i].start += by;
    collectives[i].end += by;
  }
}

TEST(RankJoin, AClockThatWasSetIsToldWithHowMuchAndWhere) {
  for (const bool numbered : {false, true}) {
    SCOPED_TRACE(numbered);
    Job job(2);
    for (int i = 0; i < 30; ++i) job.add("world", {0, 1}, CollectiveKind::all_reduce, 64);
    const auto captures = [&](std::vector<std::size_t> at) {
      std::vector<ImportedStep> steps{job.capture(0), job.capture(1)};
      for (ImportedStep& step : steps)
        for (std::size_t k = 0; numbered && k < step.rank->collectives.size(); ++k)
          step.rank->collectives[k].sequence = static_cast<std::int64_t>(k);
      for (const std::size_t k : at) set_clock(steps[1], k, microseconds(3000));
      return steps;
    };
    // Three times, so that no offset suits half of them.
    expect_refusal<InputError>(captures({8, 15, 22}), "Its clock contradicts theirs: 27 of 30 collectives follow");
    expect_refusal<InputError>(captures({8, 15, 22}), "difference changes by 9.000 ms, most at the all_reduce number 9, ");
    expect_refusal<InputError>(captures({8, 15, 22}), "by -3.000 ms.");
    // Once, behind most: the others meet, and a sentence says it.
    const ImportedStep joined = joined_steps(captures({20}));
    EXPECT_NE(decision(joined, "clocks").sentence.find("Rank 1's clock contradicts the others': their difference changes "
                                                       "by -3.000 ms at its all_reduce number 21, "),
              std::string::npos)
        << decision(joined, "clocks").sentence;
    EXPECT_EQ(decision(joined_steps(captures({})), "clocks").sentence.find("contradicts"), std::string::npos);
  }
}

TEST(RankJoin, HostileValuesEndInSentences) {
  const Time far = Time(std::int64_t{1} << 59);
  Job job(2);
  for (int i = 0; i < 5; ++i) job.add("world", {0, 1}, CollectiveKind::all_reduce, 64);
  std::mt19937_64 random(7);
  for (int round = 0; round < 300; ++round) {
    std::vector<ImportedStep> steps{job.capture(0), job.capture(1)};
    for (ImportedStep& step : steps)
      for (CapturedCollective& c : step.rank->collectives) switch (random() % 6) {
          case 0:
            c.start = c.end = far;
            break;
          case 1:
            c.sequence = static_cast<std::int64_t>(random());
            break;
          case 2:
            c.elements = static_cast<std::int64_t>(random() >> 1);
            break;
          case 3:
            c.source = c.destination = static_cast<std::int64_t>(random() >> 1);
            c.kind = CollectiveKind::send_receive;
            break;
          default:
            break;
        }
    steps[1].rank->start_ns = static_cast<std::int64_t>(random());
    try {
      joined_steps(std::move(steps));
    } catch (const InputError&) {
    } catch (const UsageError&) {
    }
  }
}

// --- files ---

TEST(RankJoin, FilesOf2024NameTheirGroupsAtTheOperator) {
  const ScratchFolder folder;
  // The second writer subtracts another base from its times; the sum is what the host's clock said.
  std::ofstream(folder.path() / "a.json") << capture_of_rank(1, 1'700'000'000'000'000'000, 0);
  std::ofstream(folder.path() / "b.json") << capture_of_rank(0, 1'700'000'000'000'000'000 - 250'000, 250);
  std::ofstream(folder.path() / "notes.txt") << "nothing\n";
  const JobFiles job = job_files({folder.path()}, {});
  ASSERT_EQ(job.files.size(), 2u);
  EXPECT_TRUE(job.notes.at(0).ends_with(": 2 captures and 0 ExecutionTraces.")) << job.notes.at(0);
  EXPECT_TRUE(job.left_out.at(0).ends_with(": left out, as no capture of a rank: notes.txt.")) << job.left_out.at(0);
  EXPECT_EQ(captured_rank(job.files[0].capture), 1);
  std::vector<ImportedStep> steps;
  for (const JobFile& file : job.files) steps.push_back(import_kineto(file.capture, ImportSettings{}));
  ASSERT_TRUE(steps[0].rank);
  const RankCapture& capture = *steps[0].rank;
  ASSERT_EQ(capture.groups.size(), 1u);
  EXPECT_EQ(capture.groups[0].name, "3");
  EXPECT_EQ(capture.groups[0].members, (std::vector<std::uint32_t>{0, 1}));
  ASSERT_EQ(capture.collectives.size(), 4u);
  EXPECT_EQ(capture.collectives[1].sequence, 10);
  EXPECT_EQ(capture.collectives[1].elements, 77);
  EXPECT_EQ(capture.collectives[1].type, DataType::bf16);
  EXPECT_EQ(capture.collectives[1].kind, CollectiveKind::all_reduce);
  const ImportedStep joined = joined_steps(std::move(steps));
  EXPECT_EQ(rendezvous(joined.trace).size(), 4u);
  for (const auto& [number, ops] : rendezvous(joined.trace))
    for (const OpId op : ops) EXPECT_EQ(joined.trace.ops[op].duration, nanoseconds(230'000)) << number;
  EXPECT_EQ(decision(joined, "clocks").covered, 2u) << decision(joined, "clocks").sentence;
}

TEST(RankJoin, ListsOfRanksAreReadAndTruncatedOnesAreNot) {
  EXPECT_EQ(listed_ranks("[0, 1, 5]"), (std::vector<std::uint32_t>{0, 1, 5}));
  EXPECT_EQ(listed_ranks("[5,1]"), (std::vector<std::uint32_t>{1, 5}));
  EXPECT_TRUE(listed_ranks("[0, 1, ..., 63]").empty());
  EXPECT_TRUE(listed_ranks("[1, 1]").empty());
  EXPECT_TRUE(listed_ranks("[-1]").empty());
  EXPECT_TRUE(listed_ranks("").empty());
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
