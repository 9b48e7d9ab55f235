// Do the programs of a job fit together? Every message has one sender and one receiver of as many bytes, in the same
// order on both sides; all collectives that several stages share are met by all of them; nobody waits for ever.
#include "models/workload/generate/parallel/pipeline_messages.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "models/hw/modelled_step.h"
#include "sim/engine/simulation.h"
#include "sim/error.h"
#include "sim/trace/trace_check.h"
#include "tests/support/parallel_ranks.h"
#include "tests/support/test_machine.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

// --- pairs

struct Side {
  std::size_t rank = 0;
  Bytes sent = 0, received = 0;
};

Bytes written_bytes(const Trace& t, const Op& op) {
  Bytes sum = 0;
  for (const Use& use : t.uses_of(op))
    if (use.access == Access::write) sum += t.storages[use.storage].bytes;
  return sum;
}

// Sentences about what does not fit; empty where all does. By index of rank, in the order of the pipeline.
std::vector<std::string> faults_of(const std::vector<Trace>& ranks) {
  std::vector<std::string> faults;
  std::map<std::uint32_t, std::vector<Side>> messages;
  std::map<std::pair<std::size_t, std::vector<std::uint32_t>>, std::multiset<std::vector<std::uint32_t>>> orders;
  std::map<std::uint32_t, std::set<std::size_t>> meetings;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    std::map<std::pair<std::uint16_t, std::vector<std::uint32_t>>, std::vector<std::uint32_t>> streams;
    for (const Op& op : ranks[i].ops) {
      if (op.kind != OpKind::collective || op.target == kNoRendezvous) continue;
      if (op.collective != CollectiveKind::send_receive) {
        if (!meetings[op.target].insert(i).second)
          faults.push_back(fmt::format("rank {} meets {} twice", i, op.target));
        continue;
      }
      messages[op.target].push_back({i, op.bytes, written_bytes(ranks[i], op)});
      streams[{op.stream, ranks[i].groups[op.group].members}].push_back(op.target);
    }
    for (const auto& [stream, order] : streams) orders[{i, stream.second}].insert(order);
  }
  for (const auto& [number, sides] : messages) {
    if (sides.size() != 2 || sides[0].rank == sides[1].rank)
      faults.push_back(fmt::format("message {} has {} sides", number, sides.size()));
    else if (sides[0].sent != sides[1].received || sides[1].sent != sides[0].received)
      faults.push_back(fmt::format("message {}: what is sent is not what is received", number));
  }
  for (const auto& [side, order] : orders)
    for (const auto& [other, others] : orders)
      if (side.second == other.second && side.first < other.first && order != others)
        faults.push_back(fmt::format("ranks {} and {} have their messages in other orders", side.first, other.first));
  const std::size_t all = ranks.size();
  for (const auto& [number, members] : meetings)
    if (members.size() != all && !(members.size() == 2 && members.count(0) == 1 && members.count(all - 1) == 1))
      faults.push_back(fmt::format("meeting {} has {} members", number, members.size()));
  return faults;
}

// --- random jobs

struct Job {
  Model model;
  Recipe recipe;
  std::string text;
};

