// A pipeline's program whose passes are rewritten one of each kind: what comes of it is what the policy makes of all
// passes where they alternate already, and the ranks of a pipeline still meet.
#include "policies/trace/pipelined_passes.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "models/hw/machine_file.h"
#include "models/hw/modelled_step.h"
#include "models/hw/pricer.h"
#include "models/workload/generate/configuration/workload_file.h"
#include "sim/engine/simulation.h"
#include "sim/error.h"
#include "sim/policy/registry.h"
#include "sim/trace/pass_end_mark.h"
#include "sim/trace/pipeline_chunk.h"
#include "sim/trace/trace_check.h"
#include "tests/support/parallel_ranks.h"
#include "tests/support/same_program.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

const Machine& machine() {
  static const Machine one = load_machine("hgx-h100");
  return one;
}

Trace rewritten(const Trace& trace, const std::vector<std::string>& policies) {
  std::vector<PolicySpec> specs;
  for (const std::string& policy : policies) specs.push_back(parse_policy(policy));
  return apply_rewriters(trace, specs, machine(), *make_pricer(machine()));
}

std::vector<Trace> ranks_of(const std::string& settings) {
  const TrainingJob job = load_training_job(
      "llama3-8b:layers=4,width=512,heads=8,key_value_heads=8,inner=1024,vocabulary=1024,sequence=256,"
      "master_parameters=true,parallel_framework=torchtitan,micro_batch=1," +
      settings);
  const Trace joined = modelled_on(generate_step(job.model, job.recipe), machine());
  std::vector<Trace> ranks;
  for (std::size_t i = 0; i < rank_count(joined); ++i) ranks.push_back(one_rank(joined, static_cast<std::uint16_t>(i)));
  return ranks;
}

constexpr const char* kJobs[] = {
    "pipeline=2,batch=4,precision=bf16", "pipeline=2,data_parallel=2,batch=4,precision=bf16",
    "pipeline=2,tensor=2,sequence_parallel=1,data_parallel=2,batch=3,precision=bf16",
    "pipeline=2,tensor=2,sequence_parallel=1,async_tensor_parallel=1,data_parallel=2,batch=3,precision=fp8"};

const std::vector<std::vector<std::string>> kPolicies = {{"torchtitan:mode=full"},
                                                         {"torchtitan:mode=selective"},
                                                         {"torchtitan:mode=selective,selective_ac_option=2"},
                                                         {"compile:modules=layers.*"},
                                                         {"torchtitan:mode=full", "compile:modules=layers.*"},
                                                         {"torchtitan:mode=selective", "compile:modules=layers.*"}};

// Notes count what was rewritten.
Trace without_notes(Trace trace) {
  trace.notes.clear();
  return trace;
}

// What ops do, in order. Storages have the numbers in whose order they are met: a policy leaves unused ones behind.
std::vector<std::string> ops_of(const Trace& t) {
  std::map<StorageId, std::size_t> numbers;
  const auto number = [&](StorageId s) { return numbers.try_emplace(s, numbers.size()).first->second; };
  std::vector<std::string> all;
  for (const Op& op : t.ops) {
    std::string text =
        fmt::format("{} {} {} {} stream {} {} B {} FLOP {} s", to_string(op.kind), t.strings[op.name],
                    t.strings[op.module], to_string(op.phase), op.stream, op.bytes, op.flops, to_seconds(op.duration));
    if (op.kind == OpKind::alloc || op.kind == OpKind::free)
      text += fmt::format(" {} of {} B", number(op.target), t.storages[op.target].bytes);
    for (const Use& use : t.uses_of(op))
      text += fmt::format(" {}{}.{}", use.access == Access::read ? 'r' : 'w', number(use.storage), use.version);
    all.push_back(std::move(text));
  }
  return all;
}

std::string text_of(const std::vector<std::string>& policies) {
  std::string text;
  for (const std::string& policy : policies) text += policy + " ";
  return text;
}

TEST(PipelinedPasses, NothingChangedIsTheSameProgram) {
  for (const std::string settings :
       {"pipeline=2,batch=4,precision=bf16", "pipeline=4,data_parallel=2,batch=6,precision=bf16",
        "pipeline=2,interleave=2,data_parallel=2,batch=4,precision=bf16"})
    for (const Trace& rank : ranks_of(settings)) {
      const Trace same = with_each_pass_rewritten(rank, [](const Trace& passes) { return passes; });
      EXPECT_EQ(program_difference(without_notes(rank), without_notes(same)), "") << settings;
    }
}

// The last rank of a plain pipeline runs its passes in turn.
TEST(PipelinedPasses, AreWhatThePolicyMakesOfPassesInTurn) {
  for (const char* const settings : kJobs) {
    const Trace last = ranks_of(settings).back();
    ASSERT_FALSE(has_pipelined_passes(last));
    for (const std::vector<std::string>& policies : kPolicies) {
      const Trace whole = rewritten(last, policies);
      const Trace each =
          with_each_pass_rewritten(last, [&](const Trace& passes) { return rewritten(passes, policies); });
      EXPECT_EQ(ops_of(whole), ops_of(each)) << settings << " " << text_of(policies);
    }
  }
}

