// Does the inference tell tensors of equal size apart as its header says, count what it assumes, and refuse what it
// cannot know?
#include "models/workload/import/inference/inferred_dataflow.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "models/workload/import/kineto/kineto_reader.h"
#include "models/workload/import/timed/timed_import.h"
#include "sim/trace/dataflow_note.h"
#include "sim/trace/derived_lives.h"
#include "sim/trace/trace_check.h"
#include "tests/support/gzip.h"
#include "tests/support/profile_writer.h"
#include "tests/support/scratch_folder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr std::int64_t kBytes = 4096;  // of a tensor [32,32] of floats
const std::string kOne = "[[32,32]]", kTwo = "[[32,32],[32,32]]";
const std::string kFloat = R"(["float"])", kFloats = R"(["float","float"])";

struct Inferred {
  ImportedTrace imported;
  InferredDataflow result;
  const Trace& trace() const { return imported.trace; }

  // What the n-th kernel of that operator reads or writes.
  std::set<StorageId> used(const std::string& kernel, Access access, int n = 0) const {
    std::set<StorageId> all;
    for (const Op& op : trace().ops)
      if (op.kind == OpKind::kernel && trace().strings[op.name] == "k_" + kernel && n-- == 0)
        for (const Use& use : trace().uses_of(op))
          if (use.access == access) all.insert(use.storage);
    return all;
  }
  std::set<StorageId> reads(const std::string& kernel, int n = 0) const { return used(kernel, Access::read, n); }
  std::set<StorageId> writes(const std::string& kernel, int n = 0) const { return used(kernel, Access::write, n); }
};

class InferredProfile : public testing::Test {
 protected:
  Inferred infer(const ProfileWriter& profile) {
    write_content(folder_ / "profile.json", profile.text());
    const TimedCapture capture = read_kineto(folder_ / "profile.json");
    Inferred i{import_timed_capture(capture), {}};
    i.result = infer_dataflow(i.imported, capture);
    EXPECT_EQ(check(i.trace()), std::vector<std::string>());
    EXPECT_EQ(i.result.wrong_totals, 0U);
    return i;
  }
  ScratchFolder folder_;
};

// input -> tanh -> exp -> sum of both, all of one size.
TEST_F(InferredProfile, TakesTheNewestTensorThatNobodyHasRead) {
  ProfileWriter p(kBytes);
  p.run("aten::tanh", kOne, kFloat, 1, kBytes, 1).run("aten::exp", kOne, kFloat, 2, kBytes, 2);
  p.run("aten::neg", kOne, kFloat, 3, kBytes, 3);
  const Inferred i = infer(p);
  ASSERT_TRUE(i.trace().knowledge.dataflow);
  EXPECT_EQ(i.reads("aten::exp"), i.writes("aten::tanh"));
  EXPECT_EQ(i.reads("aten::neg"), i.writes("aten::exp"));
  ASSERT_EQ(i.reads("aten::tanh").size(), 1U);
  EXPECT_TRUE(i.trace().storages[*i.reads("aten::tanh").begin()].preexisting);
  EXPECT_EQ(i.trace().untracked_bytes, 0);  // all that was allocated at the start
  EXPECT_EQ(i.result.share(), 1);
}

// x -> tanh -> a -> exp -> b, then b + x or b + a: the shapes are the same. If x has two readers the gradients meet
// behind the function of its first reader, else behind that of a's.
ProfileWriter residual(bool skips_two) {
  ProfileWriter p(kBytes);
  p.run("aten::neg", kOne, kFloat, 1, kBytes, 1);                                                // x
  p.run("aten::tanh", kOne, kFloat, 2, kBytes, 2).run("aten::exp", kOne, kFloat, 3, kBytes, 3);  // a, b
  p.run("aten::add", kTwo, kFloats, 4, kBytes, 4);
  p.run("aten::ones_like", kOne, kFloat, -1, kBytes, 5);
  p.on_thread(2);
  const auto function = [&](const std::string& name, int sequence, int address, bool adds, int into) {
    p.begin("autograd::engine::evaluate_function: " + name, "", "", sequence).begin(name, kOne, kFloat, sequence);
    if (address > 0) p.run("aten::mul", kTwo, kFloats, -1, kBytes, address);
    p.end();
    if (adds) p.run("aten::add", kTwo, kFloats, -1, kBytes, into);
    p.end();
  };
  function("AddBackward0", 4, 0, false, 0);
  function("ExpBackward0", 3, 6, !skips_two, 7);
  function("TanhBackward0", 2, 8, skips_two, 9);
  return p;
}

