// The arrays of an optimizer on the CPU, with random contents of which the steps that are taken can be checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "validate/bench/adam.h"
#include "validate/bench/page_buffer.h"
#include "validate/bench/thread_team.h"

namespace memwall {

class AdamState {
 public:
  // Room for `count` elements; pages lie nowhere before they are touched. Throws std::bad_alloc.
  explicit AdamState(std::size_t count);

  // What one step does for `count` elements.
  static double bytes_of(std::size_t count) { return static_cast<double>(kAdamBytesPerElement * count); }
  static double flops_of(std::size_t count) { return 12.0 * static_cast<double>(count); }
  // Of memory, all arrays together.
  static constexpr std::size_t kBytesPerElement = 4 * sizeof(float);

  // Pages that are touched from now on lie on this NUMA node, and others move there. False where the system refuses.
  bool bind(int node);

  // Fills the first `count` elements; each member of the team touches those that it will step. No step was taken then.
  // REQUIRES: 0 < count <= the room.
  void randomize(ThreadTeam& team, std::size_t count, std::uint64_t seed);
  // The next steps over these elements; seconds of all. Between two of them no thread waits for another.
  double step(ThreadTeam& team, unsigned steps = 1);
  // "", or how far parameters are from what a step in double precision makes of the same numbers, step by step.
  std::string fault() const;
  AdamArrays arrays() const { return {p_.as<float>(), m_.as<float>(), v_.as<float>(), g_.as<float>()}; }

 private:
  PageBuffer p_, m_, v_, g_;
  std::size_t room_, count_ = 0;
  std::uint64_t seed_ = 0, steps_ = 0;
  AdamSettings settings_;
};

}  // namespace memwall
