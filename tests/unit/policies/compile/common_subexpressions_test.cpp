// What two ops compute alike is computed once where it reaches memory, and every reader reads what it read before.
#include "policies/compile/common_subexpressions.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "policies/trace/dataflow.h"
#include "sim/trace/trace_check.h"
#include "tests/support/fusion_program.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

class CompiledProgram : public FusionProgram {
 public:
  StorageId elementwise_of(const std::string& name, const std::vector<StorageId>& reads) {
    const StorageId made = tensor(name);
    elementwise(name, reads, {made});
    return made;
  }
  StorageId largest_of(StorageId x) {
    const StorageId made = tensor("largest", 1);
    work("max", OperatorClass::reduction, {1, kElements}, {x}, {made});
    return made;
  }
  StorageId product_of(const std::vector<StorageId>& reads) {
    const StorageId made = tensor("product");
    work("mm", OperatorClass::gemm, {1, 1000, 1000, 1000}, reads, {made});
    return made;
  }
  void drop_all(const std::vector<StorageId>& storages) {
    for (const StorageId s : storages) drop(s);
  }
};

SharedResults shared(const Trace& t) {
  SharedResults result =
      with_common_subexpressions(t, test_machine().host, {}, [](const Op& op) { return op.kind == OpKind::kernel; });
  EXPECT_EQ(check(result.trace), std::vector<std::string>{});
  return result;
}

std::size_t count_of(const Trace& t, const std::string& name) {
  return static_cast<std::size_t>(std::ranges::count_if(t.ops, [&](const Op& op) {
    return op.kind == OpKind::kernel && t.strings[op.operator_name] == "aten::" + name;
  }));
}

// What each product reads, as the expression that made it.
std::vector<std::string> read_by_products(const Trace& t) {
  std::map<std::pair<StorageId, std::uint32_t>, std::string> content;
  std::vector<std::string> products;
  for (const Op& op : t.ops) {
    std::string expression = t.strings[op.operator_name] + "(";
    for (const Use& use : t.uses_of(op)) {
      if (use.access != Access::read) continue;
      const auto found = content.find({use.storage, use.version});
      expression += (found != content.end() ? found->second : t.strings[t.storages[use.storage].label]) + ",";
    }
    for (const Use& use : t.uses_of(op))
      if (use.access == Access::write) content[{use.storage, use.version}] = expression + ")";
    if (op.operator_class == OperatorClass::gemm) products.push_back(expression);
  }
  return products;
}

// Two products of the same input, each of which casts it with a scale of its own: abs, max, mul.
Trace two_casts(bool overwritten_between = false, bool backward_between = false) {
  CompiledProgram p;
  const StorageId x = p.input("x");
  std::vector<StorageId> made;
  for (int product = 0; product < 2; ++product) {
    if (product == 1 && overwritten_between) p.elementwise("add_", {x}, {x});
    if (product == 1 && backward_between) p.backward();
    const StorageId size = p.elementwise_of("abs", {x}), scale = p.largest_of(size);
    const StorageId cast = p.elementwise_of("mul", {x, scale});
    made.push_back(p.product_of({cast}));
    p.drop_all({size, scale, cast});
  }
  p.drop_all(made);
  return std::move(p).finish();
}

TEST(CommonSubexpressions, WhatTwoProductsCastIsCastOnce) {
  const Trace before = two_casts();
  const SharedResults after = shared(before);
  EXPECT_EQ(after.ops, 3u);
  for (const char* name : {"abs", "max", "mul"}) EXPECT_EQ(count_of(after.trace, name), 1u) << name;
  EXPECT_EQ(read_by_products(after.trace), read_by_products(before));
  // The cast lives until the second product has read it.
  const Dataflow flow(after.trace);
  for (OpId id = 0; id < after.trace.ops.size(); ++id)
    if (after.trace.ops[id].operator_class == OperatorClass::gemm) {
      EXPECT_GT(flow.free(after.trace.uses_of(after.trace.ops[id])[0].storage), id);
    }
}

TEST(CommonSubexpressions, WhatIsWrittenBetweenIsCastAgain) { EXPECT_EQ(shared(two_casts(true)).ops, 0u); }

