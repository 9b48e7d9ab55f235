// Which ranks form which groups: Megatron-LM's grids, worked out by hand (../shared/spec/parallelism.md, 1.2 and G1).
#include "models/workload/generate/parallel/rank_layout.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "sim/error.h"
#include "tests/support/parallel_ranks.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

using Members = std::vector<std::uint32_t>;

RankSizes sizes(std::uint32_t tensor, std::uint32_t data, std::uint32_t pipeline) {
  RankSizes s;
  s.tensor = tensor, s.data = data, s.pipeline = pipeline;
  return s;
}

TEST(RankLayout, TensorIsInnermostAndPipelineOutermost) {
  const RankGrid one = dense_grid(sizes(8, 1, 8));
  EXPECT_EQ(one.ranks(), 64u);
  EXPECT_EQ(one.group(0, "tp"), (Members{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(one.group(0, "pp"), (Members{0, 8, 16, 24, 32, 40, 48, 56}));
  EXPECT_EQ(one.group(0, "dp"), (Members{0}));
  const RankGrid two = dense_grid(sizes(8, 2, 4));
  EXPECT_EQ(two.group(0, "pp"), (Members{0, 16, 32, 48}));
  EXPECT_EQ(two.group(8, "pp"), (Members{8, 24, 40, 56}));
  EXPECT_EQ(two.group(0, "dp"), (Members{0, 8}));
  EXPECT_EQ(two.group(16, "dp"), (Members{16, 24}));
  EXPECT_EQ(two.group(24, "dp"), (Members{16, 24}));
}

TEST(RankLayout, PipelineBeforeData) {
  const RankGrid grid = dense_grid(sizes(8, 2, 4), true);
  EXPECT_EQ(grid.group(0, "dp"), (Members{0, 32}));
  EXPECT_EQ(grid.group(0, "pp"), (Members{0, 8, 16, 24}));
}

TEST(RankLayout, GroupsOfSeveralAxesSpanTheirProduct) {
  const RankGrid grid = dense_grid(sizes(2, 2, 2));
  const std::string_view model[] = {"tp", "pp"};
  EXPECT_EQ(grid.group(2, model), (Members{2, 3, 6, 7}));
  const std::string_view all[] = {"tp", "dp", "pp"};
  EXPECT_EQ(grid.group(5, all), (Members{0, 1, 2, 3, 4, 5, 6, 7}));
}

// G1c, G1d: experts have a grid of their own over the same ranks.
TEST(RankLayout, ExpertsSpanTensorParallelGroups) {
  RankSizes s = sizes(2, 4, 2);
  EXPECT_EQ(dense_grid(s).group(0, "dp"), (Members{0, 2, 4, 6}));
  EXPECT_EQ(dense_grid(s).group(1, "dp"), (Members{1, 3, 5, 7}));
  s.expert = 4, s.expert_tensor = 1;
  const RankGrid experts = expert_grid(s);
  EXPECT_EQ(experts.group(0, "ep"), (Members{0, 1, 2, 3}));
  EXPECT_EQ(experts.group(5, "ep"), (Members{4, 5, 6, 7}));
  EXPECT_EQ(experts.group(0, "dp"), (Members{0, 4}));
  EXPECT_EQ(experts.group(8, "dp"), (Members{8, 12}));
  for (std::uint32_t rank = 0; rank < 16; ++rank)
    EXPECT_EQ(experts.group(rank, "pp"), dense_grid(s).group(rank, "pp")) << rank;
  s.expert = 2, s.expert_tensor = 2;
  const RankGrid split = expert_grid(s);
  EXPECT_EQ(split.group(0, "tp"), (Members{0, 1}));
  EXPECT_EQ(split.group(2, "tp"), (Members{2, 3}));
  EXPECT_EQ(split.group(0, "ep"), (Members{0, 2}));
  EXPECT_EQ(split.group(1, "ep"), (Members{1, 3}));
  EXPECT_EQ(split.group(0, "dp"), (Members{0, 4}));
}

TEST(RankLayout, RefusesExpertsWhosePipelinesWouldDiffer) {
  RankSizes s = sizes(2, 4, 2);
  s.expert = 3, s.expert_tensor = 1;
  EXPECT_THROW(expert_grid(s), UsageError);
  s.expert = 4;
  EXPECT_THROW(expert_grid(s, true), UsageError);
  s.expert_tensor = 2, s.expert = 1;
  EXPECT_EQ(expert_grid(s, true).group(0, "pp"), dense_grid(s, true).group(0, "pp"));
}

// The groups that generated programs name are those of the grid, and each program stands for its own.
TEST(RankLayout, IsThatOfAGeneratedJob) {
  Recipe recipe = parallel_recipe(8, 4, 1, 4);
  recipe.data_parallel = 2;
  const Trace joined = generate_step(small_gpt(4), recipe);
  EXPECT_EQ(joined.job_ranks, 64u);
  ASSERT_EQ(joined.rank_table.size(), 4u);
  std::map<std::string, Members> groups;
  for (std::uint16_t i = 0; i < 4; ++i) {
    const Rank& rank = joined.rank_table[i];
    EXPECT_EQ(rank.number, 16u * i);
    Members others;
    for (std::uint32_t other = 1; other < 16; ++other) others.push_back(16u * i + other);
    EXPECT_EQ(rank.stands_for, others);
    const Trace program = one_rank(joined, i);
    for (const Op& op : program.ops) {
      if (op.kind != OpKind::collective) continue;
      const ProcessGroup& group = program.groups[op.group];
      groups[std::to_string(i) + " " + group.name] = group.members;
    }
  }
  EXPECT_EQ(groups.at("0 tensor parallel"), (Members{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(groups.at("1 tensor parallel"), (Members{16, 17, 18, 19, 20, 21, 22, 23}));
  EXPECT_EQ(groups.at("0 data parallel"), (Members{0, 8}));
  EXPECT_EQ(groups.at("3 data parallel"), (Members{48, 56}));
  EXPECT_EQ(groups.at("0 embedding"), (Members{0, 48}));
  EXPECT_EQ(groups.at("3 embedding"), (Members{0, 48}));
  EXPECT_EQ(groups.count("1 embedding"), 0u);
  EXPECT_EQ(groups.at("2 all ranks").size(), 64u);
}

// G15: 16384 GPUs as t8 p16 D128 are 16 programs, each of 1024 ranks.
TEST(RankLayout, FoldsEqualRanks) {
  Recipe recipe = parallel_recipe(8, 16, 1, 16);
  recipe.data_parallel = 128;
  const Trace joined = generate_step(small_gpt(16), recipe);
  EXPECT_EQ(joined.job_ranks, 16384u);
  ASSERT_EQ(joined.rank_table.size(), 16u);
  for (const Rank& rank : joined.rank_table) EXPECT_EQ(rank.stands_for.size(), 1023u);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
