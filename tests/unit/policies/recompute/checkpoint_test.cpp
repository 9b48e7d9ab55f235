// Does checkpointing drop and re-run what it says? Bytes and times worked out by hand.
//
// The small GPT: 2 layers, sequence 4, batch 2, hidden 8, 2 heads. sbh = 64 elements, an attention
// matrix (heads x s x s x b) = 64 elements. A layer keeps 34 x 64 + 5 x 64 = 2496 bytes, of which its
// input is 128. One FLOP or one byte lasts 1 ps.
#include <gtest/gtest.h>

#include "tests/support/gpt_trace.h"
#include "tests/support/rewrite_checks.h"
#include "traces/run/analysis/accounting.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

// --- The small GPT, mode=full ---

TEST(CheckpointGpt, FullKeepsOnlyInputsThroughForward) {
  const Trace before = gpt_step(GptShape{}), after = rewritten(before, "checkpoint:mode=full");
  // 2 layers; embedding mask 64; head: x and norm 128 each, log_softmax 8 tokens x 16 words x 4, loss 4.
  const Bytes head = 64 + 128 + 128 + 512 + 4;
  EXPECT_EQ(live_bytes(before, StorageKind::activation)[first_of(before, Phase::backward)], 2 * 2496 + head);
  EXPECT_EQ(live_bytes(after, StorageKind::activation)[first_of(after, Phase::backward)], 2 * 128 + head);
}

TEST(CheckpointGpt, FullHasOneLayerBackAtATime) {
  const Trace after = rewritten(gpt_step(GptShape{}), "checkpoint");
  const std::vector<Bytes> live = live_bytes(after, StorageKind::activation);
  std::vector<Bytes> after_rerun;
  for (OpId id = 0; id + 1 < after.ops.size(); ++id)
    if (after.ops[id].phase == Phase::recompute && runs_on_device(after.ops[id].kind) &&
        after.ops[id + 1].kind == OpKind::free && after.strings[after.ops[id].module].ends_with("mlp") &&
        after.strings[after.ops[id].operator_name] == "aten::native_dropout") {
      OpId last = id + 1;  // the re-run's own leftovers go before backward continues
      while (after.ops[last].added) ++last;
      after_rerun.push_back(live[last]);
    }
  // Embedding mask 64, both inputs of 128 and the layer's own 2368; the second time one input is gone.
  EXPECT_EQ(after_rerun, (std::vector<Bytes>{64 + 2 * 128 + 2368, 64 + 128 + 2368}));
  EXPECT_EQ(live.back(), 0);
}

// Kernels of a layer up to its last dropout (the final add is not needed), as bytes:
// norm 288, qkv 944, scores 384, softmax 256, dropout 320, values 384, projection 400, dropout 320, add 384,
// norm 288, fc1 1216, gelu 1024, fc2 1168, dropout 320 = 7696. FLOPs: 24 x 8 tokens x 64 = 12288 and
// 4 x 16 x 2 x 8 = 1024 for attention.
constexpr Duration kLayerAgain = picoseconds(7696 + 12288 + 1024);

TEST(CheckpointGpt, FullTakesOneForwardMore) {
  const Trace before = gpt_step(GptShape{}), after = rewritten(before, "checkpoint:mode=full");
  EXPECT_EQ(count(after, Phase::recompute), 2u * 14);
  EXPECT_EQ(device_time(after, Phase::recompute), 2 * kLayerAgain);
  EXPECT_EQ(simulated(after).end - simulated(before).end, 2 * kLayerAgain);
}

TEST(CheckpointGpt, WithoutEarlyStopTheLastAddIsRunToo) {
  const Trace after = rewritten(gpt_step(GptShape{}), "checkpoint:early_stop=0");
  EXPECT_EQ(device_time(after, Phase::recompute), 2 * (kLayerAgain + picoseconds(3 * 128)));
  EXPECT_EQ(live_bytes(after, StorageKind::activation).back(), 0);
}

