// What the Kineto importer concluded, as lines for people.
// Internal to the Kineto importer.
#pragma once

#include <string>
#include <vector>

#include "models/workload/import/kineto_import.h"
#include "models/workload/import/kineto_join.h"
#include "models/workload/import/kineto_memory.h"

namespace memwall {

// The name of the device on which the captured work ran, "" where the file does not say.
std::string device_name(const JoinedCapture& joined);

std::vector<std::string> import_notes(const JoinedCapture& joined, const CapturedLifetimes& lifetimes,
                                      const ImportSummary& summary, const ReplayConstants& constants);

}  // namespace memwall
