// Random sequences of calls to the caching allocator, with the settings, the device and the start state they run on.
//
// An operation names its victim by a number that is taken modulo what is there, so that any part of a sequence is a
// sequence again: a failing one can be shortened.
#pragma once

#include <string>

#include "sim/memory/pytorch_allocator.h"

namespace memwall {

struct AllocatorOperation {
  enum class Kind : std::uint8_t {
    allocate,
    free,
    record_stream,
    request_free,
    complete_free,
    release_cached,
    begin_pool,
    end_pool,
    release_pool,
    begin_capture,
    end_capture,
    set_capacity
  };
  Kind kind = Kind::allocate;
  Bytes bytes = 0;
  std::uint32_t pick = 0;
  std::uint16_t stream = 0;
};

struct AllocatorScenario {
  // Where segments lie: invented by the allocator, far apart in random order, or close together and used again.
  enum class Addresses : std::uint8_t { invented, scattered, dense };
  std::uint64_t seed = 0;  // also of the device: addresses, refusals, when an event completes
  AllocatorSettings settings;
  Bytes capacity = 0, device_total = 0;
  Addresses addresses = Addresses::invented;
  bool device_refuses = false;  // now and then, although there is room; not with invented addresses
  bool events = false;          // else nobody says when streams have finished
  std::vector<SegmentState> start;
  std::vector<AllocatorOperation> operations;
};

// In percent of the scenarios.
struct ScenarioProfile {
  int expandable = 30, max_split = 30, divisions = 25, large_segment = 15, fraction = 35, garbage_collection = 60;
  int restored = 15, events = 60, own_addresses = 60, refusing = 20, tight = 60;
  int cross_stream = 50, private_pools = 30, captures = 25, releases = 60, halves = 30;
  int vast = 3;      // sizes and capacity far beyond any device
  int reserve = 30;  // small expandable segments
  int operations = 300;
};

AllocatorScenario random_scenario(std::uint64_t seed, const ScenarioProfile& profile = {});

// Settings, device and operations, one a line.
std::string describe(const AllocatorScenario& scenario);

}  // namespace memwall
