// Sizes as multiples of a quantum. REQUIRES: value >= 0, quantum > 0; the sum of both fits into Bytes.
#pragma once

#include "sim/memory/allocator.h"

namespace memwall {

constexpr Bytes round_up(Bytes value, Bytes quantum) { return (value + quantum - 1) / quantum * quantum; }
constexpr Bytes round_down(Bytes value, Bytes quantum) { return value / quantum * quantum; }

}  // namespace memwall