TEST(CheckpointGpt, TheHostRepeatsItsCallsWithTheirGaps) {
  GptShape shape;
  shape.host_gap = microseconds(1);
  shape.launch_cost = microseconds(5);
  shape.allocator_cost = nanoseconds(500);
  const Trace before = gpt_step(shape), after = rewritten(before, "checkpoint");
  // Per layer: 14 launches of 1 + 5 us, 19 allocs of 1 + 0.5 us, 3 frees (scores, projection, its dropout)
  // of 1 us. What the early stop leaves behind goes without a call of its own.
  const Duration layer = 14 * microseconds(6) + 19 * nanoseconds(1500) + 3 * microseconds(1);
  EXPECT_EQ(simulated(after).end - simulated(before).end, 2 * layer);
}

TEST(CheckpointGpt, ContentsAreTheSame) {
  GptShape shape;
  shape.steps = 2;
  const Trace before = gpt_step(shape);
  for (const char* policy :
       {"checkpoint", "checkpoint:mode=sqrt", "checkpoint:every=2", "checkpoint:modules=layers.*.mlp",
        "checkpoint:ops=gelu+softmax", "checkpoint:early_stop=0", "checkpoint:last=keep",
        "checkpoint:modules=layers.*.mlp+layers.*.attention,outputs=drop"}) {
    SCOPED_TRACE(policy);
    const Trace after = rewritten(before, policy);
    EXPECT_TRUE(check(after).empty());
    expect_same_contents(before, after);
  }
}

TEST(CheckpointGpt, EveryInstantOfTheStepIsAccountedFor) {
  const Machine machine = test_machine();
  memwall::Run run;
  run.trace = rewritten(gpt_step(GptShape{}), "checkpoint");
  run.machine = machine_of_ranks(machine, run.trace);
  run.result = simulated(run.trace);
  const TimeAccounting accounting = account(run);
  EXPECT_EQ(accounting.total.total(), run.result.end);
  EXPECT_EQ(accounting.total[TimeClass::recompute], 2 * kLayerAgain);
  EXPECT_EQ(accounting.total[TimeClass::compute], run.result.end - 2 * kLayerAgain);
}

TEST(CheckpointGpt, RecomputedOpsKeepTheirMeasuredTimeAndOrigin) {
  const Trace after = rewritten(gpt_step(GptShape{}), "checkpoint");
  for (const Op& op : after.ops) {
    if (op.phase != Phase::recompute || !runs_on_device(op.kind)) continue;
    const Op& original = after.ops[op.source];
    EXPECT_EQ(original.phase, Phase::forward);
    EXPECT_EQ(op.duration, original.duration);
    EXPECT_EQ(op.origin, Origin::measured);
    EXPECT_EQ(op.name, original.name);
    EXPECT_EQ(op.stream, original.stream);
    EXPECT_EQ(after.threads[op.thread].name, "autograd");
  }
}

TEST(CheckpointGpt, StepsKeepTheirBounds) {
  GptShape shape;
  shape.steps = 2;
  const Trace after = rewritten(gpt_step(shape), "checkpoint");
  ASSERT_EQ(after.steps.size(), 2u);
  EXPECT_EQ(after.steps[0].first, 0u);
  EXPECT_EQ(after.steps[0].last, after.steps[1].first);
  EXPECT_EQ(after.ops[after.steps[1].first].kind, OpKind::mark);
  EXPECT_EQ(after.steps[1].last, after.ops.size());
  const SimulationResult result = simulated(after);
  EXPECT_EQ(result.steps[0].gpu_span, result.steps[1].gpu_span);
}

// --- Other modes ---

