// In which order ranks of a pipeline run their passes: against a generator of its own, written from the rules of
// ../shared/spec/parallelism.md, 3.2 and 3.3, and against the golden orders of its section 11 (G5).
#include "models/workload/generate/parallel/pipeline_order.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "models/workload/generate/parallel/stage_layers.h"
#include "sim/error.h"
#include "tests/support/parallel_ranks.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

using Passes = std::vector<ProgramPass>;

// --- the rules, once more

struct Virtual {
  std::int64_t microbatch, chunk;
};

// Virtual micro-batch k: groups of N micro-batches, within a group chunk by chunk.
Virtual virtual_microbatch(std::int64_t k, std::int64_t m, std::int64_t v, std::int64_t n) {
  const std::int64_t group = k / (n * v), first = group * n, size = std::min(n, m - first);
  const std::int64_t within = k - group * n * v;
  return {first + within % size, within / size};
}

Passes reference(std::int64_t p, std::int64_t m, std::int64_t v, std::int64_t n, std::int64_t i) {
  const std::int64_t all = v * m;
  const std::int64_t w = v == 1 ? std::min(p - i - 1, m) : std::min(2 * (p - i - 1) + (v - 1) * n, all);
  const auto forward = [&](std::int64_t k) {
    const Virtual at = virtual_microbatch(k, m, v, n);
    return ProgramPass{false, at.chunk, at.microbatch};
  };
  const auto backward = [&](std::int64_t k) {
    const Virtual at = virtual_microbatch(k, m, v, n);
    return ProgramPass{true, v - 1 - at.chunk, at.microbatch};
  };
  Passes order;
  for (std::int64_t k = 0; k < w; ++k) order.push_back(forward(k));
  for (std::int64_t k = 0; k < all - w; ++k) {
    order.push_back(forward(k + w));
    order.push_back(backward(k));
  }
  for (std::int64_t k = all - w; k < all; ++k) order.push_back(backward(k));
  return order;
}

Passes generated_order(const PipelineShape& shape, std::int64_t rank) {
  Passes order;
  for (const PipelinePass& pass : pipeline_order(PipelineSchedule::one_f_one_b, shape, rank))
    order.push_back({pass.backward, pass.chunk, pass.microbatch});
  return order;
}

std::string text(const Passes& order) {
  std::string all;
  for (const ProgramPass& pass : order)
    all += fmt::format("{}{}{}.{}", all.empty() ? "" : " ", pass.backward ? 'B' : 'F', pass.microbatch, pass.chunk);
  return all;
}

struct Sizes {
  std::int64_t p, m, v, n;
};

// What Megatron-LM takes: p <= N <= m, the last group empty or at least as long as the pipeline.
std::vector<Sizes> random_sizes(std::size_t count, std::int64_t most_ranks, std::int64_t most_groups) {
  std::mt19937 random(28);
  const auto draw = [&](std::int64_t from, std::int64_t to) {
    return from + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(to - from + 1));
  };
  std::vector<Sizes> all;
  while (all.size() < count) {
    Sizes s{draw(2, most_ranks), 0, draw(1, 4), 0};
    s.m = draw(1, most_groups * s.p);
    s.n = draw(s.p, s.p + 3);
    if (s.v > 1 && (s.m < s.n || (s.m % s.n != 0 && s.m % s.n < s.p))) continue;
    all.push_back(s);
  }
  return all;
}

TEST(PipelineOrder, IsTheSpecificationsOf200RandomSizes) {
  std::size_t interleaved = 0, short_last_group = 0, fewer_than_ranks = 0;
  for (const Sizes& s : random_sizes(200, 9, 5)) {
    const PipelineShape shape{s.p, s.v, s.m, s.n};
    ASSERT_NO_THROW(require_schedule(PipelineSchedule::one_f_one_b, shape));
    interleaved += s.v > 1;
    short_last_group += s.v > 1 && s.m % s.n != 0;
    fewer_than_ranks += s.v == 1 && s.m < s.p;
    for (std::int64_t i = 0; i < s.p; ++i) {
      const Passes expected = reference(s.p, s.m, s.v, s.n, i), order = generated_order(shape, i);
      ASSERT_EQ(order, expected) << fmt::format("p {} m {} v {} N {} rank {}", s.p, s.m, s.v, s.n, i);
      const std::int64_t most =
          s.v == 1 ? std::min(s.p - i, s.m) : std::min(2 * (s.p - i - 1) + (s.v - 1) * s.n + 1, s.v * s.m);
      EXPECT_EQ(most_in_flight(pipeline_order(PipelineSchedule::one_f_one_b, shape, i)), most);
    }
  }
  EXPECT_GE(interleaved, 80u);
  EXPECT_GE(short_last_group, 20u);
  EXPECT_GE(fewer_than_ranks, 5u);
}

