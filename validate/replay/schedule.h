// A schedule: a trace without a single time in it. It is what is executed on real hardware, which must
// find out by itself how long things take: no predicted duration can reach a replay.
//
// A schedule is a Trace whose durations, host gaps, costs, delays and constants are all zero; ops, order,
// streams, events, storages, uses, bytes and FLOPs are those of the rewritten trace that was simulated.
#pragma once

#include <filesystem>
#include <string>

#include "sim/trace.h"

namespace memwall {

struct ScheduleScale {
  double bytes = 1;  // of storages, copies and traffic; sizes stay at least 1 byte where they were not 0
  double flops = 1;
};

// The trace without times, its sizes multiplied. What cannot be executed is refused with a UsageError that
// names the op: collectives over several ranks, CUDA graphs are unrolled (their nodes become launches),
// places other than hbm, host and nvme.
Trace schedule_of(const Trace& trace, const ScheduleScale& scale = {});
// REQUIRES true of whatever is executed: every time in it is zero.
bool is_timeless(const Trace& trace);

// Text, one line per thing, described in docs/schedule_format.md. Same schedule, same bytes.
std::string schedule_text(const Trace& schedule);
// Throws InputError "FILE:LINE: found, expected" for whatever is not a sound schedule. `name` is for messages.
Trace parse_schedule(const std::string& text, const std::string& name);
void write_schedule(const Trace& schedule, const std::filesystem::path& path);
Trace read_schedule(const std::filesystem::path& path);  // not compressed

}  // namespace memwall
