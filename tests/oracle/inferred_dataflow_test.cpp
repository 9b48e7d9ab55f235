// Does the dataflow inferred from a profile alone agree with that of the ExecutionTrace of the same run, and do
// policies that rest on it give the same answers? Are profiles that do not say enough refused by what they lack?
#include "models/workload/import/inference/inferred_dataflow.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "models/hw/machine_file.h"
#include "models/hw/pricer.h"
#include "models/workload/import/execution_trace/execution_trace_join.h"
#include "models/workload/import/kineto/kineto_reader.h"
#include "models/workload/import/timed/recorded_shapes.h"
#include "models/workload/import/timed/timed_import.h"
#include "sim/engine/simulation.h"
#include "sim/policy/registry.h"
#include "sim/trace/derived_lives.h"
#include "sim/trace/trace_check.h"
#include "tests/support/live_bytes.h"
#include "tests/support/shared_data.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

using UseKey = std::tuple<OpId, StorageId, Access>;

std::set<UseKey> uses_in(const Trace& trace) {
  std::set<UseKey> all;
  for (OpId id = 0; id < trace.ops.size(); ++id)
    for (const Use& use : trace.uses_of(trace.ops[id])) all.emplace(id, use.storage, use.access);
  return all;
}

// Storages older than the window have numbers of their own on both sides, without memory events all: each is paired
// with the one of its size that it shares most uses with, each once.
std::map<StorageId, StorageId> pair_storages(const Trace& truth, const Trace& guess, bool all) {
  std::map<std::pair<StorageId, StorageId>, std::size_t> common;
  for (OpId id = 0; id < truth.ops.size(); ++id)
    for (const Use& a : truth.uses_of(truth.ops[id]))
      for (const Use& b : guess.uses_of(guess.ops[id]))
        if (a.access == b.access &&
            (all || (truth.storages[a.storage].preexisting && guess.storages[b.storage].preexisting)) &&
            rounded_size(truth.storages[a.storage].bytes) == rounded_size(guess.storages[b.storage].bytes))
          ++common[{a.storage, b.storage}];
  std::vector<std::pair<std::size_t, std::pair<StorageId, StorageId>>> ranked;
  for (const auto& [pair, count] : common) ranked.emplace_back(count, pair);
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::map<StorageId, StorageId> truth_of_guess;
  std::set<StorageId> taken;
  for (const auto& [count, pair] : ranked)
    if (!taken.contains(pair.first) && truth_of_guess.try_emplace(pair.second, pair.first).second)
      taken.insert(pair.first);
  return truth_of_guess;
}

struct Agreement {
  std::size_t truth = 0, guessed = 0, common = 0;
  double precision() const {
    return static_cast<double>(common) / static_cast<double>(std::max<std::size_t>(guessed, 1));
  }
  double recall() const { return static_cast<double>(common) / static_cast<double>(truth); }
};

// What each call of an operator uses beside workspaces, which only memory events show: one op per call that does work
// on the device, in order, with all that its kernels read and write.
Trace by_call(const ImportedTrace& imported) {
  Trace calls;
  calls.storages = imported.trace.storages;
  std::map<std::uint32_t, std::set<StorageId>> used;
  for (OpId id = 0; id < imported.trace.ops.size(); ++id) {
    const std::uint32_t call = imported.operator_of_op[id];
    if (!runs_on_device(imported.trace.ops[id].kind) || call == kNoIndex) continue;
    std::set<StorageId>& storages = used[call];
    for (const Use& use : imported.trace.uses_of(imported.trace.ops[id]))
      if (imported.trace.storages[use.storage].kind != StorageKind::workspace) storages.insert(use.storage);
  }
  for (const auto& [call, storages] : used) {
    Op op;
    op.kind = OpKind::kernel;
    op.first_use = static_cast<std::uint32_t>(calls.uses.size());
    op.use_count = static_cast<std::uint32_t>(storages.size());
    for (const StorageId storage : storages) calls.uses.push_back({storage, 0, Access::read, false});
    calls.ops.push_back(op);
  }
  return calls;
}

Agreement agreement(const Trace& truth, const Trace& guess, bool pair_all = false) {
  const std::map<StorageId, StorageId> older = pair_storages(truth, guess, pair_all);
  const std::set<UseKey> real = uses_in(truth);
  Agreement a{.truth = real.size()};
  for (auto [op, storage, access] : uses_in(guess)) {
    ++a.guessed;
    if (pair_all || guess.storages[storage].preexisting) {
      const auto found = older.find(storage);
      storage = found == older.end() ? kNoStorage : found->second;
    }
    a.common += real.contains({op, storage, access});
  }
  return a;
}

