// How much of a step is its host's: what the step would take at least, were every call, and what the framework does
// between calls, slower.
//
// A step is a longest path through its ops, so that its time is convex in the time of the host: each path that is known
// bounds it from below. Two are: the critical path of the step as it is, on which the host's part grows and the rest
// does not, and the host thread that has most to do, which can never be done sooner than all it has to do takes.
// Waiting is not counted, nor is work on host memory (CPU optimizers).
#pragma once

namespace memwall {

struct HostShare {
  double path = 0;    // of the critical path, in [0, 1]
  double thread = 0;  // of the step, in which the busiest thread is in a call or between two, in [0, 1]

  // What a step whose host takes `factor` times as long takes at least, relative to the step as it is: at least 1.
  // REQUIRES: factor >= 1.
  double longer_by(double factor) const;
  // Likewise where the host takes 1 / factor of the time: at most 1. REQUIRES: factor >= 1.
  double shorter_by(double factor) const;
  // The factor with which longer_by() (or shorter_by(), of less than 1) says `relative`; infinite where none does.
  double factor_of(double relative) const;
};

}  // namespace memwall