// --- torch's interleaved 1F1B, once more: time steps of all ranks, as ScheduleInterleaved1F1B counts them

struct TorchSizes {
  std::int64_t p, v, m;
};

// Which micro-batch a stage runs next is what it has run so far; which stage, the number of the pass says.
Passes torch_reference(const TorchSizes& s, std::int64_t rank) {
  const std::int64_t rounds = s.m >= s.p ? s.m / s.p : 1, in_a_row = s.m / rounds, all = s.v * s.m;
  std::int64_t warm_up = (s.v - 1) * in_a_row + 2 * (s.p - 1 - rank);
  if (warm_up > all) warm_up = all;
  std::map<std::int64_t, std::int64_t> forward_done, backward_done;
  Passes order;
  for (std::int64_t step = 0; step < all + warm_up; ++step) {
    if (step < all) {
      const std::int64_t chunk = step / in_a_row % s.v;
      order.push_back({false, chunk, forward_done[chunk]++});
    }
    if (step >= warm_up) {
      const std::int64_t chunk = s.v - 1 - (step - warm_up) / in_a_row % s.v;
      order.push_back({true, chunk, backward_done[chunk]++});
    }
  }
  return order;
}

TEST(PipelineOrder, OfRoundsIsTorchsOf200RandomSizes) {
  std::mt19937 random(215);
  const auto draw = [&](std::int64_t from, std::int64_t to) {
    return from + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(to - from + 1));
  };
  std::size_t compared = 0, fewer_than_ranks = 0, longer_rounds = 0;
  while (compared < 200) {
    const TorchSizes s{draw(2, 9), draw(2, 5), draw(1, 45)};
    const PipelineShape shape{s.p, s.v, s.m, 0, true};
    const bool divides = s.m < s.p || s.m % (s.m / s.p) == 0;
    if (!divides) {
      EXPECT_THROW(require_schedule(PipelineSchedule::one_f_one_b, shape), UsageError);
      continue;
    }
    ASSERT_NO_THROW(require_schedule(PipelineSchedule::one_f_one_b, shape));
    ++compared;
    fewer_than_ranks += s.m < s.p;
    longer_rounds += s.m > s.p && s.m % s.p != 0;
    for (std::int64_t i = 0; i < s.p; ++i)
      ASSERT_EQ(generated_order(shape, i), torch_reference(s, i))
          << fmt::format("p {} v {} m {} rank {}", s.p, s.v, s.m, i);
  }
  EXPECT_GE(fewer_than_ranks, 15u);
  EXPECT_GE(longer_rounds, 15u);
}

// Where rounds are as long as the pipeline both frameworks run the same passes.
TEST(PipelineOrder, OfRoundsIsMegatronsWhereTheyAreAsLongAsThePipeline) {
  for (std::int64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(generated_order({4, 2, 12, 0, true}, i), generated_order({4, 2, 12, 0}, i));
    EXPECT_NE(generated_order({4, 2, 10, 0, true}, i), generated_order({4, 2, 12, 0}, i));
  }
}

// --- golden orders: printed by ../shared/spec/parallelism_golden.py, "G5 orders"

TEST(PipelineOrder, GoldenOrdersOfFourRanks) {
  EXPECT_EQ(text(generated_order({4, 1, 8, 0}, 0)),
            "F0.0 F1.0 F2.0 F3.0 B0.0 F4.0 B1.0 F5.0 B2.0 F6.0 B3.0 F7.0 B4.0 B5.0 B6.0 B7.0");
  EXPECT_EQ(text(generated_order({4, 1, 8, 0}, 3)),
            "F0.0 B0.0 F1.0 B1.0 F2.0 B2.0 F3.0 B3.0 F4.0 B4.0 F5.0 B5.0 F6.0 B6.0 F7.0 B7.0");
  EXPECT_EQ(text(generated_order({4, 2, 8, 0}, 3)),
            "F0.0 F1.0 F2.0 F3.0 F0.1 B0.1 F1.1 B1.1 F2.1 B2.1 F3.1 B3.1 F4.0 B0.0 F5.0 B1.0 F6.0 B2.0 F7.0 B3.0 "
            "F4.1 B4.1 F5.1 B5.1 F6.1 B6.1 F7.1 B7.1 B4.0 B5.0 B6.0 B7.0");
}

