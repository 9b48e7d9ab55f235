// The text of a step that is generated: a workload's name, or its file, and settings behind it:
// "gpt3-175b:tensor=8,model.layers=4".
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace memwall {

// "tensor", "layers": in the order of the text, without the group that some are written with.
std::vector<std::string> settings_said(const std::string& step);

// The same step without these settings, whether a group stands before them or not: "gpt3-175b:tensor=8".
std::string without_settings(const std::string& step, std::span<const std::string_view> names);

}  // namespace memwall
