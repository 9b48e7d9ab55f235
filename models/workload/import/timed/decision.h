// One thing that an importer concluded: a join, a default, an inference, something skipped.
#pragma once

#include <cstdint>
#include <string>

namespace memwall {

struct Decision {
  std::string subject;                // "operators joined by name"; short, the same in every file
  std::string sentence;               // what was decided, by which rule, and what it means for the trace
  std::uint64_t covered = 0, of = 0;  // how many of how many; 0 of 0: there is nothing to count
};

}  // namespace memwall
