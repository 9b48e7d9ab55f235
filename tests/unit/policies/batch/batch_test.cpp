// Does a step at another batch have the storages, the work and the times that it would have there, and nothing else?
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "models/workload/generate/generate.h"
#include "models/workload/import/tables/g10_csv.h"
#include "policies/batch/batch_analysis.h"
#include "policies/batch/batch_request.h"
#include "policies/batch/two_sizes.h"
#include "sim/trace/trace_builder.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/rewrite_checks.h"
#include "tests/support/shared_data.h"
#include "tests/support/small_networks.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

Trace gpt(int batch, Origin origin = Origin::measured) {
  GptShape shape;
  shape.batch = batch;
  shape.hidden = 48;
  shape.heads = 3;
  shape.origin = origin;
  return gpt_step(shape);
}

// What of a trace the batch decides.
void expect_same_sizes(const Trace& found, const Trace& expected) {
  ASSERT_EQ(found.storages.size(), expected.storages.size());
  ASSERT_EQ(found.ops.size(), expected.ops.size());
  const auto label = [&](std::size_t i) { return expected.strings[expected.storages[i].label]; };
  for (std::size_t i = 0; i < expected.storages.size(); ++i) {
    EXPECT_EQ(found.storages[i].bytes, expected.storages[i].bytes) << i << " " << label(i);
    EXPECT_EQ(found.shapes[found.storages[i].shape], expected.shapes[expected.storages[i].shape])
        << i << " " << label(i);
  }
  for (std::size_t i = 0; i < expected.ops.size(); ++i) {
    const Op &a = found.ops[i], &b = expected.ops[i];
    const std::string name = expected.strings[b.name] + " " + expected.strings[b.module];
    EXPECT_EQ(a.bytes, b.bytes) << i << " " << name;
    EXPECT_EQ(a.flops, b.flops) << i << " " << name;
    EXPECT_EQ(found.shapes[a.shape], expected.shapes[b.shape]) << i << " " << name;
  }
  EXPECT_EQ(found.samples_per_step, expected.samples_per_step);
  EXPECT_EQ(found.tokens_per_step, expected.tokens_per_step);
}

TEST(Batch, WithoutShapesWhatDependsOnTheInputsGrows) {
  for (const int to : {1, 3, 16, 1000}) expect_same_sizes(rewritten(gpt(2), "batch:" + std::to_string(to)), gpt(to));
}

// A batch of 8 without shapes: an input that its first reader brings, and two operands of one size added.
Trace step_of_eight(StorageKind kind_of_operand, Bytes operand) {
  TraceBuilder b;
  b.trace().name = "eight";
  b.trace().knowledge = {.timing = true, .dataflow = true};
  b.trace().samples_per_step = 8;
  b.add_thread("main");
  b.add_stream("compute", StreamRole::compute);
  const StorageId input = b.add_storage(64, StorageKind::input, "hbm", "tokens", true);
  const StorageId rows = b.add_storage(8000, StorageKind::activation, "hbm", "rows");
  const StorageId sum = b.add_storage(8000, StorageKind::activation, "hbm", "sum");
  const StorageId other = b.add_storage(operand, kind_of_operand, "hbm", "operand", true);
  for (const StorageId id : {rows, sum}) b.alloc(id, 0);
  Op op;
  op.kind = OpKind::kernel;
  op.phase = Phase::forward;
  op.duration = microseconds(10);
  op.operator_class = OperatorClass::embedding;
  b.append(op, std::vector<Use>{{input, 0, Access::write}, {rows, 0, Access::write}});
  op.operator_class = OperatorClass::elementwise;
  b.append(op, std::vector<Use>{{rows, TraceBuilder::kLatest, Access::read},
                                {other, TraceBuilder::kLatest, Access::read},
                                {sum, 0, Access::write}});
  return std::move(b).finish();
}

TEST(Batch, WhatItsFirstReaderBringsFlowsIntoThatOpsResults) {
  const Trace half = rewritten(step_of_eight(StorageKind::parameter, 1000), "batch:4");
  EXPECT_EQ(half.storages[1].bytes, 4000);
  EXPECT_EQ(half.storages[2].bytes, 4000);
  EXPECT_EQ(half.storages[3].bytes, 1000);
}

