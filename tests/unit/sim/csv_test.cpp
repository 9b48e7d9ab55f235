// Is a table read as RFC 4180 has it, and is a damaged one refused with its place?
#include "sim/csv.h"

#include <gtest/gtest.h>

#include "sim/error.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

using Records = std::vector<std::vector<std::string>>;

Records records_of(const std::string& text) {
  CsvReader reader(text, "t.csv");
  Records records;
  while (reader.next()) records.emplace_back(reader.cells().begin(), reader.cells().end());
  return records;
}

std::string refusal(const std::string& text) {
  try {
    records_of(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(Csv, CellsStandBetweenCommas) {
  EXPECT_EQ(records_of("a,b\n,\n\nc, d\n"), (Records{{"a", "b"}, {"", ""}, {""}, {"c", " d"}}));
  EXPECT_EQ(records_of(""), Records{});
  EXPECT_EQ(records_of("a,b"), (Records{{"a", "b"}})) << "without an end of line";
  EXPECT_EQ(records_of("a,b\r\nc,d\r\n"), (Records{{"a", "b"}, {"c", "d"}}));
  EXPECT_EQ(records_of("\xef\xbb\xbf"
                       "a,b\n"),
            (Records{{"a", "b"}}))
      << "behind a byte order mark";
}

TEST(Csv, AQuotedCellHoldsEverything) {
  EXPECT_EQ(records_of("\"a,b\",\"say \"\"hm\"\"\"\n"), (Records{{"a,b", "say \"hm\""}}));
  EXPECT_EQ(records_of("\"\",\"\"\"\"\n"), (Records{{"", "\""}}));
  EXPECT_EQ(records_of("\"two\r\nlines\",b\nc,d\n"), (Records{{"two\r\nlines", "b"}, {"c", "d"}}));
}

TEST(Csv, LinesAreCountedWithinCells) {
  const std::string text = "\"a\nb\"\nc\n";
  CsvReader reader(text, "t.csv");
  EXPECT_EQ(reader.line(), 0u);
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.line(), 1u);
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.line(), 3u);
  EXPECT_FALSE(reader.next());
}

TEST(Csv, BlankLinesAndCommentsCanBePassedOver) {
  const std::string text = "# \"what\n\n  \na,b\n# more\nc,d\n";
  CsvReader reader(text, "t.csv");
  ASSERT_TRUE(reader.next_filled("#"));
  EXPECT_EQ(reader[0], "a");
  ASSERT_TRUE(reader.next_filled("#"));
  EXPECT_EQ(reader[1], "d");
  EXPECT_EQ(reader.line(), 6u);
  EXPECT_FALSE(reader.next_filled("#"));
}

TEST(Csv, ALineCanBeTakenAsItIs) {
  const std::string text = "# a,\"b\r\nc\n";
  CsvReader reader(text, "t.csv");
  EXPECT_TRUE(reader.begins_with("# "));
  EXPECT_EQ(reader.plain_line(), "# a,\"b");
  EXPECT_EQ(reader.plain_line(), "c");
  EXPECT_TRUE(reader.at_end());
}

TEST(Csv, RefusesWithThePlace) {
  EXPECT_EQ(refusal("a\n\"b,c\n"), "t.csv:2: found a quotation mark that is never closed, expected one more.");
  for (const char* text : {"a\nb\"c\n", "a\n\"b\"c\n", "a\nb\rc\n"})
    EXPECT_TRUE(refusal(text).starts_with("t.csv:2: found a quotation mark or a carriage return amid a field")) << text;
}

TEST(Csv, WhatIsWrittenIsReadBack) {
  EXPECT_EQ(csv_cell("plain text"), "plain text");
  for (const std::string text : {"a,b", "\"", "a\nb", "a\r", ""})
    EXPECT_EQ(records_of(csv_cell(text) + ",x\n"), (Records{{text, "x"}})) << text;
}

TEST(Csv, BlanksAreTakenOff) {
  EXPECT_EQ(without_blanks(" \ta b \r"), "a b");
  EXPECT_EQ(without_blanks(" \t"), "");
  EXPECT_EQ(without_blanks(""), "");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