TEST(PipelineOrder, GoldenWarmUpsAndPeaks) {
  const auto of = [](const PipelineShape& shape, bool peaks) {
    std::vector<std::int64_t> all;
    for (std::int64_t i = 0; i < shape.ranks; ++i)
      all.push_back(peaks ? most_in_flight(pipeline_order(PipelineSchedule::one_f_one_b, shape, i))
                          : warm_up_passes(PipelineSchedule::one_f_one_b, shape, i));
    return all;
  };
  using List = std::vector<std::int64_t>;
  EXPECT_EQ(of({4, 1, 8, 0}, true), (List{4, 3, 2, 1}));
  EXPECT_EQ(of({4, 2, 8, 0}, false), (List{10, 8, 6, 4}));
  EXPECT_EQ(of({4, 2, 8, 0}, true), (List{11, 9, 7, 5}));
  EXPECT_EQ(of({4, 2, 12, 6}, false), (List{12, 10, 8, 6}));
  EXPECT_EQ(of({4, 2, 12, 6}, true), (List{13, 11, 9, 7}));
}

// --- makespans: a forward pass of a stage takes 6, backward 12, nothing else any time; a chunk takes its share

struct Played {
  std::int64_t makespan = 0;
  std::vector<std::int64_t> idle;
};

Played played(const std::vector<Passes>& orders, std::int64_t v) {
  const auto p = static_cast<std::int64_t>(orders.size());
  const std::int64_t stages = p * v, forward = 6 / v;
  std::map<std::tuple<bool, std::int64_t, std::int64_t>, std::int64_t> end;  // backward, stage, micro-batch
  std::vector<std::size_t> at(orders.size());
  std::vector<std::int64_t> clock(orders.size()), busy(orders.size());
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t r = 0; r < orders.size(); ++r)
      while (at[r] < orders[r].size()) {
        const ProgramPass& pass = orders[r][at[r]];
        const std::int64_t stage = pass.chunk * p + static_cast<std::int64_t>(r);
        std::vector<std::tuple<bool, std::int64_t, std::int64_t>> needs;
        if (!pass.backward && stage > 0) needs.push_back({false, stage - 1, pass.microbatch});
        if (pass.backward) needs.push_back({false, stage, pass.microbatch});
        if (pass.backward && stage + 1 < stages) needs.push_back({true, stage + 1, pass.microbatch});
        if (std::any_of(needs.begin(), needs.end(), [&](const auto& one) { return !end.contains(one); })) break;
        for (const auto& one : needs) clock[r] = std::max(clock[r], end.at(one));
        const std::int64_t work = pass.backward ? 2 * forward : forward;
        clock[r] += work;
        busy[r] += work;
        end[{pass.backward, stage, pass.microbatch}] = clock[r];
        ++at[r];
        moved = true;
      }
  }
  Played result;
  for (std::size_t r = 0; r < orders.size(); ++r) {
    EXPECT_EQ(at[r], orders[r].size()) << "rank " << r << " waits for ever";
    result.makespan = std::max(result.makespan, clock[r]);
  }
  for (const std::int64_t b : busy) result.idle.push_back(result.makespan - b);
  return result;
}

std::vector<Passes> orders_of(const PipelineShape& shape, PipelineSchedule schedule = PipelineSchedule::one_f_one_b) {
  std::vector<Passes> orders(static_cast<std::size_t>(shape.ranks));
  for (std::int64_t i = 0; i < shape.ranks; ++i)
    for (const PipelinePass& pass : pipeline_order(schedule, shape, i))
      orders[static_cast<std::size_t>(i)].push_back({pass.backward, pass.chunk, pass.microbatch});
  return orders;
}

TEST(PipelineOrder, GoldenMakespans) {
  EXPECT_EQ(played(orders_of({4, 1, 8, 0}), 1).makespan, 33 * 6);
  EXPECT_EQ(played(orders_of({4, 1, 8, 0}, PipelineSchedule::gpipe), 1).makespan, 33 * 6);
  EXPECT_EQ(played(orders_of({4, 2, 8, 0}), 2).makespan * 2, 57 * 6);  // 28.5 stages' forward times
}

// Idle time of a rank: (p - 1) (F + B) / v, whatever the group.
TEST(PipelineOrder, BubblesAreTheClosedForms) {
  for (const Sizes& s : random_sizes(60, 6, 4)) {
    if (s.v == 4 || s.m < s.p) continue;  // 6 is divided by 1, 2 and 3
    const Played run = played(orders_of({s.p, s.v, s.m, s.n}), s.v);
    EXPECT_EQ(run.idle.front(), (s.p - 1) * 18 / s.v) << fmt::format("p {} m {} v {} N {}", s.p, s.m, s.v, s.n);
  }
}

