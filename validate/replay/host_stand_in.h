// What the host back end does in place of a collective.
#pragma once

#include "validate/replay/backend.h"

namespace memwall {

// Takes its share of the calling thread's core for as long as it is told to, in turns of 100 us, and sleeps in between.
void stand_in(const CollectiveWork& work);

}  // namespace memwall
