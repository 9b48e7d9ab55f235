// Whatever the step: is a fused trace sound, does it hold no more at once, do its sums add up, and does every op
// still read what it read before?
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "policies/fusion/fused_trace.h"
#include "policies/fusion/fusion_plan.h"
#include "tests/support/rewrite_checks.h"
#include "tests/support/step_program.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr std::int64_t kRows = 8, kWidth = 16, kAll = kRows * kWidth;

// Random ops on tensors of all elements, of one per row, and of another size; some random, some in place, some on a
// second stream behind an event; storages are dropped at random, in forward or in backward.
class RandomStep {
 public:
  Trace write() {
    p_.builder().add_stream("side", StreamRole::compute);
    for (int i = 0; i < 3; ++i) live_.push_back(shaped(p_.preexisting(4 * kAll, StorageKind::input, "input"), kAll));
    phase();
    p_.backward();
    phase();
    return std::move(p_).finish();
  }

 private:
  static int below(int n) { return *rc::gen::inRange(0, n); }

  void phase() {
    const int ops = below(40);
    for (int i = 0; i < ops; ++i) {
      p_.module("layers." + std::to_string(i / 8));
      one();
      while (live_.size() > 6 || (live_.size() > 4 && below(3) == 0)) drop();
      if (below(25) == 0) separate();
    }
  }

  StorageId shaped(StorageId id, std::int64_t elements) {
    Trace& t = p_.builder().trace();
    if (below(4) > 0) t.storages[id].shape = t.shapes.intern({elements});
    return id;
  }

  void drop() {
    const auto at = static_cast<std::size_t>(below(static_cast<int>(live_.size())));
    if (!p_.builder().trace().storages[live_[at]].preexisting) p_.drop(live_[at]);
    live_.erase(live_.begin() + static_cast<std::ptrdiff_t>(at));
    if (live_.empty()) live_.push_back(0);
  }

  // Something across which nothing may be merged: an event and its wait, or a synchronization.
  void separate() {
    const std::uint32_t event = p_.builder().add_event();
    Op op = p_.here(OpKind::event_record);
    op.target = event;
    p_.builder().append(op);
    op.kind = below(2) == 0 ? OpKind::event_wait : OpKind::synchronize;
    op.wait_for = op.kind == OpKind::synchronize ? WaitFor::event : WaitFor::nothing;
    p_.builder().append(op);
    p_.on_stream(static_cast<std::uint16_t>(below(2)));
  }

  void one() {
    const int form = below(10);
    const bool reduces = form == 0, normalizes = form == 1, product = form == 2, fewer = form == 3;
    const std::int64_t elements = reduces || fewer ? kRows : kAll;
    std::vector<StorageId> reads, writes;
    for (int i = below(3); i >= 0; --i)
      reads.push_back(live_[live_.size() - 1 - static_cast<std::size_t>(below(static_cast<int>(live_.size())))]);
    std::sort(reads.begin(), reads.end());
    reads.erase(std::unique(reads.begin(), reads.end()), reads.end());
    if (form == 4) {
      writes.push_back(reads.front());
    } else {
      writes.push_back(shaped(p_.make(4 * elements, "a"), elements));
      if (below(6) == 0) writes.push_back(shaped(p_.make(elements, "mask"), elements));
    }
    const OpId id = p_.op(form == 5 ? "native_dropout" : "op" + std::to_string(form), reads, writes);
    Trace& t = p_.builder().trace();
    Op& op = t.ops[id];
    op.operator_class = reduces      ? OperatorClass::reduction
                        : normalizes ? OperatorClass::normalization
                        : product    ? OperatorClass::gemm
                                     : OperatorClass::elementwise;
    op.shape = t.shapes.intern(reduces || normalizes ? Shape{kRows, kWidth}
                               : product             ? Shape{1, kRows, kWidth, 4}
                                                     : Shape{elements});
    if (below(12) == 0) op.shape = 0;
    op.flops = static_cast<double>(1 + below(1000));
    op.origin = below(2) == 0 ? Origin::modelled : Origin::measured;
    for (const Use& use : t.uses_of(op)) op.bytes += t.storages[use.storage].bytes;
    if (below(10) == 0) op.bytes = 0;
    for (const StorageId w : writes)
      if (std::find(live_.begin(), live_.end(), w) == live_.end()) live_.push_back(w);
  }

  StepProgram p_;
  std::vector<StorageId> live_;
};

FusionRules random_rules() {
  FusionRules rules;
  rules.scope = *rc::gen::element(FusionScope::all, FusionScope::elementwise, FusionScope::norms);
  rules.gemm_epilogues = *rc::gen::arbitrary<bool>();
  rules.largest = *rc::gen::inRange<std::size_t>(2, 12);
  return rules;
}

Bytes peak(const Trace& t) {
  Bytes highest = 0;
  for (const LiveBytes& live : live_bytes(t)) {
    Bytes sum = 0;
    for (const Bytes b : live) sum += b;
    highest = std::max(highest, sum);
  }
  return highest;
}

double flops(const Trace& t) {
  double sum = 0;
  for (const Op& op : t.ops) sum += op.flops;
  return sum;
}

Bytes traffic(const Trace& t) {
  Bytes sum = 0;
  for (const Op& op : t.ops) sum += op.bytes;
  return sum;
}

Duration work(const Trace& t) {
  Duration sum{};
  for (const Op& op : t.ops) sum += op.duration;
  return sum;
}

