// Is a scenario the same value after it was written as a line of text and read back?
#include "study/scenario.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "sim/error.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

TEST(Scenario, IsALineOfWords) {
  Scenario s;
  s.step = {"gpt_124m.mwt"};
  s.machine = "h100-sxm-80gb";
  s.settings = {"gpu.hbm.bandwidth=4 TB/s"};
  s.policies = {"checkpoint:mode=full", "zero:stage=2,ranks=8"};
  s.repeat = 3;
  EXPECT_EQ(to_text(s),
            "step=gpt_124m.mwt set=\"gpu.hbm.bandwidth=4 TB/s\" policy=checkpoint:mode=full "
            "policy=zero:stage=2,ranks=8 machine=h100-sxm-80gb repeat=3");
  EXPECT_EQ(parse_scenario(to_text(s)), s);
}

TEST(Scenario, WhatIsNotSaidIsTheDefault) {
  const Scenario s = parse_scenario("  step=a.mwt\tpager=lru ");
  Scenario expected;
  expected.step = {"a.mwt"};
  expected.pager = "lru";
  EXPECT_EQ(s, expected);
}

TEST(Scenario, ReadsBackWhateverItHolds) {
  EXPECT_TRUE(rc::check([](std::vector<std::string> steps, std::vector<std::string> policies, std::string machine,
                           std::string pager, bool host, std::string budget) {
    Scenario s;
    s.budget = std::move(budget);
    s.step = std::move(steps);
    s.step.emplace_back("a");
    s.policies = std::move(policies);
    s.machine = std::move(machine);
    s.pager = std::move(pager);
    s.transfer_host = host;
    s.repeat = *rc::gen::inRange<std::uint32_t>(1, 1000);
    const std::string text = to_text(s);
    RC_ASSERT(text.find('\n') == std::string::npos);
    RC_ASSERT(parse_scenario(text) == s);
  }));
}

TEST(Scenario, DamagedTextIsRefusedOrIsAScenario) {
  EXPECT_TRUE(rc::check([](const std::string& text) {
    try {
      const Scenario s = parse_scenario(text);
      RC_ASSERT(parse_scenario(to_text(s)) == s);
    } catch (const UsageError&) {
    }
  }));
}

std::string refusal(const std::string& text) {
  try {
    parse_scenario(text);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(Scenario, SaysWhatIsWrong) {
  EXPECT_NE(refusal("step=a polcy=lru").find("nearest: \"policy\""), std::string::npos);
  EXPECT_NE(refusal("step=a machine=b machine=c").find("given twice"), std::string::npos);
  EXPECT_NE(refusal("step=\"a").find("closing double quote"), std::string::npos);
  EXPECT_NE(refusal("step=a repeat=0").find("1 or more"), std::string::npos);
  EXPECT_NE(refusal("step=a transfer_host=yes").find("0 or 1"), std::string::npos);
  EXPECT_NE(refusal("a.mwt").find("key=value"), std::string::npos);
  EXPECT_NE(refusal(R"(step="a\q")").find("backslash"), std::string::npos);
  EXPECT_NE(refusal("machine=h100").find("no step"), std::string::npos);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
