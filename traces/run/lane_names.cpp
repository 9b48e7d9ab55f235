#include "traces/run/lane_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace memwall {
namespace {

// As sim/machine/machine.h numbers the engines.
constexpr std::string_view kEngineNames[kEngines] = {"copy engine to device", "copy engine to host",
                                                     "copy engine to peer",   "storage reads",
                                                     "storage writes",        "copies within the device"};

// Whose lane it is: ", rank 2" by its number in the job where the trace holds several; they have a GPU each.
std::string owner(const Trace& trace, std::uint16_t rank) {
  // A rank that the table lacks is left to the reader of the file, which refuses it.
  return rank >= trace.rank_table.size() ? "" : fmt::format(", rank {}", trace.rank_table[rank].number);
}

}  // namespace

std::string thread_lane_name(const Trace& trace, const HostThread& thread) {
  return thread.name + owner(trace, thread.rank);
}

bool has_several_devices(const Trace& trace) {
  return std::any_of(trace.streams.begin(), trace.streams.end(),
                     [&](const Stream& s) { return s.device != trace.streams.front().device; });
}

std::string stream_lane_name(const Trace& trace, const Stream& stream, bool several_devices) {
  std::string name = stream.name.find("stream") == std::string::npos ? "stream " + stream.name : stream.name;
  name += fmt::format(" ({})", to_string(stream.role));
  if (!trace.rank_table.empty()) return name + owner(trace, stream.rank);
  if (several_devices) name += fmt::format(", GPU {}", stream.device);
  return name;
}

std::string engine_lane_name(const Trace& trace, std::uint8_t engine, std::uint16_t device, std::uint16_t last_device) {
  std::string name(kEngineNames[engine]);
  if (!trace.rank_table.empty()) return name + owner(trace, rank_of_device(trace, device));
  if (last_device > 0) name += fmt::format(", GPU {}", device);
  return name;
}

std::uint16_t rank_of_device(const Trace& trace, std::uint16_t device) {
  std::uint16_t rank = 0;
  for (const Stream& stream : trace.streams)
    if (stream.device == device) rank = stream.rank;
  return rank;
}

std::string pager_lane_name(const Machine& machine, std::uint16_t from, std::uint16_t to) {
  return machine.tiers[from].name + " to " + machine.tiers[to].name;
}

}  // namespace memwall