std::filesystem::path shared_capture(const char* name) { return *shared_data() / "traces/kineto" / name; }

struct Inferred {
  TimedCapture capture;
  ImportedTrace imported;
  InferredDataflow result;
};

Inferred infer(const TimedCapture& capture) {
  Inferred i{capture, import_timed_capture(capture), {}};
  add_recorded_shapes(capture, i.imported);
  i.result = infer_dataflow(i.imported, capture);
  EXPECT_EQ(check(i.imported.trace), std::vector<std::string>());
  return i;
}

class InferredVgg13 : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!shared_data()) return;
    guess_ = new Inferred(infer(read_kineto(shared_capture("vgg13_h100_bs512_train.json"))));
    truth_ = new ImportedTrace(import_timed_capture(guess_->capture));
    join_execution_trace(*truth_, guess_->capture,
                         read_execution_trace(*shared_data() / "traces/execution_trace/vgg13_h100_bs512.json"));
  }
  static void TearDownTestSuite() {
    delete guess_;
    delete truth_;
    guess_ = nullptr;
    truth_ = nullptr;
  }
  void SetUp() override {
    if (guess_ == nullptr) GTEST_SKIP() << "MEMWALL_SHARED names no folder with captures";
  }
  static Inferred* guess_;
  static ImportedTrace* truth_;
};
Inferred* InferredVgg13::guess_ = nullptr;
ImportedTrace* InferredVgg13::truth_ = nullptr;

// 1,501 of 1,501 on 28 November 2026.
TEST_F(InferredVgg13, ReadsAndWritesWhatItsExecutionTraceSays) {
  const Agreement a = agreement(truth_->trace, guess_->imported.trace);
  EXPECT_EQ(a.truth, 1501U);
  EXPECT_GE(a.precision(), 0.995);
  EXPECT_GE(a.recall(), 0.995);
  EXPECT_EQ(guess_->result.whole, 325U);
  EXPECT_EQ(guess_->result.inputs.left_out + guess_->result.inputs.lists, 0U);
  EXPECT_GT(guess_->result.inputs.assumed, 0U);  // and says that it is an inference
}

TEST_F(InferredVgg13, LiveStoragesAddUpToTotalAllocated) {
  EXPECT_EQ(guess_->result.totals, 360U);
  EXPECT_EQ(guess_->result.wrong_totals, 0U);
}

