// Does a duration move to another machine by the model's ratio, and never as the old number?
#include "models/hw/transfer.h"

#include <gtest/gtest.h>

#include "models/hw/machine_file.h"
#include "models/hw/pricer.h"
#include "sim/trace_builder.h"

namespace memwall {
namespace {

class TransferTest : public ::testing::Test {
 protected:
  TransferTest() : here_(load_machine("a100-sxm-40gb")), there_(load_machine("h100-sxm-80gb")) {
    builder_.add_thread("main");
    builder_.add_stream("compute", StreamRole::compute);
    builder_.trace().machine = here_.name;
  }
  OpId add(OpKind kind, Bytes bytes, double flops, Origin origin = Origin::measured) {
    Op op;
    op.kind = kind;
    op.bytes = bytes;
    op.flops = flops;
    op.origin = origin;
    op.duration = microseconds(1000);
    op.data_type = DataType::bf16;
    op.from = builder_.trace().place("host");
    op.to = builder_.trace().place("hbm");
    return builder_.append(op);
  }
  const Machine here_, there_;
  TraceBuilder builder_;
};

TEST_F(TransferTest, AKernelOfUnknownWorkMovesByTheRatioOfBandwidths) {
  const OpId k = add(OpKind::kernel, 0, 0);
  const Trace t = transferred(builder_.trace(), &here_, there_);
  const double ratio = here_.links[here_.hbm_link].bandwidth / there_.links[there_.hbm_link].bandwidth;
  EXPECT_NEAR(to_microseconds(t.ops[k].duration), 1000 * ratio, 1e-3);
  EXPECT_EQ(t.ops[k].origin, Origin::transferred);
  EXPECT_EQ(t.machine, "h100-sxm-80gb");
  EXPECT_NE(t.notes.back().find("1 kernels of unknown"), std::string::npos);
}

TEST_F(TransferTest, AKernelOfKnownWorkMovesByItsPrices) {
  const OpId k = add(OpKind::kernel, 1'000'000, 1e12);
  builder_.trace().ops[k].operator_class = OperatorClass::gemm;
  const Op before = builder_.trace().ops[k];
  const Trace t = transferred(builder_.trace(), &here_, there_);
  const double ratio = to_seconds(make_pricer(there_)->kernel(before)) / to_seconds(make_pricer(here_)->kernel(before));
  EXPECT_LT(ratio, 0.7) << "an H100 multiplies faster than an A100";
  EXPECT_NEAR(to_microseconds(t.ops[k].duration), 1000 * ratio, 1e-3);
}

TEST_F(TransferTest, ACopyMovesByTheLink) {
  const OpId c = add(OpKind::copy, 1'000'000'000, 0);
  const Trace t = transferred(builder_.trace(), &here_, there_);
  EXPECT_NEAR(to_microseconds(t.ops[c].duration) / 1000, 0.5, 0.1) << "PCIe 4 to PCIe 5";
}

TEST_F(TransferTest, AModelledOpIsPricedAnew) {
  const OpId k = add(OpKind::kernel, 1'000'000'000, 0, Origin::modelled);
  const Trace t = transferred(builder_.trace(), nullptr, there_);
  EXPECT_EQ(t.ops[k].duration, make_pricer(there_)->kernel(builder_.trace().ops[k]));
  EXPECT_EQ(t.ops[k].origin, Origin::modelled);
}

TEST_F(TransferTest, ASettingMovesOnlyWhatItConcerns) {
  const Machine faster = load_machine("a100-sxm-40gb", {"gpu.hbm.bandwidth=3110GB/s"});
  const OpId k = add(OpKind::kernel, 0, 0), c = add(OpKind::copy, 1'000'000, 0);
  const Trace t = transferred(builder_.trace(), &here_, faster);
  EXPECT_NEAR(to_microseconds(t.ops[k].duration), 500, 1);
  EXPECT_EQ(t.ops[c].duration, microseconds(1000));
  EXPECT_EQ(t.ops[c].origin, Origin::measured);
}

TEST_F(TransferTest, OnItsOwnMachineNothingChanges) {
  const OpId k = add(OpKind::kernel, 0, 0);
  const Trace t = transferred(builder_.trace(), &here_, here_);
  EXPECT_EQ(t.ops[k].duration, microseconds(1000));
  EXPECT_EQ(t.ops[k].origin, Origin::measured);
}

}  // namespace
}  // namespace memwall
