// A run as a Perfetto trace (protobuf), for ui.perfetto.dev and the trace processor.
//
// Schema: the public protos of Perfetto, protos/perfetto/trace/ (trace_packet.proto,
// track_event/track_event.proto, track_descriptor.proto, counter_descriptor.proto,
// debug_annotation.proto, interned_data.proto), of which a handful of fields are written.
// Slices for calls, work on streams, copy engines and moves, counters for memory per tier and
// flow per link, flows for the waits that crossed lanes. Perfetto counts nanoseconds: times
// are cut to them.
#pragma once

#include <iosfwd>

#include "traces/run/run.h"

namespace memwall {

// Same run, same bytes. The caller looks after the stream's state, and opens it as binary.
void export_perfetto(const Run& run, std::ostream& out);

}  // namespace memwall