TEST(CheckpointGpt, SqrtGroupsLayers) {
  GptShape shape;
  shape.layers = 9;
  const Trace before = gpt_step(shape), after = rewritten(before, "checkpoint:mode=sqrt");
  // 3 units of 3 layers: 2 of 3 layer inputs go as well. In each unit 2 adds more than single layers.
  const OpId at = first_of(after, Phase::backward);
  const OpId was = first_of(before, Phase::backward);
  EXPECT_EQ(live_bytes(before, StorageKind::activation)[was] - live_bytes(after, StorageKind::activation)[at],
            9 * 2368 + 6 * 128);
  EXPECT_EQ(device_time(after, Phase::recompute), 9 * kLayerAgain + 6 * picoseconds(3 * 128));
  EXPECT_EQ(count(rewritten(before, "checkpoint:every=3"), Phase::recompute), count(after, Phase::recompute));
}

TEST(CheckpointGpt, EveryNIsOneUnitPerNLayersAndARest) {
  GptShape shape;
  shape.layers = 5;
  const Trace after = rewritten(gpt_step(shape), "checkpoint:mode=every,every=2");
  EXPECT_TRUE(has_note(after, "3 units (layers.0..layers.1 to layers.4)"));
}

TEST(CheckpointGpt, ModulesDropWhatIsTheirOwn) {
  const Trace before = gpt_step(GptShape{}), after = rewritten(before, "checkpoint:modules=layers.*.mlp");
  // gelu's input and output, 8 sbh each, and the mask, 1 sbh; fc1 1216 + 2 x 8 x 256, gelu 1024, fc2, dropout 320.
  const Bytes difference = live_bytes(before, StorageKind::activation)[first_of(before, Phase::backward)] -
                           live_bytes(after, StorageKind::activation)[first_of(after, Phase::backward)];
  EXPECT_EQ(difference, 2 * 17 * 64);
  EXPECT_EQ(device_time(after, Phase::recompute), 2 * picoseconds(1216 + 1024 + 1168 + 320 + 2 * 2 * 8 * 256));
}

// However an operator is printed somewhere, so it may be typed.
TEST(CheckpointGpt, AnOperatorIsKnownByEveryFormOfItsName) {
  Trace before = gpt_step(GptShape{});
  for (Op& op : before.ops)
    if (op.operator_name != 0 && before.strings[op.operator_name] == "aten::gelu")
      op.operator_name = before.strings.intern("aten::_gelu");
  const std::size_t expected = count(rewritten(before, "checkpoint:ops=gelu"), Phase::recompute);
  EXPECT_GT(expected, 0u);
  for (const char* form : {"aten::_gelu", "_gelu", "aten::gelu", "*gelu", "aten::*gelu"})
    EXPECT_EQ(count(rewritten(before, std::string("checkpoint:ops=") + form), Phase::recompute), expected) << form;
  EXPECT_NE(refusal(before, "checkpoint:ops=aten::_gelo"), "");
}

TEST(CheckpointGpt, AModuleWhoseOutputOthersReadKeepsItUnlessToldOtherwise) {
  const Trace before = gpt_step(GptShape{});
  // The norm's output is what the QKV product keeps, so torch.utils.checkpoint gains nothing here.
  const Trace kept = rewritten(before, "checkpoint:modules=layers.*.norm1");
  EXPECT_EQ(count(kept, Phase::recompute), 0u);
  EXPECT_TRUE(has_note(kept, "2 units have nothing to drop and are not re-run"));
  const Trace dropped = rewritten(before, "checkpoint:modules=layers.*.norm1,outputs=drop");
  EXPECT_EQ(device_time(dropped, Phase::recompute), 2 * picoseconds(288));
  expect_same_contents(before, dropped);
}

TEST(CheckpointGpt, OpsAreRerunFromTheirInputs) {
  const Trace before = gpt_step(GptShape{}), after = rewritten(before, "checkpoint:ops=gelu");
  const Bytes difference = live_bytes(before, StorageKind::activation)[first_of(before, Phase::backward)] -
                           live_bytes(after, StorageKind::activation)[first_of(after, Phase::backward)];
  EXPECT_EQ(difference, 2 * 8 * 64);
  EXPECT_EQ(device_time(after, Phase::recompute), 2 * picoseconds(1024));
}

