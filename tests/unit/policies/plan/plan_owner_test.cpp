// Is the planner that a note names read as it was written?
#include "policies/plan/plan_owner.h"

#include <gtest/gtest.h>

namespace memwall {
namespace MEMWALL_TEST_FILE {

TEST(PlanOwner, IsReadFromTheNoteThatNamesIt) {
  const std::string note = "plan: budget 8 GB; 3 ops run again. " + plan_owner_sentence("plan:tiers=host+nvme");
  EXPECT_EQ(plan_owner_in({"capture: 2 steps.", note}), "plan:tiers=host+nvme");
  EXPECT_EQ(plan_owner_in({"plan: budget 8 GB; 3 ops run again."}), "");
  EXPECT_EQ(plan_owner_in({}), "");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
