// Is it told what of a step another GPU does slowly or not at all, after a model as after a transfer?
#include "study/unsuited_work.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "models/hw/machine_file.h"
#include "sim/trace/attention_kernel.h"
#include "sim/trace/trace_builder.h"
#include "study/study.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

// A product in bf16 and an attention, as measured on an A100.
Trace step(AttentionKernel kernel = AttentionKernel::flash_attention_2) {
  TraceBuilder builder;
  builder.add_thread("main");
  builder.add_stream("compute", StreamRole::compute);
  Op op;
  op.kind = OpKind::kernel;
  op.origin = Origin::measured;
  op.duration = microseconds(100);
  op.data_type = DataType::bf16;
  op.operator_class = OperatorClass::gemm;
  op.flops = 1e9;
  builder.append(op);
  op.operator_class = OperatorClass::attention;
  op.shape = builder.trace().shapes.intern(with_attention_kernel({1, 8, 8, 512, 512, 64, 1}, kernel));
  builder.append(op);
  Trace trace = std::move(builder).finish();
  trace.name = "step";
  trace.knowledge.timing = true;
  trace.machine = "a100-sxm-40gb";
  return trace;
}

// The note that begins so; "" where there is none.
std::string note_of(const Trace& trace, const std::string& part) {
  const auto found = std::ranges::find_if(trace.notes, [&](const std::string& n) { return n.find(part) != n.npos; });
  return found == trace.notes.end() ? "" : *found;
}

Trace noted(Trace trace, const char* machine) {
  note_unsuited_work(trace, load_machine(machine));
  return trace;
}

TEST(UnsuitedWork, ProductsInBf16AreToldOfGpusThatHaveFp16Alone) {
  const std::string part = "Products in bf16 run without matrix units";
  for (const char* machine : {"t4", "v100-sxm2-32gb", "rtx-2080ti"})
    EXPECT_NE(note_of(noted(step(), machine), part).find("captured in fp16"), std::string::npos) << machine;
  EXPECT_EQ(note_of(noted(step(), "h100-sxm-80gb"), part), "");
  Trace generated = step();
  generated.recipe = {{"precision", "pure bf16", "precision=bf16"}};
  EXPECT_NE(note_of(noted(generated, "t4"), part).find("precision=amp_fp16"), std::string::npos);
  Trace half = step();
  for (Op& op : half.ops) op.data_type = DataType::fp16;
  EXPECT_EQ(note_of(noted(half, "t4"), part), "");
}

TEST(UnsuitedWork, AttentionOfNewerGpusIsTold) {
  const std::string part = "does not run on";
  EXPECT_EQ(note_of(noted(step(), "v100-sxm2-32gb"), part)
                .find("flash_attention_2 does not run on v100-sxm2-32gb, whose "
                      "compute capability is 7.0: it needs 8.0."),
            0u);
  EXPECT_NE(note_of(noted(step(), "v100-sxm2-32gb"), part).find("--policy attention:efficient"), std::string::npos);
  EXPECT_NE(note_of(noted(step(AttentionKernel::cudnn), "t4"), part), "");
  EXPECT_EQ(note_of(noted(step(AttentionKernel::flash_attention_1), "t4"), part), "") << "7.5 is enough";
  EXPECT_NE(note_of(noted(step(AttentionKernel::flash_attention_1), "v100-sxm2-32gb"), part), "");
  EXPECT_EQ(note_of(noted(step(AttentionKernel::memory_efficient), "v100-sxm2-32gb"), part), "");
  EXPECT_EQ(note_of(noted(step(), "a100-sxm-40gb"), part), "");
  EXPECT_EQ(note_of(noted(step(), "host-emulation"), part), "") << "no GPU";
  Trace unknown = step();
  for (Op& op : unknown.ops) op.shape = 0;
  EXPECT_EQ(note_of(noted(unknown, "v100-sxm2-32gb"), part), "") << "nobody knows which kernel it is";
  EXPECT_NE(note_of(noted(step(AttentionKernel::flash_attention_3), "a100-sxm-40gb"), "lists no attention by"), "");
}

TEST(UnsuitedWork, IsToldOfATransferAndNotOfTheCapturesOwnGpu) {
  Study study;
  study.add_step("step", step());
  const auto notes = [&](const std::string& machine, const std::vector<std::string>& settings) {
    return *study.prepare({.step = {"step"}, .machine = machine, .settings = settings}).trace;
  };
  EXPECT_NE(note_of(notes("v100-sxm2-32gb", {}), "does not run on"), "");
  EXPECT_NE(note_of(notes("v100-sxm2-32gb", {}), "without matrix units"), "");
  Trace own = step();
  own.machine = "t4";
  study.add_step("own", own);
  const Trace set = *study.prepare({.step = {"own"}, .machine = "t4", .settings = {"pcie=gen4"}}).trace;
  EXPECT_EQ(note_of(set, "without matrix units") + note_of(set, "does not run on"), "") << "it did run there";
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
