// The command line of the programs that build without libraries.
#include "validate/measurement/flags.h"

#include "sim/error.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

Flags parse(const std::vector<std::string>& words) {
  return Flags(words, {{"--list", "", "lists"},
                       {"--filter", "TEXT", "filters", true},
                       {"--size", "SIZE", "a size"},
                       {"-o", "DIR", "output"}});
}

// The message with which `words` are refused; "" if they are not.
template <class Use>
std::string refusal(const std::vector<std::string>& words, const Use& use) {
  try {
    use(parse(words));
    return "";
  } catch (const UsageError& error) {
    return error.what();
  }
}
std::string refusal(const std::vector<std::string>& words) {
  return refusal(words, [](const Flags&) {});
}

TEST(Flags, TakesValuesBesideAndBehindTheEqualsSign) {
  const Flags flags = parse({"a", "--filter", "x", "--list", "--filter=y=z", "-o", "dir", "-", "--", "--list", "b"});
  EXPECT_EQ(flags.all("--filter"), (std::vector<std::string>{"x", "y=z"}));
  EXPECT_TRUE(flags.given("--list"));
  EXPECT_FALSE(flags.given("--size"));
  EXPECT_FALSE(flags.help());
  EXPECT_EQ(flags.text("-o"), "dir");
  EXPECT_EQ(flags.arguments(), (std::vector<std::string>{"a", "-", "--list", "b"}));
  EXPECT_EQ(flags.text("--size", "none"), "none");
}

TEST(Flags, SkipsTheNameOfTheProgram) {
  const char* words[] = {"program", "--list"};
  EXPECT_TRUE(Flags(2, words, {{"--list", "", ""}}).given("--list"));
  EXPECT_FALSE(Flags(1, words, {{"--list", "", ""}}).given("--list"));
  EXPECT_FALSE(Flags(0, nullptr, {{"--list", "", ""}}).given("--list"));
}

TEST(Flags, HelpIsAlwaysKnown) {
  EXPECT_TRUE(parse({"--help"}).help());
  EXPECT_TRUE(parse({"-h"}).help());
  EXPECT_EQ(flags_help({{"--size", "SIZE", "a size"}}), "  --size SIZE  a size\n  --help       print this and stop\n");
}

TEST(Flags, RefusesWithASentence) {
  EXPECT_EQ(refusal({"--filt", "x"}), "unknown flag \"--filt\" (nearest: --filter); --help lists all.");
  EXPECT_EQ(refusal({"--zzzzzzzzzzzz"}), "unknown flag \"--zzzzzzzzzzzz\"; --help lists all.");
  EXPECT_EQ(refusal({"--size"}), "--size: expected a value (SIZE) after it.");
  EXPECT_EQ(refusal({"--size", "--list"}), "--size: expected a value (SIZE) after it.");
  EXPECT_EQ(refusal({"--list=1"}), "--list takes no value, found \"--list=1\".");
  EXPECT_EQ(refusal({"--size", "1", "--size", "2"}), "--size is given twice; expected once.");
}

TEST(Flags, ReadsSizes) {
  const auto size = [](const std::string& text) { return parse({"--size", text}).bytes("--size", 7); };
  EXPECT_EQ(size("4096"), 4096u);
  EXPECT_EQ(size("64KiB"), 65536u);
  EXPECT_EQ(size("1.5 GiB"), 1610612736u);
  EXPECT_EQ(size("2GB"), 2000000000u);
  EXPECT_EQ(size("1B"), 1u);
  EXPECT_EQ(parse({}).bytes("--size", 7), 7u);
  for (const char* text : {"", "0", "-1", "KiB", "1 kib", "1KiBx", "nan", "99999999999999TiB", "1.2.3"})
    EXPECT_EQ(refusal({"--size=" + std::string(text)}, [](const Flags& f) { f.bytes("--size", 7); }),
              "--size \"" + std::string(text) + "\": expected a size such as 4096, 64KiB, 1.5GiB or 2GB.");
}

TEST(Flags, ReadsNumbersWithinTheirRange) {
  EXPECT_EQ(parse({"--size", "2.5"}).number("--size", 1, 0, 10), 2.5);
  EXPECT_EQ(parse({}).number("--size", 1, 0, 10), 1);
  EXPECT_EQ(parse({"--size", "10"}).count("--size", 1, 0, 10), 10u);
  for (const char* text : {"11", "-1", "x", "", "nan", "inf", "1 "}) {
    EXPECT_EQ(refusal({"--size=" + std::string(text)}, [](const Flags& f) { f.number("--size", 1, 0, 10); }),
              "--size \"" + std::string(text) + "\": expected a number from 0 to 10.");
    EXPECT_EQ(refusal({"--size=" + std::string(text)}, [](const Flags& f) { f.count("--size", 1, 0, 10); }),
              "--size \"" + std::string(text) + "\": expected a whole number from 0 to 10.");
  }
}

TEST(Flags, ReadsOneOfSeveralChoices) {
  EXPECT_EQ(parse({"-o", "cuda"}).choice("-o", "", {"cuda", "host"}), "cuda");
  EXPECT_EQ(parse({}).choice("-o", "", {"cuda", "host"}), "");
  EXPECT_EQ(refusal({"-o", "cude"},
                    [](const Flags& f) {
                      f.choice("-o", "", {"cuda", "host"});
                    }),
            "-o \"cude\": expected one of cuda, host (nearest: cuda).");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
