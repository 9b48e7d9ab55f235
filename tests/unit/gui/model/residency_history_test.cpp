// Is memory by kind the one that the whole run gives, at every instant and in every piece of the screen, and is what
// lives where the same as a look at all residencies?
#include "gui/model/residency_history.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "gui/model/instant_order.h"
#include "sim/error.h"
#include "sim/machine/rank_machine.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/tiered_run.h"
#include "traces/run/analysis/device_occupancy.h"

namespace memwall::gui {
namespace MEMWALL_TEST_FILE {

Bytes sum(const KindBytes& bytes) { return std::accumulate(bytes.begin(), bytes.end(), Bytes{0}); }

// Every state that a tier was in, as the simulation went through them.
class Truth final : public Observer {
 public:
  Truth(const Trace& trace, const Run& outline) : storages_(trace.storages), states_(outline.machine.tiers.size()) {
    for (auto& states : states_) states.emplace_back();
    states_[0][0].bytes[0] = trace.untracked_bytes;
  }
  void on_residency(Time time, StorageId storage, int tier, bool begins) override {
    auto& states = states_[static_cast<std::size_t>(tier)];
    states.push_back(states.back());
    states.back().time = time;
    const Storage& s = storages_[storage];
    states.back().bytes[static_cast<std::size_t>(s.kind)] += begins ? s.bytes : -s.bytes;
  }
  std::size_t states_within(std::uint32_t tier, Time begin, Time end) const {
    return static_cast<std::size_t>(std::count_if(states_[tier].begin(), states_[tier].end(),
                                                  [&](const KindHigh& s) { return begin <= s.time && s.time <= end; }));
  }
  // The largest sum of a range, with what it begins with.
  Bytes high(std::uint32_t tier, Time begin, Time end, bool closed) const {
    Bytes before = 0, most = 0;
    for (const KindHigh& state : states_[tier])
      if (state.time < begin)
        before = sum(state.bytes);
      else if (state.time < end || (closed && state.time == end))
        most = std::max(most, sum(state.bytes));
    return std::max(before, most);
  }

