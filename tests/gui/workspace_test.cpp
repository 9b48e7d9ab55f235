// Does a workspace tell its views what changed?
#include "gui/view/workspace.h"

#include <gtest/gtest.h>

namespace memwall::gui {
namespace {

TEST(Workspace, StartsEmpty) { EXPECT_FALSE(Workspace().has_run()); }

}  // namespace
}  // namespace memwall::gui
