// How different two colours look: CIEDE2000. About 1 is just seen side by side; from about 10 on two colours are told
// apart at a glance.
#pragma once

#include <array>

#include "traces/figure/figure.h"

namespace memwall {

struct LabColor {
  double lightness = 0, a = 0, b = 0;
};
LabColor lab_of(Color color);
double color_difference(const LabColor& one, const LabColor& other);
inline double color_difference(Color one, Color other) { return color_difference(lab_of(one), lab_of(other)); }

enum class ColorVision : std::uint8_t { normal, without_red, without_green };
// As people see it who lack the cones for red or for green (Machado, Oliveira, Fernandes, 2009, severity 1).
LabColor seen_with(ColorVision vision, Color color);

}  // namespace memwall
