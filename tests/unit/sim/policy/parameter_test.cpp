// Does each type of parameter take what it must and refuse what it must, and do arguments give it typed?
#include "sim/policy/parameter.h"

#include <gtest/gtest.h>

#include <functional>

#include "sim/error.h"
#include "sim/policy/arguments.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

std::string message_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

std::string refusal(const ParameterInfo& p, const std::string& text) {
  return message_of([&] { parse_parameter("toy", p, text); });
}

TEST(Parameter, AChoiceIsOneOfItsWords) {
  const ParameterInfo p = choice("mode", "full", {"full", "sqrt"}, "which");
  EXPECT_EQ(parse_parameter("toy", p, "sqrt").text, "sqrt");
  EXPECT_EQ(refusal(p, "ful"), "Policy 'toy': mode=ful is not valid; expected one of full, sqrt. Did you mean 'full'?");
  EXPECT_NE(refusal(p, "full+sqrt"), "");
  EXPECT_EQ(values_text(p), "full, sqrt");
}

TEST(Parameter, AFlagIsZeroOrOneOrFalseOrTrue) {
  const ParameterInfo p = flag("overlap", true, "beside");
  EXPECT_EQ(p.default_value, "1");
  EXPECT_EQ(parse_parameter("toy", p, "0").integer, 0);
  for (const char* text : {"true", "True", "1"}) EXPECT_EQ(parse_parameter("toy", p, text).integer, 1) << text;
  for (const char* text : {"false", "False"}) EXPECT_EQ(parse_parameter("toy", p, text).integer, 0) << text;
  for (const char* text : {"2", "TRUE", "yes", "01", ""}) EXPECT_NE(refusal(p, text), "") << text;
  EXPECT_EQ(values_text(p), "0 or 1");
}

TEST(Parameter, AnIntegerMayBeAFlagToo) {
  const ParameterInfo p = integer_or_flag("reshard", Unset{"auto"}, {0, 64}, "ranks", "over how many");
  EXPECT_EQ(parse_parameter("toy", p, "false").integer, 0);
  EXPECT_EQ(parse_parameter("toy", p, "True").integer, 1);
  EXPECT_EQ(parse_parameter("toy", p, "8").integer, 8);
  EXPECT_FALSE(parse_parameter("toy", p, "auto").set);
  EXPECT_EQ(refusal(p, "no"),
            "Policy 'toy': reshard=no is neither 'auto' nor true or false, nor a whole number between 0 and 64.");
  EXPECT_EQ(values_text(p), "auto, or true, false or 0 to 64 ranks");
}