TEST(Batch, RefusesParametersThatHoldTheBatch) {
  const Trace trace = step_of_eight(StorageKind::parameter, 8000);
  const std::string sentence = refusal(trace, "batch:4");
  EXPECT_NE(sentence.find("1 parameter of 8.000 kB (the first is 'operand') has an element for each"),
            std::string::npos)
      << sentence;
  EXPECT_NE(sentence.find("--second-size"), std::string::npos);
  EXPECT_EQ(policy_named("batch").answer(trace).refusal, sentence) << "inspect says so";
}

// The same program at both batches, as others captured it.
TEST(Batch, OfAG10WorkloadHasTheMemoryOfTheOtherBatchOrIsRefused) {
  const auto data = shared_data();
  if (!data) GTEST_SKIP() << "MEMWALL_SHARED names no folder with captures";
  const auto step = [&](const std::string& name) { return import_g10(*data / "g10" / (name + ".kernels.csv")); };
  const auto peak = [](const Trace& trace) {
    Bytes most = 0;
    for (const LiveBytes& live : live_bytes(trace))
      most = std::max(most, std::accumulate(live.begin(), live.end(), Bytes{0}));
    return static_cast<double>(most);
  };
  const double expected = peak(step("ResNet152-256"));
  EXPECT_NEAR(peak(rewritten(step("ResNet152-512"), "batch:256")), expected, 0.002 * expected);
  for (const char* name : {"BERT-128", "BERT-512", "VIT-1024"})
    EXPECT_NE(refusal(step(name), "batch:64").find("the batch is in parameters"), std::string::npos) << name;
}

TEST(Batch, TheNameOfItsFirstParameterMayBeLeftOut) {
  EXPECT_EQ(rewritten(gpt(2), "batch:6").samples_per_step, 6);
  EXPECT_EQ(rewritten(gpt(2), "batch:to=6").samples_per_step, 6);
  EXPECT_NE(refusal(gpt(2), "batch:6,to=6").find("'to' is given twice"), std::string::npos);
  EXPECT_NE(refusal(gpt(2), "batch:from=2,6").find("expected key=value"), std::string::npos);
  EXPECT_NE(refusal(gpt(2), "batch").find("samples per step are wanted is not said; expected --policy batch:16."),
            std::string::npos);
  EXPECT_NE(refusal(gpt(2), "batch:six").find("to=six is neither '0' nor a whole number"), std::string::npos);
}

TEST(Batch, MeasuredTimesAreCarriedOverModelledOnesPricedAgain) {
  const Trace measured = rewritten(gpt(2), "batch:8"), modelled = rewritten(gpt(2, Origin::modelled), "batch:8");
  const Trace before = gpt(2);
  const Machine machine = test_machine();
  const auto pricer = test_pricer(machine);
  std::size_t carried = 0, kept = 0;
  for (OpId id = 0; id < before.ops.size(); ++id) {
    const Op &old = before.ops[id], &now = measured.ops[id];
    EXPECT_EQ(now.host_gap, old.host_gap);
    EXPECT_EQ(now.host_cost, old.host_cost);
    if (old.kind != OpKind::kernel) continue;
    if (now.bytes == old.bytes && now.flops == old.flops) {
      EXPECT_EQ(now.duration, old.duration);
      EXPECT_EQ(now.origin, Origin::measured);
      ++kept;
    } else {
      EXPECT_EQ(now.duration, pricer->scaled(old, now.bytes, now.flops));
      EXPECT_EQ(now.origin, Origin::transferred);
      EXPECT_EQ(modelled.ops[id].duration, pricer->kernel(modelled.ops[id]));
      EXPECT_EQ(modelled.ops[id].origin, Origin::modelled);
      ++carried;
    }
  }
  EXPECT_GT(carried, 20u);
  EXPECT_GT(kept, 10u);
}

