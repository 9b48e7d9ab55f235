// Does `memwall sweep --figure` write the pictures that it is asked for, and refuse the others before a point runs?
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "tests/support/program.h"
#include "tests/support/xml_faults.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

const std::string kGpt = MEMWALL_SOURCE "/traces/samples/gpt_124m.mwt";

class SweepFigureVerb : public ::testing::Test {
 protected:
  CommandOutcome sweep(const std::string& arguments) const {
    return run_command("'" MEMWALL_PROGRAM "' sweep '" + kGpt +
                           "' --machine a100-sxm-80gb --no-journal --over 'policy=none|checkpoint:mode=full' "
                           "--over 'pcie=16GB/s|32GB/s' " +
                           arguments,
                       folder_.path());
  }
  std::string content(const std::string& file) const {
    std::ifstream in(folder_.path() / file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  ScratchFolder folder_;
};

TEST_F(SweepFigureVerb, WritesEachKindWithTheNamesOfPolicies) {
  const CommandOutcome o = sweep(
      "--figure line.svg --figure peaks.svg=pareto --figure map.svg=heatmap:value=mfu --figure all.svg=tornado "
      "--figure 'one.svg=line:policy=checkpoint:mode=full,log=x+y'");
  ASSERT_EQ(o.code, 0) << o.err;
  for (const char* file : {"line.svg", "peaks.svg", "map.svg", "all.svg", "one.svg"}) {
    const std::string svg = content(file);
    EXPECT_EQ(fault_in_xml(svg), "") << file;
    EXPECT_NE(svg.find("gpt_124m on a100-sxm-80gb"), std::string::npos) << file;
    EXPECT_NE(svg.find("checkpoint:mode=full"), std::string::npos) << file;
    EXPECT_EQ(svg.find("gpt_124m.mwt"), std::string::npos) << file;
  }
  EXPECT_NE(content("map.svg").find("model FLOP utilization"), std::string::npos);
  EXPECT_EQ(o.out.find("mfu"), std::string::npos) << "the table has the columns of --show";
}

TEST_F(SweepFigureVerb, IsTheSameForAnyNumberOfThreads) {
  ASSERT_EQ(sweep("--jobs 1 --figure one.svg=pareto").code, 0);
  ASSERT_EQ(sweep("--jobs 4 --figure four.svg=pareto").code, 0);
  EXPECT_EQ(content("one.svg"), content("four.svg"));
}

TEST_F(SweepFigureVerb, RefusesBeforeAPointRuns) {
  const std::pair<const char*, const char*> cases[] = {
      {"--figure picture.gif", "pictures are written as .svg, .png or .pdf"},
      {"--figure a.svg=pie", "\"pie\" is no kind of picture"},
      {"--figure a.svg=line:x=pice", "x=pice: there is no such axis"},
      {"--figure nowhere/a.svg", "nowhere"},
      {"--figure a.svg --figure ./a.svg=pareto", "expected two places"},
      {"--figure a.svg --json a.svg", "expected two places"}};
  for (const auto& [arguments, sentence] : cases) {
    const CommandOutcome o = sweep(arguments);
    EXPECT_EQ(o.code, 2) << arguments << o.err;
    EXPECT_NE(o.err.find(sentence), std::string::npos) << arguments << ": " << o.err;
    EXPECT_EQ(o.out, "") << arguments;
  }
  EXPECT_TRUE(content("a.svg").empty());
}

TEST_F(SweepFigureVerb, PaintsWithTheViewerOrSaysThatItIsMissing) {
  const CommandOutcome o = sweep("--figure picture.png=heatmap");
  if (o.code == 0) {
    EXPECT_TRUE(content("picture.png").starts_with("\x89PNG"));
  } else {
    EXPECT_EQ(o.code, 2) << o.err;
    EXPECT_NE(o.err.find("memwall-viewer"), std::string::npos) << o.err;
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
