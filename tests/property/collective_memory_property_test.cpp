// Whatever a job of many GPUs is: does what a collective reads and writes live until somebody has waited for it, and is
// nothing read before it is there? Each rank's program by itself, of all frameworks, schedules and overlaps.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

#include "models/workload/generate/generate.h"
#include "sim/error.h"
#include "sim/trace/ranks.h"
#include "sim/trace/repeat.h"
#include "tests/support/races.h"
#include "tests/support/small_networks.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

template <typename T>
T any_of(std::initializer_list<T> values) {
  return *rc::gen::elementOf(std::vector<T>(values));
}
bool coin() { return any_of({0, 1}) == 1; }

Model any_model(std::int64_t chunks) {
  Model m = coin() ? small_rotary_decoder() : small_words(Architecture::decoder);
  m.layers = chunks * any_of<std::int64_t>({1, 2});
  m.width = m.inner = 128;
  m.heads = 8;
  m.key_value_heads = any_of<std::int64_t>({4, 8});
  m.vocabulary = 128;
  m.tied_embedding = coin();
  m.dropout = any_of({0.0, 0.1});
  m.longest = 32;
  return m;
}

Recipe any_recipe() {
  const auto framework = any_of({ParallelFramework::megatron, ParallelFramework::megatron, ParallelFramework::deepspeed,
                                 ParallelFramework::torchtitan});
  const bool megatron = framework == ParallelFramework::megatron;
  const std::int64_t pipeline = any_of<std::int64_t>({1, 1, 2, 3}),
                     interleave = pipeline > 1 && framework != ParallelFramework::deepspeed && coin() ? 2 : 1;
  Recipe r;
  r.optimizer = OptimizerKind::adam;
  r.accumulation = pipeline * any_of<std::int64_t>({1, 2, 3});
  ModelParallel& p = r.parallel;
  p.framework = framework;
  p.tensor = any_of<std::int64_t>({1, 2, 4});
  p.pipeline = pipeline, p.interleave = interleave;
  p.sequence_parallel = p.tensor > 1 && any_of({0, 1, 2}) > 0;
  p.async_tensor_all_reduce = coin();
  r.data_parallel = any_of({1u, 2u, 3u});
  r.precision = any_of({Precision::bf16, Precision::bf16, Precision::fp16, Precision::fp32});
  if (megatron && any_of({0, 1, 2}) == 0) {
    r.precision = Precision::fp8_transformer_engine;
    r.fp8_recipe = any_of({Fp8Recipe::delayed, Fp8Recipe::tensorwise});
    r.fp8_weight_cache = coin();
  }
  if (framework == ParallelFramework::torchtitan && coin()) {  // torchao's, which asks for shared tokens
    r.precision = Precision::fp8;
    p.tensor = any_of<std::int64_t>({2, 4});
    p.sequence_parallel = true;
  }
  if (megatron) p.main_gradients = any_of({MainGradients::automatic, MainGradients::none, MainGradients::fp32});
  p.distributed_optimizer = framework != ParallelFramework::torchtitan && coin();
  p.overlap_grad_reduce = megatron && r.data_parallel > 1 && coin();
  p.overlap_param_gather = p.overlap_grad_reduce && p.distributed_optimizer && coin();
  p.cross_entropy_loss_fusion = megatron && coin();
  p.tp_comm_overlap = megatron && p.sequence_parallel && coin();
  p.async_tensor_parallel = framework == ParallelFramework::torchtitan && p.sequence_parallel && coin();
  p.clip_gradients = coin();
  p.deallocate_outputs = coin();
  p.scatter_gather_tensors = coin();
  p.pipe_partitioned = coin();
  p.schedule =
      framework == ParallelFramework::torchtitan && coin() ? PipelineSchedule::gpipe : PipelineSchedule::one_f_one_b;
  r.checkpoint = any_of({ActivationCheckpoint::none, ActivationCheckpoint::full, ActivationCheckpoint::selective});
  r.attention = any_of({Attention::plain, Attention::flash});
  r.fused_kernels = coin();
  if (megatron && any_of({0, 1, 2, 3}) == 0) r.lora_rank = 8;
  return r;
}

// Drawn until one is not refused.
struct AnyJob {
  Trace trace;
  bool is_float8 = false;
  bool in_pieces = false;  // of one storage, which races() cannot tell apart: some arrive while others are multiplied
};
AnyJob any_job(std::string& text) {
  for (;;) {
    const Recipe r = any_recipe();
    const ModelParallel& p = r.parallel;
    const Model m = any_model(p.pipeline * p.interleave);
    text = fmt::format(
        "framework {} t {} p {} v {} m {} D {} SP {} precision {} gradients {} distributed {} overlaps {} {} LoRA {} "
        "checkpoint {} schedule {} llama {} tied {}",
        static_cast<int>(p.framework), p.tensor, p.pipeline, p.interleave, r.accumulation, r.data_parallel,
        p.sequence_parallel, static_cast<int>(r.precision), static_cast<int>(p.main_gradients), p.distributed_optimizer,
        p.overlap_grad_reduce, p.overlap_param_gather, r.lora_rank, static_cast<int>(r.checkpoint),
        static_cast<int>(p.schedule), m.activation == Activation::swiglu, m.tied_embedding);
    try {
      return {generate_step(m, r), r.precision == Precision::fp8, p.tp_comm_overlap || p.async_tensor_parallel};
    } catch (const UsageError&) {
    }
  }
}

RC_GTEST_PROP(CollectiveMemoryProperty, LivesUntilSomebodyHasWaited, ()) {
  std::string text;
  const AnyJob job = any_job(text);
  for (std::size_t i = 0; i < rank_count(job.trace); ++i) {
    const Trace rank = one_rank(job.trace, static_cast<std::uint16_t>(i));
    const std::vector<std::string> early = early_frees(rank, 1),
                                   raced = job.in_pieces ? early : races(repeated(rank, 2), 1);
    RC_CLASSIFY(job.is_float8, "float8");
    if (!early.empty()) RC_FAIL(text + ": " + early.front());
    if (!raced.empty()) RC_FAIL(text + ": " + raced.front());
  }
}

// Without the wait behind a collective of tensor-parallel ranks one of the two says so, where no other wait on the same
// stream comes before its results are used.
TEST(CollectiveMemory, WaitsThatAreLeftOutAreNoticed) {
  for (const auto framework : {ParallelFramework::megatron, ParallelFramework::torchtitan}) {
    Recipe r;
    r.parallel.framework = framework;
    r.parallel.tensor = 2;
    r.parallel.sequence_parallel = true;
    Model m = small_rotary_decoder();
    m.vocabulary = 128;
    const Trace sound = generate_step(m, r);
    ASSERT_EQ(races(sound), std::vector<std::string>{});
    ASSERT_EQ(early_frees(sound), std::vector<std::string>{});
    std::size_t waits = 0, noticed = 0;
    for (std::size_t i = 1; i < sound.ops.size(); ++i) {
      const Op &wait = sound.ops[i], &record = sound.ops[i - 1];
      if (wait.kind != OpKind::event_wait || wait.stream != 0 || wait.phase == Phase::optimizer) continue;
      if (record.kind != OpKind::event_record || record.stream == 0) continue;
      Trace broken = sound;
      broken.ops[i].kind = OpKind::mark;
      noticed += !races(broken, 1).empty() || !early_frees(broken, 1).empty();
      ++waits;
    }
    EXPECT_GE(waits, 20u);
    EXPECT_GE(noticed, waits / 2) << "of " << waits;
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
