// The part of a kernel's name that people read: of
// "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, ...>(int, ...)"
// that is "vectorized_elementwise_kernel".
#pragma once

#include <string>
#include <string_view>

namespace memwall::gui {

// Without return type, namespaces, template arguments and parameters. A name that is no C++ function ("aten::mm",
// "Memcpy HtoD (Pinned -> Device)", "layers.0 forward") stays as it is but for its namespaces; never empty unless
// `name` is.
std::string readable_name(std::string_view name);

// "optimizer_state" as people write it: "optimizer state".
std::string with_blanks(std::string_view word);

}  // namespace memwall::gui
