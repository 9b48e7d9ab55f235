// Does a run that is read from a file in parts say the same as the whole run in memory, at every place of it?
#include "traces/run/run_source.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <random>
#include <thread>
#include <tuple>

#include <gtest/gtest.h>

#include "sim/error.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/varied_runs.h"
#include "traces/run/analysis/summary.h"
#include "traces/run/file/run_file.h"

#if defined(__SANITIZE_ADDRESS__)
// HDF5 1.10.8 does not free an object header's chunk whose bytes it cannot read (H5O__chunk_deserialize):
// NamesDamagedBytes refuses such a read. Its library has no frame pointers: only the innermost function is seen.
// CoinUtils 2.11 loses two arrays of a presolve (implied_free_action).
// LeakSanitizer asks for this function by its name.
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() { return "leak:H5FL__malloc\nleak:libCoinUtils\n"; }
#endif

namespace memwall {
namespace MEMWALL_TEST_FILE {

using RunPointer = std::shared_ptr<const memwall::Run>;

bool same(const LaneCell& a, const LaneCell& b) {
  return a.bucket == b.bucket && a.busy == b.busy && a.begins == b.begins && a.category == b.category &&
         a.stall == b.stall && a.before == b.before;
}
bool same(const LaneBlock& a, const LaneBlock& b) {
  return a.block == b.block && a.begin == b.begin && a.end == b.end && a.spans == b.spans;
}
bool same(const MemoryHigh& a, const MemoryHigh& b) {
  return a.time == b.time && a.allocated == b.allocated && a.requested == b.requested && a.reserved == b.reserved;
}
bool same(const RateHigh& a, const RateHigh& b) { return a.time == b.time && a.mean == b.mean && a.high == b.high; }
bool same(const MoveRecord& a, const MoveRecord& b) {
  return a.start == b.start && a.end == b.end && a.storage == b.storage && a.from == b.from && a.to == b.to &&
         a.bytes == b.bytes && a.for_op == b.for_op;
}
bool same(const Residency& a, const Residency& b) {
  return a.storage == b.storage && a.tier == b.tier && a.begin == b.begin && a.end == b.end;
}
bool same(const StorageUse& a, const StorageUse& b) {
  return a.op == b.op && a.version == b.version && a.access == b.access;
}
bool same(const Use& a, const Use& b) {
  return a.storage == b.storage && a.version == b.version && a.access == b.access;
}

template <class T>
void expect_same(const std::vector<T>& found, const std::vector<T>& expected, const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  for (std::size_t i = 0; i < found.size(); ++i) ASSERT_TRUE(same(found[i], expected[i])) << what << ", entry " << i;
}

void expect_same_outline(const RunOutline& a, const RunOutline& b) {
  EXPECT_EQ(a.ops, b.ops);
  EXPECT_EQ(a.storages, b.storages);
  EXPECT_EQ(a.residencies, b.residencies);
  EXPECT_EQ(a.uses, b.uses);
  EXPECT_EQ(a.moves, b.moves);
  EXPECT_EQ(a.strings, b.strings);
  ASSERT_EQ(a.steps.size(), b.steps.size());
  for (std::size_t i = 0; i < a.steps.size(); ++i) {
    EXPECT_EQ(a.steps[i].name, b.steps[i].name);
    EXPECT_TRUE(a.steps[i].begin == b.steps[i].begin && a.steps[i].end == b.steps[i].end &&
                a.steps[i].rank == b.steps[i].rank);
  }
  ASSERT_EQ(a.lanes.size(), b.lanes.size());
  for (std::size_t i = 0; i < a.lanes.size(); ++i) {
    const RunLane &x = a.lanes[i], &y = b.lanes[i];
    EXPECT_EQ(x.name, y.name);
    EXPECT_TRUE(x.kind == y.kind && x.index == y.index && x.rank == y.rank && x.from == y.from && x.to == y.to &&
                x.spans == y.spans && x.base_log2 == y.base_log2 && x.levels == y.levels && x.engine == y.engine &&
                x.device == y.device)
        << x.name;
    expect_same(a.blocks[i], b.blocks[i], x.name);
  }
  EXPECT_EQ(a.run.machine.name, b.run.machine.name);
  EXPECT_EQ(a.run.result.end, b.run.result.end);
  EXPECT_EQ(a.run.trace->places, b.run.trace->places);
  EXPECT_EQ(a.run.result.tiers.size(), b.run.result.tiers.size());
  EXPECT_TRUE(a.run.trace->ops.empty() && a.run.residency.empty() && a.run.memory.empty() && a.run.at_peak.empty());
  EXPECT_TRUE(b.run.trace->ops.empty() && b.run.residency.empty() && b.run.memory.empty() && b.run.at_peak.empty());
}

void expect_same_spans(const SpanBlock& a, const SpanBlock& b) {
  EXPECT_EQ(a.first, b.first);
  EXPECT_EQ(a.size(), b.size());
  EXPECT_TRUE(a.call_begin == b.call_begin && a.begin == b.begin && a.call_time == b.call_time && a.time == b.time);
  EXPECT_TRUE(a.name == b.name && a.module == b.module && a.thread == b.thread && a.stream == b.stream);
  EXPECT_TRUE(a.kind == b.kind && a.phase == b.phase && a.engine == b.engine);
  EXPECT_TRUE(a.call_reason == b.call_reason && a.return_reason == b.return_reason && a.reason == b.reason);
}

void expect_same_op(const OpDetail& a, const OpDetail& b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.operator_name, b.operator_name);
  EXPECT_EQ(a.module, b.module);
  expect_same(a.uses, b.uses, a.name);
  EXPECT_TRUE(a.id == b.id && a.op.kind == b.op.kind && a.op.duration == b.op.duration && a.op.bytes == b.op.bytes &&
              a.op.target == b.op.target && a.op.flops == b.op.flops && a.op.waves == b.op.waves);
  EXPECT_TRUE(a.record.host_start == b.record.host_start && a.record.host_end == b.record.host_end &&
              a.record.start == b.record.start && a.record.end == b.record.end && a.record.peer == b.record.peer &&
              a.record.device_cause == b.record.device_cause && a.record.host_end_cause == b.record.host_end_cause);
}

void expect_same_time_line(const RunSource& file, const RunSource& reference, std::mt19937_64& random) {
  const RunOutline& outline = reference.outline();
  const auto end = static_cast<std::uint64_t>(outline.run.result.end.count());
  for (std::uint32_t lane = 0; lane < outline.lanes.size(); ++lane)
    for (std::uint8_t level = 0; level < outline.lanes[lane].levels; ++level) {
      const std::uint64_t buckets = (end >> (outline.lanes[lane].base_log2 + level)) + 1;
      expect_same(file.cells(lane, level, 0, buckets), reference.cells(lane, level, 0, buckets), "all cells");
      const std::uint64_t first = random() % buckets, last = first + random() % (buckets - first + 3);
      expect_same(file.cells(lane, level, first, last), reference.cells(lane, level, first, last), "cells");
    }
  for (std::uint32_t block = 0; block * std::uint64_t{kSpanBlock} < outline.ops; ++block)
    expect_same_spans(file.spans(block), reference.spans(block));
  for (int i = 0; i < 40; ++i) {
    const auto a = static_cast<std::int64_t>(random() % (end + 1)), b = static_cast<std::int64_t>(random() % (end + 1));
    const Time from(std::min(a, b)), to(std::max(a, b));
    const std::size_t most = std::size_t{1} << (random() % 10);
    for (std::uint32_t t = 0; t < outline.run.machine.tiers.size(); ++t)
      expect_same(file.memory(t, from, to, most), reference.memory(t, from, to, most), "memory");
    for (std::uint32_t l = 0; l < outline.run.machine.links.size(); ++l)
      expect_same(file.link_rates(l, from, to, most), reference.link_rates(l, from, to, most), "rates");
    const std::uint64_t first = random() % (outline.moves + 2), count = random() % (outline.moves + 2);
    expect_same(file.moves(first, count), reference.moves(first, count), "moves");
  }
}

void expect_same_details(const RunSource& file, const RunSource& reference, std::mt19937_64& random) {
  const RunOutline& outline = reference.outline();
  const StorageColumns a = file.storages({}), b = reference.storages({});
  EXPECT_TRUE(a.bytes == b.bytes && a.kind == b.kind && a.label == b.label && a.preexisting == b.preexisting);
  expect_same(file.residency({}), reference.residency({}), "residency");
  EXPECT_EQ(file.texts({}), reference.texts({}));
  for (std::uint32_t t = 0; t < outline.run.machine.tiers.size(); ++t) EXPECT_EQ(file.at_peak(t), reference.at_peak(t));
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(outline.ops, 60); ++i) {
    const auto id = static_cast<OpId>(outline.ops <= 60 ? i : random() % outline.ops);
    expect_same_op(file.op(id), reference.op(id));
    EXPECT_EQ(file.followers(id, 100), reference.followers(id, 100));
    EXPECT_EQ(file.followers(id, 1), reference.followers(id, 1));
  }
  for (int i = 0; i < 20 && outline.storages > 0; ++i) {
    const auto storage = static_cast<StorageId>(random() % outline.storages);
    expect_same(file.uses_of(storage, 1000), reference.uses_of(storage, 1000), "uses");
    expect_same(file.uses_of(storage, 2), reference.uses_of(storage, 2), "two uses");
  }
  for (int i = 0; i < 10; ++i) {
    std::vector<bool> wanted(outline.strings);
    for (std::size_t s = 0; s < wanted.size(); ++s) wanted[s] = random() % 4 == 0;
    EXPECT_EQ(file.ops_with(wanted, 100000, {}), reference.ops_with(wanted, 100000, {}));
    EXPECT_EQ(file.ops_with(wanted, 3, {}), reference.ops_with(wanted, 3, {}));
    const auto id = static_cast<StringId>(random() % outline.strings);
    EXPECT_EQ(file.text(id), reference.text(id));
  }
  EXPECT_THROW(file.op(static_cast<OpId>(outline.ops)), InputError);
  EXPECT_THROW(file.text(static_cast<StringId>(outline.strings)), InputError);
  EXPECT_TRUE(file.uses_of(static_cast<StorageId>(outline.storages), 10).empty());
  EXPECT_EQ(to_json(summarize(*file.whole({}))), to_json(summarize(*reference.whole({}))));
}

