// The law by which the simulator prices a transfer, fitted to measured times:
//   seconds(bytes) = latency + bytes / (bandwidth * efficiency(bytes))
//
// The estimator, which outliers in single rows do not move much; sizes whose times spread by over a quarter
// count in the curve only, unless there are hardly others:
//   bandwidth   median over the (at most three) largest sizes of bytes / (seconds - latency); where a smaller
//               size was faster, firmly, by more than a twentieth and its spread, its rate instead. Where small sizes
//               are served by a cache, the largest size alone
//   latency     where the line through the (at most three) smallest sizes, by the median of its slopes but at
//               least 1 / bandwidth, meets no bytes; at least 0. The two are repeated until they agree
//   efficiency  what is left at each size, by least squares of relative errors over their spread among curves that
//               rise with size (isotonic regression); as measured, where such a curve misses the time of a size
//               by over a twentieth and its spread. Points whose absence changes no time by over 1 % are dropped
#pragma once

#include <utility>
#include <vector>

namespace memwall {

struct SizedTime {
  double bytes = 0, seconds = 0;
  double spread = 0;  // relative: half of what lies between low and high
};

struct TransferTimeModel {
  double latency = 0;                                 // seconds
  double bandwidth = 0;                               // bytes per second
  std::vector<std::pair<double, double>> efficiency;  // (bytes, share in (0, 1]), ascending; empty = 1
  double seconds(double bytes) const;
};

// `fastest_at_large`: sizes that a cache serves must not count as bandwidth. More than 64 sizes are thinned
// evenly. REQUIRES: at least 2 sizes, ascending, all figures positive.
TransferTimeModel fit_transfer_time(std::vector<SizedTime> times, bool fastest_at_large);

}  // namespace memwall