TEST(Batch, WhatCannotBeToldIsRefused) {
  Trace blind = gpt(2);
  blind.knowledge.dataflow = false;
  EXPECT_NE(refusal(blind, "batch:4").find("needs dataflow"), std::string::npos);
  Trace unsized_step = gpt(2);
  unsized_step.samples_per_step = 0;
  EXPECT_NE(refusal(unsized_step, "batch:4")
                .find("does not say how many samples a step has; expected --policy "
                      "batch:4,from=N, where N"),
            std::string::npos);
  EXPECT_NE(refusal(unsized_step, "batch:from=2").find("expected --policy batch:16,from=2."), std::string::npos);
  EXPECT_EQ(refusal(unsized_step, "batch:16,from=2"), "");
  const auto& answer = policy_named("batch").answer;
  EXPECT_EQ(answer(unsized_step).setting, "from=N");
  EXPECT_EQ(answer(gpt(2)).setting, "");
  EXPECT_EQ(rewritten(unsized_step, "batch:4,from=2").storages.back().bytes, gpt(4).storages.back().bytes);
  EXPECT_EQ(rewritten(unsized_step, "batch:4,from=2").samples_per_step, 4);
  Trace halves = gpt(2);
  halves.samples_per_step = 2.5;
  EXPECT_NE(refusal(halves, "batch:4").find("not a whole number"), std::string::npos);
  EXPECT_NE(refusal(gpt(2), "batch:tokens=8").find("--second-size"), std::string::npos);
  Trace without_inputs = gpt(2);
  for (Storage& s : without_inputs.storages)
    if (s.kind == StorageKind::input) s.kind = StorageKind::optimizer_state;
  EXPECT_NE(refusal(without_inputs, "batch:4").find("no storage of kind input"), std::string::npos);
}

TEST(Batch, TheRequestAndItsTextAreOneAndTheSame) {
  for (const char* text : {"batch:16", "batch:16,from=4", "batch:from=4", "batch:tokens=8192"})
    EXPECT_EQ(batch_policy(*batch_request(parse_policy(text))), text);
  const BatchRequest request = *batch_request(parse_policy("batch:to=16,from=4"));
  EXPECT_EQ(request.samples, 16);
  EXPECT_EQ(request.captured, 4);
  EXPECT_EQ(request.tokens, 0);
  EXPECT_FALSE(batch_request(parse_policy("fusion"))) << "another policy sets no batch";
}

TEST(Batch, MoreThanAMachineCouldDoIsRefusedNotOverflown) {
  EXPECT_NE(refusal(gpt(1), "batch:1000000000000").find("expected at most"), std::string::npos);
}

TEST(Batch, TheSameSizeChangesNothing) {
  const Trace before = gpt(4), after = rewritten(before, "batch:4");
  expect_same_sizes(after, before);
  for (OpId id = 0; id < before.ops.size(); ++id) EXPECT_EQ(after.ops[id].duration, before.ops[id].duration);
  EXPECT_TRUE(has_note(after, "nothing changes"));
}

// Generators write shapes, so that only the extents that hold the batch may grow.
struct Generated {
  const char* name;
  Model model;
  Recipe recipe;
};

std::vector<Generated> generated() {
  Recipe amp;
  amp.precision = Precision::amp_bf16;
  Recipe plain = amp;
  plain.attention = Attention::plain;
  return {{"gpt", small_words(Architecture::decoder), amp},
          {"gpt with plain attention", small_words(Architecture::decoder), plain},
          {"llama", small_rotary_decoder(), {}},
          {"bert", small_words(Architecture::encoder), amp}};
}

// Batches that equal a width, a length, a number of heads: extents that are the batch by accident.
TEST(Batch, GeneratedStepsAreWhatTheGeneratorWritesAtThatBatch) {
  for (Generated g : generated())
    for (const auto& [from, to] : {std::pair{2, 8}, {4, 6}, {32, 5}, {64, 128}, {3, 96}}) {
      SCOPED_TRACE(std::string(g.name) + " " + std::to_string(from) + " to " + std::to_string(to));
      g.recipe.batch = from;
      const Trace before = generate_step(g.model, g.recipe);
      g.recipe.batch = to;
      expect_same_sizes(rewritten(before, "batch:" + std::to_string(to)), generate_step(g.model, g.recipe));
    }
}