// All but what the join finds and no kernel uses: 18 scalars of the host's thread, and the blocks behind them.
TEST_F(InferredVgg13, KindsAreThoseOfTheJoin) {
  std::map<StorageKind, Bytes> truth, guess;
  for (const Storage& s : truth_->trace.storages) truth[s.kind] += s.bytes;
  for (const Storage& s : guess_->imported.trace.storages) guess[s.kind] += s.bytes;
  for (const StorageKind kind : {StorageKind::parameter, StorageKind::gradient, StorageKind::optimizer_state,
                                 StorageKind::activation, StorageKind::workspace, StorageKind::input})
    EXPECT_NEAR(static_cast<double>(guess[kind]), static_cast<double>(truth[kind]),
                0.001 * static_cast<double>(truth[kind]) + 20'000)
        << to_string(kind);
}

// Peaks are equal within 0.1 %, times too but zero's: 0.34 %, as bytes of the optimizer's kernels are those of their
// storages, where the join shares out an operator's by duration.
TEST_F(InferredVgg13, PoliciesGiveTheAnswersOfTheJoin) {
  const Machine machine = load_machine("h100-sxm-80gb");
  const auto pricer = make_pricer(machine);
  const auto answer = [&](const Trace& trace, const char* policy) {
    const Trace after = apply_rewriters(trace, {parse_policy(policy)}, machine, *pricer);
    Bytes peak = 0;
    for (const LiveBytes& live : live_bytes(after)) {
      Bytes sum = 0;
      for (int k = 0; k < kStorageKinds; ++k) sum += of(live, static_cast<StorageKind>(k));
      peak = std::max(peak, sum);
    }
    SimulationOptions options;
    options.allocator = "ideal";
    return std::pair(peak, simulate(after, machine, options).end);
  };
  for (const char* policy : {"checkpoint", "checkpoint:mode=sqrt", "offload:what=activations", "offload:what=optimizer",
                             "zero:stage=1,ranks=8", "zero:stage=3,ranks=8", "plan:budget=37GiB,search=0"}) {
    SCOPED_TRACE(policy);
    const auto [truth_peak, truth_end] = answer(truth_->trace, policy);
    const auto [guess_peak, guess_end] = answer(guess_->imported.trace, policy);
    EXPECT_NEAR(static_cast<double>(guess_peak), static_cast<double>(truth_peak),
                0.001 * static_cast<double>(truth_peak));
    const double seconds = to_seconds(truth_end - Time{});
    const bool zero = std::string_view(policy).starts_with("zero");
    EXPECT_NEAR(to_seconds(guess_end - Time{}), seconds, (zero ? 0.004 : 0.001) * seconds);
  }
}

// The measure is able to fail: without sequence numbers nothing says which activation a backward function needs.
TEST_F(InferredVgg13, WithoutSequenceNumbersItAgreesLess) {
  TimedCapture capture = guess_->capture;
  for (CapturedOperator& op : capture.operators) op.sequence_number = -1;
  const Inferred blind = infer(capture);
  EXPECT_LT(agreement(truth_->trace, blind.imported.trace).common, 1450U);
}

// Of shapes alone: results by rules, lives by uses. Which of an operator's kernels use its workspace only memory events
// show, so calls are compared.
TEST_F(InferredVgg13, WithoutMemoryEventsCallsUseWhatItsExecutionTraceSays) {
  TimedCapture capture = guess_->capture;
  std::erase_if(capture.memory, [](const CapturedMemory& m) { return m.on_device(); });
  const Inferred alone = infer(capture);
  ASSERT_TRUE(alone.imported.trace.knowledge.dataflow) << alone.result.missing;
  EXPECT_TRUE(has_derived_lives(alone.imported.trace));
  const Trace truth = by_call(*truth_), guess = by_call(alone.imported);
  ASSERT_EQ(truth.ops.size(), guess.ops.size());
  const Agreement a = agreement(truth, guess, true);
  std::printf("of shapes alone: %zu of %zu right, of %zu true\n", a.common, a.guessed, a.truth);
  EXPECT_GE(a.precision(), 0.9);
  EXPECT_GE(a.recall(), 0.9);
}

TEST_F(InferredVgg13, WithoutAddressesItIsRefused) {
  TimedCapture capture = guess_->capture;
  for (CapturedMemory& event : capture.memory) event.has_address = false;
  EXPECT_NE(infer(capture).result.missing.find("no addresses"), std::string::npos);
}

TEST(InferredProfiles, BertInferenceReadsItsWeights) {
  if (!shared_data()) GTEST_SKIP() << "MEMWALL_SHARED names no folder with captures";
  const Inferred bert = infer(read_kineto(shared_capture("bert_small_h100_inference.json.gz")));
  EXPECT_TRUE(bert.imported.trace.knowledge.dataflow);
  EXPECT_EQ(bert.result.whole, 61U);
  EXPECT_EQ(bert.result.totals, 218U);
  EXPECT_EQ(bert.result.wrong_totals, 0U);
  Bytes weights = 0;
  for (const Storage& s : bert.imported.trace.storages)
    if (s.preexisting && s.kind == StorageKind::parameter) weights += s.bytes;
  EXPECT_NEAR(static_cast<double>(weights), 88.8e6, 0.2e6);
}

// A whole training step with shapes and without memory events.
TEST(InferredProfiles, MinitoyIsInferredFromItsShapes) {
  if (!shared_data()) GTEST_SKIP() << "MEMWALL_SHARED names no folder with captures";
  const Inferred toy = infer(read_kineto(shared_capture("minitoy_mi250.json.gz")));
  ASSERT_TRUE(toy.imported.trace.knowledge.dataflow) << toy.result.missing;
  EXPECT_TRUE(has_derived_lives(toy.imported.trace));
}

TEST(InferredProfiles, SayWhatTheyLack) {
  if (!shared_data()) GTEST_SKIP() << "MEMWALL_SHARED names no folder with captures";
  const std::pair<const char*, const char*> lacking[] = {
      {"toy_ddp_2xa100.json.gz",
       "neither shapes nor memory events (record with record_shapes=True and profile_memory=True)"},
      {"linear_2080ti.json.gz", "neither shapes nor memory events"},
      {"recommender_2xv100.json.gz", "no memory events of the device (record with profile_memory=True, too)"},
      {"recommender_2xv100.json.gz", "It does not of CompiledFunctionBackward"},
      {"resnet50_v100_bs32_2021.json.gz", "memory events have no addresses"}};
  for (const auto& [file, what] : lacking) {
    const Inferred i = infer(read_kineto(shared_capture(file)));
    EXPECT_FALSE(i.imported.trace.knowledge.dataflow) << file;
    EXPECT_NE(i.result.missing.find(what), std::string::npos) << file << ": " << i.result.missing;
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
