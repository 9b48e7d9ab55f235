// Is a study's result that of its scenarios run one by one, whatever the threads, the order and what the journal holds?
#include "study/sweep/sweep.h"

#include <gtest/gtest.h>
#include <simdjson.h>
#include <sqlite3.h>

#include <algorithm>
#include <fstream>
#include <optional>

#include "sim/error.h"
#include "study/sweep/axis_target.h"
#include "study/sweep/outcome_fields.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/scratch_folder.h"
#include "traces/run/analysis/summary.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

class SweepTest : public testing::Test {
 protected:
  SweepTest() {
    GptShape shape;
    shape.layers = 2;
    study_.add_step("gpt", gpt_step(shape));
  }

  SweepRequest request(const std::vector<std::string>& axes) const {
    SweepRequest r;
    r.base.step = {"gpt"};
    r.base.machine = "a100-sxm-80gb";
    for (const std::string& text : axes) r.space.axes.push_back(parse_axis(text));
    return r;
  }

  Study study_;
  ScratchFolder folder_;
};

std::optional<double> field(const SweepPoint& point, const std::string& name) {
  for (const auto& [own, value] : point.record.fields)
    if (own == name) return value;
  return std::nullopt;
}

TEST_F(SweepTest, EachPointIsItsScenario) {
  SweepRequest r = request({"policy=none|checkpoint:mode=full", "pcie=gen3|32GB/s", "scale.kernels=1|2"});
  const SweepResult result = sweep(study_, r, nullptr);
  ASSERT_EQ(result.points.size(), 8u);
  for (const SweepPoint& point : result.points) {
    ASSERT_TRUE(point.ran()) << point.record.error;
    const Outcome outcome = study_.run(parse_scenario(to_text(point.scenario)), {.record = false});
    EXPECT_EQ(field(point, "step_time_s"), quick_fields(outcome.run).find("step_time_s"));
  }
  EXPECT_EQ(result.points[7].scenario.policies, std::vector<std::string>{"checkpoint:mode=full"});
  EXPECT_EQ(result.points[7].scenario.settings, std::vector<std::string>{"pcie=32GB/s"});
  EXPECT_EQ(result.points[7].scenario.scale, std::vector<std::string>{"kernels=2"});
}

TEST_F(SweepTest, IsTheSameForAnyNumberOfThreads) {
  SweepRequest r = request({"policy=none|checkpoint:mode=full", "gpu.hbm.bandwidth=1000..2000GB/s:9"});
  r.objective = "step_time";
  const SweepResult one = sweep(study_, r, nullptr);
  r.jobs = 4;
  const SweepResult four = sweep(study_, r, nullptr);
  ASSERT_EQ(one.points.size(), four.points.size());
  EXPECT_EQ(one.best, four.best);
  for (std::size_t i = 0; i < one.points.size(); ++i)
    EXPECT_EQ(one.points[i].record.fields, four.points[i].record.fields);
}

TEST_F(SweepTest, ConditionsAndObjectiveAreOverFieldsAndAxes) {
  SweepRequest r = request({"scale.kernels=1..4"});
  r.objective = "max step_time_s";
  r.conditions = {"fits", "scale.kernels < 4"};
  const SweepResult result = sweep(study_, r, nullptr);
  ASSERT_TRUE(result.best);
  EXPECT_EQ(result.points[*result.best].values, PointValues{"3"});
  EXPECT_FALSE(result.points[3].meets);
  EXPECT_FALSE(result.minimizes);
  r.objective = "step_time + peak";
  EXPECT_THROW(sweep(study_, r, nullptr), UsageError);
  r.objective = "step_tim_s";
  EXPECT_THROW(sweep(study_, r, nullptr), UsageError);
}

TEST_F(SweepTest, FieldsOfTheJsonAreThereWhereOneIsAskedFor) {
  SweepRequest r = request({"pcie=gen3|gen4"});
  r.fields = {"critical_path.compute_s"};
  const SweepResult result = sweep(study_, r, nullptr);
  for (const SweepPoint& point : result.points) {
    EXPECT_TRUE(field(point, "critical_path.compute_s"));
    EXPECT_TRUE(point.record.has_all);
  }
}

// The number under "links.pcie_h2d.bytes" of a run's JSON.
std::optional<double> number_in(const simdjson::dom::element& json, std::string name) {
  std::ranges::replace(name, '.', '/');
  double number = 0;
  return json.at_pointer("/" + name).get(number) == simdjson::SUCCESS ? std::optional(number) : std::nullopt;
}