// One op of a class on a batch of `samples`, and what it makes.
class OneOp {
 public:
  explicit OneOp(std::int64_t samples) : size_{.samples = samples, .tokens = 0} {
    b_.add_thread("main");
    b_.add_stream("compute", StreamRole::compute);
    b_.trace().knowledge.dataflow = true;
  }
  StorageId storage(StorageKind kind, const Shape& shape) {
    Bytes bytes = 2;
    for (const std::int64_t e : shape) bytes *= e;
    const StorageId id = b_.add_storage(bytes, kind, "hbm", "", kind != StorageKind::activation);
    b_.trace().storages[id].shape = b_.trace().shapes.intern(shape);
    if (kind == StorageKind::activation) b_.alloc(id, 0);
    return id;
  }
  void op(const char* name, OperatorClass c, Phase phase, const Shape& work, const std::vector<StorageId>& reads,
          const std::vector<StorageId>& writes) {
    Op op;
    op.kind = OpKind::kernel;
    op.name = b_.trace().strings.intern(name);
    op.operator_class = c;
    op.phase = phase;
    op.shape = b_.trace().shapes.intern(work);
    std::vector<Use> uses;
    for (const StorageId s : reads) uses.push_back({s, TraceBuilder::kLatest, Access::read});
    for (const StorageId s : writes) uses.push_back({s, 0, Access::write});
    b_.append(op, uses);
  }
  BatchAnalysis analysis() { return BatchAnalysis(b_.trace(), size_); }
  const Trace& trace() { return b_.trace(); }
  TraceBuilder& builder() { return b_; }

 private:
  TraceBuilder b_;
  BatchSize size_;
};

// 128 channels at 128 images: the statistics have an extent of 128 and no batch.
TEST(BatchAnalysis, StatisticsOfABatchHaveNone) {
  OneOp o(128);
  const StorageId x = o.storage(StorageKind::input, {128, 128, 4, 4});
  const StorageId y = o.storage(StorageKind::activation, {128, 128, 4, 4});
  const StorageId mean = o.storage(StorageKind::activation, {128});
  o.op("aten::cudnn_batch_norm", OperatorClass::normalization, Phase::forward, {128, 2048}, {x}, {y, mean});
  EXPECT_TRUE(o.analysis().grows(y));
  EXPECT_FALSE(o.analysis().grows(mean));
  EXPECT_EQ(o.analysis().extent_of_work(o.trace().ops.back()), 1u);  // a row per channel
}

TEST(BatchAnalysis, RowStatisticsOfALayerGrow) {
  OneOp o(4);
  const StorageId x = o.storage(StorageKind::input, {4, 16, 4});
  const StorageId y = o.storage(StorageKind::activation, {4, 16, 4});
  const StorageId mean = o.storage(StorageKind::activation, {4, 16, 1});
  o.op("aten::native_layer_norm", OperatorClass::normalization, Phase::forward, {64, 4}, {x}, {y, mean});
  EXPECT_TRUE(o.analysis().grows(mean));
  EXPECT_EQ(o.analysis().extent_of_work(o.trace().ops.back()), 0u);
}

TEST(BatchAnalysis, AWeightsGradientContractsTheBatchAndABatchedProductKeepsIt) {
  OneOp o(8);
  o.storage(StorageKind::parameter, {16, 32});
  const StorageId x = o.storage(StorageKind::input, {8, 32}), dy = o.storage(StorageKind::input, {8, 16});
  const StorageId dw = o.storage(StorageKind::activation, {16, 32});  // in another type than the gradient
  o.op("aten::mm", OperatorClass::gemm, Phase::backward, {1, 16, 32, 8}, {dy, x}, {dw});
  EXPECT_FALSE(o.analysis().grows(dw));
  EXPECT_TRUE(o.analysis().guessed().empty());
  EXPECT_EQ(o.analysis().extent_of_work(o.trace().ops.back()), 3u);
  // Eight experts, eight samples: the product's batch is not the batch.
  o.storage(StorageKind::parameter, {8, 16, 32});
  const StorageId experts = o.storage(StorageKind::activation, {8, 16, 32});
  o.op("aten::_grouped_mm", OperatorClass::gemm, Phase::backward, {8, 16, 32, 8}, {dy, x}, {experts});
  EXPECT_FALSE(o.analysis().grows(experts));
  const StorageId q = o.storage(StorageKind::input, {16, 8, 4}),
                  scores = o.storage(StorageKind::activation, {16, 8, 8});
  o.op("aten::bmm", OperatorClass::gemm, Phase::backward, {16, 8, 8, 4}, {q, q}, {scores});
  EXPECT_TRUE(o.analysis().grows(scores));
  EXPECT_EQ(o.analysis().extent_of_work(o.trace().ops.back()), 0u);
}

