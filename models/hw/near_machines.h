// Which machines are meant by a name that none has: "h100", "a100-80gb", "h100-sxm-80g".
#pragma once

#include <string>
#include <vector>

namespace memwall {

// The nearest first, at most five of `known`: the nearest by its letters (nearest_name), then those that have most of
// its words ("a100" and "80gb" of "A100-80GB", whatever the case, with "-", "_" or blanks between them), in the order
// of `known`. None where nothing is near.
std::vector<std::string> near_machines(const std::string& name, const std::vector<std::string>& known);

}  // namespace memwall
