#include "policies/parallel/pipeline_stages.h"

#include <fmt/format.h>

#include <bit>
#include <map>
#include <set>

#include "policies/trace/module_blocks.h"
#include "sim/error.h"

namespace memwall {
namespace {

StageMask bit(std::int64_t stage) { return StageMask{1} << stage; }

bool is_lifetime(const Op& op) { return op.kind == OpKind::alloc || op.kind == OpKind::free; }

}  // namespace

PipelineStages::PipelineStages(const Trace& trace, std::int64_t stages)
    : trace_(trace),
      stages_(stages),
      runs_(trace.ops.size(), RunKind::forward),
      pass_(trace.ops.size(), 0),
      block_of_op_(trace.ops.size(), -1),
      ops_(trace.ops.size(), 0),
      storages_(trace.storages.size(), 0),
      homes_(trace.storages.size(), -1) {
  find_runs();
  find_blocks();
  give_stages();
  share_prologue();
  give_storages();
  give_update();
}

void PipelineStages::find_runs() {
  const PhaseRuns runs(trace_);
  std::int64_t pass = -1;
  RunKind before = RunKind::optimizer;
  for (OpId id = 0; id < trace_.ops.size(); ++id) {
    runs_[id] = runs.kind(id);
    if (runs_[id] == RunKind::forward && before != RunKind::forward) ++pass;
    before = runs_[id];
    pass_[id] = std::max<std::int64_t>(pass, 0);
  }
  passes_ = passes_per_step(trace_);
}

void PipelineStages::find_blocks() {
  std::set<std::string> paths;
  for (const Op& op : trace_.ops)
    if (op.module != 0) paths.insert(trace_.strings[op.module]);
  const ModuleBlocks blocks(paths, BlockRule::numbered);
  std::map<std::string, std::int64_t> number;
  std::map<StringId, std::int64_t> of_module;
  for (OpId id = 0; id < trace_.ops.size(); ++id) {
    const Op& op = trace_.ops[id];
    if (op.module == 0 || runs_[id] == RunKind::optimizer) continue;
    const auto [known, is_new] = of_module.emplace(op.module, -1);
    if (is_new) {
      const std::string block = blocks.of(trace_.strings[op.module]);
      if (!block.empty()) known->second = number.emplace(block, static_cast<std::int64_t>(number.size())).first->second;
    }
    block_of_op_[id] = known->second;
  }
  const auto count = static_cast<std::int64_t>(number.size());
  if (count < stages_)
    throw UsageError(fmt::format(
        "Policy 'pipeline': trace '{}' has {} repeated blocks by the names of its modules; expected at least one for each "
        "of the {} stages.",
        trace_.name, count, stages_));
  // What does not divide goes to the first stages (torch.distributed.pipelining's examples, DeepSpeed's `uniform`).
  for (std::int64_t s = 0; s < stages_; ++s) {
    blocks_.push_back(count / stages_ + (s < count % stages_ ? 1 : 0));
    stage_of_block_.insert(stage_of_block_.end(), static_cast<std::size_t>(blocks_.back()), s);
  }
}

void PipelineStages::give_stages() {
  std::int64_t now = 0;
  RunKind before = RunKind::optimizer;
  const auto last_block = static_cast<std::int64_t>(stage_of_block_.size()) - 1;
  bool past_last = false;
  for (OpId id = 0; id < trace_.ops.size(); ++id) {
    const Op& op = trace_.ops[id];
    if (runs_[id] != before) {
      now = runs_[id] == RunKind::backward ? stages_ - 1 : 0;
      past_last = false;
    }
    before = runs_[id];
    if (runs_[id] == RunKind::optimizer || is_lifetime(op)) continue;
    const std::int64_t block = block_of_op_[id];
    if (block >= 0) now = stage_of_block_[static_cast<std::size_t>(block)];
    // Backward of a capture without modules: where the op stands whose node it is of.
    const bool has_source = block < 0 && op.source != kNoOp && runs_[op.source] == RunKind::forward;
    if (runs_[id] == RunKind::backward && has_source && ops_[op.source] != 0) now = std::countr_zero(ops_[op.source]);
    if (runs_[id] == RunKind::forward && block < 0 && past_last) now = stages_ - 1;
    past_last = past_last || block == last_block;
    ops_[id] = bit(now);
  }
}

// What is made of no parameter before the first block and read by several stages (tables of positions, masks) each makes
// for itself.
void PipelineStages::share_prologue() {
  std::vector<StageMask> readers(trace_.storages.size(), 0);
  for (OpId id = static_cast<OpId>(trace_.ops.size()); id-- > 0;) {
    const Op& op = trace_.ops[id];
    if (runs_[id] == RunKind::optimizer || is_lifetime(op)) continue;
    StageMask wanted = 0;
    bool has_parameter = false;
    for (const Use& use : trace_.uses_of(op)) {
      if (use.access == Access::write) wanted |= readers[use.storage];
      if (use.access == Access::read)
        has_parameter = has_parameter || trace_.storages[use.storage].kind == StorageKind::parameter;
    }
    const bool before_blocks = runs_[id] == RunKind::forward && block_of_op_[id] < 0 && ops_[id] == bit(0);
    if (before_blocks && !has_parameter) ops_[id] |= wanted;
    for (const Use& use : trace_.uses_of(op))
      if (use.access == Access::read) readers[use.storage] |= ops_[id];
  }
}

void PipelineStages::give_storages() {
  for (const Access access : {Access::write, Access::read})
    for (OpId id = 0; id < trace_.ops.size(); ++id) {
      if (runs_[id] == RunKind::optimizer) continue;
      for (const Use& use : trace_.uses_of(trace_.ops[id])) {
        storages_[use.storage] |= ops_[id];
        if (use.access == access && homes_[use.storage] < 0) homes_[use.storage] = std::countr_zero(ops_[id]);
      }
    }
  // States are named after their parameters.
  std::map<std::string, StorageId> parameters;
  for (StorageId s = 0; s < trace_.storages.size(); ++s)
    if (trace_.storages[s].kind == StorageKind::parameter && storages_[s] != 0)
      parameters.emplace(trace_.strings[trace_.storages[s].label], s);
  for (StorageId s = 0; s < trace_.storages.size(); ++s) {
    const Storage& state = trace_.storages[s];
    if (!state.preexisting || storages_[s] != 0) continue;
    std::string label = trace_.strings[state.label];
    while (!label.empty() && !parameters.contains(label))
      label.resize(label.rfind('.') == std::string::npos ? 0 : label.rfind('.'));
    if (!label.empty()) storages_[s] = storages_[parameters[label]], homes_[s] = homes_[parameters[label]];
  }
}

// Lists of an optimizer: the i-th result belongs to the i-th of what is read.
void PipelineStages::give_update() {
  const StageMask all = stages_ == kMostStages ? ~StageMask{0} : bit(stages_) - 1;
  for (OpId id = 0; id < trace_.ops.size(); ++id) {
    const Op& op = trace_.ops[id];
    if (runs_[id] != RunKind::optimizer || is_lifetime(op)) continue;
    std::vector<StorageId> reads, writes;
    for (const Use& use : trace_.uses_of(op)) (use.access == Access::read ? reads : writes).push_back(use.storage);
    for (std::size_t i = 0; i < writes.size(); ++i) {
      if (storages_[writes[i]] != 0) continue;
      const bool listed = writes.size() > 1 && reads.size() >= writes.size();
      StageMask mask = 0;
      if (listed) mask = storages_[reads[i]];
      for (const StorageId r : reads)
        if (!listed) mask |= storages_[r];
      storages_[writes[i]] = mask == 0 ? all : mask;
      homes_[writes[i]] = std::countr_zero(storages_[writes[i]]);
    }
    for (const Use& use : trace_.uses_of(op)) {
      if (storages_[use.storage] == 0) storages_[use.storage] = all, homes_[use.storage] = 0;
      ops_[id] |= storages_[use.storage];
    }
    if (reads.empty() && writes.empty()) ops_[id] = all;
  }
}

}  // namespace memwall
