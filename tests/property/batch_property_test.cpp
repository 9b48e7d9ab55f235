// Whatever the step: is another batch exactly the step at that batch, are two changes one, do parameters stay?
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/support/gpt_trace.h"
#include "tests/support/rewrite_checks.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

GptShape random_shape() {
  GptShape s;
  s.layers = *rc::gen::inRange(1, 4);
  s.heads = *rc::gen::inRange(1, 5);
  s.hidden = s.heads * *rc::gen::inRange(4, 17);
  s.sequence = *rc::gen::inRange(5, 33);  // what has at most 16 bytes and no shape may be taken for a seed
  s.batch = *rc::gen::inRange(1, 33);
  s.vocabulary = *rc::gen::inRange(2, 65);
  s.flash_attention = *rc::gen::arbitrary<bool>();
  s.preexisting_gradients = *rc::gen::arbitrary<bool>();
  s.steps = *rc::gen::inRange(1, 3);
  return s;
}

std::string batch(int to) { return "batch:" + std::to_string(to); }

void require_equal(const Trace& a, const Trace& b) {
  RC_ASSERT(a.storages.size() == b.storages.size());
  RC_ASSERT(a.ops.size() == b.ops.size());
  for (std::size_t i = 0; i < a.storages.size(); ++i) RC_ASSERT(a.storages[i].bytes == b.storages[i].bytes);
  for (std::size_t i = 0; i < a.ops.size(); ++i) {
    RC_ASSERT(a.ops[i].bytes == b.ops[i].bytes);
    RC_ASSERT(std::abs(a.ops[i].flops - b.ops[i].flops) <= 1e-12 * b.ops[i].flops);
  }
  RC_ASSERT(a.samples_per_step == b.samples_per_step);
}

RC_GTEST_PROP(BatchProperty, AnotherBatchIsTheStepAtThatBatch, ()) {
  GptShape shape = random_shape();
  const Trace before = gpt_step(shape);
  const int to = *rc::gen::inRange(1, 65);
  const Trace after = rewritten(before, batch(to));
  RC_ASSERT(check(after).empty());
  shape.batch = to;
  require_equal(after, gpt_step(shape));
}

RC_GTEST_PROP(BatchProperty, TwoChangesAreOne, ()) {
  const Trace before = gpt_step(random_shape());
  const int middle = *rc::gen::inRange(1, 65), to = *rc::gen::inRange(1, 65);
  require_equal(rewritten(rewritten(before, batch(middle)), batch(to)), rewritten(before, batch(to)));
}

RC_GTEST_PROP(BatchProperty, TheSameBatchIsTheIdentityAndParametersNeverChange, ()) {
  const GptShape shape = random_shape();
  const Trace before = gpt_step(shape);
  const Trace same = rewritten(before, batch(shape.batch)), other = rewritten(before, batch(shape.batch + 1));
  require_equal(same, before);
  for (std::size_t i = 0; i < before.ops.size(); ++i) RC_ASSERT(same.ops[i].duration == before.ops[i].duration);
  for (std::size_t i = 0; i < before.storages.size(); ++i) {
    const Storage& s = before.storages[i];
    if (s.kind == StorageKind::parameter || s.kind == StorageKind::gradient || s.kind == StorageKind::optimizer_state)
      RC_ASSERT(other.storages[i].bytes == s.bytes);
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
