// Names of process groups that say what their ranks have in common.
#pragma once

#include <string_view>

namespace memwall {

// Of the ranks that share each layer, as generators call their group.
inline constexpr std::string_view kTensorParallelGroup = "tensor parallel";

}  // namespace memwall
