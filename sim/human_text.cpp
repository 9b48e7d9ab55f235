#include "sim/human_text.h"

#include <span>

#include "sim/byte_units.h"

namespace memwall {

std::string human_time(Duration duration) { return human_time(to_seconds(duration)); }

std::string human_time(double seconds) {
  if (seconds == 0) return "0 s";
  return scaled_text(seconds, std::span(kTimeUnits).subspan(1), 4);
}

std::string human_bytes(Bytes bytes) { return scaled_text(static_cast<double>(bytes), kDecimalBytes, 4); }
std::string human_rate(double bytes_per_second) { return scaled_text(bytes_per_second, kDecimalBytes, 4) + "/s"; }

std::string counted_text(std::uint64_t number, std::string_view word, std::string_view plural) {
  std::string text = grouped_text(number).append(" ");
  if (number == 1) return text.append(word);
  return plural.empty() ? text.append(word).append("s") : text.append(plural);
}

}  // namespace memwall
