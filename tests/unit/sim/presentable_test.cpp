#include "sim/presentable.h"

#include <gtest/gtest.h>

#include "sim/csv.h"
#include "sim/json_text.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

TEST(Presentable, ShowsControlCharactersAndReplacesWhatIsNoText) {
  EXPECT_EQ(presentable("a\x1b[2J\x07z"), "a\\x1b[2J\\x07z");
  EXPECT_EQ(presentable("one\ttwo\nthree\rfour\x7f"), "one\ttwo\nthree\\x0dfour\\x7f");
  EXPECT_EQ(presentable("\xc2\x9b"
                        "2J"),
            "\\u009b2J")
      << "the same command in one character";
  EXPECT_EQ(presentable("\xff\xc3("), "\xef\xbf\xbd\xef\xbf\xbd(");
  EXPECT_EQ(presentable("Gr\xc3\xb6\xc3\x9f"
                        "e \xe2\x82\xac \xf0\x9f\x98\x80"),
            "Gr\xc3\xb6\xc3\x9f"
            "e \xe2\x82\xac \xf0\x9f\x98\x80");
}

TEST(Presentable, ShowsWhatTurnsTheDirectionOfText) {
  EXPECT_EQ(presentable("a\xe2\x80\xae"
                        "b\xe2\x81\xa9\xe2\x80\xa6"),
            "a\\u202eb\\u2069\xe2\x80\xa6");
}

TEST(Presentable, ALineStaysOne) { EXPECT_EQ(presentable_line("one\ttwo\nthree\r"), "one\\x09two\\x0athree\\x0d"); }

TEST(Presentable, HoldsInJsonAndCsv) {
  EXPECT_EQ(json_quoted("\x1b\x7f\xc2\x9b\xff\n"), "\"\\u001b\\u007f\\u009b\xef\xbf\xbd\\n\"");
  EXPECT_EQ(csv_cell("a\x1b[2J"), "a\\x1b[2J");
  EXPECT_EQ(csv_cell("a\r\nb"), "\"a\r\nb\"") << "a cell may hold lines";
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
