#include "study/overrides/idle_settings.h"

#include <cstddef>

#include "sim/error.h"

namespace memwall {

std::vector<std::string> idle_settings(
    const std::vector<std::string>& settings, const std::string& answer, const std::string& what,
    const std::function<std::string(const std::vector<std::string>& settings)>& answer_to) {
  std::vector<std::string> sentences;
  for (std::size_t i = 0; i < settings.size(); ++i) {
    std::vector<std::string> others = settings;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    try {
      if (answer_to(others) == answer)
        sentences.push_back(settings[i] + " changes nothing: " + what + " is the same without it.");
    } catch (const UsageError&) {
    } catch (const InfeasibleError&) {  // without it there is no answer at all
    }
  }
  return sentences;
}

}  // namespace memwall
