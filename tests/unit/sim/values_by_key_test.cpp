// Is each value made once, by whoever asks first, and is what fails made by the next?
#include "sim/values_by_key.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <stdexcept>
#include <vector>

#include "sim/side_by_side.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

TEST(ValuesByKey, MakesEachValueOnceForAllThreads) {
  const ValuesByKey<int, int> squares;
  std::atomic<int> made{0};
  std::vector<int> got(40);
  std::vector<std::function<void()>> calls;
  for (std::size_t i = 0; i < got.size(); ++i)
    calls.emplace_back([&, i] {
      const int key = static_cast<int>(i % 4);
      got[i] = squares.get(key, [&] {
        ++made;
        return key * key;
      });
    });
  call_side_by_side(calls, 4);
  EXPECT_EQ(made, 4);
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], static_cast<int>(i % 4 * (i % 4)));
}

TEST(ValuesByKey, StayWhereTheyAre) {
  const ValuesByKey<int, int> values;
  const int& first = values.get(0, [] { return 7; });
  for (int key = 1; key < 100; ++key) values.get(key, [] { return 8; });
  EXPECT_EQ(&first, &values.get(0, [] { return 9; }));
  EXPECT_EQ(first, 7);
}

TEST(ValuesByKey, AValueThatCouldNotBeMadeIsMadeByTheNext) {
  const ValuesByKey<int, int> values;
  EXPECT_THROW(values.get(1, []() -> int { throw std::runtime_error("not now"); }), std::runtime_error);
  EXPECT_EQ(values.get(1, [] { return 5; }), 5);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