// Of all that the generators take.
std::vector<Job> random_jobs(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  const auto draw = [&](std::int64_t from, std::int64_t to) {
    return from + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(to - from + 1));
  };
  std::vector<Job> jobs;
  while (jobs.size() < count) {
    const std::int64_t p = draw(1, 5), v = p > 1 ? draw(1, 3) : 1;
    Job job{small_gpt(p * v * draw(1, 2)), parallel_recipe(std::int64_t{1} << draw(0, 2), p, v, draw(1, 9)), ""};
    if (random() % 3 == 0) job.model.positions = Positions::rotary;
    job.model.tied_embedding = random() % 2 == 0;
    Recipe& r = job.recipe;
    ModelParallel& parallel = r.parallel;
    parallel.framework = static_cast<ParallelFramework>(random() % 3);
    const bool megatron = parallel.framework == ParallelFramework::megatron;
    parallel.sequence_parallel = parallel.tensor > 1 && random() % 2 == 0;
    parallel.microbatch_group = v > 1 && parallel.framework != ParallelFramework::torchtitan ? p + draw(0, 2) : 0;
    parallel.schedule = megatron || random() % 2 ? PipelineSchedule::one_f_one_b : PipelineSchedule::gpipe;
    parallel.main_gradients = static_cast<MainGradients>(megatron ? random() % 3 : 0);
    parallel.distributed_optimizer = megatron && parallel.main_gradients != MainGradients::none && random() % 2;
    parallel.overlap_grad_reduce = megatron && parallel.main_gradients != MainGradients::none && random() % 2;
    parallel.overlap_param_gather = parallel.distributed_optimizer && parallel.overlap_grad_reduce && random() % 2;
    parallel.deallocate_outputs = random() % 4 != 0;
    parallel.rank_order = static_cast<RankOrder>(random() % 2);
    r.data_parallel = static_cast<std::uint32_t>(draw(1, 3));
    r.precision = random() % 4 == 0 ? Precision::fp16 : Precision::bf16;
    r.checkpoint = static_cast<ActivationCheckpoint>(random() % 3);
    job.text = fmt::format(
        "framework {} t {} p {} v {} N {} m {} D {} SP {} schedule {} gradients {} distributed {} overlap {} {} "
        "checkpoint {} layers {} tied {}",
        static_cast<int>(parallel.framework), parallel.tensor, p, v, parallel.microbatch_group, r.accumulation,
        r.data_parallel, parallel.sequence_parallel, static_cast<int>(parallel.schedule),
        static_cast<int>(parallel.main_gradients), parallel.distributed_optimizer, parallel.overlap_grad_reduce,
        parallel.overlap_param_gather, static_cast<int>(r.checkpoint), job.model.layers, job.model.tied_embedding);
    try {
      generate_step(job.model, job.recipe);
    } catch (const UsageError&) {
      continue;  // refused: tested elsewhere
    }
    jobs.push_back(std::move(job));
  }
  return jobs;
}

TEST(PipelineMessages, FitTogetherInRandomJobs) {
  std::set<std::string> kinds;
  for (const Job& job : random_jobs(200, 1)) {
    const std::vector<Trace> ranks = generated_ranks(job.model, job.recipe);
    const std::vector<std::string> faults = faults_of(ranks);
    EXPECT_TRUE(faults.empty()) << job.text << ": " << fmt::format("{}", fmt::join(faults, "; "));
    const ModelParallel& parallel = job.recipe.parallel;
    kinds.insert(fmt::format("{} {} {}", static_cast<int>(parallel.framework), static_cast<int>(parallel.schedule),
                             parallel.interleave > 1));
  }
  EXPECT_GE(kinds.size(), 6u) << "frameworks, schedules, interleaved or not";
  EXPECT_TRUE(kinds.contains("2 0 true")) << "torchtitan's interleaved ones among them";
}

// What messages there are: one forward and one backward for each boundary and micro-batch.
TEST(PipelineMessages, AreAsManyAsBoundariesAndMicroBatches) {
  for (const Job& job : random_jobs(60, 2)) {
    std::set<std::uint32_t> numbers;
    std::size_t received = 0;
    const ModelParallel& parallel = job.recipe.parallel;
    for (const Trace& rank : generated_ranks(job.model, job.recipe))
      for (const Op& op : collectives_of(rank, "pipeline")) {
        numbers.insert(op.target);
        for (const Use& use : rank.uses_of(op)) received += use.access == Access::write;
      }
    const auto expected =
        static_cast<std::size_t>(2 * (parallel.pipeline * parallel.interleave - 1) * job.recipe.accumulation);
    EXPECT_EQ(received, expected) << job.text;
    EXPECT_LE(numbers.size(), expected) << job.text;
  }
}

