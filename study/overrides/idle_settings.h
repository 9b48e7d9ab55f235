// Overrides that an answer is the same without, found by asking again: for answers that are no simulated run of one
// step (study/overrides/override_check.h says more of these, and without a second simulation).
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace memwall {

// One sentence for each of `settings` without which `answer_to` says the same as `answer`, what it says to all of them.
// `what`: "the schedule". A setting that the others make no sense without is not spoken of.
std::vector<std::string> idle_settings(
    const std::vector<std::string>& settings, const std::string& answer, const std::string& what,
    const std::function<std::string(const std::vector<std::string>& settings)>& answer_to);

}  // namespace memwall
