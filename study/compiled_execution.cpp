#include "study/compiled_execution.h"

#include <algorithm>

#include "sim/error.h"

namespace memwall {

void require_compiled(const Trace& trace) {
  const auto is_async = [](const RecipeItem& item) {
    return item.what == "layout" && item.setting.find("async_tensor_parallel=true") != std::string::npos;
  };
  const auto is_eager = [](const RecipeItem& item) { return item.what == "execution" && item.value == "eager"; };
  if (std::ranges::any_of(trace.recipe, is_async) && std::ranges::any_of(trace.recipe, is_eager))
    throw UsageError(
        "async_tensor_parallel: torchtitan refuses it without torch.compile, whose pass makes the pieces; expected "
        "--policy compile:modules=layers.* beside it, or async_tensor_parallel=false.");
}

}  // namespace memwall
