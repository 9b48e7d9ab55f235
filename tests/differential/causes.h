// Why an executed step may differ from the simulated one: at most five causes, each of which admits one difference and
// says how it is known.
#pragma once

#include <string>
#include <vector>

#include "tests/differential/step_comparison.h"

namespace memwall {

struct DifferenceCause {
  const char* name;
  const char* sentence;
  bool (*admits)(const Difference& difference);
  const char* occurs_in;  // a case in which it must occur: "gpt2-full"
};

const std::vector<DifferenceCause>& difference_causes();

// The first that admits it; null: nothing explains it.
const DifferenceCause* cause_of(const Difference& difference);

}  // namespace memwall
