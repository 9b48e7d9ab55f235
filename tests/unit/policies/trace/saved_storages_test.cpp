// Where a step says what autograd saves: do storages leave as they are saved, stay while they are used, come back by
// the node that asks for them, and go when it has run? Steps written by hand; kernels of 1 us.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "policies/trace/saved_storages.h"
#include "tests/support/rewrite_checks.h"
#include "tests/support/step_program.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr const char* kSend = "offload:what=activations,min_bytes=0,buffers=0,prefetch=0";

// Copies and kernels in the order of the host program: "out x", "linear", "back x"; frees on the device as "free x".
std::vector<std::string> course(const Trace& t) {
  std::vector<std::string> all;
  for (const Op& op : t.ops) {
    const auto label = [&](StorageId s) { return t.strings[t.storages[s].label]; };
    if (op.kind == OpKind::copy) {
      const bool out = t.places[op.from] == "hbm";
      for (const Use& use : t.uses_of(op))
        if ((use.access == Access::read) == out) all.push_back((out ? "out " : "back ") + label(use.storage));
    } else if (op.kind == OpKind::kernel) {
      all.push_back(t.strings[op.operator_name].substr(6));
    } else if (op.kind == OpKind::free && t.places[t.storages[op.target].place] == "hbm") {
      all.push_back("free " + label(op.target));
    }
  }
  return all;
}

// Where in the course it stands first, from `from` on; its length where it does not.
std::size_t place(const std::vector<std::string>& all, const std::string& what, std::size_t from = 0) {
  return static_cast<std::size_t>(std::find(all.begin() + static_cast<std::ptrdiff_t>(from), all.end(), what) -
                                  all.begin());
}

// x is saved by a linear layer with its weights w, and read again by a residual addition; h by gelu. Backward of the
// linear layer is a product with w, one with x, and, for the bias, a sum.
struct ResidualStep {
  StepProgram p;
  StorageId x = 0, w = 0, h = 0;
  explicit ResidualStep(bool says_what_is_saved) {
    x = p.make(1000, "x");
    p.op("load", {}, {x});
    w = p.make(300, "w");
    p.op("cast", {}, {w});
    h = p.make(2000, "h");
    p.op("linear", {x, w}, {h});
    if (says_what_is_saved) p.saves({x, w});
    const StorageId y = p.make(1000, "y");
    p.op("gelu", {h}, {y});
    if (says_what_is_saved) p.saves({h});
    p.op("add", {y, x}, {y});
    p.op("loss", {y}, {});
    p.drop(y);
    p.backward();
    const StorageId d = p.make(1000, "d", StorageKind::workspace);
    p.op("gelu_backward", {h}, {d});
    p.drop(h);
    p.op("mm_w", {d, w}, {});
    p.op("mm_x", {d, x}, {});
    p.op("sum", {d}, {});
    p.drop(w);
    p.drop(x);
    p.drop(d);
    p.optimizer();
  }
  Trace finish() && { return std::move(p).finish(); }
};

TEST(OffloadSaved, LeaveAsTheyAreSavedAndStayWhileTheyAreUsed) {
  const Trace before = ResidualStep(true).finish(), after = rewritten(before, kSend);
  EXPECT_TRUE(check(after).empty());
  const std::vector<std::string> all = course(after);
  // Before the operator that saves its inputs, in the order of its arguments.
  EXPECT_EQ(place(all, "out w"), place(all, "out x") + 1);
  EXPECT_LT(place(all, "out w"), place(all, "linear"));
  EXPECT_LT(place(all, "linear"), place(all, "out h"));
  EXPECT_LT(place(all, "out h"), place(all, "gelu"));
  EXPECT_GT(place(all, "free x"), place(all, "add")) << "the addition reads it";
  EXPECT_LT(place(all, "free w"), place(all, "gelu"));
}

TEST(OffloadSaved, WithoutThatTheyLeaveAfterTheirLastUse) {
  const std::vector<std::string> all = course(rewritten(ResidualStep(false).finish(), kSend));
  EXPECT_GT(place(all, "out w"), place(all, "linear"));
  EXPECT_GT(place(all, "out h"), place(all, "gelu"));
  EXPECT_GT(place(all, "out x"), place(all, "add"));
  EXPECT_EQ(place(all, "back w") + 1, place(all, "mm_w"));
  EXPECT_EQ(place(all, "back x") + 1, place(all, "mm_x")) << "kernel by kernel";
}

TEST(OffloadSaved, ANodeAsksForAllThatItSavedAndGivesItBackBeforeSums) {
  const std::vector<std::string> all = course(rewritten(ResidualStep(true).finish(), kSend));
  const std::size_t node = place(all, "mm_w");
  EXPECT_EQ(place(all, "back x"), node - 2);
  EXPECT_EQ(place(all, "back w"), node - 1);
  EXPECT_GT(place(all, "back x"), place(all, "gelu_backward"));
  EXPECT_LT(place(all, "free x", node), place(all, "sum"));
  EXPECT_LT(place(all, "free w", node), place(all, "sum"));
  // One node ahead: gelu's, which is the first.
  const std::vector<std::string> ahead =
      course(rewritten(ResidualStep(true).finish(), "offload:what=activations,min_bytes=0,buffers=0,prefetch=1"));
  EXPECT_LT(place(ahead, "back w"), place(ahead, "gelu_backward"));
}