// What is quick has the bits of the JSON's fields of the same names, which are made in another way.
TEST_F(SweepTest, QuickFieldsAreTheJsonsOwn) {
  for (const std::uint32_t repeat : {1u, 3u, 7u}) {
    for (const char* scale : {"kernels=1", "kernels=1.37", "host=0.71"}) {
      const Outcome outcome = study_.run({.step = {"gpt"},
                                          .machine = "a100-sxm-80gb",
                                          .scale = {scale},
                                          .repeat = repeat,
                                          .policies = {"offload:what=activations,min_bytes=0"}},
                                         {.record = false});
      simdjson::dom::parser parser;
      const simdjson::padded_string text(to_json(summarize(outcome.run)));
      const simdjson::dom::element json = parser.parse(text);
      std::size_t looked_at = 0;
      const OutcomeFields quick = quick_fields(outcome.run);
      for (const auto& [name, value] : quick.all()) {
        EXPECT_TRUE(is_quick_field(name)) << name;
        if (name == "fits") continue;  // true or false there
        EXPECT_EQ(number_in(json, name), value) << name << " of " << repeat << " steps, " << scale;
        ++looked_at;
      }
      EXPECT_GE(looked_at, 20u);
    }
  }
}

TEST_F(SweepTest, AFailedPointIsItsOwnAndGroupedByItsCause) {
  SweepRequest r = request({"policy=none|checkpoint:modules=here|checkpoint:modules=there|batch:tokens=7"});
  r.objective = "step_time";
  const SweepResult result = sweep(study_, r, nullptr);
  EXPECT_TRUE(result.points[0].ran());
  EXPECT_EQ(result.failures(), 3u);
  EXPECT_EQ(result.best, 0u);
  const auto causes = result.failures_by_cause();
  ASSERT_EQ(causes.size(), 2u) << causes[0].first << causes[1].first;
  EXPECT_EQ(causes[0].second, 2u) << causes[0].first;
}

TEST_F(SweepTest, WhatTheJournalHoldsIsNotComputedAgain) {
  SweepRequest r = request({"policy=none|checkpoint:mode=full|checkpoint:modules=nowhere", "scale.kernels=1|2"});
  const auto path = folder_ / "journal.sqlite";
  SweepResult first;
  {
    SweepJournal journal(path);
    first = sweep(study_, r, &journal);
  }
  SweepJournal journal(path);
  std::size_t kept = 0;
  const SweepResult again = sweep(study_, r, &journal, [&](const SweepProgress& p) { kept = p.kept; });
  EXPECT_EQ(kept, 6u) << "failures, too";
  for (std::size_t i = 0; i < first.points.size(); ++i) {
    EXPECT_EQ(again.points[i].record.fields, first.points[i].record.fields);
    EXPECT_EQ(again.points[i].record.error, first.points[i].record.error);
  }
  // Another axis shares what it can.
  r.space.axes[1] = parse_axis("scale.kernels=1|3");
  EXPECT_EQ(sweep(study_, r, &journal, [&](const SweepProgress& p) { kept = p.kept; }).points.size(), 6u);
  EXPECT_EQ(kept, 3u);
  // More fields are asked for than it has.
  r.fields = {"critical_path.compute_s"};
  sweep(study_, r, &journal, [&](const SweepProgress& p) { kept = p.kept; });
  EXPECT_EQ(kept, 2u) << "what failed has none";
}

TEST_F(SweepTest, AKeyDependsOnTheContentOfFiles) {
  const auto path = folder_ / "step.mwt";
  std::ofstream(path) << "one";
  const Scenario scenario{.step = {path.string()}};
  const std::string before = PointKeys().key(scenario);
  EXPECT_EQ(PointKeys().key(scenario), before);
  std::ofstream(path) << "two";
  EXPECT_NE(PointKeys().key(scenario), before);
  Scenario other = scenario;
  other.policies = {"checkpoint"};
  EXPECT_NE(PointKeys().key(other), PointKeys().key(scenario));
}

TEST_F(SweepTest, ANumberReadsBackAsTheSameBits) {
  SweepJournal journal(folder_ / "j.sqlite");
  const PointRecord record{.fields = {{"a", 0.1 + 0.2}, {"b", 1e-300}, {"c", -12345678901234567.0}}};
  ASSERT_TRUE(journal.add("k", {.step = {"s"}}, record));
  EXPECT_EQ(journal.find("k", false)->fields, record.fields);
  EXPECT_FALSE(journal.find("k", true)) << "it has the quick fields alone";
  EXPECT_FALSE(journal.find("other", false));
}

