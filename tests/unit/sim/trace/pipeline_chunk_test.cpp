// What a rank of a pipeline holds, in words.
#include <gtest/gtest.h>

#include "sim/trace/pipeline_chunk.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

TEST(PipelineChunk, SaysLayersAndWhatStandsAtTheEnds) {
  EXPECT_EQ(layers_text({}), "");
  EXPECT_EQ(layers_text({{0, 0, 12, true, false}}), "embedding, layers 0 to 11");
  EXPECT_EQ(layers_text({{7, 95, 1, false, true}}), "layer 95, loss");
  EXPECT_EQ(layers_text({{1, 4, 4, false, false}, {9, 36, 4, false, false}}), "layers 4 to 7, 36 to 39");
  EXPECT_EQ(layers_text({{0, 0, 0, true, false}}), "embedding, no layers");
  EXPECT_EQ(to_string(PipelineChunk{0, 2, 2, false, false}), "layers 2 to 3");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
