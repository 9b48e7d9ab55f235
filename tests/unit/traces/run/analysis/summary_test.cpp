// Do the figures of the summary follow from the run, and is its JSON what scripts were promised?
#include "traces/run/analysis/summary.h"

#include <simdjson.h>

#include "tests/support/gpt_trace.h"
#include "tests/support/handmade_run.h"
#include "tests/support/pieces_trace.h"
#include "tests/support/test_machine.h"
#include "traces/run/run_recorder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

memwall::Run two_steps() {
  HandmadeRun hand;
  hand.host(OpKind::mark, "step 1", 0, 0);
  hand.device(OpKind::kernel, "a", 0, 0, 1, 2, 8);
  hand.host(OpKind::mark, "step 2", 5, 5);
  hand.device(OpKind::kernel, "b", 0, 5, 6, 9, 15, WaitReason::stream_order, 1);
  hand.step("one", 0, 2);
  hand.step("two", 2, 4);
  hand.run.trace.edit().samples_per_step = 8;
  hand.run.trace.edit().ranks = 2;
  hand.run.policies = {"zero:stage=1"};
  hand.run.result.links[0] = {3'000'000, microseconds(6)};  // hbm, 1 TB/s
  return hand.finish();
}

TEST(Summary, TakesMeansOverSteps) {
  const RunSummary summary = summarize(two_steps());
  EXPECT_EQ(summary.total, microseconds(15));
  EXPECT_EQ(summary.step_count, 2u);
  EXPECT_EQ(summary.step_time, nanoseconds(7500));
  ASSERT_EQ(summary.steps.size(), 2u);
  EXPECT_EQ(summary.steps[0].step_time, microseconds(5));
  EXPECT_EQ(summary.steps[1].step_time, microseconds(10));
  EXPECT_EQ(summary.times.total(), microseconds(15));
  EXPECT_NEAR(summary.samples_per_second, 8 * 2 / 7.5e-6, 1);
  EXPECT_EQ(summary.tokens_per_second, 0);
  EXPECT_EQ(summary.ops_by_kind[static_cast<int>(OpKind::kernel)], 2u);
  EXPECT_EQ(summary.device_ops, 2u);
}

TEST(Summary, RelatesLinkBytesToTheWholeRun) {
  const RunSummary summary = summarize(two_steps());
  EXPECT_DOUBLE_EQ(summary.links[0].utilization, 3e6 / (1e12 * 15e-6));
  EXPECT_EQ(summary.links[0].busy, microseconds(6));
}

TEST(Summary, OfARunWithoutStepsIsOneWindow) {
  HandmadeRun hand;
  hand.device(OpKind::kernel, "a", 0, 0, 1, 2, 8);
  const RunSummary summary = summarize(hand.finish());
  EXPECT_EQ(summary.step_count, 1u);
  EXPECT_EQ(summary.step_time, microseconds(8));
  EXPECT_EQ(summary.steps[0].gpu_span, microseconds(6));
}

TierSummary first_tier(Bytes last) {
  Machine machine = test_machine();
  machine.tiers[0].capacity = GiB(2);
  return summarize(simulate_and_record(pieces_trace(last), machine, {})).tiers[0];
}

TEST(Summary, SaysOfWhatTheMissingBytesAreCounted) {
  const TierSummary fits = first_tier(GiB(1));
  EXPECT_EQ(fits.missing_cause, MissingCause::nothing);
  EXPECT_FALSE(fits.free_at_refusal);

  const TierSummary pieces = first_tier(MiB(1536));
  EXPECT_EQ(pieces.missing, MiB(1536)) << "the request";
  EXPECT_EQ(pieces.peak_allocated, GiB(2)) << "which the peak does not say";
  EXPECT_EQ(pieces.missing_cause, MissingCause::in_one_piece);
  EXPECT_EQ(pieces.free_at_refusal, MiB(1536));

  const TierSummary too_much = first_tier(GiB(2));
  EXPECT_EQ(too_much.missing_cause, MissingCause::in_use);
  EXPECT_EQ(too_much.missing, too_much.peak_allocated - too_much.usable);
}

TEST(SummaryJson, SaysNothingOfMemoryThatNobodyRecorded) {
  HandmadeRun hand;
  hand.device(OpKind::kernel, "a", 0, 0, 1, 2, 8);
  hand.run.trace.edit().knowledge.allocations = false;
  const std::string text = to_json(summarize(hand.finish()));
  simdjson::dom::parser parser;
  simdjson::dom::element json = parser.parse(text);
  for (const char* key : {"peak_allocated_bytes", "peak_reserved_bytes", "missing_bytes", "peak_by_kind"})
    EXPECT_TRUE(json["tiers"]["hbm"][key].is_null()) << key;
  EXPECT_GT(json["tiers"]["hbm"]["usable_bytes"].get_int64().value(), 0);
}