// A swapped pair of passes shows in the comparison, and one that no rank can run in the play.
TEST(PipelineOrder, APlantedSwapIsFound) {
  std::vector<Passes> orders = orders_of({4, 2, 8, 0});
  std::swap(orders[1][3], orders[1][4]);
  EXPECT_NE(orders[1], reference(4, 8, 2, 4, 1));
  EXPECT_NE(played(orders, 2).makespan * 2, 57 * 6);
}

// --- what programs do

std::vector<std::int64_t> first_layers(const ModelParallel& parallel, std::int64_t layers, std::int64_t rank) {
  std::vector<std::int64_t> first;
  const std::vector<StageLayers> stages = stage_layers(parallel, layers);
  for (std::int64_t chunk = 0; chunk < parallel.interleave; ++chunk)
    first.push_back(stages[static_cast<std::size_t>(chunk * parallel.pipeline + rank)].first);
  return first;
}

void expect_programs_in_order(const Sizes& s, ParallelFramework framework) {
  Recipe recipe = parallel_recipe(1, s.p, s.v, s.m);
  recipe.parallel.framework = framework;
  recipe.parallel.microbatch_group = s.v > 1 ? s.n : 0;
  Model model = small_gpt(s.p * s.v);
  model.tied_embedding = false;
  if (framework == ParallelFramework::torchtitan) model.layers = 2 * s.p - 2;
  const std::vector<Trace> ranks = generated_ranks(model, recipe);
  for (std::int64_t i = 0; i < s.p; ++i)
    ASSERT_EQ(passes_of(ranks[static_cast<std::size_t>(i)], first_layers(recipe.parallel, model.layers, i)),
              reference(s.p, s.m, s.v, s.n, i))
        << fmt::format("p {} m {} v {} N {} rank {}", s.p, s.m, s.v, s.n, i);
}

TEST(PipelineOrder, ProgramsRunIt) {
  for (const Sizes& s : random_sizes(40, 5, 3)) expect_programs_in_order(s, ParallelFramework::megatron);
}

// torch's Schedule1F1B and DeepSpeed's TrainSchedule have 1F1B's order of computation, too.
TEST(PipelineOrder, FrameworksAgreeOn1F1B) {
  for (const Sizes& s : random_sizes(60, 5, 3)) {
    if (s.v > 1) continue;
    expect_programs_in_order(s, ParallelFramework::deepspeed);
    if (s.m >= s.p) expect_programs_in_order(s, ParallelFramework::torchtitan);
  }
}

TEST(PipelineOrder, GPipeRunsAllForwardPassesFirst) {
  Recipe recipe = parallel_recipe(1, 3, 1, 4);
  recipe.parallel.framework = ParallelFramework::torchtitan;
  recipe.parallel.schedule = PipelineSchedule::gpipe;
  Model model = small_gpt(4);
  model.tied_embedding = false;
  const std::vector<Trace> ranks = generated_ranks(model, recipe);
  for (std::int64_t i = 0; i < 3; ++i) {
    Passes expected;
    for (const bool backward : {false, true})
      for (std::int64_t k = 0; k < 4; ++k) expected.push_back({backward, 0, k});
    EXPECT_EQ(passes_of(ranks[static_cast<std::size_t>(i)], first_layers(recipe.parallel, 4, i)), expected);
  }
}

TEST(PipelineOrder, RefusesWhatMegatronRefuses) {
  const auto refusal = [](const PipelineShape& shape, PipelineSchedule schedule = PipelineSchedule::one_f_one_b) {
    try {
      require_schedule(schedule, shape);
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(refusal({4, 1, 1, 0}), "");
  EXPECT_EQ(refusal({4, 2, 8, 0}), "");
  EXPECT_EQ(refusal({4, 2, 10, 6}), "");  // a last group of 4
  EXPECT_NE(refusal({4, 2, 3, 0}).find("3 micro-batches cannot be interleaved in groups of 4"), std::string::npos);
  EXPECT_NE(refusal({4, 2, 9, 6}).find("9 micro-batches cannot be interleaved in groups of 6"), std::string::npos);
  EXPECT_NE(refusal({4, 2, 9, 3}).find("microbatch_group 3 is smaller than the pipeline of 4"), std::string::npos);
  EXPECT_NE(refusal({1, 2, 4, 0}).find("interleave 2 needs a pipeline"), std::string::npos);
  EXPECT_NE(refusal({4, 2, 8, 0}, PipelineSchedule::gpipe).find("GPipe with 2 chunks"), std::string::npos);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
