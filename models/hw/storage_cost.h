// How fast a storage device can be, asked in blocks: no faster than what is under way over the time that one block
// takes, nor than blocks it serves per second.
#pragma once

#include "sim/machine/machine.h"

namespace memwall {

// Infinite where nothing is known of the requests.
BytesPerSecond request_bandwidth(const StorageRequests& requests);

}  // namespace memwall