// For each kernel in order of the new trace: the ops of the old one that it stands for.
std::vector<std::vector<OpId>> parts_of(const Trace& before, const std::vector<FusionGroup>& groups) {
  std::vector<std::vector<OpId>> parts;
  for (OpId id = 0; id < before.ops.size(); ++id) {
    if (!runs_on_device(before.ops[id].kind)) continue;
    const auto found = std::find_if(groups.begin(), groups.end(), [&](const FusionGroup& g) {
      return std::find(g.members.begin(), g.members.end(), id) != g.members.end();
    });
    if (found == groups.end())
      parts.push_back({id});
    else if (found->members.back() == id)
      parts.push_back(found->members);
  }
  return parts;
}

// Who wrote what an op reads, storage by storage: the number of the op, kNoOp for content from before the step.
using Sources = std::map<StorageId, OpId>;

std::vector<Sources> sources(const Trace& t) {
  std::vector<Sources> all(t.ops.size());
  std::map<StorageId, OpId> writer;
  for (OpId id = 0; id < t.ops.size(); ++id) {
    for (const Use& use : t.uses_of(t.ops[id]))
      if (use.access == Access::read) all[id][use.storage] = writer.count(use.storage) ? writer[use.storage] : kNoOp;
    for (const Use& use : t.uses_of(t.ops[id]))
      if (use.access == Access::write) writer[use.storage] = id;
  }
  return all;
}

RC_GTEST_PROP(FusionProperty, KeepsContentsOrderAndPeak, ()) {
  const Trace before = RandomStep().write();
  RC_ASSERT(check(before) == std::vector<std::string>{});
  const FusionRules rules = random_rules();
  const Machine machine = test_machine();
  const auto pricer = test_pricer(machine);
  const std::vector<FusionGroup> groups = plan_fusion(before, rules);
  const Trace after = with_fusion(before, groups, machine.host, *pricer);
  RC_ASSERT(check(after) == std::vector<std::string>{});
  RC_ASSERT(peak(after) <= peak(before));
  RC_ASSERT(std::abs(flops(after) - flops(before)) < 1e-6);
  RC_ASSERT(traffic(after) >= 0);
  RC_ASSERT(work(after) <= work(before));
  RC_CLASSIFY(!groups.empty(), "something is merged");

  const std::vector<std::vector<OpId>> parts = parts_of(before, groups);
  std::vector<OpId> kernels;
  for (OpId id = 0; id < after.ops.size(); ++id)
    if (runs_on_device(after.ops[id].kind)) kernels.push_back(id);
  RC_ASSERT(kernels.size() == parts.size());
  std::map<OpId, OpId> now;  // of an op before: the one that does its work
  for (std::size_t i = 0; i < parts.size(); ++i)
    for (const OpId part : parts[i]) now[part] = kernels[i];
  now[kNoOp] = kNoOp;
  const std::vector<Sources> was = sources(before), is = sources(after);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    RC_ASSERT(parts[i].size() <= rules.largest);
    Sources expected;
    for (const OpId part : parts[i]) {
      RC_ASSERT(before.ops[part].phase == after.ops[kernels[i]].phase);
      RC_ASSERT(before.ops[part].stream == after.ops[kernels[i]].stream);
      for (const auto& [storage, source] : was[part])
        if (now[source] != kernels[i]) expected[storage] = now[source];
    }
    RC_ASSERT(is[kernels[i]] == expected);
  }
}

RC_GTEST_PROP(FusionProperty, NothingCrossesAnEventOrASynchronization, ()) {
  const Trace before = RandomStep().write();
  for (const FusionGroup& g : plan_fusion(before, random_rules()))
    for (OpId id = g.members.front(); id < g.members.back(); ++id) {
      const Op& op = before.ops[id];
      const bool own = op.stream == before.ops[g.members.front()].stream;
      RC_ASSERT(op.kind != OpKind::synchronize && op.kind != OpKind::hand_over && op.kind != OpKind::mark);
      RC_ASSERT(!own || (op.kind != OpKind::event_record && op.kind != OpKind::event_wait));
    }
}

RC_GTEST_PROP(FusionProperty, RandomNumbersKeepTheirOrder, ()) {
  const Trace before = RandomStep().write();
  const std::vector<FusionGroup> groups = plan_fusion(before, random_rules());
  std::vector<OpId> draws;
  for (const std::vector<OpId>& parts : parts_of(before, groups))
    for (const OpId part : parts)
      if (before.strings[before.ops[part].operator_name] == "aten::native_dropout") draws.push_back(part);
  RC_ASSERT(std::is_sorted(draws.begin(), draws.end()));
}

RC_GTEST_PROP(FusionProperty, DoneTwiceIsDoneOnceAndComposesWithOthers, ()) {
  Trace before = RandomStep().write();
  for (Op& op : before.ops)  // at least one op that could be merged: else the trace is refused
    if (op.kind == OpKind::kernel && op.shape == 0) op.shape = before.shapes.intern({kAll});
  RC_PRE(refusal(before, "fusion") == "");
  const Trace once = rewritten(before, "fusion");
  if (refusal(once, "fusion").empty()) {
    const Trace twice = rewritten(once, "fusion");
    RC_ASSERT(twice.ops.size() == once.ops.size());
    for (std::size_t i = 0; i < once.ops.size(); ++i) {
      RC_ASSERT(twice.ops[i].kind == once.ops[i].kind);
      RC_ASSERT(twice.ops[i].bytes == once.ops[i].bytes);
      RC_ASSERT(twice.ops[i].duration == once.ops[i].duration);
    }
  }
  for (const char* other : {"checkpoint:mode=full", "offload:what=activations,to=host"})
    if (refusal(once, other).empty()) RC_ASSERT(check(rewritten(once, other)) == std::vector<std::string>{});
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
