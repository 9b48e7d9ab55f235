#include "sim/trace/trace.h"

#include <algorithm>

namespace memwall {

std::uint8_t Trace::place(std::string_view place_name) {
  const auto found = std::find(places.begin(), places.end(), place_name);
  if (found == places.end()) {
    places.emplace_back(place_name);
    return static_cast<std::uint8_t>(places.size() - 1);
  }
  return static_cast<std::uint8_t>(found - places.begin());
}

}  // namespace memwall
