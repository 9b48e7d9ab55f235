// What results depend on as far as it is no matter of a back end: date, CPU, memory, kernel, compiler, and the
// file system that holds the scratch folder. Never the name of a host, a user or a folder.
#pragma once

#include <filesystem>

#include "validate/measurement/measurement.h"

namespace memwall {

// Throws nothing; what cannot be found out is left out.
Environment computer_environment(const std::filesystem::path& scratch);
// Those of `more` whose keys are not there yet.
void append_missing(Environment& environment, const Environment& more);

}  // namespace memwall
