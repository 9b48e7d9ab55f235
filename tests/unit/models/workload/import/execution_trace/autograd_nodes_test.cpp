// Do sequence numbers tell which operator keeps what a function of backward reads?
#include <gtest/gtest.h>

#include "models/workload/import/execution_trace/execution_trace_join.h"
#include "tests/support/operator_scene.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

const std::string kReluSchema = "aten::relu(Tensor self) -> Tensor";

// A convolution of two kernels (the second adds the bias in place) behind which a ReLU works in place: autograd keeps
// what the convolution reads before its first kernel, and the ReLU's result, not what the convolution made.
TEST(AutogradNodes, AutogradKeepsWhatTheFunctionOfAnOperatorReads) {
  for (const bool in_capture : {true, false}) {
    Scene s;
    s.begin("aten::conv2d", "aten::conv2d(Tensor input, Tensor weight, Tensor? bias) -> Tensor",
            {{{100, 256}}, {{101, 64}}, {{102, 8}}}, {{{103, 256}}});
    s.number(7, false, in_capture);
    s.alloc(1024);
    const OpId first = s.kernel(), second = s.kernel();
    s.end();
    s.begin("aten::relu_", "aten::relu_(Tensor(a!) self) -> Tensor(a!)", {{{103, 256}}}, {{{103, 256}}});
    s.number(8, false, in_capture);
    const OpId relu = s.kernel();
    s.end();
    s.begin("ReluBackward0");
    s.number(8, true, in_capture);
    s.begin("aten::threshold_backward", "aten::threshold_backward(Tensor grad, Tensor self) -> Tensor",
            {{{104, 256}}, {{103, 256}}}, {{{105, 256}}});
    s.alloc(1024);
    const OpId of_relu = s.kernel(Phase::backward);
    s.end();
    s.end();
    s.begin("ConvolutionBackward0");
    s.number(7, true, in_capture);
    s.begin("aten::convolution_backward",
            "aten::convolution_backward(Tensor grad, Tensor input, Tensor weight) -> Tensor",
            {{{105, 256}}, {{100, 256}}, {{101, 64}}}, {{{106, 64}}});
    s.alloc(512);
    const OpId of_convolution = s.kernel(Phase::backward);
    s.end();
    s.end();
    const JoinReport report = s.join();
    EXPECT_EQ(s.uses(first), "r3v0 r4v0 r5v0 w0v1");
    EXPECT_EQ(s.uses(first, true), "r3v0 r4v0") << "the bias is not kept";
    EXPECT_EQ(s.uses(second, true), "") << "once, before the operator runs";
    EXPECT_EQ(s.uses(relu), "r0v2 w0v3");
    EXPECT_EQ(s.uses(relu, true), "w0v3");
    EXPECT_EQ(s.imported.trace.ops[of_relu].source, relu);
    EXPECT_EQ(s.imported.trace.ops[of_convolution].source, first);
    EXPECT_EQ(report.saved.nodes, 2u);
    EXPECT_EQ(report.saved.saves, 3u);
  }
}

// An operator that makes no node lists the number of the next: the copy of the input has that of the convolution, which
// keeps it, and no part of the network is before it.
TEST(AutogradNodes, TheLastOperatorOfANumberMadeTheNode) {
  Scene s;
  s.begin("aten::to", "aten::to(Tensor self) -> Tensor", {{{100, 256}}}, {{{101, 256}}});
  s.number(7);
  s.begin("aten::copy_", "aten::copy_(Tensor(a!) self, Tensor src) -> Tensor(a!)", {{{101, 256}}, {{100, 256}}},
          {{{101, 256}}});
  s.alloc(1024);
  const OpId copy = s.kernel();
  s.end();
  s.end();
  s.begin("aten::linear", kReluSchema, {{{101, 256}}}, {{{103, 256}}});
  s.number(7);
  s.begin("aten::mm", kReluSchema, {{{101, 256}}}, {{{103, 256}}});
  s.number(7);
  s.alloc(1024);
  const OpId first = s.kernel();
  s.end();
  s.begin("aten::add_", "aten::add_(Tensor(a!) self, Tensor other) -> Tensor(a!)", {{{103, 256}}, {{102, 256}}},
          {{{103, 256}}});
  s.number(7);
  const OpId second = s.kernel();
  s.end();
  s.end();
  s.begin("LinearBackward0");
  s.number(7, true);
  s.begin("aten::mm", "aten::mm(Tensor self, Tensor mat2) -> Tensor", {{{104, 256}}, {{101, 256}}}, {{{105, 256}}});
  s.alloc(1024);
  const OpId function = s.kernel(Phase::backward);
  s.end();
  s.end();
  s.join();
  EXPECT_EQ(s.uses(copy, true), "");
  EXPECT_EQ(s.uses(first, true), "r0v1") << "the add of its bias is of the same call";
  EXPECT_EQ(s.uses(second, true), "");
  EXPECT_EQ(s.imported.trace.ops[function].source, first);
}

// Threads number the nodes of their own graphs: a number that two of them use is told by what was read.
TEST(AutogradNodes, NodesOfTwoThreadsWithOneNumberAreToldApart) {
  Scene s;
  OpId made[2] = {};
  for (const int which : {0, 1}) {
    s.begin("aten::relu", kReluSchema, {{{100 + 10 * which, 256}}}, {{{101 + 10 * which, 256}}});
    s.number(7);
    s.alloc(1024);
    made[which] = s.kernel();
    s.imported.trace.ops[made[which]].thread = static_cast<std::uint16_t>(which);
    s.end();
  }
  s.imported.trace.threads.push_back({"other"});
  s.begin("ReluBackward0");
  s.number(7, true);
  s.begin("aten::threshold_backward", "aten::threshold_backward(Tensor grad, Tensor self) -> Tensor",
          {{{104, 256}}, {{111, 256}}}, {{{105, 256}}});
  s.alloc(1024);
  const OpId function = s.kernel(Phase::backward);
  s.end();
  s.end();
  s.join();
  EXPECT_EQ(s.imported.trace.ops[function].source, made[1]);
  EXPECT_EQ(s.uses(made[0], true), "");
  EXPECT_EQ(s.uses(made[1], true), "w1v1");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
