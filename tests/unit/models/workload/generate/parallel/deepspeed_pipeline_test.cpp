// What Megatron-DeepSpeed's programs of 2021 do otherwise than Megatron-core: messages in parts, all-reduces behind the
// products, launches that block.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "models/workload/generate/configuration/workload_file.h"
#include "models/workload/generate/generate.h"
#include "sim/trace/ranks.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr std::int64_t kBatch = 2, kSequence = 32, kWidth = 64, kPasses = 3;
constexpr Bytes kMessage = kBatch * kSequence * kWidth * 2;

Trace step_of(const std::vector<std::string>& settings) {
  TrainingJob job = load_training_job("gpt-megatron");
  set_all(job, {"layers=2", "width=64", "heads=4", "vocabulary=512", "longest=32", "sequence=32", "batch=2",
                "accumulation=3", "parallel_framework=deepspeed"});
  set_all(job, settings);
  return generate_step(job.model, job.recipe);
}

std::size_t count(const Trace& trace, std::uint16_t rank, CollectiveKind kind, Bytes bytes) {
  std::size_t found = 0;
  for (const Op& op : trace.ops)
    if (op.kind == OpKind::collective && op.collective == kind && op.bytes == bytes && rank_of(trace, op) == rank)
      ++found;
  return found;
}

// Each of two tensor-parallel ranks sends half, and gathers what arrives: inputs forward; outputs again, and their
// gradients, backward. All-gathers are counted by what a rank sends, half of the message.
TEST(DeepspeedPipeline, MessagesArePartsAndAreGathered) {
  const Trace trace = step_of({"tensor=2", "pipeline=2"});
  for (std::uint16_t rank = 0; rank < 2; ++rank)
    EXPECT_EQ(count(trace, rank, CollectiveKind::send_receive, kMessage / 2), std::size_t{kPasses}) << rank;
  EXPECT_EQ(count(trace, 0, CollectiveKind::all_gather, kMessage / 2), std::size_t{2 * kPasses});
  EXPECT_EQ(count(trace, 1, CollectiveKind::all_gather, kMessage / 2), std::size_t{kPasses});
}

TEST(DeepspeedPipeline, WholeMessagesWhereTheyAreNotPartitioned) {
  for (const auto& settings :
       std::vector<std::vector<std::string>>{{"tensor=2", "pipeline=2", "pipe_partitioned=0"}, {"pipeline=2"}}) {
    const Trace trace = step_of(settings);
    EXPECT_EQ(count(trace, 0, CollectiveKind::send_receive, kMessage), std::size_t{kPasses});
    EXPECT_EQ(count(trace, 0, CollectiveKind::all_gather, kMessage / 2), 0u);
  }
}

// Megatron-LM's parts are views, gathered once each way, and nobody waits for sizes.
TEST(DeepspeedPipeline, MegatronScattersAndGathersLikewise) {
  const Trace trace = step_of({"tensor=2", "pipeline=2", "parallel_framework=megatron", "scatter_gather_tensors=1"});
  for (std::uint16_t rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(count(trace, rank, CollectiveKind::send_receive, kMessage / 2), std::size_t{kPasses}) << rank;
    EXPECT_EQ(count(trace, rank, CollectiveKind::all_gather, kMessage / 2), std::size_t{kPasses}) << rank;
  }
}

// The host waits for what came with each part of a message.
TEST(DeepspeedPipeline, SizesOfPartsAreReadOnTheHost) {
  const auto waits = [](const Trace& trace) {
    return std::count_if(trace.ops.begin(), trace.ops.end(), [](const Op& op) {
      return op.kind == OpKind::copy && op.wait_for == WaitFor::own_op && op.bytes == 128;
    });
  };
  EXPECT_EQ(waits(step_of({"tensor=2", "pipeline=2"})), 3 * kPasses);
  EXPECT_EQ(waits(step_of({"tensor=2", "pipeline=2", "pipe_partitioned=0"})), 0);
  EXPECT_EQ(waits(step_of({"tensor=2", "pipeline=2", "parallel_framework=megatron", "scatter_gather_tensors=1"})), 0);
}

// Kernels between the launch of the all-reduces of activations' gradients and the wait for them.
std::size_t hidden_kernels(const Trace& trace) {
  std::size_t hidden = 0;
  bool in_flight = false;
  for (const Op& op : trace.ops) {
    if (op.kind == OpKind::collective && op.collective == CollectiveKind::all_reduce && op.phase == Phase::backward)
      in_flight = true;
    if (op.kind == OpKind::event_wait && op.stream == 0) in_flight = false;
    if (in_flight && op.kind == OpKind::kernel && op.operator_class == OperatorClass::gemm) ++hidden;
  }
  return hidden;
}

TEST(DeepspeedPipeline, AllReducesFollowTheProductUnlessTheyAreAsynchronous) {
  EXPECT_GT(hidden_kernels(step_of({"tensor=2"})), 0u);
  EXPECT_EQ(hidden_kernels(step_of({"tensor=2", "async_tensor_all_reduce=0"})), 0u);
}