TEST_F(InferredProfile, TellsASecondReaderByTheGradientsThatMeet) {
  const Inferred two = infer(residual(true)), one = infer(residual(false));
  const auto x = two.writes("aten::neg"), a = two.writes("aten::tanh"), b = two.writes("aten::exp");
  std::set<StorageId> b_and_x = b, b_and_a = b;
  b_and_x.insert(x.begin(), x.end());
  b_and_a.insert(a.begin(), a.end());
  EXPECT_EQ(two.reads("aten::add"), b_and_x);
  EXPECT_EQ(one.reads("aten::add"), b_and_a);
}

// Exp and tanh keep their results: each function reads its own, not the other's of the same size.
TEST_F(InferredProfile, ABackwardFunctionReadsWhatItsForwardOperatorMade) {
  const Inferred i = infer(residual(true));
  const auto b = i.writes("aten::exp"), a = i.writes("aten::tanh"), ones = i.writes("aten::ones_like");
  std::set<StorageId> expected = b;
  expected.insert(ones.begin(), ones.end());
  EXPECT_EQ(i.reads("aten::mul", 0), expected);
  expected = a;
  expected.merge(i.writes("aten::mul", 0));
  EXPECT_EQ(i.reads("aten::mul", 1), expected);
}

TEST_F(InferredProfile, AnOperatorInPlaceWritesWhatItReads) {
  ProfileWriter p(kBytes);
  p.run("aten::tanh", kOne, kFloat, 1, kBytes, 1).run("aten::relu_", kOne, kFloat, 2);
  p.run("aten::exp", kOne, kFloat, 3, kBytes, 2);
  const Inferred i = infer(p);
  EXPECT_EQ(i.reads("aten::relu_"), i.writes("aten::tanh"));
  EXPECT_EQ(i.writes("aten::relu_"), i.writes("aten::tanh"));
  EXPECT_EQ(i.reads("aten::exp"), i.writes("aten::tanh"));
}

TEST_F(InferredProfile, WhatIsFreedInsideAnOperatorIsAWorkspace) {
  ProfileWriter p(kBytes);
  p.begin("aten::tanh", kOne, kFloat, 1).memory(1, kBytes).memory(2, 512).kernel("aten::tanh").memory(2, -512).end();
  p.run("aten::exp", kOne, kFloat, 2, kBytes, 3);
  const Inferred i = infer(p);
  EXPECT_EQ(std::count_if(i.trace().storages.begin(), i.trace().storages.end(),
                          [](const Storage& s) { return s.kind == StorageKind::workspace; }),
            1);
}

TEST_F(InferredProfile, WeightsAreOneForEachOperatorAndTheSameInEveryStep) {
  ProfileWriter p(4 * kBytes);
  for (int step = 0; step < 2; ++step) {
    p.begin("ProfilerStep#" + std::to_string(step), "", "", -1, "", "user_annotation");
    for (const int layer : {1, 2}) p.run("aten::linear", kTwo, kFloats, 10 * step + layer, kBytes, 2 * step + layer);
    p.end();
  }
  const Inferred i = infer(p);
  std::set<StorageId> older;
  for (int n = 0; n < 4; ++n)
    for (const StorageId s : i.reads("aten::linear", n))
      if (i.trace().storages[s].kind == StorageKind::parameter) older.insert(s);
  EXPECT_EQ(older.size(), 2U);
}

