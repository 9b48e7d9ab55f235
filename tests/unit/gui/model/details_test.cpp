// Do the details of ops and storages say what the whole run says, and does every line that names one lead there?
#include "gui/model/details.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "gui/model/detail_text.h"
#include "gui/model/run_analysis.h"
#include "sim/human_text.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/tiered_run.h"
#include "traces/figure/axis.h"

namespace memwall::gui {
namespace MEMWALL_TEST_FILE {

using WholeRun = memwall::Run;

std::shared_ptr<const WholeRun> sample() {
  GptShape shape;
  shape.layers = 3;
  shape.hidden = 64;
  shape.sequence = 32;
  shape.flops_per_second = shape.bytes_per_second = 1e11;
  shape.launch_cost = microseconds(5);
  TieredRunOptions options;
  options.policies = {"offload:what=activations,buffers=1,min_bytes=1"};
  return std::make_shared<const WholeRun>(tiered_run(tiered_trace(gpt_step(shape), options), options));
}

const DetailSection* section(const std::vector<DetailSection>& sections, const std::string& title) {
  for (const DetailSection& s : sections)
    if (s.title == title) return &s;
  return nullptr;
}
std::size_t count(const DetailSection* s, const std::string& name) {
  if (!s) return 0;
  return static_cast<std::size_t>(
      std::count_if(s->lines.begin(), s->lines.end(), [&](const DetailLine& l) { return l.name == name; }));
}

TEST(Details, OfEveryOpAgreeWithItsRecord) {
  const auto run = sample();
  const OpenRun open = opened(run);
  std::size_t copies = 0, rates = 0;
  OpId some_copy = 0;
  for (OpId id = 0; id < run->trace->ops.size(); ++id) {
    const Op& op = run->trace->ops[id];
    const OpRecord& record = run->result.records[id];
    const auto sections = details_of(open, OpRef{0, id, false});
    const std::string text = to_text(sections);
    EXPECT_EQ(count(section(sections, "Time"), "work"), record.start != kNever ? 1u : 0u);
    if (record.start != kNever) {
      EXPECT_NE(text.find("work: " + format_time(record.end - record.start)), std::string::npos) << text;
    }
    EXPECT_NE(text.find("kind: " + std::string(to_string(op.kind))), std::string::npos);
    // The cause of the work is a link.
    if (record.start != kNever && record.device_cause != kNoOp) {
      const DetailSection* waits = section(sections, "Waits for");
      ASSERT_NE(waits, nullptr);
      EXPECT_TRUE(std::any_of(waits->lines.begin(), waits->lines.end(), [&](const DetailLine& l) {
        return l.name == "work" && l.op == OpRef{0, record.device_cause, false};
      })) << text;
    }
    // Followers: all that name it as a cause, twenty with links.
    std::size_t followers = 0;
    for (const OpRecord& other : run->result.records)
      followers += other.host_cause == id || other.device_cause == id || other.host_end_cause == id ? 1 : 0;
    const DetailSection* followed = section(sections, "Followed by");
    EXPECT_EQ(followed ? followed->lines.size() : 0, std::min<std::size_t>(followers, 21));
    if (followers > 20) {
      EXPECT_EQ(followed->lines.back().value, std::to_string(followers - 20) + " more");
    }
    // Storages that it reads and writes.
    const DetailSection* storages = section(sections, "Storages");
    std::size_t reads = 0, writes = 0;
    for (const Use& use : run->trace->uses_of(op)) ++(use.access == Access::read ? reads : writes);
    EXPECT_EQ(count(storages, "reads"), reads);
    EXPECT_EQ(count(storages, "writes"), writes);
    if (storages) {
      for (const DetailLine& l : storages->lines) EXPECT_TRUE(l.storage.has_value()) << l.value;
    }
    if (op.kind == OpKind::copy) some_copy = id;
    copies += op.kind == OpKind::copy && text.find("% of the route's 10.0 GB/s") != std::string::npos ? 1 : 0;
    rates += text.find(" % of the GPU's ") != std::string::npos ? 1 : 0;
  }
  EXPECT_GT(copies, 3u) << to_text(details_of(open, OpRef{0, some_copy, false}));
  static_cast<void>(rates);
}

// A product of fp32 tensors at thrice the fp32 peak ran on tensor cores: never more than the GPU can.
TEST(Details, SetFlopsAgainstThePeakTheyCanHaveHad) {
  auto run = std::make_shared<WholeRun>(*sample());
  run->machine.gpu.peaks = {{DataType::fp32, 1e12}, {DataType::tf32, 8e12}};
  OpId kernel = 0;
  while (run->trace->ops[kernel].kind != OpKind::kernel) ++kernel;
  run->trace.edit().ops[kernel].data_type = DataType::fp32;
  const double seconds = to_seconds(run->result.records[kernel].end - run->result.records[kernel].start);
  const auto text_at = [&](double rate) {
    run->trace.edit().ops[kernel].flops = rate * seconds;
    return to_text(details_of(opened(run), OpRef{0, kernel, false}));
  };
  EXPECT_NE(text_at(5e11).find("50 % of the GPU's 1 TFLOP/s in fp32"), std::string::npos) << text_at(5e11);
  EXPECT_NE(text_at(4e12).find("50 % of the GPU's 8 TFLOP/s in tf32"), std::string::npos) << text_at(4e12);
}

TEST(Details, NameWritersOfWhatIsRead) {
  const auto run = sample();
  const OpenRun open = opened(run);
  std::size_t checked = 0;
  for (OpId id = 0; id < run->trace->ops.size(); ++id)
    for (const Use& use : run->trace->uses_of(run->trace->ops[id])) {
      if (use.access != Access::read || use.version == 0) continue;
      OpId writer = kNoOp;
      for (OpId other = 0; other < id; ++other)
        for (const Use& made : run->trace->uses_of(run->trace->ops[other]))
          if (made.access == Access::write && made.storage == use.storage && made.version == use.version)
            writer = other;
      const auto sections = details_of(open, OpRef{0, id, false});
      const DetailSection* waits = section(sections, "Waits for");
      ASSERT_NE(waits, nullptr);
      EXPECT_TRUE(std::any_of(waits->lines.begin(), waits->lines.end(), [&](const DetailLine& l) {
        return l.name == "storage " + std::to_string(use.storage) && l.op == OpRef{0, writer, false};
      }));
      ++checked;
    }
  EXPECT_GT(checked, 50u);
}

TEST(Details, OfAStorageTellItsLife) {
  const auto run = sample();
  const OpenRun open = opened(run);
  std::size_t freed = 0;
  for (StorageId id = 0; id < run->trace->storages.size(); ++id) {
    const auto sections = details_of(open, StorageRef{0, id});
    std::size_t residencies = 0;
    for (const Residency& residency : run->residency) residencies += residency.storage == id ? 1 : 0;
    ASSERT_NE(section(sections, "Life"), nullptr);
    EXPECT_EQ(section(sections, "Life")->lines.size(), std::max<std::size_t>(1, residencies));
    OpId free = kNoOp, first_write = kNoOp;
    for (OpId op = 0; op < run->trace->ops.size(); ++op) {
      if (run->trace->ops[op].kind == OpKind::free && run->trace->ops[op].target == id) free = op;
      for (const Use& use : run->trace->uses_of(run->trace->ops[op]))
        if (use.storage == id && use.access == Access::write && first_write == kNoOp) first_write = op;
    }
    const DetailSection* uses = section(sections, "Uses");
    const auto leads_to = [&](const std::string& name, OpId op) {
      return uses && std::any_of(uses->lines.begin(), uses->lines.end(), [&](const DetailLine& l) {
               return l.name == name && l.op == OpRef{0, op, false};
             });
    };
    if (first_write != kNoOp && !run->trace->storages[id].preexisting) {
      EXPECT_TRUE(leads_to("made by", first_write)) << to_text(sections);
    }
    if (free != kNoOp) {
      EXPECT_TRUE(leads_to("freed by", free)) << to_text(sections);
      ++freed;
    }
  }
  EXPECT_GT(freed, 20u);
}

TEST(Details, OfAStorageNameTheCopiesThatSendAndFetchIt) {
  const auto run = sample();
  OpenRun open = opened(run);
  open.analysis = analyse(*open.source, {});
  const MemoryDecisions& decisions = open.analysis->summary.decisions;
  ASSERT_FALSE(decisions.departures.empty());
  const auto back = std::find_if(decisions.returns.begin(), decisions.returns.end(),
                                 [](const StorageReturn& r) { return r.slack > Duration{}; });
  ASSERT_NE(back, decisions.returns.end()) << "one arrives before it is used";
  const auto of_program = details_of(open, StorageRef{0, back->storage});
  const DetailSection* found = section(of_program, "Decisions");
  ASSERT_NE(found, nullptr) << to_text(of_program);
  EXPECT_NE(to_text(of_program).find("copied out by #"), std::string::npos);
  EXPECT_NE(to_text(of_program).find(human_time(back->slack) + " before its use"), std::string::npos)
      << to_text(of_program);
  EXPECT_TRUE(std::any_of(found->lines.begin(), found->lines.end(), [&](const DetailLine& l) {
    return l.op == OpRef{0, back->by, false};
  }));
  const auto of_replica = details_of(open, StorageRef{0, back->replica});
  ASSERT_NE(section(of_replica, "Decisions"), nullptr);
  EXPECT_EQ(section(of_replica, "Decisions")->lines.front().storage, (StorageRef{0, back->storage}));
  std::set<StorageId> concerned;
  for (const StorageDeparture& gone : decisions.departures) concerned.insert(gone.storage);
  for (const StorageReturn& r : decisions.returns) concerned.insert({r.storage, r.replica});
  for (StorageId s = 0; s < run->trace->storages.size(); ++s)
    EXPECT_EQ(section(details_of(open, StorageRef{0, s}), "Decisions") != nullptr, concerned.contains(s)) << s;
}

TEST(Details, BothEndsOfATimeAreToldApart) {
  EXPECT_EQ(stretch(microseconds(25803), microseconds(25812)), "9.00 \xc2\xb5s, from 25.8030 ms to 25.8120 ms");
  EXPECT_EQ(stretch(microseconds(100'000'000), microseconds(100'000'009)),
            "9.00 \xc2\xb5s, from 100.0000000 s to 100.0000090 s");
  EXPECT_EQ(stretch(Time{}, microseconds(2'000'000)), "2.00 s, from 0.000 s to 2.000 s");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall::gui
