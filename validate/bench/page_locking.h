// Pages that the operating system keeps in memory, as a driver has it do for page-locked memory.
#pragma once

#include <cstddef>

namespace memwall {

inline constexpr std::size_t kLockedPage = 4096;

// May this process lock `bytes` more? Tries it.
bool can_lock(std::size_t bytes);
// Seconds of one mmap of new pages and of mlock, or, not `locked`, of a write to each page: after either all are
// there. They are given back, which is not timed. Throws NotApplicable where there are no such pages.
double seconds_of_allocation(std::size_t bytes, bool locked);

}  // namespace memwall
