#include "sim/words.h"

#include <cmath>
#include <cstdio>

namespace memwall {

std::string share_words(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*f %%", std::abs(share) < 0.1 ? 1 : 0, share * 100);
  return text;
}

std::string changed_words(const std::string& now, const std::string& before, double now_value, double before_value) {
  if (now_value == before_value || now == before) return now + ", as before";
  std::string text = now + " instead of " + before;
  if (before_value <= 0) return text;
  const double change = now_value / before_value - 1;
  return text + " (" + (change > 0 ? "+" : "") + share_words(change) + ")";
}

std::string enumerated(const std::vector<std::string>& parts) {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i)
    text += (i == 0 ? "" : i + 1 == parts.size() ? " and " : ", ") + parts[i];
  return text;
}

}  // namespace memwall
