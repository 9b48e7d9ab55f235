// A step's profile as one JSON document, for planners that are programs of their own. PROFILE.md describes it.
#pragma once

#include <string>

#include "policies/profile/step_profile.h"

namespace memwall {

// Same profile, same bytes. `budget`: of device memory.
std::string profile_document(const StepProfile& profile, Bytes budget);

}  // namespace memwall
