// Is a trace that is written down as a captured step the same trace when it is read again?
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "models/workload/import/mwc/mwc_import.h"
#include "tests/support/capture_writer.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/gzip.h"
#include "tests/support/rewrite_checks.h"
#include "tests/support/scratch_folder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

template <typename T>
T wide(T low, T high) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<T>(low, high));
}

GptShape any_shape() {
  GptShape g;
  g.layers = wide(1, 5);
  g.heads = wide(1, 4);
  g.hidden = g.heads * wide(1, 9);
  g.sequence = wide(1, 20);
  g.batch = wide(1, 5);
  g.vocabulary = wide(1, 50);
  g.flash_attention = *rc::gen::arbitrary<bool>();
  g.extra_parameters = wide(0, 100);
  g.preexisting_gradients = *rc::gen::arbitrary<bool>();
  g.steps = wide(1, 4);
  g.launch_cost = picoseconds(wide<std::int64_t>(0, 9'000'000));
  g.allocator_cost = picoseconds(wide<std::int64_t>(0, 2'000'000));
  return g;
}

Trace imported(const std::string& text, bool packed) {
  const ScratchFolder folder;
  write_content(folder / "step.mwc", packed ? gzipped(text) : text);
  return read_mwc(folder / "step.mwc").trace;
}

// As a framework would have issued it.
void dispatch(Trace& trace) {
  for (Op& op : trace.ops) {
    if (op.kind == OpKind::kernel) op.kernels = wide<std::uint16_t>(1, 300);
    if (op.kind != OpKind::kernel && op.kind != OpKind::copy && op.kind != OpKind::collective) continue;
    op.framework_calls = wide<std::uint16_t>(0, 300);
    op.dispatch = *rc::gen::element(Dispatch::native, Dispatch::eager, Dispatch::compiled);
  }
}

void require_same(Trace trace, bool real) {
  dispatch(trace);
  const std::string text = capture_text(trace, real);
  RC_ASSERT(first_difference(imported(text, *rc::gen::arbitrary<bool>()), as_captured(trace, real)) == "");
}

RC_GTEST_PROP(Capture, AStepOfAGptSurvives, ()) {
  GptShape g = any_shape();
  const bool real = *rc::gen::arbitrary<bool>();
  g.host_gap = real ? picoseconds(wide<std::int64_t>(0, 5'000'000)) : Duration{};
  require_same(gpt_step(g), real);
}

// Streams, events, copies to page-locked memory, collectives and recomputation, as policies write them.
RC_GTEST_PROP(Capture, WhatPoliciesWriteSurvives, ()) {
  const GptShape g = any_shape();
  const std::string policy = *rc::gen::element<std::string>(
      "checkpoint:mode=full", "offload:what=activations,min_bytes=1", "zero:stage=1,ranks=2,bucket_bytes=1");
  const bool real = *rc::gen::arbitrary<bool>();
  Trace trace;
  try {
    trace = rewritten(gpt_step(g), policy);
  } catch (const UsageError&) {
    RC_DISCARD("too small for the policy");
  }
  require_same(trace, real);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