TEST_F(InferredProfile, OlderStoragesNeverTakeMoreThanWasAllocatedAtTheStart) {
  ProfileWriter p(kBytes);  // of two weights and an input only one can have been there
  p.run("aten::linear", kTwo, kFloats, 1, kBytes, 1).run("aten::linear", kTwo, kFloats, 2, kBytes, 2);
  const Inferred i = infer(p);
  EXPECT_GT(i.result.inputs.beyond_total, 0U);
  EXPECT_FALSE(i.trace().knowledge.dataflow);
  EXPECT_NE(i.result.missing.find("of 2 device ops 0 have all their inputs found (0.0 %), expected at least 90 %. 0 "
                                  "have no operator with tensors around them; of the others 2 inputs and 0 lists"),
            std::string::npos)
      << i.result.missing;
  EXPECT_EQ(i.trace().untracked_bytes, kBytes);  // nothing is left behind
  EXPECT_TRUE(i.trace().uses.empty());
}

TEST_F(InferredProfile, ListsThatTheFileDoesNotListAreLeftOut) {
  ProfileWriter p(kBytes);
  p.run("aten::tanh", kOne, kFloat, 1, kBytes, 1);
  p.run("aten::cat", "[[],[]]", R"(["TensorList","Scalar"])", 2, kBytes, 2);
  const Inferred i = infer(p);
  EXPECT_EQ(i.result.inputs.lists, 1U);
  EXPECT_FALSE(i.trace().knowledge.dataflow);
}

// Adam on two parameters of one shape: their order decides, and the gradient is that of the parameter's own function.
TEST_F(InferredProfile, AFusedOptimizerWorksOnParametersGradientsAndStates) {
  ProfileWriter p(7 * kBytes);  // input, two parameters, their moments
  for (const int layer : {1, 2}) p.run("aten::linear", kTwo, kFloats, layer, kBytes, layer);
  p.run("aten::ones_like", kOne, kFloat, -1, kBytes, 3).on_thread(2);
  for (const int layer : {2, 1}) {
    p.begin("autograd::engine::evaluate_function: LinearBackward0", "", "", layer);
    p.begin("LinearBackward0", kOne, kFloat, layer).run("aten::mm", kTwo, kFloats, -1, kBytes, 3 + layer).end().end();
    p.begin("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad");
    p.begin("torch::autograd::AccumulateGrad", kOne, kFloat).end().end();
    if (layer == 2) p.on_thread(1).run("aten::ones_like", kOne, kFloat, -1, kBytes, 9).on_thread(2);
  }
  p.on_thread(1).begin("Optimizer.step#AdamW.step", "", "", -1, "", "user_annotation");
  const std::string list = "[[32,32],[32,32]]";
  p.run("aten::_fused_adamw_", "[" + list + "," + list + "," + list + "," + list + "]",
        R"(["TensorList","TensorList","TensorList","TensorList"])");
  p.end();
  const Inferred i = infer(p);
  ASSERT_TRUE(i.trace().knowledge.dataflow) << i.result.missing;
  const auto written = i.writes("aten::_fused_adamw_"), read = i.reads("aten::_fused_adamw_");
  std::map<StorageKind, int> kinds;
  for (const StorageId s : written) ++kinds[i.trace().storages[s].kind];
  EXPECT_EQ(kinds[StorageKind::parameter], 2);
  EXPECT_EQ(kinds[StorageKind::optimizer_state], 4);
  for (const int n : {0, 1})
    for (const StorageId gradient : i.writes("aten::mm", n)) EXPECT_TRUE(read.contains(gradient));
}

// Results by rules and lives by uses in the place of memory events: the same storages are read and written.
TEST_F(InferredProfile, WithoutMemoryEventsResultsAreThoseOfRules) {
  const auto profile = [](bool with_memory) {
    ProfileWriter p(kBytes);
    const std::int64_t bytes = with_memory ? kBytes : 0;
    p.run("aten::tanh", kOne, kFloat, 1, bytes, 1).run("aten::exp", kOne, kFloat, 2, bytes, 2);
    p.run("aten::relu_", kOne, kFloat, 3).run("aten::mm", kTwo, kFloats, 4, bytes, 3);
    p.run("aten::neg", kOne, kFloat, 5, bytes, 4);
    return p;
  };
  const Inferred with = infer(profile(true)), without = infer(profile(false));
  ASSERT_TRUE(without.trace().knowledge.dataflow) << without.result.missing;
  EXPECT_TRUE(without.trace().knowledge.allocations);
  EXPECT_TRUE(has_derived_lives(without.trace()));
  EXPECT_FALSE(has_derived_lives(with.trace()));
  EXPECT_EQ(without.result.supposed, 4U);
  EXPECT_EQ(without.reads("aten::exp"), without.writes("aten::tanh"));
  EXPECT_EQ(without.writes("aten::relu_"), without.writes("aten::exp"));
  EXPECT_EQ(without.reads("aten::neg"), without.writes("aten::mm"));
  for (const char* kernel : {"aten::tanh", "aten::exp", "aten::relu_", "aten::mm", "aten::neg"}) {
    EXPECT_EQ(without.reads(kernel).size(), with.reads(kernel).size()) << kernel;
    EXPECT_EQ(without.writes(kernel).size(), with.writes(kernel).size()) << kernel;
  }
  EXPECT_NE(without.trace().notes.back().find("4 results are those that rules of their operators tell"),
            std::string::npos)
      << without.trace().notes.back();
  EXPECT_NE(without.trace().notes.back().find("peaks are lower bounds"), std::string::npos);
}

