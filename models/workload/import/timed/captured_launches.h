// How the kernels of a capture fill their device, each way kept once: a program launches millions of kernels in a few
// hundred ways.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <vector>

namespace memwall {

struct CapturedLaunch {
  double blocks_per_multiprocessor = 0;  // grid / multiprocessors
  double occupancy_percent = 0;          // as estimated by Kineto; 0 = unknown or below half a percent
  std::uint32_t threads_per_block = 0;
  std::uint32_t registers_per_thread = 0;
  std::uint32_t shared_memory = 0;
  auto operator<=>(const CapturedLaunch&) const = default;
};

// Number 0 is always the one of which nothing is known.
class CapturedLaunches {
 public:
  CapturedLaunches() { intern({}); }
  // REQUIRES: its numbers are finite.
  std::uint32_t intern(const CapturedLaunch& launch);
  const CapturedLaunch& operator[](std::uint32_t number) const { return launches_[number]; }
  std::size_t size() const { return launches_.size(); }

 private:
  std::map<CapturedLaunch, std::uint32_t> numbers_;
  std::vector<CapturedLaunch> launches_;
  std::uint32_t last_ = 0;  // neighbours are often alike
};

}  // namespace memwall
