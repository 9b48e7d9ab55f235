// Is each value made once, shared by who asks, and forgotten when there are too many?
#include "study/shared_values.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

namespace memwall {
namespace MEMWALL_TEST_FILE {

TEST(SharedValues, MakesAValueOnceHoweverManyAsk) {
  SharedValues<int> values(4);
  std::atomic<int> made = 0;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      for (int k = 0; k < 100; ++k)
        EXPECT_EQ(*values.get("a", [&] {
          ++made;
          return 7;
        }),
                  7);
    });
  threads.clear();
  EXPECT_EQ(made, 1);
}

TEST(SharedValues, WhatFailedIsTriedAgain) {
  SharedValues<int> values(4);
  EXPECT_THROW(values.get("a", []() -> int { throw std::runtime_error("no"); }), std::runtime_error);
  EXPECT_EQ(*values.get("a", [] { return 1; }), 1);
}

TEST(SharedValues, ForgetsWhatWasAskedForLongestAgo) {
  SharedValues<int> values(2);
  const auto kept = values.get("a", [] { return 1; });
  values.get("b", [] { return 2; });
  values.get("a", [] { return -1; });
  values.get("c", [] { return 3; });
  EXPECT_EQ(*values.get("a", [] { return -1; }), 1) << "asked for since b";
  EXPECT_EQ(*values.get("b", [] { return 4; }), 4) << "forgotten, and made anew";
  EXPECT_EQ(*kept, 1) << "who holds a value keeps it";
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
