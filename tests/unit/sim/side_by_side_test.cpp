// Is every call made once, whatever others throw, and is the first error in the order of the calls thrown?
#include "sim/side_by_side.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>

namespace memwall {
namespace MEMWALL_TEST_FILE {

TEST(SideBySide, MakesEveryCallOnce) {
  for (const std::size_t many : {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{100}}) {
    std::vector<int> made(many, 0);
    std::vector<std::function<void()>> calls;
    for (std::size_t i = 0; i < many; ++i) calls.emplace_back([&, i] { ++made[i]; });
    call_side_by_side(calls);
    EXPECT_EQ(made, std::vector<int>(many, 1));
  }
}

TEST(SideBySide, ThrowsWhatTheFirstOfTheCallsHasThrown) {
  std::atomic<int> made = 0;
  std::vector<std::function<void()>> calls;
  for (int i = 0; i < 20; ++i)
    calls.emplace_back([&, i] {
      ++made;
      if (i % 7 == 3) throw std::runtime_error(std::to_string(i));
    });
  for (int again = 0; again < 20; ++again) {
    made = 0;
    try {
      call_side_by_side(calls);
      FAIL() << "nothing is thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(std::string(error.what()), "3");
    }
    EXPECT_EQ(made, 20) << "the others are made all the same";
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
