// The complete step that a profile is grafted onto: a capture, a trace or a network's name, priced for the profile's
// machine, and at the profile's batch where that is another. Internal to study/.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sim/machine/machine.h"
#include "sim/machine/pricer.h"
#include "sim/trace/trace.h"
#include "study/watch.h"

namespace memwall {

struct CompleteStep {
  std::string name;  // what was given; of a network with the settings that were concluded
  Trace trace;
  std::vector<std::filesystem::path> files;
};

// `onto`: what load_workload takes. A network's name without a precision is meant in the profile's. Throws UsageError
// and InputError.
CompleteStep load_complete_step(const std::string& onto, const Trace& profile, const Machine& machine,
                                Watch* watch = nullptr);

// The same program at `ratio` times its samples per step: a network is generated anew, a capture is changed as
// --policy batch:N changes it. Throws UsageError where that is no whole number of samples, or where the capture does
// not say how many it has.
CompleteStep at_other_batch(const CompleteStep& step, double ratio, const Machine& machine, const Pricer& pricer,
                            Watch* watch = nullptr);

}  // namespace memwall
