// What a plan has to keep to.
#pragma once

#include "sim/units.h"

namespace memwall {

struct Budget {
  Bytes device = 0;  // that the step's storages may take at once, in blocks as the allocator holds them
};

}  // namespace memwall
