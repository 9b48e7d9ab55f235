// Is a machine file passed over only where none of its strings is the one that is looked for?
#include "models/hw/machine_strings.h"

#include <gtest/gtest.h>

namespace memwall {
namespace MEMWALL_TEST_FILE {

TEST(MachineStrings, FindsAWholeString) {
  EXPECT_TRUE(may_hold_text("gpu { name: \"Tesla T4\" }", "Tesla T4"));
  EXPECT_TRUE(may_hold_text("name:'Tesla T4'", "Tesla T4"));
  EXPECT_FALSE(may_hold_text("gpu { name: \"Tesla T40\" }", "Tesla T4"));
  EXPECT_FALSE(may_hold_text("gpu { name: \"A Tesla T4\" }", "Tesla T4"));
  EXPECT_FALSE(may_hold_text("name: Tesla T4", "Tesla T4")) << "no string";
  EXPECT_FALSE(may_hold_text("", "Tesla T4"));
}

TEST(MachineStrings, FindsOneThatIsWrittenInPieces) {
  EXPECT_TRUE(may_hold_text("name: \"Tesla\" \" T4\" other: 1", "Tesla T4"));
  EXPECT_TRUE(may_hold_text("name: \"Tes\"\n  'la' # \"why\"\n\" T4\"", "Tesla T4"));
  EXPECT_FALSE(may_hold_text("alias: \"Tesla\", \" T4\"", "Tesla T4")) << "two of a list";
  EXPECT_FALSE(may_hold_text("name: \"Tesla T4\" \"!\"", "Tesla T4"));
  EXPECT_TRUE(may_hold_text("alias: [\"x\", \"Tesla T4\"]", "Tesla T4"));
}

TEST(MachineStrings, CommentsHoldNoStrings) {
  EXPECT_FALSE(may_hold_text("# \"Tesla T4\"\nname: \"T4\" # it's 'Tesla T4'\n", "Tesla T4"));
  EXPECT_TRUE(may_hold_text("# it's one quote\nname: \"Tesla T4\"", "Tesla T4"));
  EXPECT_TRUE(may_hold_text("source: \"#1 of 'them'\" name: \"Tesla T4\"", "Tesla T4"));
}

TEST(MachineStrings, AnEscapeMayBeAnything) {
  EXPECT_TRUE(may_hold_text("name: \"Tesla\\x20T4\"", "Tesla T4"));
  EXPECT_TRUE(may_hold_text("source: \"a \\\" in it\" name: \"T5\"", "Tesla T4"));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
