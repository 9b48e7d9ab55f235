#include "sim/trace/trace.h"

#include <algorithm>

namespace memwall {

StringTable::StringTable(const StringTable& other) {
  for (const std::string* text : other.strings_) intern(*text);
}

StringTable& StringTable::operator=(const StringTable& other) {
  if (this != &other) *this = StringTable(other);
  return *this;
}

StringId StringTable::intern(std::string_view text) {
  const auto [entry, is_new] = ids_.try_emplace(std::string(text), static_cast<StringId>(strings_.size()));
  if (is_new) strings_.push_back(&entry->first);
  return entry->second;
}

std::uint8_t Trace::place(std::string_view place_name) {
  const auto found = std::find(places.begin(), places.end(), place_name);
  if (found == places.end()) {
    places.emplace_back(place_name);
    return static_cast<std::uint8_t>(places.size() - 1);
  }
  return static_cast<std::uint8_t>(found - places.begin());
}

}  // namespace memwall
