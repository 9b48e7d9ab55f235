// Copies of one direction: a queue per path, first in first out; queues share the links' rate evenly.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/units.h"

namespace memwall {

class CopyQueue {
 public:
  struct Path {
    double rate = 0;  // bytes per second
    Duration latency{};
  };
  // `total`: bytes per second of all paths together.
  CopyQueue(std::vector<Path> paths, double total);

  // Of copies issued so far none may begin before `ready`. Returns the copy's number.
  std::size_t issue(std::uint8_t path, Bytes bytes, Time ready);
  // When the copy is done. No copy that is issued later may be ready before that.
  Time done(std::size_t copy);
  // When the path has nothing to do, unless more is issued. Fixes what runs until then.
  Time idle(std::uint8_t path);

 private:
  struct Copy {
    Time ready{}, done = kNever;
    double left = 0;  // bytes, and latency as bytes of its path
    std::uint8_t path = 0;
  };
  struct Lane {
    Path path;
    std::vector<std::size_t> copies;
    std::size_t next = 0;  // the first that is not done
    double rate = 0;
  };
  bool step();
  void share(const std::vector<bool>& busy);

  std::vector<Lane> lanes_;
  const double total_;
  Time now_{};
  std::vector<Copy> copies_;
};

}  // namespace memwall
