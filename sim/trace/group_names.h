// Names of process groups that say what their ranks have in common.
#pragma once

#include <string_view>

namespace memwall {

// Of the ranks that share each layer, as generators call their group.
inline constexpr std::string_view kTensorParallelGroup = "tensor parallel";
// Of the ranks that hold the same share of the same layers. Every rank of a divided job has such a group, and all of
// them communicate at the same time. A policy's begin so ("data parallel: fsdp").
inline constexpr std::string_view kDataParallelGroup = "data parallel";

}  // namespace memwall
