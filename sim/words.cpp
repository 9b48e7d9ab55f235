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

std::string span_words(double seconds) {
  struct Unit {
    double seconds;
    const char* name;
  };
  static constexpr Unit kUnits[] = {{365.25 * 86400, "years"}, {86400, "days"}, {3600, "h"}, {60, "min"}};
  char text[48];
  for (const Unit& unit : kUnits) {
    const double count = seconds / unit.seconds;
    if (count < 2) continue;
    std::snprintf(text, sizeof text, count < 9.95 ? "%.1f %s" : "%.0f %s", count, unit.name);
    return text;
  }
  std::snprintf(text, sizeof text, seconds < 9.95 ? "%.2g s" : "%.0f s", seconds);
  return text;
}

std::string enumerated(const std::vector<std::string>& parts) {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i)
    text += (i == 0 ? "" : i + 1 == parts.size() ? " and " : ", ") + parts[i];
  return text;
}

}  // namespace memwall
