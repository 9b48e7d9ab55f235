// Do JSON, TOML and YAML say the same, and does what is damaged or of another kind end in a sentence?
#include "models/workload/frameworks/configuration_file.h"

#include <gtest/gtest.h>

#include "sim/error.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

using Syntax = ConfigurationFile::Syntax;

constexpr const char* kJson =
    R"({"stage": 3, "size": 5e8, "more": {"on": true, "name": "cpu", "list": ["a", "b"]}, "null": null, "free": "auto"})";
constexpr const char* kToml =
    "stage = 3\nsize = 5e8\nfree = \"auto\"\n[more]\non = true\nname = \"cpu\"\nlist = [\"a\", \"b\"]\n";
constexpr const char* kYaml =
    "stage: 3\nsize: 5e8\nmore:\n  on: yes\n  name: cpu\n  list: [a, b]\nnull_: null\nfree: auto\n";

std::string sentence_of(const std::string& text, Syntax syntax,
                        const std::function<void(const ConfigurationFile&)>& use) {
  try {
    use(ConfigurationFile(text, syntax, "file"));
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(ConfigurationFile, SaysTheSameInThreeSyntaxes) {
  for (const auto& [text, syntax] : {std::pair(kJson, Syntax::json), {kToml, Syntax::toml}, {kYaml, Syntax::yaml}}) {
    const ConfigurationFile file(text, syntax, "file");
    EXPECT_EQ(file.integer("stage", 0, 0, 3), 3);
    EXPECT_EQ(file.integer("size", 0, 0, 1'000'000'000), 500'000'000) << "5e8, as DeepSpeed's users write sizes";
    EXPECT_TRUE(file.flag("more.on", false));
    EXPECT_EQ(file.text("more.name", ""), "cpu");
    EXPECT_EQ(file.list("more.list"), (std::vector<std::string>{"a", "b"}));
    EXPECT_FALSE(file.has("free"));
    EXPECT_TRUE(file.is_auto("free"));
    EXPECT_EQ(file.integer("free", 7, 0, 10), 7) << "auto is the default";
    EXPECT_EQ(file.integer("absent", 9, 0, 10), 9);
    EXPECT_FALSE(file.has("more")) << "a table has no value of its own";
  }
}

TEST(ConfigurationFile, NamesWhatNobodyAskedFor) {
  const ConfigurationFile file(R"({"a": 1, "b": {"c": 2, "d": 3}, "e": {"f": {"g": 4}}})", Syntax::json, "file");
  file.integer("a", 0, 0, 9);
  file.pass_over("b.d");
  EXPECT_EQ(file.unknown(), (std::vector<std::string>{"b.c", "e.f.g"}));
  file.pass_over("e");
  EXPECT_EQ(file.unknown(), std::vector<std::string>{"b.c"});
  file.pass_over("b.");  // no prefix of a path's part
  EXPECT_EQ(file.unknown(), std::vector<std::string>{"b.c"});
}

TEST(ConfigurationFile, RefusesOtherKindsWithTheKeyAndWhatWasFound) {
  const std::string text = R"({"stage": "three", "size": 1.5, "on": 2, "list": [1]})";
  EXPECT_EQ(sentence_of(text, Syntax::json, [](const auto& f) { f.integer("stage", 0, 0, 3); }),
            "file: \"stage\" is three; expected a whole number from 0 to 3.");
  EXPECT_EQ(sentence_of(text, Syntax::json, [](const auto& f) { f.integer("size", 0, 0, 3); }),
            "file: \"size\" is 1.5; expected a whole number from 0 to 3.");
  EXPECT_EQ(sentence_of(text, Syntax::json, [](const auto& f) { f.flag("on", false); }),
            "file: \"on\" is 2; expected true or false.");
  EXPECT_EQ(sentence_of(text, Syntax::json, [](const auto& f) { f.text("list", ""); }),
            "file: \"list\" is [1]; expected a text.");
}

TEST(ConfigurationFile, SaysWhereAFileIsDamaged) {
  const auto nothing = [](const ConfigurationFile&) {};
  EXPECT_NE(sentence_of("{\"a\": ", Syntax::json, nothing).find("file: the JSON is damaged"), std::string::npos);
  EXPECT_NE(sentence_of("[1]", Syntax::json, nothing).find("no object"), std::string::npos);
  EXPECT_NE(sentence_of("a = 1\nb = = 2\n", Syntax::toml, nothing).find("file:2:5: the TOML is damaged"),
            std::string::npos)
      << sentence_of("a = 1\nb = = 2\n", Syntax::toml, nothing);
  EXPECT_NE(sentence_of("a: [1\nb: 2\n", Syntax::yaml, nothing).find("the YAML is damaged"), std::string::npos);
  EXPECT_NE(sentence_of("just words", Syntax::yaml, nothing).find("without keys"), std::string::npos);
}

// Aliases that stand for each other many times over would fill the memory.
TEST(ConfigurationFile, RefusesYamlThatGrowsWithoutBound) {
  std::string text = "a0: &a0 {x: 1, y: 2}\n";
  for (int i = 1; i < 30; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " {x: " + before + ", y: " + before + "}\n";
  }
  EXPECT_NE(sentence_of(text, Syntax::yaml, [](const ConfigurationFile&) {}).find("more than"), std::string::npos);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
