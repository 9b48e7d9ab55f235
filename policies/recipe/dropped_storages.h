// A trace without storages that nothing in it touches any more.
#pragma once

#include <set>

#include "sim/trace/trace.h"

namespace memwall {

// REQUIRES: no op uses, allocates or frees a storage of `dropped`.
Trace without_storages(Trace trace, const std::set<StorageId>& dropped);

}  // namespace memwall
