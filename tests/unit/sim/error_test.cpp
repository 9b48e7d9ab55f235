// Is the name that a person meant the nearest one?
#include "sim/error.h"

#include <gtest/gtest.h>

namespace memwall {
namespace MEMWALL_TEST_FILE {

TEST(NearestOfNames, CountsLettersThatDiffer) {
  EXPECT_EQ(nearest_name("memroy", {"memory", "links"}), "memory");
  EXPECT_EQ(nearest_name("h100-sxm-80g", {"h100-pcie-80gb", "h100-sxm-80gb"}), "h100-sxm-80gb");
  EXPECT_EQ(nearest_name("x", {"memory", "links"}), "");
}

TEST(NearestOfNames, TakesTwoLettersExchangedForOneMistake) {
  EXPECT_EQ(nearest_name("rnu", {"import", "run"}), "run");
  EXPECT_EQ(nearest_name("csv", {"svc"}), "") << "two mistakes in three letters";
}

TEST(NearestOfNames, CompletesToTheShortestOfThoseThatBeginSo) {
  EXPECT_EQ(nearest_name("batc", {"batch_norm", "batch", "batches"}), "batch");
  EXPECT_EQ(nearest_name("batch_", {"batch_norm", "batch_normalization"}), "batch_norm");
}

TEST(NearestOfNames, PrefersTheSameInAnotherCase) {
  EXPECT_EQ(nearest_name("H100-SXM-80GB", {"a100-sxm-80gb", "h100-sxm-80gb", "h100-sxm-80gb-cxl"}), "h100-sxm-80gb");
  EXPECT_EQ(nearest_name("json", {"JSON", "jsonl"}), "JSON");
}

TEST(NearestOfNames, PrefersWhatWasBegun) {
  EXPECT_EQ(nearest_name("check", {"checkpoint", "chuck"}), "checkpoint");
  EXPECT_EQ(nearest_name("check", {"chuck", "checkpoint"}), "checkpoint");
  EXPECT_EQ(nearest_name("", {"a"}), "");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
