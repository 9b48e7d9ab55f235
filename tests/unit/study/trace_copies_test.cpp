// Is a trace copied by the edits that change it, once each, and by nothing else? Counted as allocations that are
// as large as its ops: every copy makes one.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "study/study.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/test_machine.h"

namespace {
std::atomic<std::size_t> large{SIZE_MAX};
std::atomic<int> large_allocations{0};
}  // namespace

#pragma GCC diagnostic ignored "-Wmismatched-new-delete"  // our own pair, inlined
void* operator new(std::size_t bytes) {
  if (bytes >= large) ++large_allocations;
  if (void* memory = std::malloc(bytes)) return memory;  // NOLINT
  throw std::bad_alloc();
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  if (bytes >= large) ++large_allocations;
  return std::malloc(bytes);  // NOLINT
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace memwall {
namespace {

// Ops are the largest part of a trace by far: nothing else of a run comes near.
int copies_of(Study& study, const Scenario& scenario, const Trace& step) {
  large = step.ops.size() * sizeof(Op);
  large_allocations = 0;
  study.prepare(scenario);
  large = SIZE_MAX;
  return large_allocations;
}

TEST(TraceCopies, OneForEachEditAndNoOther) {
  const Machine machine = test_machine();
  Trace step = gpt_step({.layers = 24});
  step.machine = machine.name;
  Study study;
  study.add_step("step", step);
  study.add_machine(machine.name, machine);
  Scenario s;
  s.step = {"step"};
  s.machine = machine.name;
  EXPECT_EQ(copies_of(study, s, step), 0) << "a step on its own machine is shared";
  s.policies = {"checkpoint:mode=full"};
  EXPECT_EQ(copies_of(study, s, step), 1);
  s.policies = {"offload:what=optimizer,to=host"};
  EXPECT_EQ(copies_of(study, s, step), 2) << "the optimizer moves to the CPU; then the gradients it took are released";
  s.policies = {"checkpoint:mode=full", "offload:what=optimizer,to=host"};
  EXPECT_EQ(copies_of(study, s, step), 3);
  s.policies = {"zero:stage=2,ranks=4"};
  EXPECT_EQ(copies_of(study, s, step), 1);
  s.policies = {};
  s.scale = {"kernels=2"};
  EXPECT_EQ(copies_of(study, s, step), 1) << "scaling changes durations: the control that copies are seen";
}

}  // namespace
}  // namespace memwall