TEST_F(SweepTest, AKeyDependsOnWhatANetworkIsBasedOnAndOnPrograms) {
  std::ofstream(folder_ / "base.textproto") << "base: \"gpt2-124m\"\nmodel { layers: 2 }\n";
  std::ofstream(folder_ / "net.textproto") << "base: \"base.textproto\"\nrecipe { batch: 1 }\n";
  std::ofstream(folder_ / "planner.py") << "one";
  const Scenario scenario{.step = {(folder_ / "net.textproto").string()},
                          .policies = {"exec:" + (folder_ / "planner.py").string() + ",budget=8GiB"}};
  const std::string before = PointKeys().key(scenario);
  EXPECT_EQ(PointKeys().key(scenario), before);
  std::ofstream(folder_ / "planner.py") << "two";
  const std::string other = PointKeys().key(scenario);
  EXPECT_NE(other, before);
  std::ofstream(folder_ / "base.textproto") << "base: \"gpt2-124m\"\nmodel { layers: 3 }\n";
  EXPECT_NE(PointKeys().key(scenario), other);
}

TEST_F(SweepTest, WhatAnotherAttemptMayNotSayIsNotKept) {
  SweepJournal journal(folder_ / "j.sqlite");
  EXPECT_FALSE(journal.add("a", {.step = {"s"}}, {.error = "no memory", .cause = "internal"}));
  EXPECT_FALSE(journal.add("b", {.step = {"s"}, .policies = {"exec:p.py"}}, {.error = "it ended", .cause = "usage"}));
  EXPECT_TRUE(journal.add("c", {.step = {"s"}}, {.error = "no such module", .cause = "usage"}));
  EXPECT_EQ(journal.failure(), "");
}

TEST_F(SweepTest, ConditionsAreTrueOrFalse) {
  SweepRequest r = request({"scale.kernels=1..4"});
  for (const char* condition : {"step_time", "step_time + 1s", "1"}) {
    r.conditions = {condition};
    EXPECT_THROW(sweep(study_, r, nullptr), UsageError) << condition;
  }
  r.conditions = {"fits", "not fits or step_time < 1s"};
  EXPECT_NO_THROW(sweep(study_, r, nullptr));
}

// Tables are read with those beside them.
TEST_F(SweepTest, AKeyDependsOnTheTablesBesideATable) {
  std::ofstream(folder_ / "trace.csv") << "one";
  std::ofstream(folder_ / "tensor.csv") << "one";
  const Scenario scenario{.step = {(folder_ / "trace.csv").string()}};
  const std::string before = PointKeys().key(scenario);
  std::ofstream(folder_ / "tensor.csv") << "two";
  EXPECT_NE(PointKeys().key(scenario), before);
}

// cuBLAS's workspaces stand beside what the allocator reserves; a GPU that has that to the byte has no place for them.
TEST_F(SweepTest, AConditionMayAskForAPlaceBesideTheAllocatorsMemory) {
  const memwall::Run run = study_.run(request({}).base, {.record = false}).run;
  const DeviceMemory memory = summarize(run).device_memory.value();
  ASSERT_GT(memory.workspaces, 0);
  const Bytes full = memory.reserved + memory.context;
  SweepRequest r = request({"gpu.hbm.capacity=" + std::to_string(memory.context + memory.reserved / 2) + "B|" +
                            std::to_string(full) + "B|" + std::to_string(full + memory.workspaces) + "B"});
  r.conditions = {"fits_device"};
  r.fields = {"fits"};
  const SweepResult result = sweep(study_, r, nullptr);
  ASSERT_EQ(result.points.size(), 3u);
  std::vector<double> fits, fits_device;
  std::vector<bool> meets;
  for (const SweepPoint& point : result.points) {
    fits.push_back(field(point, "fits").value());
    fits_device.push_back(field(point, "fits_device").value());
    meets.push_back(point.meets);
  }
  EXPECT_EQ(fits, (std::vector<double>{0, 1, 1}));
  EXPECT_EQ(fits_device, (std::vector<double>{0, 0, 1}));
  EXPECT_EQ(meets, (std::vector<bool>{false, false, true}));
}

TEST_F(SweepTest, AxesHaveTheUnitsOfTheirValues) {
  SweepRequest r = request({"budget=9000MB|12GB"});
  r.objective = "max budget";
  const SweepResult result = sweep(study_, r, nullptr);
  ASSERT_TRUE(result.best);
  EXPECT_EQ(result.points[*result.best].values, PointValues{"12GB"});
  r.conditions = {"budget < 10GiB"};
  EXPECT_EQ(sweep(study_, r, nullptr).best, 0u);
  r.space.axes[0] = parse_axis("policy=none|checkpoint:mode=full");
  r.objective = "step_time";
  r.conditions = {"policy == 1"};
  EXPECT_THROW(sweep(study_, r, nullptr), UsageError) << "a policy is no number";
}