TEST(BatchAnalysis, SumsOverTheBatchLoseItAndOthersKeepIt) {
  OneOp o(8);
  const StorageId x = o.storage(StorageKind::input, {8, 24, 16});
  const StorageId over_batch = o.storage(StorageKind::activation, {1, 24, 16});
  const StorageId over_width = o.storage(StorageKind::activation, {8, 24});
  o.op("aten::sum", OperatorClass::reduction, Phase::backward, {384, 8}, {x}, {over_batch});
  o.op("aten::mean", OperatorClass::reduction, Phase::forward, {192, 16}, {x}, {over_width});
  EXPECT_FALSE(o.analysis().grows(over_batch));
  EXPECT_TRUE(o.analysis().grows(over_width));
}

TEST(BatchAnalysis, TablesDoNotGrowAndZerosThatMeetTheBatchDo) {
  OneOp o(8);
  const StorageId x = o.storage(StorageKind::input, {8, 8, 4});
  const StorageId table = o.storage(StorageKind::activation, {8, 4});  // 8 positions
  o.op("aten::cos", OperatorClass::elementwise, Phase::forward, {32}, {}, {table});
  const StorageId rotated = o.storage(StorageKind::activation, {8, 8, 4});
  o.op("aten::mul", OperatorClass::elementwise, Phase::forward, {256}, {x, table}, {rotated});
  const StorageId zeros = o.storage(StorageKind::activation, {8, 8, 4});
  o.op("aten::zeros_like", OperatorClass::memory, Phase::forward, {256}, {}, {zeros});
  const StorageId sum = o.storage(StorageKind::activation, {8, 8, 4});
  o.op("aten::index_add", OperatorClass::memory, Phase::forward, {256}, {zeros, rotated}, {sum});
  EXPECT_FALSE(o.analysis().grows(table));
  EXPECT_TRUE(o.analysis().grows(rotated));
  EXPECT_TRUE(o.analysis().grows(zeros));
  EXPECT_TRUE(o.analysis().grows(sum));
}

TEST(BatchAnalysis, WhatIsCopiedIntoAGradientDoesNotGrow) {
  OneOp o(8);
  const StorageId x = o.storage(StorageKind::input, {8, 64});
  const StorageId half = o.storage(StorageKind::activation, {64});
  o.op("custom", OperatorClass::other, Phase::backward, {}, {x}, {half});
  EXPECT_TRUE(o.analysis().grows(half));  // 64 = 8 x 8, and nothing speaks against it
  EXPECT_TRUE(o.analysis().guessed().contains(half));
  const StorageId gradient = o.storage(StorageKind::gradient, {64});
  o.op("aten::_to_copy", OperatorClass::memory, Phase::backward, {64}, {half}, {gradient});
  EXPECT_FALSE(o.analysis().grows(half));
  EXPECT_TRUE(o.analysis().guessed().empty());
}

