// Does this run of the tests ask for all cases of those that take long? Every run has fewer of them; MEMWALL_LONG=1,
// as .ci/long sets it, asks for all.
#pragma once

#include <cstddef>
#include <cstdlib>

namespace memwall {

inline bool is_long_run() { return std::getenv("MEMWALL_LONG") != nullptr; }

// So many cases, or all of them in a long run.
inline std::size_t cases(std::size_t in_every_run, std::size_t all) { return is_long_run() ? all : in_every_run; }

}  // namespace memwall