TEST_F(SweepTest, AForeignDatabaseStaysAsItIs) {
  const auto path = folder_ / "foreign.sqlite";
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
  sqlite3_exec(database, "CREATE TABLE theirs(x)", nullptr, nullptr, nullptr);
  sqlite3_close(database);
  const std::string before = content_of(path);
  EXPECT_THROW(SweepJournal{path}, InputError);
  EXPECT_EQ(content_of(path), before);
}

TEST_F(SweepTest, AFileThatIsNoJournalIsRefused) {
  std::ofstream(folder_ / "text") << "not a database, but long enough to be looked at as one: "
                                  << std::string(200, 'x');
  EXPECT_THROW(SweepJournal{folder_ / "text"}, InputError);
  EXPECT_THROW(SweepJournal{folder_ / "no" / "such" / "folder"}, InputError);
}

TEST_F(SweepTest, AnswersSayWhatIsAsGoodAndWhatIsInTheWay) {
  SweepRequest r = request({"pcie=gen3|gen4|gen5", "scale.kernels=1|2"});
  r.objective = "step_time";
  r.conditions = {"fits", "scale.kernels > 1", "step_time < 1ns"};
  const SweepResult none = sweep(study_, r, nullptr);
  EXPECT_FALSE(none.best);
  EXPECT_EQ(none.points[0].broken, (std::vector<std::size_t>{1, 2}));
  EXPECT_EQ(none.points[1].broken, (std::vector<std::size_t>{2}));
  EXPECT_EQ(none.ties(), 0u);
  r.conditions = {"fits"};
  const SweepResult result = sweep(study_, r, nullptr);
  EXPECT_EQ(result.best, 0u) << "of equals the first";
  EXPECT_EQ(result.ties(), 2u);
  EXPECT_EQ(result.effectless_axes(), std::vector<std::string>{"pcie"}) << "nothing crosses it";
  r = request({"pcie=0.001GB/s|1GB/s", "scale.kernels=1|2"});
  r.base.policies = {"offload:what=activations,min_bytes=0"};
  EXPECT_TRUE(sweep(study_, r, nullptr).effectless_axes().empty());
}

TEST_F(SweepTest, OfPointsThatFailedNothingIsKnown) {
  SweepRequest r = request({"pcie=gen3|gen4"});
  r.base.policies = {"checkpoint:modules=nowhere"};
  const SweepResult result = sweep(study_, r, nullptr);
  EXPECT_EQ(result.failures(), 2u);
  EXPECT_TRUE(result.effectless_axes().empty());
}

// Whichever stands first.
TEST_F(SweepTest, AFieldThatOnlySomePointsHaveIsNotRefused) {
  for (const char* axis : {"policy=none|offload:what=activations,to=nvme,min_bytes=0",
                           "policy=offload:what=activations,to=nvme,min_bytes=0|none"}) {
    SweepRequest r = request({axis});
    r.base.machine = "rtx-4090";
    r.fields = {"steady_step_time_s", "tiers.nvme.drive_life_days"};
    const SweepResult result = sweep(study_, r, nullptr);
    const bool first = field(result.points[0], "steady_step_time_s").has_value();
    EXPECT_NE(first, field(result.points[1], "steady_step_time_s").has_value()) << axis;
  }
}

// Only points that differ in nothing else are compared: of samples that none share, nothing is known.
TEST_F(SweepTest, AnAxisOfWhichNothingIsKnownIsNotCalledEffectless) {
  SweepRequest r = request({"pcie=16..64GB/s:8", "scale.kernels=1..2:8"});
  r.space.zips = {{"pcie", "scale.kernels"}};
  EXPECT_TRUE(sweep(study_, r, nullptr).effectless_axes().empty());
}

TEST_F(SweepTest, AFieldThatIsNoneIsToldBehindOnePoint) {
  SweepRequest r = request({"scale.kernels=1..200"});
  r.objective = "steptime";
  std::size_t done = 0;
  try {
    sweep(study_, r, nullptr, [&](const SweepProgress& p) { done = p.done; });
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("Did you mean 'step_time'?"), std::string::npos) << error.what();
  }
  EXPECT_EQ(done, 1u);
  r.objective = "step_time";
  r.conditions = {"stp_time < 1s"};
  EXPECT_THROW(sweep(study_, r, nullptr, [&](const SweepProgress&) { FAIL() << "a point ran"; }), UsageError);
}

