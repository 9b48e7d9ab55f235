// What all ranks of a job do and take together, worked out by hand.
#include "traces/run/analysis/job_totals.h"

#include <gtest/gtest.h>

#include "tests/support/write_trace.h"
#include "traces/run/analysis/summary.h"
#include "traces/run/run_recorder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

// A step of 2 s: a product of 1 TFLOP, and a GB written by each rank, of whose drives four share one link.
memwall::Run run_of(std::uint32_t ranks) {
  Machine machine = machine_with_write_cache(0, 0);
  machine.links[static_cast<std::size_t>(machine.link("nvme_write"))].sharers = 4;
  WriteTrace step;
  step.builder().add_storage(kGigabyte, StorageKind::parameter, "hbm", "weights", true);
  step.write(0, kGigabyte, 0.25e9);
  step.kernel(0, 2);
  step.wait_for_all();
  Trace trace = step.finish();
  trace.ranks = ranks;
  for (Op& op : trace.ops)
    if (op.kind == OpKind::kernel) {
      op.operator_class = OperatorClass::gemm;
      op.data_type = DataType::fp16;
      op.flops = 1e12;
    }
  RunSettings settings;
  settings.allocator = "ideal";
  return simulate_and_record(trace, machine, settings);
}

const JobLink& link_of(const JobTotals& job, const std::string& name) {
  for (const JobLink& link : job.links)
    if (link.name == name) return link;
  throw std::out_of_range(name);
}

TEST(JobTotals, AreThoseOfOneRankTimesTheRanks) {
  const RunSummary s = summarize(run_of(8));
  ASSERT_TRUE(s.job);
  const double seconds = to_seconds(s.step_time);
  EXPECT_EQ(s.job->ranks, 8u);
  EXPECT_DOUBLE_EQ(s.job->model_flops_per_second, 8e12 / seconds);
  EXPECT_EQ(s.job->recomputed_flops_per_second, 0);
  const JobLink& writes = link_of(*s.job, "nvme_write");
  EXPECT_DOUBLE_EQ(writes.count, 2);  // eight ranks, four at each
  EXPECT_DOUBLE_EQ(writes.bytes, 8e9);
  EXPECT_DOUBLE_EQ(writes.bytes_per_second, 8e9 / seconds);
  EXPECT_DOUBLE_EQ(writes.busy_bytes_per_second,
                   8e9 / to_seconds(s.links[static_cast<std::size_t>(run_of(8).machine.one.link("nvme_write"))].busy));
  EXPECT_TRUE(writes.leads_to_storage);
  for (const JobTier& tier : s.job->tiers)
    for (const TierSummary& one : s.tiers)
      if (one.name == tier.name) {
        EXPECT_DOUBLE_EQ(tier.peak_bytes, 8.0 * static_cast<double>(one.peak_allocated)) << tier.name;
        EXPECT_DOUBLE_EQ(tier.usable_bytes, 8.0 * static_cast<double>(one.usable)) << tier.name;
      }
  EXPECT_FALSE(s.job->tiers.empty());
}

TEST(JobTotals, AreNoneOfOneRank) { EXPECT_FALSE(summarize(run_of(1)).job); }

TEST(JobTotals, AreInTheJson) {
  const std::string json = to_json(summarize(run_of(8)));
  EXPECT_NE(json.find("\"job\""), std::string::npos);
  EXPECT_NE(json.find("\"model_flops_per_s\""), std::string::npos);
  EXPECT_EQ(to_json(summarize(run_of(1))).find("\"job\""), std::string::npos);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