// BF16_Optimizer: gradients in 16 bits stay beside those in fp32, are set to zero before each backward but the first,
// and those in fp32 are summed whole on each rank.
TEST(DeepspeedPipeline, GradientsInBf16StayBesideThoseInFp32) {
  const auto zeros = [](const std::string& framework) {
    const Trace trace = step_of({"precision=bf16", "main_gradients=fp32", "distributed_optimizer=1", "data_parallel=2",
                                 "pipeline=2", "parallel_framework=" + framework});
    std::size_t zeroed = 0, scatters = 0;
    for (const Op& op : trace.ops) {
      zeroed += op.kind == OpKind::kernel && trace.strings[op.name] == "aten::zero_" && op.phase == Phase::backward;
      scatters += op.kind == OpKind::collective && op.collective == CollectiveKind::reduce_scatter;
    }
    return std::pair(zeroed, scatters);
  };
  const auto [zeroed, scatters] = zeros("deepspeed");
  EXPECT_GT(zeroed, 20u);
  EXPECT_EQ(zeroed % (kPasses - 1), 0u);
  EXPECT_EQ(scatters, 0u);
  EXPECT_EQ(zeros("megatron").first, 0u);
  EXPECT_GT(zeros("megatron").second, 0u);
}

// Allocations with a label on a rank: their bytes.
std::vector<Bytes> labelled(const Trace& trace, std::uint16_t rank, const std::string& label) {
  std::vector<Bytes> found;
  for (const Op& op : trace.ops)
    if (op.kind == OpKind::alloc && rank_of(trace, op) == rank &&
        trace.strings[trace.storages[op.target].label] == label)
      found.push_back(trace.storages[op.target].bytes);
  return found;
}

// Each gradient in 16 bits is cast up before it is added to that in fp32, in every backward.
TEST(DeepspeedPipeline, GradientsInBf16AreCastUpBeforeTheyAreAdded) {
  const Trace trace = step_of({"precision=bf16", "main_gradients=fp32", "data_parallel=2", "pipeline=2"});
  std::multiset<Bytes> casts, expected;
  for (const Op& op : trace.ops) {
    if (op.kind != OpKind::kernel || trace.strings[op.name] != "aten::_to_copy" || op.phase != Phase::backward)
      continue;
    const auto uses = trace.uses_of(op);
    const bool of_gradient = std::ranges::any_of(
        uses, [&](const Use& use) { return trace.storages[use.storage].kind == StorageKind::gradient; });
    for (const Use& use : uses)
      if (of_gradient && use.access == Access::write) casts.insert(trace.storages[use.storage].bytes);
  }
  for (const Storage& s : trace.storages)
    if (s.preexisting && s.kind == StorageKind::parameter)
      for (std::int64_t pass = 0; pass < kPasses; ++pass) expected.insert(2 * s.bytes);
  EXPECT_EQ(casts, expected);
}

// Stage 1: gradients go through a bucket of 5e8 elements; those of the parameters that the rank's half touches are kept
// together, then flattened in fp16 and cast up. Two ranks, so that half of the elements is the share.
TEST(DeepspeedPipeline, StageOneReducesThroughItsBucketIntoItsPartition) {
  const Trace trace = step_of({"precision=fp16", "distributed_optimizer=1", "data_parallel=2", "pipeline=2"});
  for (std::uint16_t rank = 0; rank < 2; ++rank) {
    Bytes all = 0, own = 0;
    std::vector<Bytes> parameters;
    const std::vector<std::uint16_t> ranks = storage_ranks(trace);
    for (StorageId s = 0; s < trace.storages.size(); ++s)
      if (ranks[s] == rank && trace.storages[s].preexisting && trace.storages[s].kind == StorageKind::parameter)
        parameters.push_back(trace.storages[s].bytes);
    for (const Bytes bytes : parameters) all += bytes;
    Bytes seen = 0;
    for (const Bytes bytes : parameters) {
      if (seen < all / 2) own += bytes;
      seen += bytes;
    }
    EXPECT_EQ(labelled(trace, rank, "deepspeed::ipg_buffer"), std::vector<Bytes>{1'000'000'000}) << rank;
    EXPECT_EQ(labelled(trace, rank, "deepspeed::grads_in_partition"), std::vector<Bytes>{own}) << rank;
    EXPECT_EQ(labelled(trace, rank, "deepspeed::flat_gradients"), std::vector<Bytes>{all / 2}) << rank;
    EXPECT_EQ(count(trace, rank, CollectiveKind::all_reduce, all), 1u) << "all in one bucket: 2 (N - 1) / N of it";
  }
  EXPECT_TRUE(
      labelled(step_of({"precision=fp16", "data_parallel=2", "pipeline=2"}), 0, "deepspeed::ipg_buffer").empty());
}

TEST(DeepspeedPipeline, BlockingLaunchesWaitForWhatTheyLaunch) {
  const Trace free = step_of({"tensor=2"}), blocking = step_of({"tensor=2", "launch_blocking=1"});
  ASSERT_EQ(free.ops.size(), blocking.ops.size());
  std::size_t kernels = 0;
  for (std::size_t i = 0; i < free.ops.size(); ++i) {
    if (free.ops[i].kind != OpKind::kernel) continue;
    ++kernels;
    EXPECT_EQ(free.ops[i].wait_for, WaitFor::nothing);
    EXPECT_EQ(blocking.ops[i].wait_for, WaitFor::own_op);
  }
  EXPECT_GT(kernels, 100u);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
