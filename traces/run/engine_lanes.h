// Which copy engine serves an op. Internal to traces/run.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "traces/run/run_index.h"

namespace memwall {

// The engine of copies between two places of a trace, and its lane. Copies what it needs of both.
class EngineLanes {
 public:
  static constexpr std::uint8_t kNoEngine = 255;

  EngineLanes(const Trace& trace, const Machine& machine);
  // kNoEngine: not a copy, or no route of the machine. REQUIRES: the op's places and stream are the trace's.
  std::uint8_t engine_of(const Op& op) const;
  std::uint16_t device_of(const Op& op) const { return devices_[op.stream]; }
  void set_lane(std::uint8_t engine, std::uint16_t device, std::uint8_t lane) { lanes_[{engine, device}] = lane; }
  // kNoLane: none was set.
  std::uint8_t lane_of(const Op& op) const;

 private:
  std::size_t places_ = 0;
  std::vector<std::uint8_t> engines_;   // by from, to, pageable
  std::vector<std::uint16_t> devices_;  // by stream
  std::map<std::pair<std::uint8_t, std::uint16_t>, std::uint8_t> lanes_;
};

// The lanes of the engines that served work of the run, by engine and device, where `before` lanes stand before them.
std::vector<RunLane> engine_lanes(const Run& run, std::size_t before);

}  // namespace memwall
