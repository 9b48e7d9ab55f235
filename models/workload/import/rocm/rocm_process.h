// Which process of a ROCm profile is imported.
// Internal to the importer of ROCm's profiles.
#pragma once

#include <cstdint>
#include <optional>

#include "models/workload/import/rocm/rocm_profile.h"
#include "models/workload/import/timed/captured_processes.h"

namespace memwall {

// As choose_process, by the device work of each, or by calls where none has any; the index is that of
// RocmProfile::processes. REQUIRES: the profile has device work or calls.
ProcessChoice choose_rocm_process(const RocmProfile& profile, std::optional<std::uint32_t> rank);

}  // namespace memwall
