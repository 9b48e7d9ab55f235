// Is the critical path of a folded job, with its passes taken apart, that of the job written out, and so its interval?
#include "study/layout/folded_path.h"

#include <gtest/gtest.h>

#include <cmath>

#include "models/hw/machine_file.h"
#include "models/workload/generate/configuration/workload_file.h"
#include "study/study.h"
#include "traces/run/analysis/step_interval.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr const char* kMachine = "dgx-a100-80gb";

struct Both {
  Run written_out;
  std::vector<PathSegment> path;
  FoldedJob folded;
  FoldedPath folded_path;
  std::optional<StepInterval> interval;
};

Both both_of(const std::string& step) {
  Study study;
  Both both;
  both.written_out = study.run({.step = {step}, .machine = kMachine}, {.record = false}).run;
  both.path = critical_path(both.written_out);
  const Machine machine = load_machine(kMachine);
  ChunkCostCache costs(machine);
  const TrainingJob job = load_training_job(step);
  const ParallelJob parallel = parallel_job(job.model, job.recipe);
  both.folded = folded_job(parallel, costs);
  both.folded_path = folded_path(parallel, costs, both.folded);
  both.interval = layout_interval(parallel, both.folded_path, both.folded);
  return both;
}

double share(const std::vector<PathSegment>& path, TimeClass of) {
  double part = 0, whole = 0;
  for (const PathSegment& s : path) {
    whole += to_seconds(s.end - s.begin);
    if (s.time_class == of) part += to_seconds(s.end - s.begin);
  }
  return part / whole;
}

const std::vector<std::string> kSteps = {
    "gpt3-175b:layers=16,tensor=8,pipeline=4,interleave=2,sequence_parallel=1,micro_batch=1,batch=16",
    "gpt3-175b:layers=8,tensor=8,pipeline=2,micro_batch=1,batch=12,checkpoint=full",
    "llama3-70b:layers=8,tensor=8,data_parallel=4,sequence_parallel=1,distributed_optimizer=1,micro_batch=1,batch=4",
    "gpt3-175b:layers=4,width=1024,heads=16,pipeline=2,micro_batch=1,batch=8",  // the host is slower
    "gpt3-175b:layers=6,width=4096,heads=32,data_parallel=4,distributed_optimizer=1,micro_batch=1,batch=4"};

TEST(FoldedPath, WaitsForWhatTheJobWrittenOutWaitsFor) {
  for (const std::string& step : kSteps) {
    SCOPED_TRACE(step);
    const Both both = both_of(step);
    for (const TimeClass of : {TimeClass::compute, TimeClass::recompute, TimeClass::collective, TimeClass::host})
      EXPECT_NEAR(share(both.folded_path.segments, of), share(both.path, of), 0.05) << to_string(of);
    Time end{};
    for (const PathSegment& s : both.folded_path.segments) {
      EXPECT_EQ(s.begin, end);
      end = s.end;
    }
  }
}

TEST(FoldedPath, IntervalIsThatOfTheJobWrittenOut) {
  for (const std::string& step : kSteps) {
    SCOPED_TRACE(step);
    const Both both = both_of(step);
    const auto truth = step_interval(both.written_out, both.path, mean_step(both.written_out));
    ASSERT_TRUE(both.interval && truth);
    const double seconds = to_seconds(mean_step(both.written_out)), folded = to_seconds(both.folded.step_time);
    EXPECT_NEAR(to_seconds(both.interval->low) / folded, to_seconds(truth->low) / seconds, 0.01);
    EXPECT_NEAR(to_seconds(both.interval->high) / folded, to_seconds(truth->high) / seconds, 0.02);
    EXPECT_NEAR(both.interval->known_share, truth->known_share, 0.05);
    EXPECT_EQ(both.interval->job, truth->job);
  }
}

// Products alone where collectives belong would be seen.
TEST(FoldedPath, OtherClassesGiveAnotherInterval) {
  const std::string step = kSteps.front();
  Both both = both_of(step);
  const TrainingJob job = load_training_job(step);
  const ParallelJob parallel = parallel_job(job.model, job.recipe);
  for (Op& op : both.folded_path.run.trace.edit().ops) op.kind = OpKind::collective;
  const auto other = layout_interval(parallel, both.folded_path, both.folded);
  ASSERT_TRUE(other && both.interval);
  EXPECT_GT(std::abs(to_seconds(other->low - both.interval->low)), 0.01 * to_seconds(both.interval->low));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