TEST(RunSource, FromAFileSaysWhatTheRunInMemorySays) {
  const ScratchFolder folder;
  std::mt19937_64 random(1);
  for (NamedRun& named : varied_runs()) {
    SCOPED_TRACE(named.name);
    const auto run = std::make_shared<const memwall::Run>(std::move(named.run));
    write_run(*run, folder / "run.h5");
    const auto file = open_run(folder / "run.h5"), reference = source_of(run);
    expect_same_outline(file->outline(), reference->outline());
    expect_same_time_line(*file, *reference, random);
    expect_same_details(*file, *reference, random);
  }
}

// Selections against every point: what is covered, that highs are kept, how many there are.
template <class High, class Points, class Value>
void expect_covers(const std::vector<High>& found, const Points& points, Time begin, Time end, std::size_t most,
                   Value value) {
  ASSERT_FALSE(found.empty());
  EXPECT_LE(found.front().time, std::max(begin, points.front().time));
  EXPECT_LE(found.size(), 2 * most + 1);
  double high = 0, within = 0;
  std::size_t count = 0;
  for (const High& one : found) high = std::max(high, value(one));
  for (std::size_t i = 0; i < points.size(); ++i) {
    const Time until = i + 1 < points.size() ? points[i + 1].time : kNever;
    if (points[i].time > end || (until <= begin && points[i].time < begin)) continue;
    within = std::max(within, value(points[i]));
    ++count;
  }
  EXPECT_GE(high, within);
  EXPECT_GE(found.size(), std::min(count, most / 2));
  if (count <= most) {
    EXPECT_DOUBLE_EQ(high, within);
  }
}