TEST_F(InferredProfile, WithoutMemoryEventsAndRulesItIsRefusedWithTheFigures) {
  ProfileWriter p(kBytes);
  for (int i = 0; i < 9; ++i) p.run("aten::tanh", kOne, kFloat, 1);
  p.run("fbgemm::lookup", kOne, kFloat, 2);
  EXPECT_TRUE(infer(p).trace().knowledge.dataflow) << "nine tenths are enough";
  p.run("fbgemm::lookup", kOne, kFloat, 3);
  const Inferred i = infer(p);
  EXPECT_FALSE(i.trace().knowledge.dataflow);
  EXPECT_FALSE(i.trace().knowledge.allocations);
  EXPECT_NE(i.result.missing.find("of 11 pieces of device work it does for 9 (81.8 %), expected at least 90 %. It does "
                                  "not of fbgemm::lookup (2)."),
            std::string::npos)
      << i.result.missing;
}

TEST_F(InferredProfile, SaysWhatIsMissing) {
  ProfileWriter without(0);
  without.run("aten::tanh", "", "", 1);
  EXPECT_NE(infer(without).result.missing.find("record_shapes=True and profile_memory=True"), std::string::npos);
  ProfileWriter no_shapes(0);
  no_shapes.run("aten::tanh", "", "", 1, kBytes, 1);
  EXPECT_NE(infer(no_shapes).result.missing.find("record_shapes=True"), std::string::npos);
  ProfileWriter no_memory(0);
  no_memory.run("fbgemm::lookup", kOne, kFloat, 1);
  EXPECT_NE(infer(no_memory).result.missing.find("profile_memory=True"), std::string::npos);
  ProfileWriter old(kBytes);
  old.addresses = false;
  old.run("aten::tanh", kOne, kFloat, 1, kBytes, 1);
  const Inferred i = infer(old);
  EXPECT_NE(i.result.missing.find("no addresses"), std::string::npos);
  EXPECT_EQ(why_no_dataflow(i.trace()), i.result.missing);
  EXPECT_EQ(kind_of_note(i.imported.note_kinds, i.result.missing), NoteKind::missing);
}

// It costs memory for each piece of work, which a capture of minutes does not have.
TEST_F(InferredProfile, ALongProfileIsNotLookedAt) {
  ProfileWriter p(kBytes);
  p.run("aten::tanh", kOne, kFloat, 1, kBytes, 1).run("aten::exp", kOne, kFloat, 2, kBytes, 2);
  write_content(folder_ / "profile.json", p.text());
  TimedCapture capture = read_kineto(folder_ / "profile.json");
  ASSERT_TRUE(can_infer_dataflow(capture));
  ImportedTrace imported = import_timed_capture(capture);
  Op kernel;
  kernel.kind = OpKind::kernel;
  imported.trace.ops.resize(imported.trace.ops.size() + kMostInferred, kernel);
  capture.device_ops.resize(kMostInferred + 1);
  EXPECT_FALSE(can_infer_dataflow(capture));
  const InferredDataflow result = infer_dataflow(imported, capture);
  EXPECT_NE(result.missing.find("pieces of device work, and up to 100000 are looked at"), std::string::npos)
      << result.missing;
  EXPECT_FALSE(imported.trace.knowledge.dataflow);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
