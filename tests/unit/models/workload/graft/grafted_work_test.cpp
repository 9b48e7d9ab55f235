// What does a grafted kernel compute: FLOPs and bytes of the complete step, once, in the type that the profile saw?
#include <gtest/gtest.h>

#include <algorithm>

#include "models/workload/graft/graft.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/profile_of.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

// A step, its profile, and a matrix product in both.
struct Pair {
  Trace step = with_end_marks(gpt_step({.layers = 2, .hidden = 64, .sequence = 32})), profile = profile_of(step);
  OpId line = 0;

  Pair() {
    for (Op& op : step.ops)
      if (is_product(op)) op.flops = 6e6, op.bytes = 6000, op.data_type = DataType::fp32;
    line = static_cast<OpId>(std::ranges::find_if(profile.ops, is_product) - profile.ops.begin());
  }
  static bool is_product(const Op& op) { return op.kind == OpKind::kernel && op.operator_class == OperatorClass::gemm; }
  // Another piece of work of the call that `line` is of, before it.
  void add(OpKind kind) {
    Op op = profile.ops[line];
    op.kind = kind;
    op.host_gap = Duration{};
    profile.ops.insert(profile.ops.begin() + line, op);
    for (Step& s : profile.steps) s.last += 1;
    for (Op& other : profile.ops)
      if (other.kind == OpKind::hand_over && other.target >= line) ++other.target;
    ++added_;
  }
  GraftedTrace result() const {
    OperatorCalls calls{std::vector<std::uint32_t>(profile.ops.size(), kNoOp), {}};
    calls.outermost = calls.innermost;
    for (OpId id = line; id <= line + added_; ++id) calls.outermost[id] = 7;
    return graft(profile, step, calls);
  }

 private:
  OpId added_ = 0;
};

double flops(const Trace& trace) {
  double sum = 0;
  for (const Op& op : trace.ops) sum += op.flops;
  return sum;
}

Bytes bytes_of_products(const Trace& trace) {
  Bytes sum = 0;
  for (const Op& op : trace.ops)
    if (Pair::is_product(op)) sum += op.bytes;
  return sum;
}

// cuDNN's convolutions backward set memory and run two kernels; a memset computes nothing.
TEST(GraftedWork, IsSharedAmongTheKernelsOfACall) {
  for (const bool with_memset : {false, true}) {
    Pair p;
    p.add(OpKind::kernel);
    if (with_memset) p.add(OpKind::memset);
    const GraftedTrace result = p.result();
    EXPECT_EQ(result.report.alone.lines, 0u);
    EXPECT_DOUBLE_EQ(flops(result.trace), flops(p.step)) << with_memset;
    EXPECT_EQ(bytes_of_products(result.trace), bytes_of_products(p.step)) << with_memset;
    // One that changes a layout moves its part of the bytes, and computes nothing.
    p.profile.ops[p.line + (with_memset ? 1 : 0)].operator_class = OperatorClass::memory;
    const Trace copied = p.result().trace;
    EXPECT_DOUBLE_EQ(flops(copied), flops(p.step)) << with_memset;
    EXPECT_EQ(bytes_of_products(copied), bytes_of_products(p.step) - 3000) << with_memset;
  }
}

// A complete step has one line for a convolution with its bias; what a profile shows beside its products keeps its
// class, so that it is carried to another GPU by its bytes and not by the rate of products.
TEST(GraftedWork, OfWhatStandsBesideAProductStaysWhatItIs) {
  for (const OperatorClass beside : {OperatorClass::elementwise, OperatorClass::reduction, OperatorClass::memory}) {
    Pair p;
    p.add(OpKind::kernel);
    p.profile.ops[p.line].operator_class = beside;
    p.profile.ops[p.line].bytes = 1234;
    const Trace result = p.result().trace;
    EXPECT_DOUBLE_EQ(flops(result), flops(p.step));
    EXPECT_EQ(std::ranges::count_if(result.ops, Pair::is_product), std::ranges::count_if(p.step.ops, Pair::is_product));
    EXPECT_EQ(std::ranges::count_if(result.ops,
                                    [&](const Op& op) { return op.operator_class == beside && op.bytes == 1234; }),
              1);
  }
  // Of an unknown class it is taken for a part of the product.
  Pair p;
  p.add(OpKind::kernel);
  p.profile.ops[p.line].operator_class = OperatorClass::other;
  EXPECT_EQ(std::ranges::count_if(p.result().trace.ops, Pair::is_product),
            std::ranges::count_if(p.step.ops, Pair::is_product) + 1);
}

TEST(GraftedWork, IsInTf32WhereTheKernelsAre) {
  Pair p;
  p.profile.ops[p.line].data_type = DataType::tf32;
  const auto in = [](const Trace& trace, DataType type) {
    return std::ranges::count_if(trace.ops, [&](const Op& op) { return Pair::is_product(op) && op.data_type == type; });
  };
  const Trace result = p.result().trace;
  EXPECT_EQ(in(result, DataType::tf32), 1);
  EXPECT_EQ(in(result, DataType::fp32), in(p.step, DataType::fp32) - 1);
  // Of other types the complete step knows better: it says what tensors hold.
  p.profile.ops[p.line].data_type = DataType::fp16;
  EXPECT_EQ(in(p.result().trace, DataType::fp32), in(p.step, DataType::fp32));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