TEST(RunSource, SelectsHighsThatCoverTheRange) {
  const ScratchFolder folder;
  const memwall::Run run = gpt_run(700, 1);
  write_run(run, folder / "run.h5");
  const auto file = open_run(folder / "run.h5");
  ASSERT_GT(run.memory[0].size(), 10000u);
  std::mt19937_64 random(3);
  const auto length = static_cast<std::uint64_t>(run.result.end.count());
  for (int i = 0; i < 200; ++i) {
    const auto begin = static_cast<std::int64_t>(random() % length);
    const auto end = begin + static_cast<std::int64_t>(random() % (length - static_cast<std::uint64_t>(begin)));
    const std::size_t most = 1 + random() % 300;
    expect_covers(file->memory(0, Time(begin), Time(end), most), run.memory[0], Time(begin), Time(end), most,
                  [](const auto& p) { return static_cast<double>(p.allocated); });
    const auto rates = file->link_rates(0, Time(begin), Time(end), most);
    for (const RateHigh& rate : rates) EXPECT_LE(rate.mean, rate.high * (1 + 1e-12));
  }
  // The mean of the whole is what the link carried.
  double carried = 0;
  const auto& rates = run.link_rates[0];
  for (std::size_t i = 0; i < rates.size(); ++i)
    carried += rates[i].bytes_per_second *
               to_seconds((i + 1 < rates.size() ? rates[i + 1].time : run.result.end) - rates[i].time);
  const auto all = file->link_rates(0, Time{}, run.result.end, 1);
  double summed = 0;
  for (std::size_t i = 0; i < all.size(); ++i)
    summed += all[i].mean * to_seconds((i + 1 < all.size() ? all[i + 1].time : run.result.end) - all[i].time);
  EXPECT_NEAR(summed, carried, 1e-6 * carried);
}

