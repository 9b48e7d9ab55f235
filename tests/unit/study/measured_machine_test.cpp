// Does the sentence about a GPU without a machine file say what is wrong, and what to type?
#include "study/measured_machine.h"

#include <gtest/gtest.h>

namespace memwall {
namespace MEMWALL_TEST_FILE {

bool says(const std::string& sentence, const char* what) { return sentence.find(what) != std::string::npos; }

TEST(UnknownGpuSentence, NamesTheNearestMachine) {
  const std::string sentence = unknown_gpu_sentence("NVIDIA H900", GiB(80));
  EXPECT_TRUE(says(sentence, "a GPU of which there is no machine file")) << sentence;
  EXPECT_TRUE(says(sentence, "the nearest is h800-sxm-80gb")) << sentence;
}

// A part of a GPU (MIG), or a card of the same name with more memory.
TEST(UnknownGpuSentence, OfAKnownGpuWithOtherMemorySaysSo) {
  for (const Bytes memory : {GiB(20), GiB(160), Bytes{0}}) {
    const std::string sentence = unknown_gpu_sentence("NVIDIA A100-SXM4-80GB", memory);
    EXPECT_TRUE(says(sentence, "whose machine file, a100-sxm-80gb, has another amount of memory")) << sentence;
    EXPECT_TRUE(says(sentence, "--measured-on a100-sxm-80gb")) << sentence;
    EXPECT_FALSE(says(sentence, "there is no machine file")) << sentence;
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
