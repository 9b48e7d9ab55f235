// Modules that differ in numbers alone, as one line of a table: "h.0.mlp" to "h.11.mlp" as "h.*.mlp".
#pragma once

#include <string>

namespace memwall {

// The path with every part that is a number, or ends in one behind '_' ("Block_3"), as '*'.
std::string without_numbers(const std::string& module);

}  // namespace memwall