 private:
  std::vector<Storage> storages_;
  std::vector<std::vector<KindHigh>> states_;
};

struct Recorded {
  std::shared_ptr<const Run> run;
  std::shared_ptr<Truth> truth;
  std::shared_ptr<const ResidencyHistory> history;
  std::size_t tiers() const { return run->machine.tiers.size(); }
};

Recorded record(const Trace& base, TieredRunOptions options) {
  Recorded recorded;
  Trace trace = tiered_trace(base, options);
  Run outline;
  outline.machine.tiers.resize(4);
  recorded.truth = std::make_shared<Truth>(trace, outline);
  options.observer = recorded.truth.get();
  recorded.run = std::make_shared<const Run>(tiered_run(std::move(trace), options));
  recorded.history = ResidencyHistory::load(*source_of(recorded.run), {});
  return recorded;
}

// Small steps: everything at one instant; calls that cost something; offload, a pager under pressure.
std::vector<Recorded> samples() {
  GptShape at_once;
  GptShape timed = at_once;
  timed.layers = 4;
  timed.steps = 2;
  timed.launch_cost = microseconds(5);
  GptShape slow = timed;
  slow.hidden = 64;
  slow.sequence = 32;
  slow.flops_per_second = slow.bytes_per_second = 1e10;
  slow.allocator_cost = nanoseconds(300);
  std::vector<Recorded> all;
  all.push_back(record(gpt_step(at_once), {}));
  all.push_back(record(gpt_step(timed), {.untracked = 12345}));
  all.push_back(record(gpt_step(timed), {.allocator = "ideal"}));
  all.push_back(record(gpt_step(slow), {.policies = {"offload:what=activations,buffers=1,min_bytes=1"}}));
  TieredRunOptions tight{.allocator = "ideal"};
  tight.hbm = tiered_run(gpt_step(slow), tight).result.tiers[0].peak_allocated * 7 / 10;
  tight.pager = "lru";
  all.push_back(record(gpt_step(slow), tight));
  EXPECT_GT(all.back().run->result.moves.size(), 10u);
  return all;
}

TEST(ResidencyHistory, KnowsMemoryByKindAtEveryInstant) {
  for (const Recorded& sample : samples())
    for (std::size_t tier = 0; tier < sample.tiers(); ++tier) {
      const std::vector<KindPoint> points = memory_by_kind(*sample.run, static_cast<int>(tier));
      for (std::size_t i = 0; i < points.size(); ++i) {
        const KindBytes at = sample.history->by_kind(static_cast<std::uint32_t>(tier), points[i].time);
        for (int kind = 0; kind < kStorageKinds; ++kind)
          ASSERT_EQ(at[static_cast<std::size_t>(kind)], points[i].by_kind[kind])
              << tier << " " << points[i].time.count();
        // Until just before the next.
        if (i + 1 < points.size()) {
          const KindBytes before =
              sample.history->by_kind(static_cast<std::uint32_t>(tier), points[i + 1].time - picoseconds(1));
          ASSERT_EQ(sum(before), sum(at));
        }
      }
    }
}

TEST(ResidencyHistory, HighsOfAnyPiecesAreTheTrueOnes) {
  std::mt19937_64 random(7);
  std::size_t coarse = 0;
  for (const Recorded& sample : samples())
    for (int round = 0; round < 60; ++round) {
      const std::int64_t end = sample.run->result.end.count();
      std::uniform_int_distribution<std::int64_t> instant(0, end);
      TimeRange range =
          round == 0 ? TimeRange{Time{}, Time(end)} : range_between(Time(instant(random)), Time(instant(random)));
      if (round % 4 == 1) range.end = range.begin + Duration(1000);
      const std::size_t pieces = std::size_t{1} + static_cast<std::size_t>(random() % 40);
      const auto tier = static_cast<std::uint32_t>(round % 2);
      const std::vector<KindHigh> highs = sample.history->highs(tier, range, pieces);
      ASSERT_EQ(highs.size(), pieces);
      const double step = static_cast<double>(range.length().count()) / static_cast<double>(pieces);
      for (std::size_t piece = 0; piece < pieces; ++piece) {
        const auto at = [&](std::size_t i) {
          return range.begin + Duration(static_cast<std::int64_t>(step * static_cast<double>(i)));
        };
        const bool last = piece + 1 == pieces;
        const Time from = at(piece), to = last ? range.end : at(piece + 1);
        const Bytes expected = sample.truth->high(tier, from, to, last);
        if (sample.truth->states_within(tier, from, to) < TierChanges::kCoarse * TierChanges::kCheckpoint) {
          ASSERT_EQ(sum(highs[piece].bytes), expected) << "piece " << piece << " of " << pieces;
        } else {
          // Coarse: no less, and no more than ever.
          ++coarse;
          ASSERT_GE(sum(highs[piece].bytes), expected);
          ASSERT_LE(sum(highs[piece].bytes), sum(sample.history->highest(tier).bytes));
        }

        EXPECT_GE(highs[piece].time, from);
        EXPECT_LE(highs[piece].time, to);
        for (const Bytes bytes : highs[piece].bytes) EXPECT_GE(bytes, 0);
      }
    }
  EXPECT_GT(coarse, 10u);
}

TEST(ResidencyHistory, TheHighestStackIsThePeakKindByKind) {
  for (const Recorded& sample : samples())
    for (std::size_t tier = 0; tier < sample.tiers(); ++tier) {
      const TierResult& result = sample.run->result.tiers[tier];
      // Where requested and allocated bytes are highest at the same instant.
      const KindHigh high = sample.history->highest(static_cast<std::uint32_t>(tier));
      Bytes at_peak = 0;
      for (const Bytes bytes : result.peak_by_kind) at_peak += bytes;
      EXPECT_GE(sum(high.bytes), at_peak);
      if (sum(high.bytes) != at_peak || high.time != result.peak_time) continue;
      for (int kind = 0; kind < kStorageKinds; ++kind)
        EXPECT_EQ(high.bytes[static_cast<std::size_t>(kind)], result.peak_by_kind[kind]) << "tier " << tier;
    }
}

TEST(ResidencyHistory, FindsWhatLivesAtAnInstantAndTheLifeOfAStorage) {
  std::mt19937_64 random(11);
  for (const Recorded& sample : samples()) {
    const auto& residencies = sample.history->residencies();
    const Time end = sample.run->result.end;
    std::vector<Time> instants{Time{}, end, end - picoseconds(1)};
    for (int i = 0; i < 100; ++i) {
      const Residency& residency = residencies[random() % residencies.size()];
      instants.insert(instants.end(), {residency.begin, residency.end, residency.begin + (residency.end - residency.begin) / 2});
    }
    for (const Time time : instants)
      for (std::uint32_t tier = 0; tier < sample.tiers(); ++tier) {
        std::vector<std::uint32_t> expected;
        Bytes bytes = sample.history->untracked(tier);
        for (std::uint32_t row = 0; row < residencies.size(); ++row)
          if (residencies[row].tier == tier && residencies[row].begin <= time && (time < residencies[row].end || residencies[row].end == end)) {
            expected.push_back(row);
            bytes += sample.history->storages().bytes[residencies[row].storage];
          }
        ASSERT_EQ(sample.history->alive(tier, time), expected);
        ASSERT_EQ(sum(sample.history->by_kind(tier, time)), bytes);
      }
    for (StorageId storage = 0; storage < sample.run->trace->storages.size(); ++storage) {
      std::vector<std::uint32_t> expected;
      for (std::uint32_t row = 0; row < residencies.size(); ++row)
        if (residencies[row].storage == storage) expected.push_back(row);
      ASSERT_EQ(sample.history->life(storage), expected);
    }
  }
}

// Storages of 40, 10, 30, 30 bytes; the first two live, then one instant: -40 +30 -10 +30 -30.
TEST(ResidencyHistory, AnInstantIsPutInOrderByTheBytesThatWereAskedFor) {
  StorageColumns storages;
  storages.bytes = {40, 10, 30, 30};
  storages.kind.assign(4, StorageKind::activation);
  const Time now = microseconds(5);
  const std::vector<Residency> residencies = {
      {0, 0, Time{}, now}, {1, 0, Time{}, now}, {2, 0, now, now}, {3, 0, now, microseconds(9)}};
  const ResidencyColumns columns{storages, residencies, microseconds(10)};
  const std::vector<std::uint32_t> begins{2, 3}, ends{0, 1, 2};
  const std::vector<Bytes> requested{50, 10, 40, 30, 60, 30};
  const std::vector<TierChange> order = order_within(columns, {begins, ends}, requested, std::vector<bool>(4));
  std::string text;
  for (const TierChange& change : order) text += (change.ends() ? " -" : " +") + std::to_string(change.row());
  EXPECT_EQ(text, " -0 +2 -1 +3 -2");
  // Without points: begins first, as the peak of an instant is defined.
  text.clear();
  for (const TierChange& change : order_within(columns, {begins, ends}, {}, std::vector<bool>(4)))
    text += (change.ends() ? " -" : " +") + std::to_string(change.row());
  EXPECT_EQ(text, " +2 +3 -1 -2 -0");
}

TEST(ResidencyHistory, CanBeCancelledAndSaysHowFarItIs) {
  const auto run = std::make_shared<const memwall::Run>(tiered_run(gpt_step({}), {}));
  const auto source = source_of(run);
  double last = -1;
  ResidencyHistory::load(*source, [&](double done) {
    EXPECT_GE(done, last);
    EXPECT_LE(done, 1.0);
    last = done;
    return true;
  });
  EXPECT_EQ(last, 1.0);
  EXPECT_THROW(ResidencyHistory::load(*source, [](double) { return false; }), LoadCancelled);
  EXPECT_THROW(ResidencyHistory::load(*source, [](double done) { return done < 0.6; }), LoadCancelled);
}

TEST(ResidencyHistory, RefusesStaysOfWhatIsNotThere) {
  const auto refusal = [](const std::function<void(memwall::Run&)>& damage) -> std::string {
    memwall::Run run = tiered_run(gpt_step({}), {});
    damage(run);
    try {
      ResidencyHistory::load(*source_of(std::make_shared<const memwall::Run>(std::move(run))), {});
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(refusal([](memwall::Run& run) { run.residency[3].tier = 9; }).find("is in tier 9; expected one below 4"),
            std::string::npos);
  EXPECT_NE(refusal([](memwall::Run& run) { run.residency[3].storage = 999999; }).find("storage 999999; expected"),
            std::string::npos);
  EXPECT_NE(refusal([](memwall::Run& run) { run.residency[3].end = Time(-5); }).find("ends before it begins"),
            std::string::npos);
  EXPECT_NE(refusal([](memwall::Run& run) {
              run.residency[0].begin = run.residency[0].end = run.result.end;
            }).find("begins before"),
            std::string::npos);
}

TEST(ResidencyHistory, OnTheDevicesClockIsWhatTheWholeRunGives) {
  GptShape shape;
  shape.layers = 3;
  shape.steps = 2;
  shape.launch_cost = nanoseconds(20);
  for (const bool paged : {false, true}) {
    const auto run = paged ? paged_run() : std::make_shared<const memwall::Run>(tiered_run(gpt_step(shape), {}));
    const auto history = ResidencyHistory::load_on_device(*source_of(run), device_residency(*run), {});
    const std::vector<DevicePeak> peaks = device_peaks(*run);
    for (std::uint32_t tier = 0; tier < run->machine.tiers.size(); ++tier) {
      for (const KindPoint& point : device_memory_by_kind(*run, static_cast<int>(tier))) {
        const KindBytes bytes = history->by_kind(tier, point.time);
        EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), std::begin(point.by_kind))) << tier;
      }
      const KindHigh high = history->highest(tier);
      EXPECT_EQ(sum(high.bytes), peaks[tier].bytes) << tier;
      EXPECT_EQ(high.time, peaks[tier].bytes > 0 ? peaks[tier].time : high.time) << tier;
    }
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall::gui