TEST(CheckpointGpt, AnInputThatForwardFreesIsKeptInstead) {
  // softmax starts from the scores, which forward frees: 128 bytes more for 128 bytes less.
  const Trace before = gpt_step(GptShape{}), after = rewritten(before, "checkpoint:ops=softmax");
  EXPECT_EQ(live_bytes(before, StorageKind::activation)[first_of(before, Phase::backward)],
            live_bytes(after, StorageKind::activation)[first_of(after, Phase::backward)]);
  EXPECT_TRUE(has_note(after, " B kept longer"));
  EXPECT_EQ(live_bytes(after, StorageKind::activation).back(), 0);
  expect_same_contents(before, after);
}

TEST(CheckpointGpt, TheLastUnitCanBeKept) {
  const Trace after = rewritten(gpt_step(GptShape{}), "checkpoint:last=keep");
  EXPECT_EQ(device_time(after, Phase::recompute), kLayerAgain);
}

TEST(CheckpointGpt, SevenBillionParametersTakeAThirdMoreCompute) {
  GptShape shape = seven_billion_gpt();
  shape.preexisting_gradients = true;
  const Trace before = gpt_step(shape), after = rewritten(before, "checkpoint");
  Bytes state = 0;
  for (const Storage& s : before.storages)
    if (s.preexisting && s.kind != StorageKind::input) state += s.bytes;
  EXPECT_EQ(state, 112'000'000'000);
  const double base = to_seconds(device_time(before, Phase::forward) + device_time(before, Phase::backward));
  EXPECT_NEAR(to_seconds(device_time(after, Phase::recompute)) / base, 1.0 / 3, 0.02);
  // 32 layers of 34 sbh + 5as^2b become 32 inputs of 2 sbh and one layer, beside the output layer's.
  EXPECT_LT(activation_peak(after), activation_peak(before) / 5);
}

TEST(CheckpointGpt, AFewLayersWithFlashAttentionDropHalfToFourFifths) {
  GptShape shape = seven_billion_gpt();
  shape.layers = 6;
  shape.flash_attention = true;
  shape.vocabulary = 8000;
  shape.extra_parameters = 0;
  const Trace before = gpt_step(shape), after = rewritten(before, "checkpoint");
  const double left = static_cast<double>(activation_peak(after)) / static_cast<double>(activation_peak(before));
  EXPECT_LT(left, 0.5);
  EXPECT_GT(left, 0.2);
}

// Megatron-LM's uniform over named layers: 9 layers by 2 are 5 units, whose last has one layer. Each unit of 2 drops
// the input of its second layer as well, and re-runs the add between them.
TEST(CheckpointGpt, NamedModulesAreGroupedByEvery) {
  GptShape shape;
  shape.layers = 9;
  const Trace before = gpt_step(shape), after = rewritten(before, "checkpoint:every=2,modules=layers.*");
  const OpId at = first_of(after, Phase::backward), was = first_of(before, Phase::backward);
  EXPECT_EQ(live_bytes(before, StorageKind::activation)[was] - live_bytes(after, StorageKind::activation)[at],
            9 * 2368 + 4 * 128);
  EXPECT_EQ(device_time(after, Phase::recompute), 9 * kLayerAgain + 4 * picoseconds(3 * 128));
  EXPECT_TRUE(has_note(after, "mode=modules, 5 units (layers.0..layers.1 to layers.8)"));
  expect_same_contents(before, after);
  EXPECT_EQ(count(rewritten(before, "checkpoint:every=1,modules=layers.*"), Phase::recompute),
            count(rewritten(before, "checkpoint:modules=layers.*"), Phase::recompute));
}

// --- Settings ---

TEST(CheckpointSettings, ContradictionsAreRefused) {
  const Trace trace = gpt_step(GptShape{});
  EXPECT_NE(refusal(trace, "checkpoint:every=2,ops=gelu").find("every and ops are both given"), std::string::npos);
  EXPECT_NE(refusal(trace, "checkpoint:modules=layers.*.mlp,ops=gelu").find("modules and ops are both given"),
            std::string::npos);
  EXPECT_NE(refusal(trace, "checkpoint:every=2,modules=layers.*.mlp,ops=gelu").find("are both given"),
            std::string::npos);
  EXPECT_NE(refusal(trace, "checkpoint:mode=every,every=2,modules=layers.*").find("contradicts mode=every"),
            std::string::npos);
  EXPECT_NE(refusal(trace, "checkpoint:mode=full,every=2").find("contradicts mode=full"), std::string::npos);
  EXPECT_NE(refusal(trace, "checkpoint:mode=modules").find("mode=modules needs modules="), std::string::npos);
  EXPECT_NE(refusal(trace, "checkpoint:mode=ful").find("Did you mean 'full'?"), std::string::npos);
  EXPECT_NE(refusal(trace, "checkpoint:ops=gelo").find("Did you mean 'gelu'?"), std::string::npos);
  EXPECT_NE(
      refusal(trace, "checkpoint:modules=layers.*.mlp+layer.*.mlp").find("modules=layer.*.mlp matches no forward op"),
      std::string::npos);
}

TEST(CheckpointSettings, TracesThatCannotTakeIt) {
  Trace inference = gpt_step(GptShape{});
  for (Op& op : inference.ops) op.phase = Phase::forward;
  EXPECT_NE(refusal(inference, "checkpoint").find("no backward follows a forward"), std::string::npos);
  Trace poor = gpt_step(GptShape{});
  poor.knowledge.dataflow = false;
  EXPECT_NE(refusal(poor, "checkpoint").find("needs dataflow"), std::string::npos);
}

// --- Controls: a broken rewrite must show ---

TEST(CheckpointControl, ARerunThatReadsSomethingElseHasAnotherHash) {
  Trace after = rewritten(gpt_step(GptShape{}), "checkpoint");
  ASSERT_TRUE(check(after).empty());
  for (Op& op : after.ops) {
    if (op.phase != Phase::recompute || after.strings[op.operator_name] != "aten::gelu") continue;
    for (std::uint32_t i = 0; i < op.use_count; ++i) {
      Use& use = after.uses[op.first_use + i];
      if (use.access == Access::read) use = {0, 0, Access::read};  // the tokens instead of fc1's output
    }
  }
  const std::vector<std::uint64_t> hashes = producer_hashes(after);
  std::size_t wrong = 0;
  for (OpId id = 0; id < after.ops.size(); ++id)
    if (after.ops[id].phase == Phase::recompute && after.ops[id].source != kNoOp &&
        hashes[id] != hashes[after.ops[id].source])
      ++wrong;
  EXPECT_EQ(wrong, 2u * 3);  // per layer gelu, fc2 and the dropout behind it
}

TEST(CheckpointControl, ARerunThatIsLeftOutIsFound) {
  Trace after = rewritten(gpt_step(GptShape{}), "checkpoint");
  for (Op& op : after.ops)
    if (op.phase == Phase::recompute && after.strings[op.operator_name] == "aten::gelu") op.use_count = 0;
  const std::vector<std::string> faults = check(after);
  ASSERT_FALSE(faults.empty());
  EXPECT_NE(faults.front().find("'layers.1.mlp.gelu', whose newest is 0"), std::string::npos) << faults.front();
}

TEST(CheckpointControl, DroppingWithoutRerunIsFound) {
  Trace after = rewritten(gpt_step(GptShape{}), "checkpoint");
  for (Op& op : after.ops)  // backward's reads go back to the storages that forward dropped
    if (op.phase == Phase::backward)
      for (std::uint32_t i = 0; i < op.use_count; ++i) {
        Use& use = after.uses[op.first_use + i];
        for (StorageId s = 0; s < use.storage && use.access == Access::read; ++s)
          if (after.storages[s].label == after.storages[use.storage].label &&
              after.storages[s].kind == StorageKind::activation && !after.storages[s].preexisting) {
            use.storage = s;
            break;
          }
      }
  EXPECT_FALSE(check(after).empty());
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
