// A trace that several may hold: reading is shared, writing copies only where another holds it too.
//
// Steps of a million ops take hundreds of MB. What a Scenario, a Run and a rewriter's input have in common is one
// trace; who changes it asks `edit()` and pays for a copy at most once.
#pragma once

#include <memory>
#include <utility>

#include "sim/trace/trace.h"

namespace memwall {

// A value: copies are cheap and independent of each other. Copies may be read in several threads at once; one
// SharedTrace itself, like any value, is changed by one thread alone.
class SharedTrace {
 public:
  SharedTrace() = default;                                                          // an empty trace
  SharedTrace(Trace trace) : trace_(std::make_shared<Trace>(std::move(trace))) {}  // NOLINT: a trace is one

  const Trace& operator*() const { return trace_ ? *trace_ : nothing(); }
  const Trace* operator->() const { return &**this; }
  operator const Trace&() const { return **this; }  // NOLINT: wherever a trace is read

  // To change it: a copy is made if another holds it. Valid until this value is assigned or copied.
  Trace& edit() {
    if (!trace_)
      trace_ = std::make_shared<Trace>();
    else if (trace_.use_count() > 1)
      trace_ = std::make_shared<Trace>(*trace_);
    return *trace_;
  }

  // Moved out where nobody else holds it, else copied. Empty afterwards.
  Trace take() && {
    Trace taken = std::move(edit());
    trace_.reset();
    return taken;
  }

  // Do both hold the same trace, so that neither was copied?
  friend bool same(const SharedTrace& a, const SharedTrace& b) { return &*a == &*b; }

 private:
  static const Trace& nothing() {
    static const Trace empty;
    return empty;
  }

  std::shared_ptr<Trace> trace_;
};

}  // namespace memwall
