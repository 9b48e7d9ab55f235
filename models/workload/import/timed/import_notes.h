// What the import of a timed capture counted and concluded, the latter as lines for people.
// Internal to the importers of timed captures.
#pragma once

#include <string>
#include <vector>

#include "models/workload/import/timed/capture_phases.h"
#include "models/workload/import/timed/captured_lifetimes.h"
#include "models/workload/import/timed/joined_capture.h"
#include "models/workload/import/timed/note_kind.h"
#include "models/workload/import/timed/timed_import.h"

namespace memwall {

// The name of the device on which the captured work ran, "" where the file does not say.
std::string device_name(const JoinedCapture& joined);

// Memory events of the file.
void count_memory(const TimedCapture& capture, ImportSummary& summary);

// What else the file holds.
void count_capture(const JoinedCapture& joined, ImportSummary& summary);

// What counts as a step where the file marks none.
void note_steps(const CapturePhases& phases, NoteList& notes);

NoteList import_notes(const JoinedCapture& joined, const CapturedLifetimes& lifetimes, const ImportSummary& summary, const ReplayConstants& constants);

}  // namespace memwall
