// The queue of candidates: does it hand them out as sorting them each time would?
#include "policies/cycle/candidate_heap.h"

#include <gtest/gtest.h>

#include <random>

namespace memwall {
namespace MEMWALL_TEST_FILE {

TEST(CandidateHeap, NothingIsOnTopOfNothing) {
  const CandidateHeap heap({});
  EXPECT_TRUE(heap.empty());
}

TEST(CandidateHeap, OfEqualScoresTheFirstComesFirst) {
  CandidateHeap heap({{2, 7}, {3, 9}, {3, 8}});
  EXPECT_EQ(heap.top(), 9u);
  EXPECT_EQ(heap.next_score(), 3);
  heap.pop();
  EXPECT_EQ(heap.top(), 8u);
  EXPECT_EQ(heap.next_score(), 2);
  heap.rescore_top(1);
  EXPECT_EQ(heap.top(), 7u);
  heap.pop();
  EXPECT_EQ(heap.top(), 8u);
  EXPECT_EQ(heap.next_score(), 0);
  heap.pop();
  EXPECT_TRUE(heap.empty());
}

// Scores go up as well as down, down to the least that is more than nothing.
TEST(CandidateHeap, IsASortThatIsDoneAnew) {
  std::mt19937_64 random(1);
  for (std::uint32_t many = 1; many < 70; ++many) {
    std::vector<Candidate> left;
    for (std::uint32_t i = 0; i < many; ++i) left.push_back({static_cast<double>(1 + random() % 8) / 3, i});
    CandidateHeap heap(left);
    const auto best = [&] { return std::max_element(left.begin(), left.end()); };
    while (!left.empty()) {
      ASSERT_EQ(heap.top(), best()->gap);
      const double score = random() % 16 == 0 ? 5e-324 : static_cast<double>(1 + random() % 12) / 3;
      if (random() % 3 == 0) {
        left.erase(best());
        heap.pop();
      } else {
        best()->score = score;
        heap.rescore_top(score);
      }
      if (left.empty()) break;
      std::vector<Candidate> sorted = left;
      std::sort(sorted.begin(), sorted.end());
      ASSERT_EQ(heap.next_score(), sorted.size() < 2 ? 0 : sorted[sorted.size() - 2].score);
    }
    EXPECT_TRUE(heap.empty());
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
