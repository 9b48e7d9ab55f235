#include "study/layout/reserved_job.h"

#include <algorithm>
#include <functional>

#include "study/parallel_tasks.h"

namespace memwall {
namespace {

// Micro-batches that are followed where no cycle is found: the first ones reserve most of what all do.
constexpr std::int64_t kMostFollowed = 128;

struct Followed {
  StageAllocation allocation;
  std::int64_t microbatches = 1;  // of which it is true
};

class RankFollower {
 public:
  RankFollower(const ParallelJob& job, std::int64_t rank, std::vector<const ChunkEvents*> chunks, Bytes capacity)
      : job_(job), rank_(rank), chunks_(std::move(chunks)), capacity_(capacity) {}

  Followed follow(std::int64_t microbatches, bool looks_for_cycle = false) const {
    ParallelJob job = job_;
    job.recipe.accumulation = job.pipeline.microbatches = microbatches;
    return {allocated_stage(StageProgram(job, rank_).write_marked(), chunks_,
                            looks_for_cycle ? schedule_period(job.pipeline) : 0, capacity_),
            microbatches};
  }

  // torch's receive buffers are there for all micro-batches, and GPipe keeps them all.
  bool repeats() const {
    const ModelParallel& p = job_.recipe.parallel;
    return p.schedule != PipelineSchedule::gpipe && p.framework != ParallelFramework::torchtitan;
  }

  Followed follow() const {
    const std::int64_t all = job_.pipeline.microbatches, rest = all % schedule_period(job_.pipeline);
    if (all <= kMostFollowed) return follow(all);
    std::int64_t few = few_microbatches(job_);
    for (; few < kMostFollowed; few = 2 * (few - rest) + rest) {
      const Followed followed = follow(few, true);
      const std::int64_t cycle = followed.allocation.cycle;
      if (cycle == 0) continue;
      // Whole cycles are left out, which changes nothing.
      const std::int64_t more = (all - few) % cycle;
      return {more == 0 ? followed.allocation : follow(few + more).allocation, all};
    }
    return follow(std::min(all, few));
  }

 private:
  const ParallelJob& job_;
  std::int64_t rank_;
  std::vector<const ChunkEvents*> chunks_;
  Bytes capacity_;
};

}  // namespace

std::optional<ReservedJob> reserved_job(const ParallelJob& job, ChunkCostCache& costs, Bytes capacity,
                                        bool fold_microbatches, unsigned jobs) {
  std::vector<std::function<void()>> tasks;
  std::vector<Followed> ranks(static_cast<std::size_t>(job.pipeline.ranks));
  for (std::int64_t rank = 0; rank < job.pipeline.ranks; ++rank) {
    std::vector<const ChunkEvents*> chunks;
    for (std::int64_t chunk = 0; chunk < job.pipeline.chunks; ++chunk) {
      const std::optional<ChunkEvents>& events = costs.events_of(job, rank, chunk);
      if (!events) return std::nullopt;
      chunks.push_back(&*events);
    }
    tasks.emplace_back([&, rank, chunks = std::move(chunks)] {
      const RankFollower rank_follower(job, rank, chunks, capacity);
      ranks[static_cast<std::size_t>(rank)] = fold_microbatches && rank_follower.repeats()
                                                  ? rank_follower.follow()
                                                  : rank_follower.follow(job.pipeline.microbatches);
    });
  }
  run_tasks(tasks, jobs);
  ReservedJob reserved{{}, job.pipeline.microbatches};
  for (const Followed& followed : ranks) {
    reserved.stages.push_back(followed.allocation.stage);
    reserved.microbatches = std::min(reserved.microbatches, followed.microbatches);
  }
  return reserved;
}

}  // namespace memwall
