// What drives write quickly before they slow down: a cache that fills with what is written and empties at a steady
// rate.
//
// A fluid. While writes come at the rate w and the drives empty the cache at the rate s ("fold" it into slower cells),
// what it holds, h, follows dh/dt = w - s, never below 0 and never above its size C:
//   w > s and h < C   it fills, and is full after (C - h) / (w - s); w is what the link carries
//   full              w is at most s; it stays full as long as as much as that is asked for
//   w < s             it empties after h / (s - w)
// So W bytes at the rate b into an empty cache take W / b where they are at most b C / (b - s), else C / (b - s) and
// (W - b C / (b - s)) / s for the rest.
//
// Assumption: drives empty their cache all the time, as fast under writes as idle, at the rate of a data sheet's
// "sustained" or "after the cache" writes. (Drives differ: some empty it only when idle, some give up fast cells as
// they fill.) Instants are whole picoseconds.
#pragma once

#include "sim/units.h"

namespace memwall {

class WriteCache {
 public:
  // `held`: bytes in it at the beginning. REQUIRES: bytes >= 0, emptied_at > 0, both in bytes (per second).
  WriteCache(double bytes, double emptied_at, double held);

  // What is written per second from now on. REQUIRES: now is not before updated().
  void set_inflow(Time now, double bytes_per_second);
  // When it will be full if nothing changes; kNever: it will not, or is.
  Time full_at() const { return full_at_; }
  // It is full from now on, until less than `emptied_at` flows in. REQUIRES: now == full_at().
  void fill(Time now);
  bool full() const { return full_; }
  double emptied_at() const { return emptied_at_; }

  // Takes what has flown so far into account. REQUIRES: now is not before updated().
  void advance(Time now);
  Time updated() const { return updated_; }
  // As of then.
  double held() const { return held_; }
  Duration time_full() const { return time_full_; }

 private:
  double bytes_, emptied_at_;
  double held_, inflow_ = 0;
  bool full_ = false;
  Time updated_{}, full_at_ = kNever;
  Duration time_full_{};
};

}  // namespace memwall
