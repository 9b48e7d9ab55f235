// What other programs call a workload's settings.
#pragma once

#include <span>
#include <string_view>
#include <utility>

namespace memwall {

// "batch_size" -> "batch", whatever the case; "" where nobody is known to call a setting so. Names of Megatron-LM,
// torchtitan, DeepSpeed, Transformers and PyTorch, and what people write for them.
std::string_view setting_called(std::string_view other_name);

// All of them: the other name, and the setting.
std::span<const std::pair<std::string_view, std::string_view>> other_names();

}  // namespace memwall
