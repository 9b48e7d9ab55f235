// Do copies share what is stored without seeing each other's changes, and do references outlive changes?
#include "sim/trace/interned.h"

#include <gtest/gtest.h>

#include <string>
#include <unordered_map>

namespace memwall {
namespace MEMWALL_TEST_FILE {

using Words = Interned<std::string, std::unordered_map<std::string, std::uint32_t>>;

TEST(Interned, CopiesShareUntilOneChanges) {
  Words a;
  const std::uint32_t one = a.intern("one");
  Words b = a;
  EXPECT_EQ(&a[one], &b[one]) << "stored once";
  EXPECT_EQ(b.intern("one"), one);
  const std::uint32_t of_b = b.intern("two"), of_a = a.intern("three");
  EXPECT_EQ(of_a, of_b) << "the next number in each";
  EXPECT_EQ(a[of_a], "three");
  EXPECT_EQ(b[of_b], "two");
  EXPECT_EQ(a[0], "");
}

// Longer than what a string holds in itself, so that a sanitizer sees what is read of freed memory.
TEST(Interned, ReferencesOutliveSeveralChangesBehindCopies) {
  const std::string text(100, 'x');
  Words a;
  const std::string& kept = a[a.intern(text)];
  for (int i = 0; i < 3; ++i) {
    { const Words copy = a; }
    a.intern("change " + std::to_string(i));
  }
  EXPECT_EQ(kept, text);
}

TEST(Interned, WhatWasMovedFromIsEmptyAndUsable) {
  Words a;
  a.intern("one");
  Words b = std::move(a);
  EXPECT_EQ(b.size(), 2u);
  EXPECT_EQ(a.size(), 1u);
  EXPECT_EQ(a.intern("other"), 1u);
  EXPECT_EQ(b[1], "one");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
