// What ranks hold from step to step: parameters of each stage, gradients, optimizer states (../shared/spec/
// parallelism.md, 4.1 and G8).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "tests/support/parallel_ranks.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

std::int64_t parameters_of(const Trace& rank) { return preexisting_bytes(rank, StorageKind::parameter) / 2; }

Bytes state_of(const Trace& rank) {
  return preexisting_bytes(rank, StorageKind::parameter) + preexisting_bytes(rank, StorageKind::gradient) +
         preexisting_bytes(rank, StorageKind::optimizer_state);
}

TEST(StageState, ParametersOfGpt3) {
  const Model model = gpt3();
  EXPECT_EQ(parameter_count(model), 174'615'846'912);
  const std::vector<Trace> ranks = generated_ranks(model, parallel_recipe(8, 8));
  EXPECT_EQ(parameters_of(ranks[0]), 2'822'731'776);
  for (std::size_t i = 1; i < 7; ++i) EXPECT_EQ(parameters_of(ranks[i]), 2'718'922'752) << i;
  EXPECT_EQ(parameters_of(ranks[7]), 2'797'590'528);
}

TEST(StageState, BytesPerParameter) {
  const auto interior = [](std::uint32_t data, bool distributed, Precision precision) {
    Recipe recipe = parallel_recipe(8, 8);
    recipe.data_parallel = data;
    recipe.precision = precision;
    recipe.parallel.main_gradients = MainGradients::fp32;
    recipe.parallel.distributed_optimizer = distributed;
    return state_of(generated_ranks(gpt3(), recipe)[3]);
  };
  const Bytes parameters = 2'718'922'752;
  EXPECT_EQ(interior(8, false, Precision::bf16), 48'940'609'536);
  EXPECT_EQ(interior(8, false, Precision::bf16), 18 * parameters);
  EXPECT_EQ(interior(8, true, Precision::bf16), 20'391'920'640);
  EXPECT_EQ(interior(8, true, Precision::bf16), 6 * parameters + 12 * parameters / 8);
  EXPECT_EQ(interior(8, false, Precision::fp32), 16 * parameters);
  EXPECT_EQ(interior(8, true, Precision::fp32), 8 * parameters + 8 * parameters / 8);
}

// fp16 without a buffer in fp32: gradients are made in each step in 16 bits, and a copy of them in fp32 for the update.
TEST(StageState, SixteenBitGradients) {
  Recipe recipe = parallel_recipe(8, 8);
  recipe.precision = Precision::fp16;
  const Trace rank = generated_ranks(gpt3(16), recipe)[3];
  const Bytes parameters = 2'718'922'752 / 6;
  EXPECT_EQ(state_of(rank), 14 * parameters);
  Bytes gradients = 0;
  for (const Storage& s : rank.storages)
    if (s.kind == StorageKind::gradient) gradients += s.bytes;
  EXPECT_EQ(gradients, 2 * parameters);
}

struct Parameters {
  std::int64_t split = 0, whole = 0;  // of a tensor-parallel rank: its share, and what all have
};

bool is_whole(const std::string& name) {
  for (const char* part : {"norm", "out.bias", "down.bias", "positions"})
    if (name.find(part) != std::string::npos) return true;
  return false;
}

Parameters parameters_by_split(const std::vector<Trace>& ranks) {
  Parameters sum;
  for (const Trace& rank : ranks)
    for (const Storage& s : rank.storages)
      if (s.kind == StorageKind::parameter) (is_whole(rank.strings[s.label]) ? sum.whole : sum.split) += s.bytes / 2;
  return sum;
}

// Over all ranks: the model, once more a tied embedding behind several stages, and what is not split on each rank.
TEST(StageState, RanksTogetherHoldTheModel) {
  Model gpt = small_gpt(8), llama = small_rotary_decoder();
  gpt.vocabulary = llama.vocabulary = 1024;
  llama.layers = llama.heads = llama.key_value_heads = 8;
  for (const Model& model : {gpt, llama})
    for (const std::int64_t tensor : {1, 2, 4, 8})
      for (const std::int64_t pipeline : {1, 2, 4, 8}) {
        if (tensor == 1 && pipeline == 1) continue;
        const std::int64_t interleave = pipeline == 4 ? 2 : 1;
        const Parameters held =
            parameters_by_split(generated_ranks(model, parallel_recipe(tensor, pipeline, interleave, 8)));
        const std::int64_t copies = model.tied_embedding && pipeline > 1 ? 1024 * model.width : 0;
        EXPECT_EQ(held.split * tensor + held.whole, parameter_count(model) + copies)
            << fmt::format("t {} p {}", tensor, pipeline);
      }
}

TEST(StageState, AForgottenParameterIsFound) {
  Model gpt = small_gpt(4);
  gpt.vocabulary = 1024;
  std::vector<Trace> ranks = generated_ranks(gpt, parallel_recipe(2, 2, 1, 2));
  const std::int64_t expected = parameter_count(gpt) + 1024 * 64;
  Parameters held = parameters_by_split(ranks);
  ASSERT_EQ(held.split * 2 + held.whole, expected);
  ranks[1].storages.front().kind = StorageKind::unknown;
  held = parameters_by_split(ranks);
  EXPECT_NE(held.split * 2 + held.whole, expected);
}

// The vocabulary is padded to a multiple of 128 x tensor, as Megatron-LM does, and the trace says so.
TEST(StageState, ThePaddedVocabularyIsSaid) {
  Model model = small_gpt(2);
  model.vocabulary = 50257;
  const Trace joined = generate_step(model, parallel_recipe(8, 2, 1, 2));
  ASSERT_FALSE(joined.notes.empty());
  EXPECT_EQ(joined.notes.front(), "The vocabulary of 50257 is padded to 51200, a multiple of 1024.");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
