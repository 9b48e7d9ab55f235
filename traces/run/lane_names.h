// What lanes are called, and which parts of an op stand in one: the same in exports, figures and the viewer.
#pragma once

#include <cstdint>
#include <string>

#include "traces/run/run.h"

namespace memwall {

// Has the op a call on its thread, or work on its stream, with a time?
inline bool has_call(const Op& op, const OpRecord& record) {
  return !op.placed && !op.graph_member && record.host_start != kNever && record.host_end != kNever;
}
inline bool has_work(const Op& op, const OpRecord& record) {
  return runs_on_device(op.kind) && record.start != kNever && record.end != kNever;
}

// "main", "main, rank 2": with the rank where the trace holds several.
std::string thread_lane_name(const Trace& trace, const HostThread& thread);

// Streams of one device do not name it.
bool has_several_devices(const Trace& trace);
// "stream 7 (compute)", with its rank or GPU where there are several.
std::string stream_lane_name(const Trace& trace, const Stream& stream, bool several_devices);

// "copy engine to host, GPU 1". `engine`: as sim/machine/machine.h numbers them; `last_device`: the highest device that has
// engines. REQUIRES: engine < kEngines.
std::string engine_lane_name(const Trace& trace, std::uint8_t engine, std::uint16_t device, std::uint16_t last_device);

// The rank whose streams run on the device, an index into Trace::rank_table; 0 where none does.
std::uint16_t rank_of_device(const Trace& trace, std::uint16_t device);

// "hbm to host". REQUIRES: from and to are tiers of the machine.
std::string pager_lane_name(const Machine& machine, std::uint16_t from, std::uint16_t to);

}  // namespace memwall
