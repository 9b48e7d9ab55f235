// Is what lives at an instant what all residencies say, and does the peak's explanation agree with the one that knows
// the whole run?
#include "gui/model/live_set.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "gui/model/peak_explanation.h"
#include "gui/model/storage_name.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/pieces_trace.h"
#include "tests/support/test_machine.h"
#include "tests/support/tiered_run.h"
#include "traces/figure/axis.h"
#include "traces/run/analysis/peak.h"
#include "traces/run/run_recorder.h"

namespace memwall::gui {
namespace MEMWALL_TEST_FILE {

using WholeRun = memwall::Run;

std::shared_ptr<const WholeRun> sample(Bytes hbm = 0, bool offload = false) {
  GptShape shape;
  shape.layers = 4;
  shape.steps = 2;
  shape.hidden = 64;
  shape.sequence = 32;
  shape.flops_per_second = shape.bytes_per_second = 1e10;
  shape.launch_cost = microseconds(5);
  TieredRunOptions options;
  options.hbm = hbm;
  options.untracked = 100'000;
  if (offload) options.policies = {"offload:what=activations,buffers=1,min_bytes=1"};
  return std::make_shared<const WholeRun>(tiered_run(tiered_trace(gpt_step(shape), options), options));
}

bool says(const std::vector<std::string>& sentences, const std::string& text) {
  return std::any_of(sentences.begin(), sentences.end(),
                     [&](const std::string& s) { return s.find(text) != std::string::npos; });
}
std::string all(const std::vector<std::string>& sentences) {
  std::string text;
  for (const std::string& s : sentences) text += s + "\n";
  return text;
}

TEST(LiveSetTest, HoldsWhatLivesLargestFirst) {
  const auto run = sample(0, true);
  const OpenRun open = opened(run);
  for (const std::uint32_t tier : {0u, 1u})
    for (int tenth = 0; tenth <= 10; ++tenth) {
      const Time time = run->result.end * tenth / 10;
      if (time == run->result.tiers[tier].peak_time) continue;
      const TierLiveSet set = live_set(open, tier, time);
      std::size_t count = 0;
      Bytes sum = tier == 0 ? 100'000 : 0;
      for (const Residency& residency : run->residency)
        if (residency.tier == tier && residency.begin <= time &&
            (time < residency.end || residency.end == run->result.end)) {
          ++count;
          sum += run->trace->storages[residency.storage].bytes;
        }
      EXPECT_EQ(set.rows.size(), count);
      EXPECT_EQ(set.requested, sum);
      EXPECT_EQ(std::accumulate(set.by_kind.begin(), set.by_kind.end(), Bytes{0}), sum);
      EXPECT_TRUE(std::is_sorted(set.rows.begin(), set.rows.end(),
                                 [](const LiveRow& a, const LiveRow& b) { return a.bytes > b.bytes; }));
      // As the last point of the whole run says.
      MemoryPoint last{};
      for (const MemoryPoint& point : run->memory[tier])
        if (point.time <= time) last = point;
      EXPECT_EQ(set.allocated, last.allocated);
      EXPECT_EQ(set.reserved, last.reserved);
      EXPECT_EQ(set.requested, last.requested);
    }
}

TEST(LiveSetTest, AtThePeakItIsThePeak) {
  const auto run = sample();
  const Peak peak = find_peak(*run, 0, 5);
  const TierLiveSet set = live_set(opened(run), 0, peak.time);
  EXPECT_EQ(set.allocated, peak.allocated);
  EXPECT_EQ(set.requested, peak.requested);
  EXPECT_EQ(set.by_kind, peak.by_kind);
  EXPECT_EQ(set.rows.size(), peak.storages);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(set.rows[i].storage, peak.largest[i].storage);
}

TEST(LiveSetTest, StoragesAreNamedAsThePeakNamesThem) {
  const auto run = sample();
  const OpenRun open = opened(run);
  const Peak peak = find_peak(*run, 0, 1'000'000);
  ASSERT_GT(peak.largest.size(), 50u);
  std::size_t made_in_forward = 0;
  for (const PeakStorage& storage : peak.largest) {
    const StorageName name = name_of(open, storage.storage);
    EXPECT_EQ(name.label, storage.label);
    EXPECT_EQ(name.module, storage.module);
    EXPECT_EQ(name.phase, storage.phase);
    made_in_forward += name.phase == Phase::forward ? 1 : 0;
  }
  EXPECT_GT(made_in_forward, 10u);
}

// A trace that knows no dataflow: then the call that allocated a storage made it.
TEST(LiveSetTest, WithoutUsesTheAllocationMadeIt) {
  GptShape shape;
  shape.launch_cost = microseconds(5);
  shape.allocator_cost = nanoseconds(500);
  Trace trace = gpt_step(shape);
  trace.uses.clear();
  trace.knowledge.dataflow = false;
  for (Op& op : trace.ops) op.first_use = op.use_count = 0;
  const auto run = std::make_shared<const WholeRun>(tiered_run(trace, {}));
  const OpenRun open = opened(run);
  std::size_t found = 0;
  for (OpId id = 0; id < run->trace->ops.size(); ++id)
    if (run->trace->ops[id].kind == OpKind::alloc) {
      EXPECT_EQ(maker_of(open, run->trace->ops[id].target), id);
      ++found;
    }
  EXPECT_GT(found, 20u);
}

TEST(LiveSetTest, ThePeakIsExplainedAsTheWholeRunExplainsIt) {
  const auto run = sample();
  const Peak peak = find_peak(*run, 0);
  const PeakExplanation explanation = explain_peak(opened(run), 0);
  EXPECT_EQ(explanation.time, peak.time);
  ASSERT_EQ(explanation.largest.size(), 10u);
  for (std::size_t i = 0; i < 10; ++i) EXPECT_EQ(explanation.largest[i], peak.largest[i].storage);
  const auto size = [](Bytes bytes) { return format_bytes(bytes); };
  const auto& sentences = explanation.sentences;
  EXPECT_TRUE(says(sentences, "hbm holds most at " + format_time(peak.time))) << all(sentences);
  EXPECT_TRUE(says(sentences, size(peak.allocated) + " allocated, in " + std::to_string(peak.storages) + " storages"));
  for (int kind = 1; kind < kStorageKinds; ++kind)
    if (const Bytes bytes = peak.by_kind[static_cast<std::size_t>(kind)]; bytes > 0) {
      EXPECT_TRUE(says(sentences, size(bytes) + " (")) << to_string(static_cast<StorageKind>(kind));
    }
  for (const Phase phase : {Phase::forward, Phase::backward, Phase::optimizer})
    if (const Bytes bytes = peak.by_phase[static_cast<std::size_t>(phase)]; bytes > 0) {
      EXPECT_TRUE(says(sentences, size(bytes) + " (")) << to_string(phase) << all(sentences);
    }
  EXPECT_TRUE(says(sentences, "wait for their backward")) << all(sentences);
  EXPECT_TRUE(says(sentences, "rounding adds " + size(peak.allocated - peak.requested))) << all(sentences);
  EXPECT_TRUE(says(sentences, "It fits: ")) << all(sentences);
}

TEST(LiveSetTest, SaysWhatIsMissing) {
  const Bytes peak = sample()->result.tiers[0].peak_allocated;
  const auto run = sample(peak - 500'000);  // more than any one storage takes
  ASSERT_GT(run->result.tiers[0].missing, 0);
  const auto sentences = explain_peak(opened(run), 0).sentences;
  EXPECT_TRUE(says(sentences, "It does not fit: " + format_bytes(run->result.tiers[0].missing) + " are missing"))
      << all(sentences);
  EXPECT_TRUE(says(sentences, "Without the activations that wait it would fit")) << all(sentences);
  // A tier that nothing uses.
  EXPECT_EQ(explain_peak(opened(run), 3).sentences, std::vector<std::string>{"Nothing is ever held here."});
}

std::string last_sentence(const WholeRun& run) {
  return explain_peak(opened(std::make_shared<const WholeRun>(run)), 0).sentences.back();
}

WholeRun in_two_gigabytes(Bytes request) {
  Machine machine = test_machine();
  machine.tiers[0].capacity = GiB(2);
  return simulate_and_record(pieces_trace(request), machine, {});
}

TEST(LiveSetTest, SaysWhatTheMissingBytesAreCountedFrom) {
  const std::string usable = format_bytes(GiB(2));
  EXPECT_EQ(last_sentence(in_two_gigabytes(MiB(1536))),
            "It does not fit in hbm (" + usable + "): " + format_bytes(MiB(1536)) +
                " are missing in one piece, while enough was free in several: fragmentation.");
  WholeRun large = in_two_gigabytes(GiB(2));
  const TierResult& result = large.result.tiers[0];
  EXPECT_EQ(
      last_sentence(large).find("It does not fit: " + format_bytes(result.missing) + " are missing in hbm, which has " +
                                usable + "; " + format_bytes(result.peak_allocated) + " are in use at the peak."),
      0u)
      << last_sentence(large);
  // An arena that is reserved as a whole.
  large.result.tiers[0].peak_reserved = GiB(5);
  large.result.tiers[0].missing = GiB(3);
  EXPECT_EQ(last_sentence(large), "It does not fit: " + format_bytes(GiB(3)) + " are missing in hbm, which has " +
                                      usable + "; " + format_bytes(GiB(5)) + " are reserved at the peak.");
  large.pager = "lru";
  EXPECT_EQ(last_sentence(large), "It does not fit: the pager cannot make room in hbm, which has " + usable + ".");
}

TEST(LiveSetTest, SaysThatMemoryWasNotRecorded) {
  WholeRun run = *sample();
  run.trace.edit().knowledge.allocations = false;
  EXPECT_EQ(explain_peak(opened(std::make_shared<const WholeRun>(run)), 0).sentences,
            std::vector<std::string>{"Not recorded: the capture does not say what takes memory."});
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall::gui
