// Does a recipe come back from its trace file, and survive what rewriters and joins do to a trace?
#include <gtest/gtest.h>

#include "sim/trace/ranks.h"
#include "sim/trace/trace_builder.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/scratch_folder.h"
#include "traces/trace/trace_file.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

const RecipeItem kPrecision{"precision", "pure bf16", "precision=bf16"}, kBatch{"batch", "8 samples", ""};

TEST(RecipeFile, GivesItBack) {
  const ScratchFolder folder;
  Trace trace = gpt_step({});
  write_trace(trace, folder / "none.mwt");
  EXPECT_TRUE(read_trace(folder / "none.mwt").recipe.empty()) << "as of files from before";
  trace.recipe = {kPrecision, kBatch};
  write_trace(trace, folder / "step.mwt");
  EXPECT_EQ(read_trace(folder / "step.mwt").recipe, trace.recipe);
}

TEST(RecipeFile, RanksKeepWhatTheyHaveInCommon) {
  Trace a = gpt_step({}), b = gpt_step({});
  a.recipe = {kPrecision, kBatch};
  b.recipe = {kPrecision, {"batch", "4 samples", ""}};
  std::vector<RankProgram> ranks;
  ranks.push_back({0, std::move(a)});
  ranks.push_back({1, std::move(b)});
  const Trace joined = joined_ranks(std::move(ranks));
  EXPECT_EQ(joined.recipe, std::vector<RecipeItem>{kPrecision});
  EXPECT_EQ(one_rank(joined, 0).recipe, joined.recipe);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
