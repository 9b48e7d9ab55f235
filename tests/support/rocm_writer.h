// A small step on an MI300X as rocprofv3 writes it, in each form of its files. For tests of readers.
//
// Process 4711: a copy to the device, a product in the forward pass (emit_nvtx on ROCm: ranges of roctx), an event that
// the second stream waits for, a sum in the backward pass on that stream, launched by a call of HSA inside HIP's, a
// collective, a synchronization, an allocation of HSA inside hipMalloc and its release.
#pragma once

#include <string>

namespace memwall {

enum class RocpdForm {
  direct,   // rows hold start, end, process, thread, agent, queue and stream (ROCm 7.0)
  referred  // rows refer to rocpd_timestamp and rocpd_track
};

// The bytes of a rocpd database. `more` is executed behind it; tables end in kRocpdSet.
std::string rocpd_database(RocpdForm form = RocpdForm::direct, const std::string& more = "");
inline constexpr const char* kRocpdSet = "_0199a5c2_77f1_7bd0_9c52_6f01c2a1d3e4";

// Of --output-format json. `arguments`: calls have theirs, as newer files do.
std::string rocprof_json(bool arguments = true);

}  // namespace memwall
