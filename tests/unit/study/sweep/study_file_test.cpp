// Does a study file say what the options of the same names say, and is what it does not hold refused with its line?
#include "study/sweep/study_file.h"

#include <gtest/gtest.h>

#include <fstream>

#include "sim/error.h"
#include "study/sweep/sweep.h"
#include "tests/support/scratch_folder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

const char* const kText = R"(
# A comment.
title: "Does a faster link help?"
step: "step.mwt"
execution_trace: "et.json"
onto: "other.mwt"
measured_on: "t4"
machine: "a100-sxm-80gb"
machine: "own.textproto"
set: "gpu.hbm.capacity=40GB"
policy: "checkpoint"
scale: "host=0.5"
over: "pcie=gen3|gen4"
over: "batch=1|2"
zip: "pcie,batch"
sample: "random:3"
where: "fits"
objective: "step_time"
show: "peak"
figure: "line=x.svg"
)";

StudyFile whole() {
  return {.title = "Does a faster link help?",
          .base = {.step = {"step.mwt"},
                   .execution_traces = {"et.json"},
                   .onto = "other.mwt",
                   .measured_on = "t4",
                   .settings = {"gpu.hbm.capacity=40GB"},
                   .scale = {"host=0.5"},
                   .policies = {"checkpoint"}},
          .machines = {"a100-sxm-80gb", "own.textproto"},
          .axes = {"pcie=gen3|gen4", "batch=1|2"},
          .zips = {"pcie,batch"},
          .conditions = {"fits"},
          .fields = {"peak"},
          .figures = {"line=x.svg"},
          .sample = "random:3",
          .objective = "step_time"};
}

TEST(StudyFile, SaysWhatTheOptionsSay) {
  EXPECT_EQ(parse_study_file(kText, "x.study"), whole());
  EXPECT_EQ(parse_study_file("", "x.study"), StudyFile{});
}

TEST(StudyFile, NamesWhatStandsBesideItFromThere) {
  const ScratchFolder folder;
  std::ofstream(folder / "x.study") << kText;
  std::ofstream(folder / "step.mwt") << "";
  std::ofstream(folder / "own.textproto") << "";
  const StudyFile study = load_study_file(folder / "x.study");
  EXPECT_EQ(study.base.step, std::vector<std::string>{(folder / "step.mwt").string()});
  EXPECT_EQ(study.machines, (std::vector<std::string>{"a100-sxm-80gb", (folder / "own.textproto").string()}));
  EXPECT_EQ(study.base.onto, "other.mwt") << "there is none beside it";
}

TEST(StudyFile, IsRefusedWithItsLine) {
  const std::pair<std::string, std::string> cases[] = {
      {"title: \"x\"\nobjectiv: \"y\"\n", "x.study: line 2: unknown key \"objectiv\""},
      {"title: \"x\"\nobjectiv: \"y\"\n", "Did you mean 'objective'?"},
      {"title: \"x\"\n\nover = 3\n", "line 3: the text is not well formed"},
      {"title: \"a\"\ntitle: \"b\"\n", "line 2"},
      {std::string("\xff\xfe\x00garbage", 10), "line 1"}};
  for (const auto& [text, sentence] : cases) {
    try {
      parse_study_file(text, "x.study");
      FAIL() << text;
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find(sentence), std::string::npos) << error.what();
    }
  }
  EXPECT_THROW(load_study_file("no_such.study"), InputError);
}

TEST(StudyFile, GoesOnWithWhatTheCommandSays) {
  StudyFile given;
  given.title = "Another";
  given.base.settings = {"gpu.hbm.bandwidth=1TB/s"};
  given.base.policies = {"zero:ranks=8"};
  given.machines = {"t4"};
  given.axes = {"batch=4", "repeat=1|2"};
  given.conditions = {"step_time < 1s"};
  const StudyFile both = merged(whole(), given);
  EXPECT_EQ(both.title, "Another");
  EXPECT_EQ(both.base.step, whole().base.step);
  EXPECT_EQ(both.base.settings, (std::vector<std::string>{"gpu.hbm.capacity=40GB", "gpu.hbm.bandwidth=1TB/s"}));
  EXPECT_EQ(both.base.policies, (std::vector<std::string>{"checkpoint", "zero:ranks=8"}));
  EXPECT_EQ(both.machines, std::vector<std::string>{"t4"});
  EXPECT_EQ(both.axes, (std::vector<std::string>{"pcie=gen3|gen4", "batch=4", "repeat=1|2"}));
  EXPECT_EQ(both.conditions, (std::vector<std::string>{"fits", "step_time < 1s"}));
  EXPECT_EQ(both.objective, "step_time");
  EXPECT_EQ(merged(whole(), {}), whole());
  EXPECT_EQ(merged({}, whole()), whole());
}

TEST(StudyFile, SeveralMachinesAreAnAxis) {
  StudyFile study = whole();
  Scenario base;
  EXPECT_EQ(space_of(study, base).axes.front().name, "machine");
  EXPECT_EQ(base.machine, "");
  study.machines.pop_back();
  EXPECT_EQ(space_of(study, base).axes.size(), 2u);
  EXPECT_EQ(base.machine, "a100-sxm-80gb");
}

// Each runs on a generated step, and fails at no point.
TEST(StudyPresets, RunOnAnyNetwork) {
  ASSERT_GE(study_presets().size(), 3u);
  for (const std::string& name : study_presets()) {
    StudyFile preset = load_study_preset(name);
    EXPECT_FALSE(preset.title.empty()) << name;
    SweepRequest request{.base = preset.base,
                         .space = {},
                         .conditions = preset.conditions,
                         .objective = preset.objective,
                         .fields = preset.fields};
    request.base.step = {"gpt2-124m:layers=2,batch=1,sequence=64"};
    preset.machines = {"a100-sxm-80gb"};
    request.space = space_of(preset, request.base);
    Study study;
    const SweepResult result = sweep(study, request, nullptr);
    EXPECT_TRUE(result.best) << name;
    for (const auto& [sentence, count] : result.failures_by_cause()) ADD_FAILURE() << name << ": " << sentence;
  }
  EXPECT_THROW(load_study_preset("nothing"), UsageError);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
