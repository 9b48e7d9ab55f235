// The most memory that this process has held so far. For tests of what a function needs beside its arguments.
#pragma once

#include <sys/resource.h>

#include "sim/trace/storage.h"

namespace memwall {

// A sanitizer keeps what was freed.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kFreedMemoryIsReused = false;
#else
inline constexpr bool kFreedMemoryIsReused = true;
#endif

inline Bytes most_resident() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return Bytes{usage.ru_maxrss} * 1024;
}

}  // namespace memwall
