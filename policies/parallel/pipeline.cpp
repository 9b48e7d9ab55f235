// Pipeline parallelism of a step of one GPU that has several passes (gradient accumulation): its blocks are cut into
// stages, each of a rank of its own, and each rank runs the passes in the order of the schedule (Huang et al. 2019,
// GPipe; Narayanan et al. 2019, 1F1B; ../shared/spec/parallelism.md, 3.2 and 10.3). A pass is a micro-batch.
//
// What one stage makes and its neighbour reads becomes a message: sent when the pass is over, received before the other
// begins, which its stream waits for. It is dropped once it has left and nobody here reads it. Tables and masks that
// several stages read each makes for itself. The optimizer's kernels are cut by the storages that they touch, their
// times in proportion.
//
// Before the update all stages meet once: the norm of all gradients, which most programs take.
//
// Not seen: receive buffers that torch.distributed.pipelining makes ahead, Megatron-LM's wait for the device around each message (a generated step has
// it: pipeline=N).
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "policies/parallel/stage_writer.h"
#include "policies/trace/changed_program.h"
#include "sim/error.h"
#include "sim/policy/registry.h"
#include "sim/trace/ranks.h"

namespace memwall {
namespace {

// A weight that products or embeddings of several stages read: each would have a copy, and their gradients a sum.
void refuse_shared_weights(const Trace& trace, const PipelineStages& stages) {
  std::vector<StageMask> readers(trace.storages.size(), 0);
  for (OpId id = 0; id < trace.ops.size(); ++id) {
    const OperatorClass c = trace.ops[id].operator_class;
    const bool casts = trace.strings[trace.ops[id].operator_name].find("copy") != std::string::npos;
    const bool multiplies = c == OperatorClass::gemm || c == OperatorClass::embedding;
    if (stages.run(id) == RunKind::optimizer || (!multiplies && !casts)) continue;
    for (const Use& use : trace.uses_of(trace.ops[id])) {
      if (trace.storages[use.storage].kind != StorageKind::parameter) continue;
      readers[use.storage] |= stages.of_op(id);
      if (std::popcount(readers[use.storage]) > 1)
        throw UsageError(fmt::format(
            "Policy 'pipeline': '{}' is used by several stages (an output layer that shares the embedding's weight), which "
            "torchtitan refuses, too; a generated step can have it: pipeline=N.",
            trace.strings[trace.storages[use.storage].label]));
    }
  }
}

std::vector<StageMessage> messages_of(const Trace& trace, const PipelineStages& stages) {
  std::vector<StageMessage> all;
  std::vector<StageMask> sent(trace.storages.size(), 0);
  std::vector<OpId> writer(trace.storages.size(), kNoOp);
  for (OpId id = 0; id < trace.ops.size(); ++id) {
    if (stages.run(id) == RunKind::optimizer) continue;
    for (const Use& use : trace.uses_of(trace.ops[id])) {
      const StorageId s = use.storage;
      if (use.access == Access::write) {
        writer[s] = id;
        sent[s] = stages.of_op(id);
        continue;
      }
      const StageMask missing = stages.of_op(id) & ~sent[s];
      if (writer[s] == kNoOp || missing == 0 || trace.storages[s].preexisting) continue;
      const std::int64_t from = std::countr_zero(stages.of_op(writer[s]));
      for (std::int64_t to = 0; to < stages.stages(); ++to) {
        if ((missing >> to & 1) == 0) continue;
        const bool backward = stages.run(writer[s]) == RunKind::backward;
        if (to != from + (backward ? -1 : 1))
          throw UsageError(fmt::format(
              "Policy 'pipeline': '{}' of stage {} is read by stage {} ({} of pass {}); only neighbours exchange messages "
              "here, so a network with connections over several stages cannot be cut.",
              trace.strings[trace.ops[writer[s]].operator_name], from, to, backward ? "backward" : "forward",
              stages.pass(id)));
        all.push_back({s, from, to, backward, stages.pass(writer[s]), static_cast<std::uint32_t>(all.size())});
      }
      sent[s] |= missing;
    }
  }
  return all;
}

// The ranks of a tensor-parallel group that a step stands for already; 1 where it is of one GPU.
std::uint32_t ranks_of_step(const Trace& trace) {
  return trace.rank_table.empty() ? 1 : static_cast<std::uint32_t>(trace.rank_table.front().stands_for.size() + 1);
}

class Pipeline : public Rewriter {
 public:
  Pipeline(std::int64_t stages, StageSchedule schedule) : stages_(stages), schedule_(schedule) {}
  int precedence() const override { return 1; }  // behind tensor

