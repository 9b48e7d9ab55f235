// Is a sequence of bytes a character?
#include "sim/utf8.h"

#include <gtest/gtest.h>

namespace memwall {
namespace MEMWALL_TEST_FILE {

TEST(Utf8, TheLengthOfACharacter) {
  EXPECT_EQ(utf8_length("ab"), 1u);
  EXPECT_EQ(utf8_length("\xc3\xa9z"), 2u);
  EXPECT_EQ(utf8_length("\xe2\x82\xac"), 3u);
  EXPECT_EQ(utf8_length("\xf0\x9f\x99\x82"), 4u);
}

TEST(Utf8, WhatIsNoCharacter) {
  for (const char* text : {"\x80", "\xc3", "\xc3z", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf0\x80\x80\x80",
                           "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff"})
    EXPECT_EQ(utf8_length(text), 0u) << text;
}

TEST(Utf8, CharactersAreCounted) { EXPECT_EQ(count_characters("\xe2\x82\xac 5"), 3u); }

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
