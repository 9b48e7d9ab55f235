// Are policies found by name, their settings checked, and their combinations ordered or refused?
#include "sim/policy/registry.h"

#include <gtest/gtest.h>

#include "sim/error.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/test_machine.h"

namespace memwall {
namespace {

const std::vector<ParameterInfo> kParameters = {
    {"mode", "full", "which"}, {"every", "2", "how many"}, {"size", "25MiB", "bytes"}, {"what", "", "needed"}};

PolicyArguments arguments(std::map<std::string, std::string> values) {
  return PolicyArguments("toy", std::move(values), kParameters);
}

std::string message_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(PolicyArgumentsTest, DefaultsFillWhatIsNotGiven) {
  const auto a = arguments({{"what", "x"}});
  EXPECT_EQ(a.text("mode"), "full");
  EXPECT_EQ(a.integer("every", 1, 10), 2);
  EXPECT_EQ(a.bytes("size"), MiB(25));
}

TEST(PolicyArgumentsTest, MistakesAreNamed) {
  EXPECT_NE(message_of([] { arguments({}); }).find("needs 'what=…'"), std::string::npos);
  EXPECT_NE(message_of([] {
              arguments({{"what", "x"}, {"mdoe", "full"}});
            }).find("Did you mean 'mode'"),
            std::string::npos);
  const auto a = arguments({{"what", "x"}, {"mode", "ful"}, {"every", "0"}, {"size", "3 parsec"}});
  EXPECT_NE(message_of([&] { a.choice("mode", {"full", "sqrt"}); }).find("Did you mean 'full'"), std::string::npos);
  EXPECT_NE(message_of([&] { a.integer("every", 1, 10); }).find("every=0"), std::string::npos);
  EXPECT_NE(message_of([&] { a.number("every", 1, 2.5); }).find("between 1 and 2.5."), std::string::npos);
  EXPECT_NE(message_of([&] { a.bytes("size"); }).find("is not a size"), std::string::npos);
}

TEST(PolicyArgumentsTest, SizesTakeBinaryAndDecimalUnits) {
  EXPECT_EQ(arguments({{"what", "x"}, {"size", "1.5GB"}}).bytes("size"), 1'500'000'000);
  EXPECT_EQ(arguments({{"what", "x"}, {"size", "2KiB"}}).bytes("size"), 2048);
  EXPECT_EQ(arguments({{"what", "x"}, {"size", "64kB"}}).bytes("size"), 64'000);
  EXPECT_EQ(arguments({{"what", "x"}, {"size", "1e3"}}).bytes("size"), 1000);
}

TEST(ParsePolicy, AnUnknownNameSuggestsTheNearest) {
  EXPECT_NE(message_of([] { parse_policy("chekpoint:mode=full"); }).find("Did you mean 'checkpoint'"),
            std::string::npos);
  EXPECT_NE(message_of([] { parse_policy("checkpoint:mode"); }).find("expected key=value"), std::string::npos);
}

TEST(ApplyRewriters, APagerIsNotARewriter) {
  const Machine machine = test_machine();
  const auto pricer = test_pricer(machine);
  EXPECT_NE(message_of([&] { apply_rewriters(gpt_step({}), {parse_policy("lru")}, machine, *pricer); }).find("--pager"),
            std::string::npos);
}

TEST(ApplyRewriters, TwoOfOneKindHaveNoMeaning) {
  const Machine machine = test_machine();
  const auto pricer = test_pricer(machine);
  const std::vector<PolicySpec> twice = {parse_policy("checkpoint:mode=full"), parse_policy("checkpoint:mode=sqrt")};
  EXPECT_NE(message_of([&] { apply_rewriters(gpt_step({}), twice, machine, *pricer); }).find("no defined meaning"),
            std::string::npos);
}

TEST(ApplyRewriters, ATraceTooPoorIsRefusedWithWhatIsMissing) {
  const Machine machine = test_machine();
  const auto pricer = test_pricer(machine);
  Trace poor = gpt_step({});
  poor.knowledge.dataflow = false;
  const std::string message =
      message_of([&] { apply_rewriters(poor, {parse_policy("checkpoint:mode=full")}, machine, *pricer); });
  EXPECT_NE(message.find("needs dataflow"), std::string::npos) << message;
}

TEST(ApplyRewriters, TheOrderOfFlagsDecidesNothing) {
  const Machine machine = test_machine();
  const auto pricer = test_pricer(machine);
  GptShape shape;
  shape.layers = 4;
  const Trace trace = gpt_step(shape);
  const PolicySpec checkpoint = parse_policy("checkpoint:mode=full");
  const PolicySpec offload = parse_policy("offload:what=activations,to=host,min_bytes=0");
  const Trace a = apply_rewriters(trace, {checkpoint, offload}, machine, *pricer);
  const Trace b = apply_rewriters(trace, {offload, checkpoint}, machine, *pricer);
  ASSERT_EQ(a.ops.size(), b.ops.size());
  for (std::size_t i = 0; i < a.ops.size(); ++i) EXPECT_EQ(a.ops[i].kind, b.ops[i].kind);
}

TEST(NearestName, FarNamesAreNotSuggested) {
  EXPECT_EQ(nearest_name("ofload", {"offload", "zero"}), "offload");
  EXPECT_EQ(nearest_name("off", {"offload", "zero"}), "offload");
  EXPECT_EQ(nearest_name("xyzzy", {"offload", "zero"}), "");
}

}  // namespace
}  // namespace memwall