// Lives that uses tell and nobody recorded: what fits so may not fit, what does not fit so does not.
TEST(SummaryJson, OfDerivedLivesWhetherAStepFitsIsUnknownUntilItDoesNot) {
  Trace trace = gpt_step({});
  for (const bool derived : {false, true})
    for (const bool fits : {true, false}) {
      for (Op& op : trace.ops)
        if (op.kind == OpKind::alloc || op.kind == OpKind::free) op.inferred = derived;
      Machine machine = test_machine();
      if (!fits) machine.tiers.front().capacity = machine.tiers.front().unavailable + 32 * 1024;
      const RunSummary summary = summarize(simulate_and_record(trace, machine, {}));
      ASSERT_EQ(summary.fits, fits);
      const std::string text = to_json(summary);
      simdjson::dom::parser parser;
      simdjson::dom::element json = parser.parse(text);
      EXPECT_EQ(json["fits"].is_null(), derived && fits);
      if (!derived || !fits) {
        EXPECT_EQ(json["fits"].get_bool().value(), fits);
      }
      EXPECT_EQ(json["peaks_are_lower_bounds"].error() == simdjson::SUCCESS, derived);
      const std::string& answer = summary.verdict.sentences.front();
      const char* begin = !derived ? (fits ? "It fits: at most " : "It does not fit: ")
                          : fits   ? "Whether it fits is not known: at least "
                                   : "It does not fit: at least ";
      EXPECT_TRUE(answer.starts_with(begin)) << answer;
    }
}

TEST(SummaryJson, HasThePromisedFields) {
  GptShape shape;
  shape.steps = 2;
  shape.host_gap = nanoseconds(7);
  RunSettings settings;
  settings.policies = {"offload:what=optimizer,to=host"};
  memwall::Run run = simulate_and_record(gpt_step(shape), test_machine(), settings);
  run.provenance = Provenance{0.25, "here", "today", "memwall run", "0.1.0"};
  const std::string text = to_json(summarize(run));
  simdjson::dom::parser parser;
  simdjson::dom::element json = parser.parse(text);
  EXPECT_EQ(json["schema"].get_int64().value(), 1);
  EXPECT_EQ(json["machine"].get_string().value(), "test-nvlink");
  EXPECT_EQ(json["policies"].at(0).get_string().value(), "offload:what=optimizer,to=host");
  EXPECT_TRUE(json["fits"].get_bool().value());
  const double step = json["step_time_s"].get_double().value();
  double sum = 0;
  for (const char* key : {"compute_s", "recompute_s", "copy_s", "collective_s", "storage_s", "allocator_s", "fault_s",
                          "host_s", "idle_s"})
    sum += json["time"][key].get_double().value();
  EXPECT_NEAR(sum, step, 1e-15);
  EXPECT_EQ(json["steps"].get_array().size(), 2u);
  EXPECT_GT(json["steps"].at(1)["step_time_s"].get_double().value(), 0);
  EXPECT_GT(json["steps"].at(1)["gpu_span_s"].get_double().value(), 0);
  EXPECT_GT(json["gpu_span_s"].get_double().value(), 0);
  for (const Tier& tier : run.machine.tiers) {
    simdjson::dom::element found = json["tiers"][tier.name];
    EXPECT_EQ(found["capacity_bytes"].get_int64().value(), tier.capacity);
    EXPECT_GE(found["peak_reserved_bytes"].get_int64().value(), found["peak_allocated_bytes"].get_int64().value());
    EXPECT_GE(found["peak_by_kind"]["optimizer_state"].get_int64().value(), 0);
  }
  for (const Link& link : run.machine.links) {
    EXPECT_GE(json["links"][link.name]["bytes"].get_int64().value(), 0);
    EXPECT_GE(json["links"][link.name]["utilization"].get_double().value(), 0);
    EXPECT_GE(json["links"][link.name]["busy_s"].get_double().value(), 0);
  }
  EXPECT_EQ(json["origin"]["measured"].get_double().value(), 1);
  EXPECT_EQ(json["origin"]["modelled"].get_double().value(), 0);
  EXPECT_EQ(json["ops"].get_uint64().value(), run.trace->ops.size());
  EXPECT_EQ(json["events"].get_uint64().value(), run.result.events);
  EXPECT_EQ(json["provenance"]["wall_s"].get_double().value(), 0.25);
}

TEST(SummaryJson, OmitsProvenanceAndThroughputThatAreUnknown) {
  HandmadeRun hand;
  hand.device(OpKind::kernel, "a", 0, 0, 1, 2, 8);
  const std::string text = to_json(summarize(hand.finish()));
  EXPECT_EQ(text.find("provenance"), std::string::npos);
  EXPECT_EQ(text.find("samples_per_s"), std::string::npos);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
