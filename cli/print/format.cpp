#include "cli/print/format.h"

#include "sim/byte_units.h"

namespace memwall {

std::string human_time(Duration duration) { return human_time(to_seconds(duration)); }

std::string human_time(double seconds) {
  if (seconds == 0) return "0 s";
  return scaled_text(seconds, std::span(kTimeUnits).subspan(1), 4);
}

std::string human_bytes(Bytes bytes) { return scaled_text(static_cast<double>(bytes), kDecimalBytes, 4); }
std::string human_rate(double bytes_per_second) { return scaled_text(bytes_per_second, kDecimalBytes, 4) + "/s"; }

}  // namespace memwall
