// An execution: what happened when a schedule was run on real hardware.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "sim/trace/trace.h"
#include "validate/measurement/measurement.h"
#include "validate/replay/backend.h"
#include "validate/replay/step_contents.h"

namespace memwall {

struct PlacePeak {
  std::string place;  // "hbm", "host", "nvme"
  Bytes allocated = 0, reserved = 0;
};

struct Execution {
  std::string schedule;          // its name
  std::string schedule_hash;     // "fnv1a64:…" of its text
  Environment environment;       // of the back end, with "backend" and "date"
  std::vector<Duration> totals;  // start to end of everything, one per timed pass, in order
  std::size_t chosen = 0;        // the pass (of median total) whose times are given below
  std::vector<OpTimes> times;    // per op of the schedule; 0 is when the first call began
  std::vector<Duration> alone;   // per op: stand-alone time of its kernel or host work; 0 for all others
  std::vector<PlacePeak> peaks;  // as the executor's allocators and the driver counted them
  IntegrityCount integrity;      // of the checked pass; mismatches is 0, else there is no execution
};

struct ExecutionSettings {
  std::uint32_t passes = 5;  // timed ones, after one checked pass that also warms caches
  double seconds = 60;       // no further timed pass begins after this; one is always made
  Bytes capacity = 0;        // of device memory that may be reserved; 0 = all that the back end has
  std::function<void(const std::string&)> progress;  // told what begins now; may be empty
  StepContents contents{};  // of the schedule, as its file says; empty: what is read is what copies and ops brought
};

// One checked pass (see Backend::prepare), then timed ones. The allocator keeps its segments and what lives before the
// first op stays where it is; what of that a pass has freed is placed anew, untimed. Each host thread of the schedule
// that has ops is a thread. Then the stand-alone time of every distinct kernel and host work.
//
// Throws UsageError: does not fit the back end's memory (says what is missing where), needs something that
// it lacks. Throws std::runtime_error naming the op if the integrity check fails, or the hardware does.
// REQUIRES: check(schedule) and not_executable(schedule) are empty.
Execution execute(const Trace& schedule, Backend& backend, const ExecutionSettings& settings);

// Text: "memwall execution 1", the environment and totals as "# key: value" lines, then CSV, times in
// integer nanoseconds: op,host_start,host_end,start,end,alone, described in docs/schedule_format.md. Throws
// InputError "FILE:LINE: found, expected" for whatever is not an execution, UsageError if it cannot be written.
std::string execution_text(const Execution& execution);
Execution parse_execution(const std::string& text, const std::string& name);
void write_execution(const Execution& execution, const std::filesystem::path& path);
Execution read_execution(const std::filesystem::path& path);  // not compressed

// "fnv1a64:0123456789abcdef" of a text.
std::string schedule_hash(const std::string& schedule_text);

}  // namespace memwall
