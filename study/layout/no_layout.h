// Why no layout divides a job: which of the settings that are said leaves none. Internal to study/layout.
#pragma once

#include <string>

#include "study/layout/layout_search.h"

namespace memwall {

// A sentence: the settings without each of which alone there would be layouts, with how many; else those that leave
// none together; else that the numbers have no common divisors.
// REQUIRES: layout_candidates(request) has neither jobs nor refusals.
std::string why_no_layout(const LayoutRequest& request);

}  // namespace memwall
