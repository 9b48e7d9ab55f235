// Is what is written JSON, and the same every time?
#include "sim/json_text.h"

#include <gtest/gtest.h>

#include <limits>

namespace memwall {
namespace MEMWALL_TEST_FILE {

TEST(JsonText, WritesNumbersThatReadBackTheSame) {
  JsonText json;
  json.begin_array().value(0.1).value(1e300).value(5.0).value(std::int64_t{-7}).value(true);
  json.value(std::numeric_limits<double>::infinity()).end_array();
  EXPECT_EQ(json.finish(), "[\n  0.1,\n  1e+300,\n  5,\n  -7,\n  true,\n  null\n]\n");
}

TEST(JsonText, EscapesWhatJsonCannotHold) {
  EXPECT_EQ(json_quoted("a\"b\\c\n\x01"), "\"a\\\"b\\\\c\\n\\u0001\"");
  EXPECT_EQ(json_quoted("\xc3\xa4"), "\"\xc3\xa4\"");
  EXPECT_EQ(json_quoted("\xc3"), "\"\xef\xbf\xbd\"");
  EXPECT_EQ(json_quoted("\xed\xa0\x80"), "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
