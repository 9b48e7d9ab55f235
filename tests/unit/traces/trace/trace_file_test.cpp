// Does a trace come back from its file as it was, and does a bad file end in a sentence?
#include "traces/trace/trace_file.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <tuple>

#include "sim/error.h"
#include "sim/trace/ranks.h"
#include "sim/trace/trace_builder.h"
#include "sim/trace/trace_check.h"
#include "tests/support/random_trace.h"
#include "tests/support/scratch_folder.h"
#include "traces/trace/frame_file.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

// A new field of these must go into the file and into the comparisons below.
static_assert(sizeof(Op) == 112 && sizeof(Storage) == 32 && sizeof(Use) == 12 && sizeof(ReplayConstants) == 120);

auto fields(const Op& op) {
  return std::tuple(std::tie(op.kind, op.phase, op.origin, op.wait_for, op.graph_member, op.placed, op.inferred,
                             op.added, op.thread, op.stream, op.name, op.operator_name, op.module, op.host_gap,
                             op.host_cost, op.return_delay, op.duration),
                    std::tie(op.bytes, op.flops, op.waves, op.target, op.source, op.first_use, op.use_count, op.from,
                             op.to, op.group, op.operator_class, op.data_type, op.collective, op.pageable, op.shape,
                             op.kernels, op.framework_calls, op.dispatch, op.error_permille));
}
auto fields(const Storage& s) {
  return std::tie(s.bytes, s.kind, s.place, s.stream, s.label, s.preexisting, s.pinned, s.shape, s.last_referenced);
}
auto fields(const Use& u) { return std::tie(u.storage, u.version, u.access, u.saved); }
auto fields(const Step& s) { return std::tie(s.name, s.first, s.last); }
auto fields(const Stream& s) { return std::tie(s.name, s.device, s.role, s.rank); }
auto fields(const HostThread& t) { return std::tie(t.name, t.rank); }
auto fields(const ProcessGroup& g) { return std::tie(g.name, g.ranks, g.members); }
auto fields(const Rank& r) {
  return std::tie(r.number, r.untracked_bytes, r.reserved_at_start, r.samples_per_step, r.tokens_per_step, r.ranks,
                  r.constants.launch_latency[1], r.constants.stream_gap[1][2], r.constants.graph_gap,
                  r.constants.event_latency, r.constants.launch_queue_depth);
}
auto fields(const Knowledge& k) { return std::tie(k.timing, k.allocations, k.dataflow, k.modules, k.shapes); }

template <class Row>
std::string difference(const char* table, const std::vector<Row>& a, const std::vector<Row>& b) {
  if (a.size() != b.size()) return std::string(table) + " differ in number";
  for (std::size_t i = 0; i < a.size(); ++i)
    if (fields(a[i]) != fields(b[i])) return std::string(table) + " differ at " + std::to_string(i);
  return "";
}

// "" if equal in every field, else where they differ.
std::string difference(const Trace& a, const Trace& b) {
  std::string found = difference("ops", a.ops, b.ops) + difference("uses", a.uses, b.uses) +
                      difference("storages", a.storages, b.storages) + difference("steps", a.steps, b.steps) +
                      difference("streams", a.streams, b.streams) + difference("threads", a.threads, b.threads) +
                      difference("ranks", a.rank_table, b.rank_table) + difference("groups", a.groups, b.groups);
  if (a.strings.size() != b.strings.size()) return found + "strings differ in number";
  for (StringId i = 0; i < a.strings.size(); ++i)
    if (a.strings[i] != b.strings[i]) found += "string " + std::to_string(i) + " differs";
  if (a.shapes.size() != b.shapes.size()) return found + "shapes differ in number";
  for (ShapeId i = 0; i < a.shapes.size(); ++i)
    if (a.shapes[i] != b.shapes[i]) found += "shape " + std::to_string(i) + " differs";
  if (fields(a.knowledge) != fields(b.knowledge)) found += "knowledge differs";
  if (a.job_ranks != b.job_ranks) found += "the job's ranks differ";
  if (std::tie(a.name, a.machine, a.places, a.event_count, a.ranks, a.samples_per_step, a.tokens_per_step,
               a.untracked_bytes, a.reserved_at_start, a.reuse_distance, a.notes) !=
      std::tie(b.name, b.machine, b.places, b.event_count, b.ranks, b.samples_per_step, b.tokens_per_step,
               b.untracked_bytes, b.reserved_at_start, b.reuse_distance, b.notes))
    found += "a single value differs";
  const ReplayConstants &c = a.constants, &d = b.constants;
  for (int i = 0; i < kLaunchKinds; ++i) {
    if (c.launch_latency[i] != d.launch_latency[i]) found += "a launch latency differs";
    for (int k = 0; k < kLaunchKinds; ++k)
      if (c.stream_gap[i][k] != d.stream_gap[i][k]) found += "a stream gap differs";
  }
  if (std::tie(c.graph_gap, c.event_latency, c.launch_queue_depth) !=
      std::tie(d.graph_gap, d.event_latency, d.launch_queue_depth))
    found += "a constant differs";
  return found;
}

