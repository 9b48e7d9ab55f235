#include "sim/engine/write_cache.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace memwall {
namespace {
// Rates that differ by less than this share are rounding.
constexpr double kSlack = 1e-9;
}  // namespace

WriteCache::WriteCache(double bytes, double emptied_at, double held)
    : bytes_(bytes), emptied_at_(emptied_at), held_(std::clamp(held, 0.0, bytes)) {
  assert(bytes >= 0 && emptied_at > 0);
}

void WriteCache::advance(Time now) {
  assert(now >= updated_);
  if (full_) time_full_ += now - updated_;
  held_ = std::clamp(held_ + (inflow_ - emptied_at_) * to_seconds(now - updated_), 0.0, bytes_);
  updated_ = now;
}

void WriteCache::set_inflow(Time now, double bytes_per_second) {
  advance(now);
  inflow_ = bytes_per_second;
  if (full_ && inflow_ >= emptied_at_ * (1 - kSlack)) {
    held_ = bytes_;
    return;
  }
  full_ = false;
  full_at_ = kNever;
  if (inflow_ <= emptied_at_ * (1 + kSlack)) return;
  const double picoseconds = std::ceil((bytes_ - held_) / (inflow_ - emptied_at_) * 1e12);
  if (picoseconds < static_cast<double>((kLongestTime - now).count()))
    full_at_ = now + Duration(static_cast<std::int64_t>(picoseconds));
}

void WriteCache::fill(Time now) {
  assert(now == full_at_);
  advance(now);
  held_ = bytes_;
  full_ = true;
  full_at_ = kNever;
}

}  // namespace memwall