SimulationResult simulated(const Trace& job) {
  static const Machine machine = test_machine();  // no link that GPUs share
  SimulationOptions options;
  options.allocator = "ideal";
  return simulate(modelled_on(job, machine), machine, options);
}

TEST(PipelineMessages, NobodyWaitsForEver) {
  for (const Job& job : random_jobs(150, 3)) {
    const Trace joined = generate_step(job.model, job.recipe);
    ASSERT_TRUE(check(joined).empty()) << job.text << ": " << check(joined).front();
    try {
      EXPECT_GT(simulated(joined).gpu_span, Duration{}) << job.text;
    } catch (const InputError& error) {
      ADD_FAILURE() << job.text << ": " << error.what();
    }
  }
}

// --- planted faults

std::vector<std::size_t> messages_of(const Trace& rank) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < rank.ops.size(); ++i)
    if (rank.ops[i].kind == OpKind::collective && rank.ops[i].collective == CollectiveKind::send_receive)
      found.push_back(i);
  return found;
}

Trace joined_again(const Trace& like, const std::vector<Trace>& ranks) {
  std::vector<RankProgram> programs;
  for (std::size_t i = 0; i < ranks.size(); ++i)
    programs.push_back({like.rank_table[i].number, ranks[i], like.rank_table[i].stands_for});
  return joined_ranks(std::move(programs));
}

TEST(PipelineMessages, PlantedFaultsAreFound) {
  const Trace job = generate_step(small_gpt(4), parallel_recipe(2, 4, 1, 6));
  const std::vector<Trace> sound = generated_ranks(small_gpt(4), parallel_recipe(2, 4, 1, 6));
  ASSERT_TRUE(faults_of(sound).empty());
  {
    std::vector<Trace> ranks = sound;  // two messages swapped
    const std::vector<std::size_t> at = messages_of(ranks[1]);
    std::swap(ranks[1].ops[at[0]].target, ranks[1].ops[at[2]].target);
    EXPECT_FALSE(faults_of(ranks).empty());
    EXPECT_THROW(simulated(joined_again(job, ranks)), InputError);
  }
  {
    std::vector<Trace> ranks = sound;  // a message left out
    ranks[2].ops[messages_of(ranks[2])[3]].target = kNoRendezvous;
    EXPECT_FALSE(faults_of(ranks).empty());
  }
  {
    std::vector<Trace> ranks = sound;  // half of one sent
    ranks[0].ops[messages_of(ranks[0])[0]].bytes /= 2;
    EXPECT_FALSE(faults_of(ranks).empty());
  }
  {
    std::vector<Trace> ranks = sound;  // a rank that does not come to the norm of all gradients
    for (Op& op : ranks[3].ops)
      if (op.kind == OpKind::collective && op.collective == CollectiveKind::all_reduce && op.target != kNoRendezvous &&
          ranks[3].groups[op.group].name == "all ranks")
        op.target = kNoRendezvous;
    EXPECT_FALSE(faults_of(ranks).empty());
  }
}

// --- who waits for what

std::size_t synchronizations(const Trace& rank) {
  return static_cast<std::size_t>(std::count_if(rank.ops.begin(), rank.ops.end(), [](const Op& op) {
    return op.kind == OpKind::synchronize && op.wait_for == WaitFor::device;
  }));
}

