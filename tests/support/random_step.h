// Random training steps for property tests of what rewrites them: forwards of ops that read one or two recent storages
// and write a new one, two, or their first input in place; random choice of what backward reads; modules in runs.
#pragma once

#include <rapidcheck.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "policies/trace/dataflow.h"
#include "policies/trace/segments.h"
#include "tests/support/step_program.h"

namespace memwall {

struct MadeStorage {
  StorageId id = kNoStorage;
  bool saved = false;
};

// Frees in forward what nothing reads any more: `recent` storages stay, saved ones stay for backward.
inline void forget(StepProgram& p, std::vector<MadeStorage>& made, std::size_t recent, std::vector<StorageId>& kept) {
  while (made.size() > recent) {
    if (made.front().saved)
      kept.push_back(made.front().id);
    else
      p.drop(made.front().id);
    made.erase(made.begin());
  }
}

// Of what the op before uses and backward needs, autograd keeps some for that op.
inline void save_some(StepProgram& p, const std::vector<MadeStorage>& made, const std::vector<StorageId>& reads,
                      const std::vector<StorageId>& writes) {
  for (const std::vector<StorageId>* list : {&reads, &writes})
    for (const StorageId id : *list) {
      const bool needed =
          std::any_of(made.begin(), made.end(), [&](const MadeStorage& m) { return m.id == id && m.saved; });
      if (needed && *rc::gen::arbitrary<bool>()) p.saves({id});
    }
}

// `sums_gradients`: in buffers that live across steps and begin at zero, from which the optimizer changes the weights.
inline Trace random_step(std::size_t passes, bool sums_gradients = false) {
  constexpr StorageId kParameters = 3;
  StepProgram p;
  const bool says_what_is_kept = *rc::gen::arbitrary<bool>();
  for (StorageId i = 0; i < kParameters; ++i) p.preexisting(64, StorageKind::parameter, "weight");
  std::vector<StorageId> sums;
  for (StorageId i = 0; sums_gradients && i < kParameters; ++i) {
    sums.push_back(p.preexisting(100 * *rc::gen::inRange<Bytes>(1, 20), StorageKind::gradient, "sum"));
    p.op("zero", {}, {sums.back()});
  }
  for (std::size_t pass = 0; pass < passes; ++pass) {
    if (pass > 0) p.forward();
    std::vector<MadeStorage> made;
    std::vector<StorageId> kept;
    std::map<StorageId, std::string> module_of;
    const auto ops = *rc::gen::inRange<std::size_t>(1, 30);
    const auto block = *rc::gen::inRange<std::size_t>(1, 8);
    for (std::size_t i = 0; i < ops; ++i) {
      p.module("blocks." + std::to_string(i / block));
      std::vector<StorageId> reads = {static_cast<StorageId>(i % kParameters)};
      const auto from = *rc::gen::inRange<std::size_t>(0, 3);
      for (std::size_t r = 0; r < std::min(from, made.size()); ++r) reads.push_back(made[made.size() - 1 - r].id);
      std::vector<StorageId> writes;
      const auto form = *rc::gen::inRange(0, 4);
      if (form == 0 && reads.size() > 1) {
        writes.push_back(reads[1]);
      } else {
        for (int w = 0; w < (form == 1 ? 2 : 1); ++w) {
          const Bytes bytes = 100 * *rc::gen::inRange<Bytes>(1, 20);
          made.push_back({p.make(bytes, "a"), *rc::gen::inRange(0, 3) > 0});
          module_of[made.back().id] = "blocks." + std::to_string(i / block);
          writes.push_back(made.back().id);
        }
      }
      Op cost;
      cost.duration = nanoseconds(*rc::gen::inRange(1, 1000));
      p.op("op" + std::to_string(i % 5), reads, writes, cost);
      if (says_what_is_kept) save_some(p, made, reads, writes);
      forget(p, made, *rc::gen::inRange<std::size_t>(1, 5), kept);
    }
    p.module("");
    forget(p, made, 0, kept);
    p.backward();
    for (std::size_t i = kept.size(); i-- > 0;) {
      std::vector<StorageId> reads = {kept[i]};
      if (i > 0 && *rc::gen::arbitrary<bool>()) reads.push_back(kept[*rc::gen::inRange<std::size_t>(0, i)]);
      p.module(says_what_is_kept && *rc::gen::inRange(0, 4) > 0 ? module_of[kept[i]] : "");
      if (*rc::gen::inRange(0, 6) > 0) p.op("backward", reads, {});
      if (sums_gradients) p.op("add", {kept[i], sums[i % kParameters]}, {sums[i % kParameters]});
      p.drop(kept[i]);
    }
    p.module("");
    p.op("end_of_backward", {}, {});
  }
  p.optimizer();
  for (StorageId i = 0; i < sums.size(); ++i) p.op("sgd", {sums[i], i}, {i});
  return std::move(p).finish();
}

inline std::vector<RecomputeUnit> random_units(const Trace& t, const Dataflow& flow, const Pass& pass) {
  switch (*rc::gen::inRange(0, 4)) {
    case 0:
      return block_units(t, flow, pass);
    case 1:
      return grouped(t, pass, block_units(t, flow, pass), *rc::gen::inRange<std::size_t>(1, 5));
    case 2:
      return segment_units(t, flow, pass);
    default:
      return operator_units(t, pass, {"op1", "op3"});
  }
}

}  // namespace memwall