TEST(CommonSubexpressions, ForwardAndBackwardAreApart) { EXPECT_EQ(shared(two_casts(false, true)).ops, 0u); }

TEST(CommonSubexpressions, WhatKernelsComputeByThemselvesStays) {
  CompiledProgram p;
  const StorageId x = p.input("x"), y = p.input("y");
  const StorageId a = p.elementwise_of("relu", {x}), b = p.elementwise_of("relu", {x});
  const StorageId c = p.elementwise_of("mul", {a, y}), d = p.elementwise_of("div", {b, y});
  p.drop_all({a, b, p.product_of({c}), p.product_of({d}), c, d});
  EXPECT_EQ(shared(std::move(p).finish()).ops, 0u);
}

// add(x, 1) and add(x, 2) look alike in a trace; so do casts that write other sizes, which differ.
TEST(CommonSubexpressions, WhatATraceDoesNotTellIsNotShared) {
  CompiledProgram p;
  const StorageId x = p.input("x");
  const StorageId a = p.elementwise_of("add", {x}), b = p.elementwise_of("add", {x});
  const StorageId half = p.tensor("half", FusionProgram::kElements, 2),
                  byte = p.tensor("byte", FusionProgram::kElements, 1);
  p.elementwise("_to_copy", {x}, {half});
  p.elementwise("_to_copy", {x}, {byte});
  p.drop_all({p.product_of({a}), p.product_of({b}), p.product_of({half}), p.product_of({byte}), a, b, half, byte});
  EXPECT_EQ(shared(std::move(p).finish()).ops, 0u);
}

// Parts of one tensor look alike in a trace: a use names the storage.
TEST(CommonSubexpressions, PartsOfATensorAreNotShared) {
  CompiledProgram p;
  const StorageId x = p.input("x", 3 * FusionProgram::kElements);
  const StorageId a = p.elementwise_of("_to_copy", {x}), b = p.elementwise_of("_to_copy", {x});
  p.drop_all({p.product_of({a}), p.product_of({b}), a, b});
  EXPECT_EQ(shared(std::move(p).finish()).ops, 0u);
}

// Each pass calls the compiled graph anew.
TEST(CommonSubexpressions, PassesAreApart) {
  CompiledProgram p;
  const StorageId weight = p.input("weight");
  for (int pass = 0; pass < 2; ++pass) {
    if (pass == 1) p.forward();
    for (const bool backward : {false, true}) {
      if (backward) p.backward();
      std::vector<StorageId> casts;
      for (int product = 0; product < 2; ++product) casts.push_back(p.elementwise_of("_to_copy", {weight}));
      for (const StorageId cast : casts) p.drop(p.product_of({cast}));
      p.drop_all(casts);
    }
  }
  EXPECT_EQ(shared(std::move(p).finish()).ops, 4u);  // one in forward and one in backward of each
}

// Random programs of few operators on few tensors: all products read what they read before, and no two results that
// products read are alike.
TEST(CommonSubexpressions, RandomProgramsComputeTheSame) {
  std::mt19937 random(7);
  const auto pick = [&](std::size_t below) { return std::size_t{random() % below}; };
  std::size_t left_out = 0;
  for (int round = 0; round < 300; ++round) {
    CompiledProgram p;
    std::vector<StorageId> live{p.input("x"), p.input("y")}, made;
    for (int op = 0; op < 14; ++op) {
      const char* const names[] = {"abs", "neg", "relu"};
      const StorageId from = live[pick(live.size())], other = live[pick(live.size())];
      switch (pick(5)) {
        case 0:
          p.product_of({from});
          continue;
        case 1:
          p.elementwise("mul_", {from}, {from});
          continue;
        case 2:
          if (from != other)
            live.push_back(p.elementwise_of("mul", {from, other}));
          else
            live.push_back(p.elementwise_of("neg", {from}));
          break;
        default:
          live.push_back(p.elementwise_of(names[pick(3)], {from}));
      }
      made.push_back(live.back());
    }
    p.drop_all(made);
    const Trace before = std::move(p).finish();
    const SharedResults after = shared(before);
    EXPECT_EQ(read_by_products(after.trace), read_by_products(before));
    left_out += after.ops;
  }
  EXPECT_GT(left_out, 100u);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