TEST(Parameter, AnIntegerIsWholeAndWithinItsRange) {
  const ParameterInfo p = integer("every", 2, {1, 1e15}, "blocks", "how many");
  EXPECT_EQ(parse_parameter("toy", p, "1").integer, 1);
  EXPECT_EQ(parse_parameter("toy", p, "1000000000000000").integer, 1'000'000'000'000'000);
  EXPECT_EQ(refusal(p, "0"), "Policy 'toy': every=0 is not a whole number between 1 and 1000000000000000.");
  for (const char* text : {"1.5", "1e3", "-1", "1000000000000001", "99999999999999999999", "1 ", "", "one", "true"})
    EXPECT_NE(refusal(p, text), "") << text;
  EXPECT_EQ(values_text(p), "1 to 1000000000000000 blocks");
}

TEST(Parameter, ANumberIsWithinItsRange) {
  const ParameterInfo p = number("factor", 0.5, {0, 2.5}, "", "share");
  EXPECT_EQ(p.default_value, "0.5");
  EXPECT_EQ(parse_parameter("toy", p, "2.5").number, 2.5);
  EXPECT_NE(refusal(p, "2.6").find("factor=2.6 is not a number between 0 and 2.5."), std::string::npos);
  for (const char* text : {"-0.1", "nan", "inf", "1x", ""}) EXPECT_NE(refusal(p, text), "") << text;
}

TEST(Parameter, ANumberOfPercentTakesTheSignToo) {
  const ParameterInfo p = number("robust", 0, {0, 1000}, "%", "slower");
  EXPECT_EQ(parse_parameter("toy", p, "20%").number, 20);
  EXPECT_EQ(parse_parameter("toy", p, "20").number, 20);
  for (const char* text : {"%", "20%%", "20 %", "1001%"}) EXPECT_NE(refusal(p, text), "") << text;
  EXPECT_NE(refusal(number("factor", 0.5, {0, 2.5}, "", "share"), "2%"), "") << "a factor is no percentage";
}

TEST(Parameter, BytesTakeBinaryAndDecimalUnits) {
  const ParameterInfo p = bytes("size", "25MiB", 1, "of a bucket");
  const auto size = [&](const char* text) { return parse_parameter("toy", p, text).integer; };
  EXPECT_EQ(size("25MiB"), MiB(25));
  EXPECT_EQ(size("1.5GB"), 1'500'000'000);
  EXPECT_EQ(size("2KiB"), 2048);
  EXPECT_EQ(size("64kB"), 64'000);
  EXPECT_EQ(size("1e3"), 1000);
  EXPECT_NE(refusal(p, "3 parsec").find("is not a size"), std::string::npos);
  EXPECT_NE(refusal(p, "0").find("size=0 is not a size of at least 1 bytes"), std::string::npos);
  for (const char* text : {"-1", "1e30", "MiB", ""}) EXPECT_NE(refusal(p, text), "") << text;
}

TEST(Parameter, BytesOrAShareTakeBoth) {
  const ParameterInfo p = bytes_or_share("budget", Unset{"device"}, MiB(1), "of memory");
  const ParameterValue share = parse_parameter("toy", p, "60%"), size = parse_parameter("toy", p, "10GB");
  EXPECT_DOUBLE_EQ(share.number, 0.6);
  EXPECT_EQ(share.integer, 0);
  EXPECT_EQ(size.integer, 10'000'000'000);
  EXPECT_EQ(size.number, 0);
  EXPECT_DOUBLE_EQ(parse_parameter("toy", p, "0.5%").number, 0.005);
  EXPECT_EQ(parse_parameter("toy", p, "100%").number, 1);
  EXPECT_FALSE(parse_parameter("toy", p, "device").set);
  EXPECT_EQ(refusal(p, "0.6"),
            "Policy 'toy': budget=0.6 is neither 'device' nor enough; expected a size of at least 1 MiB, as 10GB, or a "
            "share, as 60% (60% for 0.6 of it).");
  EXPECT_NE(refusal(p, "80").find("at least 1 MiB, as 10GB, or a share, as 60%."), std::string::npos);
  for (const char* text : {"0%", "-1%", "101%", "%", "60 %", "nan%", "1e30", "", "3 parsec", "6%0"})
    EXPECT_NE(refusal(p, text), "") << text;
  EXPECT_EQ(values_text(p), "device, or bytes or a share: 10GB, 60%");
}

TEST(Parameter, AListHoldsDistinctItems) {
  const ParameterInfo what = choices("what", kRequired, {"activations", "optimizer"}, "what leaves");
  EXPECT_TRUE(what.required());
  EXPECT_EQ(parse_parameter("toy", what, "optimizer+activations").items,
            (std::vector<std::string>{"optimizer", "activations"}));
  EXPECT_NE(refusal(what, "optimizer+activation").find("'activation' is not valid; expected one of activations"),
            std::string::npos);
  EXPECT_NE(refusal(what, "optimizer+activation").find("Did you mean 'activations'?"), std::string::npos);
  for (const ParameterInfo& p : {what, patterns("modules", Unset{"none"}, "paths"), tiers("to", "host", "where")}) {
    for (const char* text : {"", "+", "optimizer+", "+optimizer", "optimizer++activations"})
      EXPECT_NE(refusal(p, text), "") << p.name << " " << text;
    EXPECT_NE(refusal(p, "optimizer+optimizer").find("names 'optimizer' twice"), std::string::npos) << p.name;
  }
}

TEST(Parameter, ATierIsOneName) {
  const ParameterInfo p = tier("via", Unset{"auto"}, "on the way", {"none"});
  EXPECT_EQ(parse_parameter("toy", p, "cxl").text, "cxl");
  EXPECT_NE(refusal(p, "host+cxl"), "");
  EXPECT_NE(refusal(p, ""), "");
  EXPECT_EQ(values_text(p), "auto, or a tier, or none");
}

TEST(Parameter, AWordMayStandForNoValue) {
  const ParameterInfo p = integer("prefetch", Unset{"auto"}, {0, 10}, "ops", "ahead");
  EXPECT_FALSE(parse_parameter("toy", p, "auto").set);
  EXPECT_TRUE(parse_parameter("toy", p, "0").set);
  EXPECT_NE(refusal(p, "11").find("is neither 'auto' nor a whole number between 0 and 10"), std::string::npos);
  const ParameterInfo stream = choice("stream", Unset{"auto"}, {"own", "compute"}, "where copies run");
  EXPECT_NE(refusal(stream, "autp").find("Did you mean 'auto'?"), std::string::npos);
}

const std::vector<ParameterInfo> kParameters = {
    choice("mode", "full", {"full", "sqrt"}, "which"),
    integer("every", 2, {1, 10}, "blocks", "how many"),
    bytes("size", "25MiB", 0, "of a bucket"),
    flag("inputs", Unset{"auto"}, "too"),
    patterns("what", kRequired, "needed"),
};

PolicyArguments arguments(const std::string& text) { return PolicyArguments::parse("toy", text, kParameters); }

TEST(PolicyArgumentsTest, DefaultsFillWhatIsNotGiven) {
  const PolicyArguments a = arguments("what=x.*+y");
  EXPECT_EQ(a.choice("mode"), "full");
  EXPECT_EQ(a.integer("every"), 2);
  EXPECT_EQ(a.bytes("size"), MiB(25));
  EXPECT_FALSE(a.is_set("inputs"));
  EXPECT_TRUE(a.flag_or("inputs", true));
  EXPECT_EQ(a.list("what"), (std::vector<std::string>{"x.*", "y"}));
  const PolicyArguments b = arguments("sqrt,what=x,inputs=0,every=3");
  EXPECT_EQ(b.choice("mode"), "sqrt") << "the first parameter's name may be left out";
  EXPECT_FALSE(b.flag_or("inputs", true));
  EXPECT_EQ(b.integer_or("every", 7), 3);
}

TEST(PolicyArgumentsTest, MistakesAreNamed) {
  const auto message = [](const char* text) { return message_of([&] { arguments(text); }); };
  EXPECT_NE(message("").find("needs 'what=…' (patterns, joined by '+'): needed"), std::string::npos);
  EXPECT_NE(message("what=x,mdoe=full").find("Did you mean 'mode'"), std::string::npos);
  EXPECT_NE(message("what=x,what=y").find("'what' is given twice"), std::string::npos);
  EXPECT_NE(message("what=x,mode=ful").find("Did you mean 'full'"), std::string::npos);
  EXPECT_NE(message("what=x,full").find("found 'full', expected key=value"), std::string::npos);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
