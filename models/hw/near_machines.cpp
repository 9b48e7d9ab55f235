#include "models/hw/near_machines.h"

#include <algorithm>
#include <cstddef>

#include "sim/error.h"
#include "sim/lower_case.h"

namespace memwall {
namespace {

constexpr std::size_t kMostNear = 5;

std::vector<std::string> words_of(const std::string& name) {
  std::vector<std::string> words(1);
  for (const char c : in_lower_case(name)) {
    if (c == '-' || c == '_' || c == ' ')
      words.emplace_back();
    else
      words.back() += c;
  }
  std::erase(words, "");
  return words;
}

}  // namespace

std::vector<std::string> near_machines(const std::string& name, const std::vector<std::string>& known) {
  const std::vector<std::string> words = words_of(name);
  const auto shared = [&](const std::string& machine) {
    const std::vector<std::string> other = words_of(machine);
    return std::ranges::count_if(words, [&](const std::string& word) { return std::ranges::count(other, word) > 0; });
  };
  std::ptrdiff_t most = 1;  // a machine that has no word of it is only near by letters
  for (const std::string& machine : known) most = std::max(most, shared(machine));
  std::vector<std::string> near;
  if (const std::string nearest = nearest_name(name, known); !nearest.empty()) near.push_back(nearest);
  for (const std::string& machine : known)
    if (near.size() < kMostNear && shared(machine) == most && std::ranges::count(near, machine) == 0)
      near.push_back(machine);
  return near;
}

}  // namespace memwall
