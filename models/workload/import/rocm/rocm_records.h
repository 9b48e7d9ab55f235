// A process of a ROCm profile as the records that libmemwall_inject would have written of the same program.
//
// Calls of HIP are the runtime's, calls of HSA inside them the driver's; those outside of HIP's (threads of the runtime
// itself) are left out. Ranges of roctx stand for NVTX's, and calls of RCCL are ranges, too. Events and streams are
// told by the arguments of the calls where the file has them: a wait for an event is one for what its last record was
// behind. Internal to the importer of ROCm's profiles.
#pragma once

#include <cstdint>
#include <optional>

#include "models/workload/import/cupti/cupti_records.h"
#include "models/workload/import/rocm/rocm_profile.h"

namespace memwall {

// Of one process: captured_processes.h says which. Throws InputError where the profile has neither device work nor
// calls, and as choose_process does.
CuptiRecords rocm_records(const RocmProfile& profile, std::optional<std::uint32_t> rank = {});

}  // namespace memwall