TEST_F(SweepTest, ACaptureThatAsksFirstFailsUnlessItsGapsAreAccepted) {
  for (const Completeness state : {Completeness::not_a_replay, Completeness::gaps_over_limit, Completeness::gaps}) {
    Trace trace = gpt_step({});
    trace.completeness = state;
    trace.completeness_reason = "little was recorded";
    const std::string name = "gaps " + std::to_string(static_cast<int>(state));
    study_.add_step(name, std::move(trace));
    SweepRequest r = request({"scale.kernels=1|2"});
    r.base.step = {name};
    const std::uint64_t failures = state == Completeness::gaps ? 0u : 2u;
    EXPECT_EQ(sweep(study_, r, nullptr).failures(), failures) << name;
    SweepJournal journal(folder_ / (name + ".sqlite"));
    EXPECT_EQ(sweep(study_, r, &journal).failures(), failures) << name;
    r.accept_gaps = true;
    EXPECT_EQ(sweep(study_, r, &journal).failures(), 0u) << "the journal's failures are not those of this question";
  }
}

TEST_F(SweepTest, WrongAxesAreRefusedBeforeAPointIsRun) {
  for (const char* axis : {"bacth=1|2", "checkpoint.mod=a|b", "machin=a|b"})
    EXPECT_THROW(sweep(study_, request({axis}), nullptr), UsageError) << axis;
  EXPECT_THROW(sweep(study_, request({"pcie=gen3", "pcie=gen4"}), nullptr), UsageError);
}

TEST(AxisTarget, TheBatchOfACaptureIsThatOfItsPolicyWhereThereIsOne) {
  const auto policies = [](std::vector<std::string> given, const std::string& axis) {
    const Scenario base{.step = {"step.mwt"}, .machine = "a100-sxm-80gb", .policies = std::move(given)};
    const std::vector<Axis> axes = {parse_axis(axis + "=8")};
    std::vector<std::unique_ptr<AxisTarget>> targets;
    targets.push_back(axis_target(axis, base, axes));
    return scenario_at({"8"}, base, targets).policies;
  };
  EXPECT_EQ(policies({}, "batch"), std::vector<std::string>{"batch:to=8"});
  EXPECT_EQ(policies({"checkpoint", "batch:1,from=512"}, "batch"),
            (std::vector<std::string>{"checkpoint", "batch:from=512,to=8"}));
  EXPECT_EQ(policies({"batch:to=1,from=512"}, "batch"), std::vector<std::string>{"batch:from=512,to=8"});
  EXPECT_EQ(policies({"batch:2,tokens=64"}, "tokens"), std::vector<std::string>{"batch:2,tokens=8"});
}

TEST(AxisTarget, SettingsOfGeneratedStepsReplaceThoseOfTheBase) {
  const Scenario base{.step = {"gpt2-124m:batch=4,layers=2"}, .machine = "a100-sxm-80gb"};
  const std::vector<Axis> axes = {parse_axis("batch=1|2"), parse_axis("policy=checkpoint + zero:ranks=8"),
                                  parse_axis("zero.stage=2"), parse_axis("budget=8GiB")};
  std::vector<std::unique_ptr<AxisTarget>> targets;
  for (const Axis& axis : axes) targets.push_back(axis_target(axis.name, base, axes));
  const Scenario s = scenario_at({"2", "checkpoint + zero:ranks=8", "2", "8GiB"}, base, targets);
  EXPECT_EQ(s.step, std::vector<std::string>{"gpt2-124m:layers=2,batch=2"});
  EXPECT_EQ(s.policies, (std::vector<std::string>{"checkpoint", "zero:ranks=8,stage=2"}));
  EXPECT_EQ(s.budget, "8GiB");
  EXPECT_THROW(axis_target("bacth", base, {parse_axis("bacth=1|2")}), UsageError);
}

// A budget is memory that planners plan for, and that the run has.
TEST(ScenarioBudget, IsWhatTheStepMayTake) {
  Study study;
  GptShape shape;
  shape.layers = 2;
  study.add_step("gpt", gpt_step(shape));
  Scenario s{.step = {"gpt"}, .machine = "a100-sxm-80gb"};
  const Bytes peak = study.run(s, {.record = false}).run.result.tiers[0].peak_reserved;
  s.budget = std::to_string(peak) + "B";
  EXPECT_TRUE(study.run(s, {.record = false}).run.result.fits);
  s.budget = std::to_string(peak / 2) + "B";
  EXPECT_FALSE(study.run(s, {.record = false}).run.result.fits);
  for (const char* budget : {"1KiB", "120%", "0%", "many", "8"}) {
    s.budget = budget;
    EXPECT_THROW(study.run(s, {.record = false}), UsageError) << budget;
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