TEST(BatchAnalysis, HostileShapesAreNoTrouble) {
  OneOp o(2);
  const StorageId x = o.storage(StorageKind::input, {2, 2});
  const StorageId y = o.storage(StorageKind::activation, {4});
  const std::int64_t most = std::numeric_limits<std::int64_t>::max(), least = std::numeric_limits<std::int64_t>::min();
  const Shape odd[] = {{0, 0, 0, 0, 0, 0, 0}, {most, most, most, most}, {least, -1, 0, most}, {0, 0}, {-1, -1}, {most}};
  for (const auto c :
       {OperatorClass::gemm, OperatorClass::attention, OperatorClass::convolution, OperatorClass::embedding,
        OperatorClass::reduction, OperatorClass::normalization, OperatorClass::memory, OperatorClass::optimizer})
    for (const Shape& work : odd)
      for (const Phase phase : {Phase::forward, Phase::backward}) o.op("op", c, phase, work, {x}, {y});
  o.builder().trace().storages[y].shape = o.builder().trace().shapes.intern({most, most, 2});
  const BatchAnalysis analysis = o.analysis();
  for (const Op& op : o.trace().ops) analysis.extent_of_work(op);
  EXPECT_TRUE(analysis.grows(x));
}

TEST(Batch, WithAccumulationEachPassTakesItsShare) {
  Recipe recipe;
  recipe.precision = Precision::amp_bf16;
  recipe.accumulation = 2;
  recipe.batch = 3;
  Trace before = generate_step(small_words(Architecture::decoder), recipe);
  ASSERT_EQ(before.samples_per_step, 6);
  recipe.batch = 5;
  expect_same_sizes(rewritten(before, "batch:10"), generate_step(small_words(Architecture::decoder), recipe));
  EXPECT_NE(refusal(before, "batch:9").find("expected a multiple of 2"), std::string::npos);
}

// --- Captures at two sizes.

TEST(TwoSizes, AThirdBatchIsWhatTheGeneratorWritesThere) {
  for (Generated g : generated())
    for (const std::array<int, 3> sizes : {std::array{2, 4, 8}, {8, 3, 5}, {4, 32, 1000}}) {
      SCOPED_TRACE(fmt::format("{} {} and {} to {}", g.name, sizes[0], sizes[1], sizes[2]));
      std::vector<Trace> traces;
      for (const int batch : sizes) {
        g.recipe.batch = batch;
        traces.push_back(generate_step(g.model, g.recipe));
      }
      const Trace found = at_size(traces[0], traces[1], sizes[2]);
      EXPECT_TRUE(check(found).empty());
      expect_same_sizes(found, traces[2]);
      ASSERT_EQ(std::count_if(found.notes.begin(), found.notes.end(),
                              [](const std::string& n) { return n.starts_with("two sizes"); }),
                1);
    }
}

// Scores of plain attention grow with the square of the length, which no line through bytes would tell. At one sample
// keys and values of fewer heads are views, of which a product reads more bytes than their storages have.
TEST(TwoSizes, AThirdLengthIsExactToo) {
  for (Generated g : generated()) {
    for (const int batch : {1, 2}) {
      SCOPED_TRACE(fmt::format("{}, batch {}", g.name, batch));
      std::vector<Trace> traces;
      g.recipe.batch = batch;
      for (const int length : {8, 12, 20}) {
        g.recipe.sequence = length;
        traces.push_back(generate_step(g.model, g.recipe));
      }
      EXPECT_EQ(unit_of_sizes(traces[0], traces[1]), SizeUnit::tokens);
      expect_same_sizes(at_size(traces[0], traces[1], 20 * batch), traces[2]);
    }
  }
}

TEST(TwoSizes, DurationsLieOnTheLineAndNeverBelowNothing) {
  Trace a = gpt(2), b = gpt(4);
  OpId kernel = 0;
  while (a.ops[kernel].kind != OpKind::kernel) ++kernel;
  a.ops[kernel].duration = microseconds(10);
  b.ops[kernel].duration = microseconds(16);
  const Trace far = at_size(a, b, 8), near = at_size(a, b, 1);
  EXPECT_EQ(far.ops[kernel].duration, microseconds(28));
  EXPECT_EQ(near.ops[kernel].duration, microseconds(7));
  EXPECT_EQ(far.ops[kernel].origin, Origin::transferred);
  b.ops[kernel].duration = microseconds(2);  // faster at the larger size: noise
  const Trace clamped = at_size(a, b, 8);
  EXPECT_EQ(clamped.ops[kernel].duration, microseconds(2));
  EXPECT_TRUE(has_note(clamped, "1 ops would last no time"));
  EXPECT_EQ(at_size(a, b, 4).ops[kernel].duration, microseconds(2));  // the capture itself
}

