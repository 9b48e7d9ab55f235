// Which stage of a pipeline runs which op of a step, and in which pass: stages are runs of the network's repeated blocks
// ("layers.3"), told by the names of modules. What stands before the first block is of the first stage, what stands
// behind the last of the last; backward the other way round.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "policies/trace/phases.h"
#include "sim/trace/trace.h"

namespace memwall {

using StageMask = std::uint64_t;  // one bit per stage

class PipelineStages {
 public:
  static constexpr std::int64_t kMostStages = 64;

  // Throws UsageError where there are fewer blocks than stages. REQUIRES: the trace knows modules and dataflow;
  // 2 <= stages <= kMostStages.
  PipelineStages(const Trace& trace, std::int64_t stages);

  std::int64_t stages() const { return stages_; }
  std::int64_t passes() const { return passes_; }
  RunKind run(OpId op) const { return runs_[op]; }
  std::int64_t pass(OpId op) const { return pass_[op]; }  // of forward and backward
  // Ops of the optimizer's run: those whose storages they touch; all where they touch none.
  StageMask of_op(OpId op) const { return ops_[op]; }
  // That use the storage.
  StageMask of_storage(StorageId storage) const { return storages_[storage]; }
  // The first that writes it, else the first that reads it.
  std::int64_t home(StorageId storage) const { return homes_[storage]; }
  const std::vector<std::int64_t>& blocks_per_stage() const { return blocks_; }

 private:
  void find_runs();
  void find_blocks();
  void give_stages();
  void share_prologue();
  void give_storages();
  void give_update();

  const Trace& trace_;
  std::int64_t stages_, passes_ = 0;
  std::vector<RunKind> runs_;
  std::vector<std::int64_t> pass_;
  std::vector<std::int64_t> block_of_op_;  // -1: of none
  std::vector<std::int64_t> stage_of_block_, blocks_;
  std::vector<StageMask> ops_, storages_;
  std::vector<std::int64_t> homes_;
};

}  // namespace memwall