TEST(RunSource, ReadsFromSeveralThreads) {
  const ScratchFolder folder;
  const auto run = std::make_shared<const memwall::Run>(gpt_run(300, 1));
  write_run(*run, folder / "run.h5");
  const std::shared_ptr<const RunSource> file = open_run(folder / "run.h5"), reference = source_of(run);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::mt19937_64 random(t);
      for (int i = 0; i < 60; ++i) {
        const auto id = static_cast<OpId>(random() % file->outline().ops);
        wrong += file->op(id).name != reference->op(id).name;
        wrong += file->spans(id / kSpanBlock).begin != reference->spans(id / kSpanBlock).begin;
        if (i % 20 == 0) wrong += file->whole({})->trace->ops.size() != file->outline().ops;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(RunSource, StopsWhereItIsTold) {
  const ScratchFolder folder;
  write_run(gpt_run(200, 1), folder / "run.h5");
  const LoadProgress stop = [](double) { return false; };
  EXPECT_THROW(open_run(folder / "run.h5", stop), LoadCancelled);
  const auto file = open_run(folder / "run.h5");
  EXPECT_THROW(file->whole(stop), LoadCancelled);
  EXPECT_THROW(file->storages(stop), LoadCancelled);
  EXPECT_THROW(file->ops_with(std::vector<bool>(10, true), 10, stop), LoadCancelled);
  double last = 0;
  int calls = 0;
  file->whole([&](double share) {
    EXPECT_GE(share, last);
    EXPECT_LE(share, 1);
    last = share;
    return ++calls > 0;
  });
  EXPECT_GT(calls, 3);
  EXPECT_GT(last, 0.9);
}

// Damage is found before HDF5 sees it, wherever it lies and whenever it is read; the sentence names the place.
TEST(RunSource, NamesDamagedBytesWhenTheyAreRead) {
  const ScratchFolder folder;
  write_run(gpt_run(2500, 1), folder / "run.h5");
  std::string bytes = content_of(folder / "run.h5");
  ASSERT_GT(bytes.size(), std::size_t{2} << 20);
  std::mt19937_64 random(5);
  int late = 0;
  for (int i = 0; i < 8; ++i) {
    std::string damaged = bytes;
    const std::size_t at = 4096 + random() % (bytes.size() - 4096);
    damaged[at] = static_cast<char>(damaged[at] ^ 4);
    write_content(folder / "damaged.h5", damaged);
    bool opened = false;
    try {
      const auto file = open_run(folder / "damaged.h5");
      opened = true;
      for (std::uint32_t b = 0; b * std::uint64_t{kSpanBlock} < file->outline().ops; ++b) file->spans(b);
      file->whole({});
      // What nobody read is what nobody needs.
    } catch (const InputError& error) {
      late += opened;
      EXPECT_NE(std::string(error.what()).find("does not match; it is damaged"), std::string::npos) << error.what();
    }
    EXPECT_THROW(read_run(folder / "damaged.h5"), InputError) << at;
  }
  EXPECT_GT(late, 0);
}

// The checksums are right, the numbers are not: whoever asks for them is told, others are not bothered.
TEST(RunSource, RefusesNumbersThatPointNowhere) {
  const ScratchFolder folder;
  using Wreck = std::function<void(memwall::Run&)>;
  using Question = std::function<void(const RunSource&)>;
  const auto last = [](auto& rows) -> auto& { return rows.back(); };
  const std::vector<std::tuple<std::string, Wreck, Question>> cases = {
      {"name", [&](auto& r) { last(r.trace.edit().ops).name = 999999; }, [](const auto& s) { s.spans(0); }},
      {"module", [&](auto& r) { last(r.trace.edit().ops).module = 999999; }, [](const auto& s) { s.spans(0); }},
      {"operator", [&](auto& r) { last(r.trace.edit().ops).operator_name = 999999; }, [](const auto& s) { s.spans(0); }},
      {"first_use", [&](auto& r) { last(r.trace.edit().ops).first_use = 999999; },
       [](const auto& s) { s.op(static_cast<OpId>(s.outline().ops - 1)); }},
      {"return_cause", [&](auto& r) { last(r.result.records).host_end_cause = 999999; },
       [](const auto& s) { s.op(static_cast<OpId>(s.outline().ops - 1)); }},
      {"label", [&](auto& r) { last(r.trace.edit().storages).label = 999999; }, [](const auto& s) { s.storages({}); }},
      {"bytes", [&](auto& r) { last(r.trace.edit().storages).bytes = -5; }, [](const auto& s) { s.storages({}); }},
      {"residency/storage", [&](auto& r) { last(r.residency).storage = 999999; },
       [](const auto& s) { s.residency({}); }},
      {"residency/tier", [&](auto& r) { last(r.residency).tier = 200; }, [](const auto& s) { s.residency({}); }},
      {"residency/begin_ps", [&](auto& r) { last(r.residency).end += r.result.end; },
       [](const auto& s) { s.residency({}); }},
      {"at_peak", [&](auto& r) { last(r.at_peak[0]) = 999999; }, [](const auto& s) { s.at_peak(0); }},
      {"memory/0", [&](auto& r) { last(r.memory[0]).time = r.result.end + Duration(1); },
       [](const auto& s) { s.memory(0, Time{}, s.outline().run.result.end, 100000); }},
      {"uses/storage", [&](auto& r) { last(r.trace.edit().uses).storage = 999999; }, [](const auto& s) { s.whole({}); }},
  };
  for (const auto& [name, wreck, question] : cases) {
    memwall::Run run = gpt_run(2);
    wreck(run);
    write_run(run, folder / "run.h5");
    const auto file = open_run(folder / "run.h5");
    std::string said = "nothing";
    try {
      question(*file);
    } catch (const InputError& error) {
      said = error.what();
    }
    EXPECT_NE(said.find(name), std::string::npos) << name << ": said " << said;
  }
}

TEST(RunSource, RefusesAFileThatIsCutOffWhileItIsOpen) {
  const ScratchFolder folder;
  write_run(gpt_run(2500, 1), folder / "run.h5");
  const auto file = open_run(folder / "run.h5");
  std::filesystem::resize_file(folder / "run.h5", 1 << 20);
  EXPECT_THROW(file->whole({}), InputError);
}

// Outline, small levels, and what HDF5 unpacked.
TEST(RunSource, KeepsLittleInMemory) {
  const ScratchFolder folder;
  write_run(gpt_run(2500, 1), folder / "run.h5");
  const auto file = open_run(folder / "run.h5");
  file->spans(1);
  file->op(20000);
  EXPECT_GT(file->resident_bytes(), 1000u);
  EXPECT_LT(file->resident_bytes(), 60 * file->outline().ops);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
