// The contents of a step by number: what each op of a schedule has to read, and what it makes.
//
// A schedule alone says which storage an op reads, not what ought to be in it: where a memory plan brought the wrong
// content back, the schedule is as sound as any. The step before its plan knows. Contents are numbered there, from 1:
// what every storage begins with, and what every kernel, memset, collective and host work makes; copies carry them. Op
// by op the numbers are taken over into the planned step, whose re-runs make what their originals made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/trace/trace.h"

namespace memwall {

struct StepContents {
  std::vector<std::uint32_t> uses;     // by use of the schedule; 0 = the schedule's own order says
  std::vector<std::uint32_t> initial;  // by storage, of those that live before the first op; 0 likewise

  // Does it say anything?
  bool empty() const { return uses.empty(); }
  std::uint32_t of(std::size_t use) const { return use < uses.size() ? uses[use] : 0; }
  std::uint32_t initially(StorageId storage) const { return storage < initial.size() ? initial[storage] : 0; }
};

// `planned` and `before` are schedules of the same step with and without a memory plan, or a policy; both have the
// first `storages` storages. nullopt: they are not the same computation (an op of one of them is none of the other, and
// no re-run), so that nothing can be said. REQUIRES: check() and not_executable() of both are empty.
std::optional<StepContents> step_contents(const Trace& planned, const Trace& before, std::size_t storages);

}  // namespace memwall
