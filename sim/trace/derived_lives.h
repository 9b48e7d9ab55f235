// Is it known how long storages live?
//
// Where a file says neither when memory was allocated nor when it was freed, importers put an allocation before the
// first use of a storage and its free behind the last, and mark both ops (Op::inferred). What held a storage longer is
// not known: every peak that rests on such lives is a lower bound.
#pragma once

#include <algorithm>

#include "sim/trace/trace.h"

namespace memwall {

constexpr bool is_derived_life(const Op& op) {
  return op.inferred && (op.kind == OpKind::alloc || op.kind == OpKind::free);
}

inline bool has_derived_lives(const Trace& trace) { return std::ranges::any_of(trace.ops, is_derived_life); }

}  // namespace memwall
