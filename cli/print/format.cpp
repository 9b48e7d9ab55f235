#include "cli/print/format.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace memwall {
namespace {

struct Scale {
  double factor;
  const char* unit;
};

// Four significant figures at most, trailing zeros kept so that columns line up.
std::string scaled_text(double value, const Scale* scales, std::size_t count) {
  std::size_t i = 0;
  while (i + 1 < count && std::abs(value) >= scales[i + 1].factor * 0.99995) ++i;
  const double shown = value / scales[i].factor;
  const double size = std::abs(shown);
  const int decimals = scales[i].factor == scales[0].factor && std::floor(shown) == shown ? 0
                       : size >= 1000                                                     ? 0
                       : size >= 100                                                      ? 1
                       : size >= 10                                                       ? 2
                                                                                          : 3;
  return fmt::format("{:.{}f} {}", shown, decimals, scales[i].unit);
}

}  // namespace

std::string human_time(Duration duration) {
  if (duration == Duration{}) return "0 s";
  static constexpr std::array scales{Scale{1e-9, "ns"}, Scale{1e-6, "us"}, Scale{1e-3, "ms"}, Scale{1, "s"}};
  return scaled_text(to_seconds(duration), scales.data(), scales.size());
}

std::string human_bytes(Bytes bytes) {
  static constexpr std::array scales{Scale{1, "B"},    Scale{1e3, "kB"},  Scale{1e6, "MB"},
                                     Scale{1e9, "GB"}, Scale{1e12, "TB"}, Scale{1e15, "PB"}};
  return scaled_text(static_cast<double>(bytes), scales.data(), scales.size());
}

std::string human_rate(double bytes_per_second) {
  static constexpr std::array scales{Scale{1, "B/s"}, Scale{1e3, "kB/s"}, Scale{1e6, "MB/s"}, Scale{1e9, "GB/s"},
                                     Scale{1e12, "TB/s"}};
  return scaled_text(bytes_per_second, scales.data(), scales.size());
}

std::string human_percent(double share) { return fmt::format("{:.1f} %", share * 100); }

std::string human_count(std::uint64_t count) {
  std::string digits = std::to_string(count);
  for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, ",");
  return digits;
}

std::string plain_number(double number) { return fmt::format("{}", number); }

}  // namespace memwall
