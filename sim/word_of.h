// The word for a value of an enumeration.
#pragma once

#include <cstddef>
#include <string_view>

namespace memwall {

// `words` in the order of the enumerators; "?" for a value that has none.
template <std::size_t N, class E>
std::string_view word_of(const std::string_view (&words)[N], E value) {
  const auto i = static_cast<std::size_t>(value);
  return i < N ? words[i] : std::string_view("?");
}

}  // namespace memwall