TEST(TwoSizes, WhatDoesNotFitIsListedAndStays) {
  Trace a = gpt(2), b = gpt(4);
  StorageId grows = 0;
  while (a.storages[grows].bytes == b.storages[grows].bytes) ++grows;
  b.storages[grows].bytes = a.storages[grows].bytes + 3;  // 3 bytes for 2 samples
  OpId renamed = 0;
  while (a.ops[renamed].kind != OpKind::kernel) ++renamed;
  const StringId other = b.strings.intern("another_kernel");
  b.ops[renamed].name = other;
  const Trace found = at_size(a, b, 5);
  EXPECT_EQ(found.storages[grows].bytes, b.storages[grows].bytes);
  EXPECT_TRUE(has_note(found, "1 storages have sizes on no line of whole numbers"));
  EXPECT_TRUE(has_note(found, "1 ops have no partner"));
  EXPECT_TRUE(has_note(found, "not in the result: 1 op of the capture at 2 samples"));
  EXPECT_EQ(found.ops[renamed].duration, b.ops[renamed].duration);
}

// With two kernels of its own before each op of `at`.
Trace with_extra_kernels(const Trace& base, const std::vector<OpId>& at) {
  TraceBuilder b = TraceBuilder::like(base);
  std::vector<OpId> moved;
  for (OpId id = 0; id < base.ops.size(); ++id) {
    if (std::find(at.begin(), at.end(), id) != at.end()) {
      Op extra = base.ops[id];
      extra.kind = OpKind::kernel;
      extra.name = b.trace().strings.intern("extra");
      extra.target = 0xffffffff;
      b.append(extra);
      b.append(extra);
    }
    moved.push_back(static_cast<OpId>(b.trace().ops.size()));
    Op op = base.ops[id];
    if (op.kind == OpKind::hand_over) op.target = moved[op.target];
    b.append(op, base.uses_of(base.ops[id]));
  }
  return std::move(b).finish();
}

TEST(TwoSizes, OpsThatOnlyOneHasDoNotShiftTheOthers) {
  const Trace a = gpt(2), b = with_extra_kernels(gpt(4), {20, 21, 100, 200});
  ASSERT_TRUE(check(b).empty());
  const Trace found = at_size(a, b, 1);
  expect_same_sizes(found, gpt(1));
  EXPECT_TRUE(has_note(found, "not in the result: 8 ops of the capture at 4 samples"));
}

TEST(TwoSizes, CapturesThatMakeNoLineAreRefused) {
  const auto sentence = [](const Trace& a, const Trace& b, std::int64_t size) {
    try {
      at_size(a, b, size);
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(sentence(gpt(2), gpt(2), 4).find("a line needs two sizes"), std::string::npos);
  Trace unsized_step = gpt(4);
  unsized_step.samples_per_step = 0;
  EXPECT_NE(sentence(gpt(2), unsized_step, 4).find("two different whole numbers"), std::string::npos);
  EXPECT_NE(sentence(gpt(2), gpt(4), 1'000'000'000'000).find("expected at most"), std::string::npos);
  Recipe recipe;
  recipe.batch = 4;
  EXPECT_NE(sentence(gpt(2), generate_step(small_rotary_decoder(), recipe), 8).find("not of one program"), std::string::npos);
}

TEST(Batch, ComposesBeforeEverythingElse) {
  const Machine machine = test_machine();
  const auto pricer = test_pricer(machine);
  const auto apply = [&](const Trace& t, std::vector<std::string> policies) {
    std::vector<PolicySpec> specs;
    for (const std::string& p : policies) specs.push_back(parse_policy(p));
    return apply_rewriters(t, specs, machine, *pricer);
  };
  const std::vector<std::string> others = {"checkpoint:mode=full", "offload:what=activations,to=host,min_bytes=0"};
  const Trace expected = apply(apply(gpt(2), {"batch:8"}), others);
  const Trace found = apply(gpt(2), {others[1], "batch:8", others[0]});
  expect_same_sizes(found, expected);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