// Megatron-LM's 1F1B drains the device after each call: of m micro-batches on an interior rank m - w steady iterations
// of two calls, one before them, and two for each in warm-up and cool-down. Interleaved it never does.
TEST(PipelineMessages, OnlyPlain1F1BDrainsTheDevice) {
  const std::int64_t p = 4, m = 8;
  const std::vector<Trace> plain = generated_ranks(small_gpt(8), parallel_recipe(1, p, 1, m));
  for (std::int64_t i = 1; i + 1 < p; ++i) {
    const std::int64_t warm_up = p - i - 1;
    EXPECT_EQ(synchronizations(plain[static_cast<std::size_t>(i)]),
              static_cast<std::size_t>(2 * warm_up + 1 + 2 * (m - warm_up) + 2 * warm_up));
  }
  for (const Trace& rank : generated_ranks(small_gpt(8), parallel_recipe(1, p, 2, m)))
    EXPECT_EQ(synchronizations(rank), 0u);
  Recipe deepspeed = parallel_recipe(1, p, 1, m);
  deepspeed.parallel.framework = ParallelFramework::deepspeed;
  for (const Trace& rank : generated_ranks(small_gpt(8), deepspeed)) EXPECT_EQ(synchronizations(rank), 0u);
}

// --- receive buffers

Bytes kept_buffers(const Trace& rank) { return preexisting_bytes(rank, StorageKind::communication_buffer); }

// torch's PipelineStage keeps one for each micro-batch, of inputs and of output gradients (G14); Megatron-LM makes one
// for each message.
TEST(PipelineMessages, TorchKeepsReceiveBuffers) {
  Model model = small_gpt(6);
  model.tied_embedding = false;
  const std::int64_t m = 8;
  const Bytes message = 2 * 32 * 64;
  Recipe recipe = parallel_recipe(2, 4, 1, m);
  for (const Trace& rank : generated_ranks(model, [&] {
         Recipe megatron = recipe;
         megatron.parallel.stage_layout = "Et|tt|tt|tL";
         return megatron;
       }()))
    EXPECT_EQ(kept_buffers(rank), 0);
  recipe.parallel.framework = ParallelFramework::torchtitan;
  const std::vector<Trace> ranks = generated_ranks(model, recipe);
  EXPECT_EQ(kept_buffers(ranks[0]), m * message);
  EXPECT_EQ(kept_buffers(ranks[1]), 2 * m * message);
  EXPECT_EQ(kept_buffers(ranks[2]), 2 * m * message);
  EXPECT_EQ(kept_buffers(ranks[3]), m * message);
  EXPECT_EQ(2 * 16 * Bytes{8192} * 8192, 2'147'483'648) << "m 16, h 8192, s 8192";
}

// Messages that have come and are not used yet: at most N - p + 1 on the first rank where micro-batches of a chunk come
// in groups of N, else one.
TEST(PipelineMessages, WaitForTheirChunk) {
  struct Case {
    std::int64_t p, v, m, n;
  };
  for (const Case& c : {Case{2, 2, 4, 2}, {4, 2, 8, 4}, {4, 2, 12, 6}, {3, 3, 15, 5}, {4, 1, 8, 0}}) {
    Recipe recipe = parallel_recipe(1, c.p, c.v, c.m);
    recipe.parallel.microbatch_group = c.n;
    const std::vector<Trace> ranks = generated_ranks(small_gpt(c.p * c.v), recipe);
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      const Trace& rank = ranks[i];
      std::int64_t waiting = 0, most = 0;
      std::vector<bool> received(rank.storages.size()), used(rank.storages.size());
      for (const Op& op : rank.ops) {
        if (op.kind == OpKind::alloc && rank.strings[rank.storages[op.target].label] == "received") {
          received[op.target] = true;
          most = std::max(most, ++waiting);
        }
        if (op.kind != OpKind::kernel) continue;
        for (const Use& use : rank.uses_of(op))
          if (received[use.storage] && !used[use.storage]) used[use.storage] = true, --waiting;
      }
      EXPECT_EQ(waiting, 0);
      const std::int64_t expected = c.v == 1 ? 1 : i == 0 ? c.n - c.p + 1 : 1;
      EXPECT_EQ(most, c.v == 1 && i == 0 ? 0 : expected) << fmt::format("p {} v {} N {} rank {}", c.p, c.v, c.n, i);
    }
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