std::string error_of(const std::filesystem::path& path) {
  try {
    read_trace(path);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

RC_GTEST_PROP(TraceFile, EveryFieldComesBack, ()) {
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const auto ops = *rc::gen::inRange<std::size_t>(1, 400);
  const Trace trace = random_trace(seed, ops);
  RC_ASSERT(check(trace).empty());
  const ScratchFolder folder;
  write_trace(trace, folder / "a.mwt");
  RC_ASSERT(difference(trace, read_trace(folder / "a.mwt")) == "");
}

TEST(TraceFile, SeveralRanksComeBack) {
  std::vector<RankProgram> ranks = {{2, random_trace(1, 300)}, {5, random_trace(2, 200)}};
  ranks[0].trace.job_ranks = 8;
  ranks[0].trace.groups = {{"dp", 8, {}}, {"tp \xff", 2, {2, 5}}};
  ranks[1].trace.ops[10].error_permille = 1234;
  ranks[1].chunks = {{3, 12, 4, false, false}, {7, 28, 3, false, true}};
  const Trace trace = joined_ranks(std::move(ranks));
  ASSERT_EQ(check(trace), std::vector<std::string>{});
  const ScratchFolder folder;
  write_trace(trace, folder / "a.mwt");
  const Trace read = read_trace(folder / "a.mwt");
  EXPECT_EQ(difference(trace, read), "");
  EXPECT_EQ(read.rank_table.size(), 2u);
  EXPECT_EQ(read.rank_table[1].chunks, trace.rank_table[1].chunks);
  Trace other = trace;
  other.streams.back().rank = 0;
  EXPECT_EQ(difference(trace, other).substr(0, 15), "streams differ ");
}

TEST(TraceFile, TwoProgramsForOneRankAreRefusedWhenTheyAreRead) {
  Trace trace = joined_ranks({{2, random_trace(1, 300)}, {5, random_trace(2, 200)}});
  trace.rank_table[0].stands_for = {3, 4};
  const ScratchFolder folder;
  write_trace(trace, folder / "sound.mwt");
  EXPECT_EQ(read_trace(folder / "sound.mwt").rank_table[0].stands_for, (std::vector<std::uint32_t>{3, 4}));
  trace.rank_table[1].stands_for = {4};
  write_trace(trace, folder / "a.mwt");
  try {
    read_trace(folder / "a.mwt");
    FAIL() << "taken";
  } catch (const InputError& error) {
    const std::string sentence = "Ranks 2 and 5 both stand for rank 4; expected each rank in one program.";
    EXPECT_NE(std::string(error.what()).find(sentence), std::string::npos) << error.what();
  }
}

TEST(TraceFile, RandomTracesUseEveryFieldThatTheFileMustKeep) {
  // Negative control of the property above: a generator that leaves a field at zero would prove nothing.
  const Trace trace = random_trace(5, 5000);
  bool graph = false, placed = false, inferred = false, added = false, pageable = false, delay = false, group = false,
       source = false, module = false, waves = false, flops = false, collective = false, pinned = false, uses = false,
       referenced = false;
  for (const Op& op : trace.ops) {
    graph |= op.graph_member, placed |= op.placed, inferred |= op.inferred, added |= op.added, pageable |= op.pageable;
    delay |= op.return_delay.count()<0, group |= op.group> 0, source |= op.source != kNoOp, module |= op.module > 0;
    waves |= op.waves > 0, flops |= op.flops > 0, collective |= op.collective != CollectiveKind::none,
        uses |= op.use_count > 1;
  }
  for (const Storage& s : trace.storages) pinned |= s.pinned, referenced |= s.last_referenced != kNoOp;
  EXPECT_TRUE(graph && placed && inferred && added && pageable && delay && group && source && module && waves &&
              flops && collective && pinned && uses && referenced);
  Trace other = trace;
  other.ops[77].waves += 1;
  EXPECT_EQ(difference(trace, other), "ops differ at 77");
}

TEST(TraceFile, AnOpMayUseMoreStoragesThanSixteenBitsCount) {
  TraceBuilder b;
  b.trace().knowledge = {true, true, true, false, false};
  b.add_thread("main");
  b.add_stream("compute", StreamRole::compute);
  std::vector<Use> uses;
  for (int i = 0; i < 70'000; ++i)
    uses.push_back({b.add_storage(64, StorageKind::parameter, "hbm", "", true), 0, Access::read});
  Op op;
  op.kind = OpKind::kernel;
  for (int i = 0; i < 3; ++i) b.append(op, uses);
  const Trace trace = std::move(b).finish();
  ASSERT_EQ(check(trace), std::vector<std::string>{});
  const ScratchFolder folder;
  write_trace(trace, folder / "a.mwt");
  const Trace read = read_trace(folder / "a.mwt");
  EXPECT_EQ(difference(trace, read), "");
  EXPECT_EQ(read.uses_of(read.ops[1]).back().storage, 69'999u);
}

TEST(TraceFile, KeepsATraceOfSeveralChunks) {
  const Trace trace = random_trace(1, 200'000);
  const ScratchFolder folder;
  write_trace(trace, folder / "a.mwt");
  EXPECT_EQ(difference(trace, read_trace(folder / "a.mwt")), "");
  EXPECT_LT(std::filesystem::file_size(folder / "a.mwt"), trace.ops.size() * sizeof(Op) / 2);
}

TEST(TraceFile, KeepsAnEmptyTrace) {
  const ScratchFolder folder;
  write_trace(Trace{}, folder / "a.mwt");
  EXPECT_EQ(difference(Trace{}, read_trace(folder / "a.mwt")), "");
}

TEST(TraceFile, KeepsTextThatIsNotUtf8AndVeryLong) {
  TraceBuilder builder;
  builder.add_thread(std::string("a\0b\xff", 4));
  builder.trace().strings.intern(std::string(3'000'000, 'x'));
  builder.trace().strings.intern("\xfe\xff");
  const Trace trace = std::move(builder).finish();
  const ScratchFolder folder;
  write_trace(trace, folder / "a.mwt");
  EXPECT_EQ(difference(trace, read_trace(folder / "a.mwt")), "");
}

TEST(TraceFile, SameTraceSameBytes) {
  const ScratchFolder folder;
  write_trace(random_trace(3, 3000), folder / "a.mwt");
  write_trace(random_trace(3, 3000), folder / "b.mwt");
  EXPECT_EQ(content_of(folder / "a.mwt"), content_of(folder / "b.mwt"));
  write_trace(read_trace(folder / "a.mwt"), folder / "c.mwt");
  EXPECT_EQ(content_of(folder / "a.mwt"), content_of(folder / "c.mwt"));
}

TEST(TraceFile, IsKnownByItsFirstBytes) {
  const ScratchFolder folder;
  write_trace(Trace{}, folder / "a.mwt");
  write_content(folder / "b.json", "{}");
  EXPECT_TRUE(is_trace_file(folder / "a.mwt"));
  EXPECT_FALSE(is_trace_file(folder / "b.json"));
  EXPECT_FALSE(is_trace_file(folder / "absent"));
}

TEST(TraceFile, LeavesNothingBesideAndNothingHalfWritten) {
  const ScratchFolder folder;
  write_trace(random_trace(1, 50), folder / "a.mwt");
  const std::string before = content_of(folder / "a.mwt");
  {
    FrameWriter abandoned(folder / "a.mwt", 1);
    abandoned.append("something");
  }
  EXPECT_EQ(content_of(folder / "a.mwt"), before);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
  EXPECT_THROW(write_trace(Trace{}, folder / "no_such_folder/a.mwt"), UsageError);
}

TEST(TraceFile, SaysWhyAFileIsNoTrace) {
  const ScratchFolder folder;
  write_trace(random_trace(1, 500), folder / "good.mwt");
  const std::string good = content_of(folder / "good.mwt");
  const auto error_with = [&](const std::string& bytes) {
    write_content(folder / "bad.mwt", bytes);
    return error_of(folder / "bad.mwt");
  };
  EXPECT_PRED2(contains, error_of(folder / "absent.mwt"), "absent.mwt: there is no such file; expected a trace file.");
  EXPECT_PRED2(contains, error_of(folder.path()), "this is a folder; expected a trace file.");
  EXPECT_PRED2(contains, error_with(""), "does not start with memwall's mark");
  EXPECT_PRED2(contains, error_with("{\"schemaVersion\": 1, \"traceEvents\": []}"),
               "does not start with memwall's mark");
  EXPECT_PRED2(contains, error_with(good.substr(0, 20)), "ends after 20 bytes");
  EXPECT_PRED2(contains, error_with(good.substr(0, good.size() - 1)), "is truncated");
  EXPECT_PRED2(contains, error_with(good + "x"), "was appended to");
  std::string newer = good;
  newer[8] = 2;
  EXPECT_PRED2(contains, error_with(newer), "has version 2 of the format; this memwall reads up to 1");
  std::string damaged = good;
  damaged[good.size() / 2] = static_cast<char>(damaged[good.size() / 2] ^ 1);
  EXPECT_PRED2(contains, error_with(damaged), "is damaged: its checksum is");
  EXPECT_EQ(error_with(good), "no error");
}

TEST(TraceFile, ATraceThatCannotRunIsRefusedWithTheOpAndTheFile) {
  Trace trace = random_trace(1, 300);
  trace.ops[17].name = 1'000'000;
  const ScratchFolder folder;
  write_trace(trace, folder / "a.mwt");
  EXPECT_PRED2(contains, error_of(folder / "a.mwt"), "Op 17");
  EXPECT_PRED2(contains, error_of(folder / "a.mwt"), "a.mwt");
}

TEST(TraceFile, TimesWhoseSumIsNoNumberAreRefused) {
  Trace trace = random_trace(1, 300);
  trace.ops[17].duration = Duration(std::int64_t{1} << 61);
  trace.ops[18].duration = Duration(std::int64_t{1} << 61);
  const ScratchFolder folder;
  write_trace(trace, folder / "a.mwt");
  EXPECT_PRED2(contains, error_of(folder / "a.mwt"), "beyond all measure");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
