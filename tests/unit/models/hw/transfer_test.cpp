// Does a trace move to another machine with each op by its rule, and never as the old number?
#include "models/hw/transfer.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "models/hw/machine_file.h"
#include "models/hw/pricer.h"
#include "sim/trace/trace_builder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

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
    if (kind == OpKind::collective) op.collective = CollectiveKind::all_reduce;
    return builder_.append(op);
  }
  const std::string& note_with(const Trace& t, const std::string& part) const {
    static const std::string none;
    const auto found =
        std::find_if(t.notes.begin(), t.notes.end(), [&](const std::string& n) { return n.find(part) != n.npos; });
    EXPECT_NE(found, t.notes.end()) << "no note says " << part;
    return found == t.notes.end() ? none : *found;
  }
  const Machine here_, there_;
  TraceBuilder builder_;
};

TEST_F(TransferTest, AnOpCarriesItsErrorAndTheNotesSayHow) {
  const OpId known = add(OpKind::kernel, 1'000'000'000, 0), unknown = add(OpKind::kernel, 0, 0);
  builder_.trace().ops[known].operator_class = OperatorClass::elementwise;
  const Trace t = transferred(builder_.trace(), &here_, there_);
  for (const OpId id : {known, unknown}) {
    EXPECT_LT(t.ops[id].duration, microseconds(900)) << "an H100 has twice an A100 40 GB's bandwidth";
    EXPECT_EQ(t.ops[id].origin, Origin::transferred);
    EXPECT_GT(t.ops[id].error_permille, 50);
  }
  EXPECT_GT(t.ops[unknown].error_permille, t.ops[known].error_permille) << "less is known";
  EXPECT_EQ(t.machine, "h100-sxm-80gb");
  EXPECT_NE(note_with(t, "1 elementwise kernels, 50.0 % of the device time").find("by FLOPs, bytes and shape"),
            std::string::npos);
  EXPECT_NE(note_with(t, "1 kernels of no known class").find("taken as memory-bound"), std::string::npos);
}

// So that its rate is held against the peak that it was transferred by.
TEST_F(TransferTest, AConvolutionBecomesOneOfTf32) {
  const OpId convolution = add(OpKind::kernel, 0, 1e12), product = add(OpKind::kernel, 0, 1e12);
  for (const OpId id : {convolution, product}) builder_.trace().ops[id].data_type = DataType::fp32;
  builder_.trace().ops[convolution].operator_class = OperatorClass::convolution;
  builder_.trace().ops[product].operator_class = OperatorClass::gemm;
  const Machine volta = load_machine("v100-sxm2-32gb");
  const Trace t = transferred(builder_.trace(), &volta, there_);
  EXPECT_EQ(t.ops[convolution].data_type, DataType::tf32);
  EXPECT_EQ(t.ops[product].data_type, DataType::fp32);
  EXPECT_NE(note_with(t, "in TF32").find("1 convolution in fp32, which v100-sxm2-32gb has no TF32 for, is taken"),
            std::string::npos);
  EXPECT_EQ(transferred(builder_.trace(), &here_, there_).ops[convolution].data_type, DataType::fp32)
      << "an A100 has TF32 and did not use it";
}

TEST_F(TransferTest, ACopyMovesByTheLink) {
  const OpId c = add(OpKind::copy, 1'000'000'000, 0);
  const Trace t = transferred(builder_.trace(), &here_, there_);
  EXPECT_NEAR(to_microseconds(t.ops[c].duration) / 1000, 0.5, 0.1) << "PCIe 4 to PCIe 5";
  EXPECT_EQ(t.ops[c].origin, Origin::transferred);
}

// Two V100 have one pair of bricks between them; eight, a ring.
TEST_F(TransferTest, ACollectiveMovesByTheFabricOfItsGroup) {
  const Machine v100 = load_machine("v100-sxm2-16gb");
  builder_.trace().ranks = 8;
  const OpId all = add(OpKind::collective, 1'000'000'000, 0), pair = add(OpKind::collective, 1'000'000'000, 0);
  builder_.trace().groups = {{"", 8, {}}, {"", 0, {0, 1}}};
  builder_.trace().ops[pair].group = 1;
  const Trace t = transferred(builder_.trace(), &v100, here_);
  EXPECT_NEAR(to_microseconds(t.ops[all].duration), 1000 * 134.5 / 235, 60);
  EXPECT_LT(to_microseconds(t.ops[pair].duration), 200);
  EXPECT_GT(t.ops[pair].error_permille, 0);
}

TEST_F(TransferTest, AModelledOpIsPricedAnew) {
  const OpId k = add(OpKind::kernel, 1'000'000'000, 0, Origin::modelled);
  const Trace t = transferred(builder_.trace(), nullptr, there_);
  EXPECT_EQ(t.ops[k].duration, make_pricer(there_)->kernel(builder_.trace().ops[k]));
  EXPECT_EQ(t.ops[k].origin, Origin::modelled);
  EXPECT_EQ(t.ops[k].error_permille, 0);
}

// Of a generated step, in which nothing was measured, and of one with ops that were.
TEST_F(TransferTest, NotesSayFromWhichMachineToWhichModelledOpsGo) {
  add(OpKind::copy, 1'000'000'000, 0, Origin::modelled);
  const Trace alone = transferred(builder_.trace(), &here_, there_);
  EXPECT_EQ(alone.notes, std::vector<std::string>{"Transferred from a100-sxm-40gb to h100-sxm-80gb: 1 duration that "
                                                  "nobody measured is modelled for the latter; host time is "
                                                  "unchanged."});
  add(OpKind::copy, 1'000'000'000, 0);
  const Trace both = transferred(builder_.trace(), &here_, there_);
  EXPECT_TRUE(note_with(both, "nobody measured").ends_with("is modelled for the latter."));
  EXPECT_NE(note_with(both, "by operator class").find("host time is unchanged"), std::string::npos);
  EXPECT_EQ(transferred(builder_.trace(), nullptr, there_).notes, std::vector<std::string>{})
      << "nobody knows from where";
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
  builder_.trace().ranks = 8;
  add(OpKind::kernel, 0, 0), add(OpKind::kernel, 123'456'789, 1e9), add(OpKind::copy, 12'345, 0);
  add(OpKind::collective, 12'345'678, 0), add(OpKind::memset, 4096, 0);
  const Trace t = transferred(builder_.trace(), &here_, here_);
  for (const Op& op : t.ops) {
    EXPECT_EQ(op.duration, microseconds(1000));
    EXPECT_EQ(op.origin, Origin::measured);
  }
  EXPECT_TRUE(t.notes.empty());
}

TEST_F(TransferTest, HostTimeMovesWhereThatIsAskedFor) {
  Machine slow = here_;
  slow.host.launch = 2 * here_.host.launch;
  slow.host.eager_backward = 3 * here_.host.eager_backward;
  slow.host.stream_gap = 2 * here_.host.stream_gap;
  slow.host.copy_call = Duration{};  // not stated
  const OpId k = add(OpKind::kernel, 1'000'000, 0), c = add(OpKind::copy, 1'000'000, 0);
  Trace& trace = builder_.trace();
  for (Op& op : trace.ops) op.host_cost = microseconds(5), op.host_gap = microseconds(10), op.phase = Phase::backward;
  trace.constants.stream_gap[0][0] = microseconds(1);
  const Trace same = transferred(trace, &here_, slow), with_host = transferred(trace, &here_, slow, {.host = true});
  EXPECT_EQ(same.ops[k].host_cost, microseconds(5)) << "by default it is the capture's";
  EXPECT_EQ(with_host.ops[k].host_cost, microseconds(10));
  EXPECT_EQ(with_host.ops[k].host_gap, microseconds(10)) << "what files say of the framework is of other programs";
  EXPECT_EQ(with_host.ops[c].host_cost, microseconds(5));
  EXPECT_EQ(with_host.constants.stream_gap[0][0], microseconds(2));
  note_with(with_host, "launch x2,");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
