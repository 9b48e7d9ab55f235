// A schedule: a trace without a single time in it. It is what is executed on real hardware, which must
// find out by itself how long things take: no predicted duration can reach a replay.
//
// A schedule is a Trace whose durations, host gaps, costs, delays and constants are all zero; ops, order,
// streams, events, storages, uses, bytes and FLOPs are those of the rewritten trace that was simulated.
//
// One kind of op is an exception, and says so: a collective of several ranks. How long the other GPUs take cannot be
// found out on one, so that a stand-in is executed: a kernel on the collective's stream that lasts Op::duration (whole
// nanoseconds, of the trace) and takes a share of the multiprocessors, Op::waves. Its group (Trace::groups) says of how
// many ranks the collective is, 0 where that is not known.
#pragma once

#include <filesystem>
#include <string>

#include "sim/trace/trace.h"
#include "validate/replay/step_contents.h"

namespace memwall {

struct ScheduleScale {
  double bytes = 1;  // of storages, copies and traffic; sizes stay at least 1 byte where they were not 0
  double flops = 1;
};

// The trace without times, its sizes multiplied. It says in `notes` what was changed so that it can be executed:
// CUDA graphs are unrolled (their nodes become launches), a transfer of several storages becomes one op for each,
// the side of a copy that the trace does not name gets a storage, bytes held before the window become one
// storage, host work of unknown bytes is left out. What cannot be executed is refused with a UsageError that
// names the op: collectives over several ranks of unknown duration, kernels of which neither FLOPs nor bytes are known,
// places other than hbm, host and nvme, and whatever else not_executable() finds. `collective_share`: of the
// multiprocessors, what a collective takes, 0 to 1. A collective's time is multiplied as its bytes are.
Trace schedule_of(const Trace& trace, const ScheduleScale& scale = {}, double collective_share = 0);
// REQUIRES true of whatever is executed: every time in it is zero, those of collectives aside.
bool is_timeless(const Trace& trace);
// "" if the trace is a schedule that can be executed; else a sentence that names the first op (or storage) that
// cannot be. Every form that execute() relies on is asked for here. REQUIRES: check(trace) is empty.
std::string not_executable(const Trace& trace);

// Text, one line per thing, described in docs/schedule_format.md. Same schedule, same bytes.
std::string schedule_text(const Trace& schedule, const StepContents& contents = {});
// Throws InputError "FILE:LINE: found, expected" for whatever is not a sound schedule. `name` is for messages;
// `contents` becomes what the text says of them, null: nobody wants to know.
Trace parse_schedule(const std::string& text, const std::string& name, StepContents* contents = nullptr);
void write_schedule(const Trace& schedule, const std::filesystem::path& path);
Trace read_schedule(const std::filesystem::path& path, StepContents* contents = nullptr);  // not compressed

}  // namespace memwall
