#include "tests/support/color_difference.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace memwall {
namespace {

using Three = std::array<double, 3>;
using Matrix = std::array<Three, 3>;

double linear(std::uint8_t value) {
  const double v = value / 255.0;
  return v <= 0.04045 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4);
}

Three linear(Color color) { return {linear(color.red), linear(color.green), linear(color.blue)}; }

Three times(const Matrix& matrix, const Three& v) {
  Three out{};
  for (std::size_t i = 0; i < 3; ++i) out[i] = matrix[i][0] * v[0] + matrix[i][1] * v[1] + matrix[i][2] * v[2];
  return out;
}

// sRGB's primaries, white D65.
LabColor lab_of_linear(const Three& rgb) {
  static constexpr Matrix kToXyz{{{0.4124564, 0.3575761, 0.1804375},
                                  {0.2126729, 0.7151522, 0.0721750},
                                  {0.0193339, 0.1191920, 0.9503041}}};
  const Three xyz = times(kToXyz, rgb);
  const auto f = [](double t) { return t > 216.0 / 24389 ? std::cbrt(t) : (24389.0 / 27 * t + 16) / 116; };
  const double x = f(xyz[0] / 0.95047), y = f(xyz[1]), z = f(xyz[2] / 1.08883);
  return {116 * y - 16, 500 * (x - y), 200 * (y - z)};
}

double degrees(double radians) { return radians * 180 / std::numbers::pi; }
double radians(double degrees) { return degrees * std::numbers::pi / 180; }
double seventh(double chroma) { return std::sqrt(std::pow(chroma, 7) / (std::pow(chroma, 7) + std::pow(25.0, 7))); }

double hue_of(double a, double b) {
  if (a == 0 && b == 0) return 0;
  const double hue = degrees(std::atan2(b, a));
  return hue < 0 ? hue + 360 : hue;
}

double mean_hue(double one, double other, bool grey) {
  if (grey) return one + other;
  if (std::abs(one - other) <= 180) return (one + other) / 2;
  return one + other < 360 ? (one + other + 360) / 2 : (one + other - 360) / 2;
}

}  // namespace

LabColor lab_of(Color color) { return lab_of_linear(linear(color)); }

// G. Sharma, W. Wu, E. N. Dalal, "The CIEDE2000 Color-Difference Formula", 2005.
double color_difference(const LabColor& one, const LabColor& other) {
  const double stretch = 1 + 0.5 * (1 - seventh((std::hypot(one.a, one.b) + std::hypot(other.a, other.b)) / 2));
  const double a1 = one.a * stretch, a2 = other.a * stretch;
  const double c1 = std::hypot(a1, one.b), c2 = std::hypot(a2, other.b);
  const double h1 = hue_of(a1, one.b), h2 = hue_of(a2, other.b);
  const bool grey = c1 * c2 == 0;
  double turn = grey ? 0 : h2 - h1;
  if (turn > 180) turn -= 360;
  if (turn < -180) turn += 360;
  const double dl = other.lightness - one.lightness, dc = c2 - c1;
  const double dh = 2 * std::sqrt(c1 * c2) * std::sin(radians(turn / 2));
  const double l = (one.lightness + other.lightness) / 2, c = (c1 + c2) / 2, h = mean_hue(h1, h2, grey);
  const double t = 1 - 0.17 * std::cos(radians(h - 30)) + 0.24 * std::cos(radians(2 * h)) +
                   0.32 * std::cos(radians(3 * h + 6)) - 0.20 * std::cos(radians(4 * h - 63));
  const double sl = 1 + 0.015 * (l - 50) * (l - 50) / std::sqrt(20 + (l - 50) * (l - 50));
  const double sc = 1 + 0.045 * c, sh = 1 + 0.015 * c * t;
  const double rotation = -std::sin(radians(60 * std::exp(-std::pow((h - 275) / 25, 2)))) * 2 * seventh(c);
  return std::sqrt(std::pow(dl / sl, 2) + std::pow(dc / sc, 2) + std::pow(dh / sh, 2) +
                   rotation * (dc / sc) * (dh / sh));
}

LabColor seen_with(ColorVision vision, Color color) {
  static constexpr Matrix kWithoutRed{{{0.152286, 1.052583, -0.204868},
                                       {0.114503, 0.786281, 0.099216},
                                       {-0.003882, -0.048116, 1.051998}}};
  static constexpr Matrix kWithoutGreen{{{0.367322, 0.860646, -0.227968},
                                         {0.280085, 0.672501, 0.047413},
                                         {-0.011820, 0.042940, 0.968881}}};
  if (vision == ColorVision::normal) return lab_of(color);
  Three seen = times(vision == ColorVision::without_red ? kWithoutRed : kWithoutGreen, linear(color));
  for (double& value : seen) value = std::clamp(value, 0.0, 1.0);
  return lab_of_linear(seen);
}

}  // namespace memwall