// Kernels of each pass of a stage, in order.
std::map<std::string, std::vector<std::size_t>> kernels_of_passes(const Trace& rank) {
  std::map<std::string, std::vector<std::size_t>> all;
  std::string now;  // "" between passes
  for (const Op& op : rank.ops) {
    if (op.kind == OpKind::mark) {
      const std::string& name = rank.strings[op.name];
      if (name == kPassEndMark) now.clear();
      if (name.starts_with(kForwardMark) || name.starts_with(kBackwardMark)) all[now = name].push_back(0);
    }
    if (op.kind == OpKind::kernel && !now.empty()) all[now].back() += op.kernels;
  }
  return all;
}

TEST(PipelinedPasses, OfAllMicroBatchesAreRewritten) {
  for (const std::string settings : {"pipeline=4,data_parallel=2,batch=6,precision=bf16",
                                     "pipeline=2,interleave=2,tensor=2,sequence_parallel=1,async_tensor_parallel=1,"
                                     "data_parallel=2,batch=6,precision=fp8"}) {
    const TrainingJob job = load_training_job(
        "llama3-8b:layers=8,width=512,heads=8,key_value_heads=8,inner=1024,vocabulary=1024,sequence=256,"
        "master_parameters=true,parallel_framework=torchtitan,micro_batch=1," +
        settings);
    const Trace joined = modelled_on(generate_step(job.model, job.recipe), machine());
    ASSERT_TRUE(has_pipelined_passes(one_rank(joined, 0)));
    for (const std::vector<std::string>& policies : kPolicies) {
      SCOPED_TRACE(settings + " " + text_of(policies));
      const Trace trace = rewritten(joined, policies);
      EXPECT_EQ(check(trace), std::vector<std::string>{});
      SimulationOptions options;
      options.allocator = "ideal";
      simulate(trace, machine(), options);  // throws where ranks wait for each other
      const auto before = kernels_of_passes(one_rank(joined, 0)), after = kernels_of_passes(one_rank(trace, 0));
      ASSERT_EQ(before.size(), after.size());
      for (const auto& [pass, kernels] : after) {
        ASSERT_EQ(kernels.size(), 6u) << pass;
        for (std::size_t i = 2; i < kernels.size(); ++i) EXPECT_EQ(kernels[i], kernels[1]) << pass;
        const bool again = pass.starts_with(kBackwardMark) && policies.front().starts_with("torchtitan:mode=full");
        if (policies.back().starts_with("compile")) {
          EXPECT_LT(kernels[1], before.at(pass)[1]) << pass;
        } else if (again) {
          EXPECT_GT(kernels[1], before.at(pass)[1]) << pass;
        }
      }
    }
  }
}

// Four layers over four stages are one, two, one and none: what is computed again is a block, never the loss.
TEST(PipelinedPasses, StagesOfOneBlockAndOfNoneAreTaken) {
  const std::vector<Trace> ranks = ranks_of("pipeline=4,data_parallel=2,batch=4,precision=bf16");
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const Trace again = rewritten(ranks[i], {"torchtitan:mode=full"}),
                compiled = rewritten(ranks[i], {"compile:modules=layers.*"});
    std::size_t repeated = 0;
    for (const Op& op : again.ops)
      if (op.phase == Phase::recompute && runs_on_device(op.kind)) {
        ++repeated;
        EXPECT_TRUE(again.strings[op.module].starts_with("layers.")) << again.strings[op.name];
        EXPECT_NE(op.source, kNoOp);
      }
    EXPECT_EQ(repeated == 0, i == 3) << "rank " << i;
    EXPECT_EQ(compiled.ops.size() == ranks[i].ops.size(), i == 3) << "rank " << i;
  }
}

// torchtitan counts blocks on over all stages of a rank, and does not begin anew with each.
TEST(PipelinedPasses, EverySecondBlockIsCountedOverAllStagesOfARank) {
  const std::vector<Trace> ranks = ranks_of("pipeline=2,interleave=2,batch=4,precision=bf16");
  for (const Trace& rank : ranks) {
    const auto blocks = [](const Trace& t, Phase phase) {
      std::set<std::string> all;
      for (const Op& op : t.ops)
        if (const std::string& module = t.strings[op.module]; op.phase == phase && module.starts_with("layers."))
          all.insert(module.substr(0, module.find('.', 7)));
      return all;
    };
    std::set<std::string> expected;
    std::size_t count = 0;
    for (const std::string& block : blocks(rank, Phase::forward))
      if (++count % 2 == 0) expected.insert(block);
    ASSERT_FALSE(expected.empty());
    EXPECT_EQ(blocks(rewritten(rank, {"torchtitan:mode=selective,selective_ac_option=2"}), Phase::recompute), expected);
  }
}

// Of a stage without blocks nothing is said; one that has some says what a misspelt pattern matches.
TEST(PipelinedPasses, ModulesThatNoBlockMatchesAreRefused) {
  const std::vector<Trace> ranks = ranks_of("pipeline=2,batch=4,precision=bf16");
  for (const Trace& rank : ranks) EXPECT_THROW(rewritten(rank, {"compile:modules=layer.*"}), UsageError);
}

TEST(PipelinedPasses, WhatChangesMessagesIsRefused) {
  const Trace rank = ranks_of("pipeline=2,batch=4,precision=bf16").front();
  const auto without_messages = [](const Trace& passes) {
    Trace less = passes;
    std::erase_if(less.ops, [](const Op& op) { return op.collective == CollectiveKind::send_receive; });
    return less;
  };
  EXPECT_THROW(with_each_pass_rewritten(rank, without_messages), UsageError);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
