// Is of a capture's recipe said what its ops show, and nothing else?
#include "study/captured_recipe.h"

#include <gtest/gtest.h>

#include "sim/trace/trace_builder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

class CapturedStep {
 public:
  CapturedStep() {
    thread_ = builder_.add_thread("main");
    stream_ = builder_.add_stream("stream 7", StreamRole::compute);
  }
  CapturedStep& kernel(const char* name, OperatorClass c, DataType type, double flops, Phase phase = Phase::forward) {
    Op op;
    op.kind = OpKind::kernel;
    op.thread = thread_;
    op.stream = stream_;
    op.operator_name = builder_.trace().strings.intern(name);
    op.operator_class = c;
    op.data_type = type;
    op.flops = flops;
    op.phase = phase;
    builder_.append(op);
    return *this;
  }
  Trace trace() { return std::move(builder_).finish(); }

 private:
  TraceBuilder builder_;
  std::uint16_t thread_ = 0, stream_ = 0;
};

std::string value_of(const Trace& trace, const std::string& what) {
  for (const RecipeItem& item : captured_recipe(trace))
    if (item.what == what) return item.value + item.setting;
  return "";
}

TEST(CapturedRecipe, CountsProductsByType) {
  CapturedStep step;
  step.kernel("aten::mm", OperatorClass::gemm, DataType::bf16, 97e9);
  step.kernel("aten::mm", OperatorClass::gemm, DataType::fp32, 3e9);
  step.kernel("aten::add", OperatorClass::elementwise, DataType::fp32, 1e12);
  EXPECT_EQ(value_of(step.trace(), "precision"), "matrix products in bf16 and fp32 (3 %)");
}

TEST(CapturedRecipe, SaysNothingOfPrecisionWhereATypeIsUnknown) {
  CapturedStep step;
  step.kernel("aten::mm", OperatorClass::gemm, DataType::bf16, 97e9);
  step.kernel("mystery", OperatorClass::gemm, DataType::unknown, 1);
  EXPECT_EQ(value_of(step.trace(), "precision"), "");
}

TEST(CapturedRecipe, NamesTheOptimizerOnlyWhereItsOpsDo) {
  const auto with = [](const char* name, Phase phase) {
    CapturedStep step;
    step.kernel(name, OperatorClass::optimizer, DataType::fp32, 1, phase);
    return value_of(step.trace(), "optimizer");
  };
  EXPECT_EQ(with("aten::_fused_adamw_", Phase::optimizer), "AdamW");
  EXPECT_EQ(with("aten::_fused_adam_", Phase::optimizer), "Adam");
  EXPECT_EQ(with("Optimizer.step#SGD.step", Phase::unknown), "SGD");
  EXPECT_EQ(with("multi_tensor_apply_kernel<AdamFunctor>", Phase::optimizer), "Adam or AdamW");
  EXPECT_EQ(with("aten::_foreach_addcdiv_", Phase::optimizer), "") << "many do that";
  EXPECT_EQ(with("madame_bovary", Phase::forward), "") << "no optimizer's name";
}

TEST(CapturedRecipe, SaysBatchAttentionAndCompilation) {
  CapturedStep step;
  step.kernel("aten::_flash_attention_forward", OperatorClass::attention, DataType::bf16, 1);
  step.kernel("triton_poi_fused_add_0", OperatorClass::elementwise, DataType::bf16, 0);
  step.kernel("aten::mm", OperatorClass::gemm, DataType::bf16, 1, Phase::recompute);
  Trace trace = step.trace();
  trace.samples_per_step = 8;
  trace.tokens_per_step = 8192;
  EXPECT_EQ(value_of(trace, "attention"), "flash attention");
  EXPECT_EQ(value_of(trace, "execution"), "compiled");
  EXPECT_EQ(value_of(trace, "checkpoint"), "with recomputation");
  EXPECT_EQ(value_of(trace, "batch"), "8 x 1024 tokens");
}

TEST(CapturedRecipe, IsEmptyForAStepThatShowsNothing) {
  CapturedStep step;
  step.kernel("k", OperatorClass::other, DataType::unknown, 0);
  EXPECT_TRUE(captured_recipe(step.trace()).empty());
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
