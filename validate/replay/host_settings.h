// What the host back end may be asked to be, and how it says what it is.
#pragma once

#include "validate/replay/host_backend.h"

namespace memwall {

// Throws UsageError: see make_host_backend.
void check_host_settings(const HostBackendSettings& settings);
// Throws UsageError for a schedule that would keep a computer busy for hours: one made for a GPU and not scaled down,
// or damaged.
void refuse_endless(const Trace& schedule);
// The stated rates, the memory, the cores; "gpu.*" as of a GPU with one multiprocessor.
Environment describe(const HostBackendSettings& settings);

}  // namespace memwall