// What is written in place behind its first save is sent as it is in the end.
TEST(OffloadSaved, TheNewestContentIsSent) {
  StepProgram p;
  const StorageId a = p.make(1000, "a"), b = p.make(10, "b");
  p.op("conv", {}, {a});
  p.saves({a});
  p.op("relu_", {a}, {a});
  p.saves({a});
  p.op("pool", {a}, {b});
  p.drop(b);
  p.backward();
  p.op("back", {a}, {});
  p.drop(a);
  p.optimizer();
  const Trace after = rewritten(std::move(p).finish(), kSend);
  EXPECT_TRUE(check(after).empty());
  const std::vector<std::string> all = course(after);
  EXPECT_LT(place(all, "relu_"), place(all, "out a"));
  EXPECT_LT(place(all, "out a"), place(all, "pool"));
}

// Three products of one input: who reads it in backward is told by the module, and asks for its own weights alone.
TEST(OffloadSaved, NodesOfOneInputAreToldByTheirModules) {
  StepProgram p;
  const StorageId x = p.make(1000, "x");
  p.op("load", {}, {x});
  std::vector<StorageId> weights;
  for (const char* name : {"q", "k", "v"}) {
    p.module(name);
    weights.push_back(p.make(100, std::string("w") + name));
    p.op("cast", {}, {weights.back()});
    p.op("linear", {x, weights.back()}, {});
    p.saves({x, weights.back()});
  }
  p.backward();
  std::vector<OpId> first;
  for (std::size_t i = 3; i-- > 0;) {
    p.module(std::string(1, "qkv"[i]));
    first.push_back(p.op("mm_w", {weights[i]}, {}));
    p.op("mm_x", {x}, {});
    p.drop(weights[i]);
  }
  p.drop(x);
  p.optimizer();
  const Trace t = std::move(p).finish();
  const Dataflow flow(t);
  const SavedStorages saved(t, flow);
  ASSERT_TRUE(saved.known());
  for (const OpId id : first) {
    EXPECT_EQ(saved.first_of_node(id), id);
    EXPECT_EQ(saved.first_of_node(id + 1), id);
  }
}

// What units start from is saved before their first op, and asked for before the first that is run again.
TEST(OffloadSaved, AReRunIsOneNode) {
  StepProgram p;
  const StorageId x = p.make(1000, "x");
  p.op("load", {}, {x});
  p.module("blocks.0");
  const StorageId w = p.make(100, "w"), a = p.make(2000, "a");
  p.op("cast", {}, {w});
  p.op("conv", {x, w}, {a});
  p.saves({x, w});
  const StorageId b = p.make(10, "b");
  p.op("gelu", {a}, {b});
  p.saves({a});
  p.module("");
  p.op("loss", {b}, {});
  p.drop(b);
  p.backward();
  p.module("blocks.0");
  p.op("gelu_backward", {a}, {});
  p.drop(a);
  p.op("conv_backward", {x, w}, {});
  p.drop(w);
  p.drop(x);
  p.module("");
  p.optimizer();
  const Machine machine = test_machine();
  const Trace after =
      apply_rewriters(std::move(p).finish(), {parse_policy("checkpoint:modules=blocks.0"), parse_policy(kSend)},
                      machine, *test_pricer(machine));
  const std::vector<std::string> all = course(after);
  EXPECT_EQ(place(all, "out x"), place(all, "load") + 1) << "before the cast, with which the unit begins";
  const std::size_t loss = place(all, "loss"), again = place(all, "cast", loss);
  EXPECT_LT(loss, place(all, "back x"));
  EXPECT_LT(place(all, "back x"), again);
  EXPECT_EQ(count(after, Phase::recompute), 2u);
}

// A node that begins with an op which reads nothing (zeros, into which gradients are put), and the node behind it in
// the same module, whose operator has saved the same storage: told apart by what the trace says, not by what is read.
TEST(SavedStorages, NodesAreThoseThatTheTraceNames) {
  StepProgram p;
  const StorageId x = p.make(100, "x"), y = p.make(100, "y"), z = p.make(100, "z");
  p.op("load", {}, {x});
  const OpId first = p.op("mul", {x}, {y});
  p.saves({x});
  const OpId second = p.op("index", {y, x}, {z});
  p.saves({x});
  p.drop(y);
  p.drop(z);
  p.backward();
  const StorageId d = p.make(100, "d", StorageKind::workspace), e = p.make(100, "e", StorageKind::workspace);
  const OpId zeros = p.op("new_zeros", {}, {d});
  const OpId put = p.op("index_put", {d, x}, {d});
  const OpId mul = p.op("mul", {d, x}, {e});
  Trace trace = std::move(p).finish();
  const auto first_of = [&](OpId op) {
    const Dataflow flow(trace);
    return SavedStorages(trace, flow).first_of_node(op);
  };
  EXPECT_EQ(first_of(put), put) << "by what is read";
  EXPECT_EQ(first_of(mul), put);
  trace.ops[zeros].source = trace.ops[put].source = second;
  trace.ops[mul].source = first;
  EXPECT_EQ(first_of(put), zeros);
  EXPECT_EQ(first_of(mul), mul);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
