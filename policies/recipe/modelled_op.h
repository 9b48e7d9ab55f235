// An op that the changed program issues and the captured one did not.
#pragma once

#include "sim/trace/op.h"

namespace memwall {

// Issued by the thread of `like` on its stream, in its phase and module: modelled, without name, work and times.
inline Op modelled_op(OpKind kind, const Op& like) {
  Op op;
  op.kind = kind;
  op.phase = like.phase;
  op.origin = Origin::modelled;
  op.thread = like.thread;
  op.stream = like.stream;
  op.module = like.module;
  op.dispatch = like.dispatch;
  return op;
}

}  // namespace memwall