  Trace rewrite(const Trace& trace, const Machine& machine, const Pricer& pricer) const override {
    require_one_step(trace);
    const PipelineStages stages(trace, stages_);
    refuse_shared_weights(trace, stages);
    const std::vector<StageMessage> messages = messages_of(trace, stages);
    const std::uint32_t width = ranks_of_step(trace);
    Trace one = width > 1 ? one_rank(trace, 0) : trace;
    std::vector<RankProgram> programs;
    std::uint32_t block = 0;
    for (std::int64_t stage = 0; stage < stages_; ++stage) {
      Trace program = stage_of_pipeline(one, stages, messages, machine, pricer, schedule_, stage);
      const auto first = static_cast<std::uint32_t>(stage) * width;
      for (ProcessGroup& group : program.groups)
        for (std::uint32_t& member : group.members)
          member = group.name == kNeighbours || group.name == kAllStages ? member * width : member + first;
      std::vector<std::uint32_t> others(width - 1);
      std::iota(others.begin(), others.end(), first + 1);
      const auto count = static_cast<std::uint32_t>(stages.blocks_per_stage()[static_cast<std::size_t>(stage)]);
      const PipelineChunk chunk{static_cast<std::uint32_t>(stage), block, count, stage == 0, stage + 1 == stages_};
      block += count;
      programs.push_back({first, std::move(program), std::move(others), {chunk}});
    }
    Trace job = joined_ranks(std::move(programs));
    job.name = trace.name;
    job.job_ranks = width * static_cast<std::uint32_t>(stages_);
    job.notes.push_back(note(stages, messages));
    return job;
  }

 private:
  void require_one_step(const Trace& trace) const {
    if (trace.steps.size() != 1)
      throw UsageError(fmt::format("Policy 'pipeline': trace '{}' holds {} steps; expected one.", trace.name,
                                   trace.steps.size()));
    if (has_masked_weights(trace))
      throw UsageError(fmt::format(
          "Policy 'pipeline': weights of trace '{}' are multiplied by masks (prune), whose stage is not told; expected a "
          "step without masks.",
          trace.name));
    if (has_compiled_code(trace))
      throw UsageError(fmt::format(
          "Policy 'pipeline': kernels of trace '{}' are compiled code (compile, fusion), which may be of several stages; "
          "expected eager code.",
          trace.name));
    if (trace.ranks > 1)
      throw UsageError(fmt::format(
          "Policy 'pipeline': trace '{}' is of {} data-parallel ranks already; expected a step of one replica.", trace.name,
          trace.ranks));
    if (std::any_of(trace.ops.begin(), trace.ops.end(), [](const Op& op) { return op.kind == OpKind::graph_launch; }))
      throw UsageError(fmt::format(
          "Policy 'pipeline': trace '{}' launches CUDA graphs, which cannot be cut into stages.", trace.name));
    if (passes_per_step(trace) < 2)
      throw UsageError(fmt::format(
          "Policy 'pipeline': a step of trace '{}' has one pass, with which a pipeline has no two micro-batches; expected "
          "several: --policy accumulate:N beside it.",
          trace.name));
  }

  std::string note(const PipelineStages& stages, const std::vector<StageMessage>& messages) const {
    std::string blocks;
    for (const std::int64_t n : stages.blocks_per_stage()) blocks += fmt::format("{}{}", blocks.empty() ? "" : ", ", n);
    return fmt::format("pipeline: {} stages of {} blocks, {} micro-batches, {} messages between neighbours in all.",
                       stages_, blocks, stages.passes(), messages.size());
  }

  std::int64_t stages_;
  StageSchedule schedule_;
};

PolicyAnswer answer_of_pipeline(const Trace& trace) {
  if (passes_per_step(trace) >= 2) return {};
  return {.refusal = fmt::format("Policy 'pipeline' has no meaning for trace '{}' alone: a step of it has one pass; "
                                 "--policy accumulate:N beside it gives it several.",
                                 trace.name),
          .setting = {},
          .reason = {}};
}

const RegisterPolicy registered_pipeline{
    {.name = "pipeline",
     .sentence = "cuts a step of several passes into stages of its blocks, each on a GPU of its own (pipeline "
                 "parallelism, 1F1B or GPipe)",
     .kind = PolicyKind::model_parallelism,
     .needs = {.timing = true, .allocations = true, .dataflow = true, .modules = true},
     .ranks = RankRule::one_program,
     .parameters = {integer("stages", 2, {2, PipelineStages::kMostStages}, "GPUs", "each with some of the blocks."),
                    choice("schedule", "1f1b", {"1f1b", "gpipe"},
                           "1f1b: forward and backward passes in turn behind a warm-up; gpipe: all forward passes first.")},
     .answer = answer_of_pipeline,
     .make_rewriter = [](const PolicyArguments& a) {
       return std::make_unique<Pipeline>(a.integer("stages"),
                                         a.choice("schedule") == "gpipe" ? StageSchedule::gpipe : StageSchedule::one_f_one_b);
     }}};

}  // namespace
}  // namespace memwall
