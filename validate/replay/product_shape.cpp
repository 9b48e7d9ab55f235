#include "validate/replay/product_shape.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

namespace memwall {
namespace {

// m of output m^3 - bytes m + input flops = 0 between two places where the left side has different signs.
// `low` is where it is positive.
double root_between(double positive, double negative, double output, double bytes, double input_flops) {
  for (int i = 0; i < 200; ++i) {
    const double middle = (positive + negative) / 2;
    const double value = output * middle * middle * middle - bytes * middle + input_flops;
    (value > 0 ? positive : negative) = middle;
  }
  return negative;
}

std::int64_t rounded(double dimension) {
  const double steps = std::max(1.0, std::round(dimension / static_cast<double>(kProductStep)));
  return static_cast<std::int64_t>(std::min(steps, 1e9)) * kProductStep;
}

// The unrounded m = n.
double side_of(double flops, double bytes, double input, double output) {
  const double cube = std::cbrt(flops / 2);
  const double lowest = std::sqrt(bytes / (3 * output));  // where the left side is least
  if (lowest <= 0 || output * std::pow(lowest, 3) - bytes * lowest + input * flops > 0) return cube;
  const double deep = root_between(0, lowest, output, bytes, input * flops);
  const double flat = root_between(std::sqrt(bytes / output), lowest, output, bytes, input * flops);
  // How far from a cube: k / m = flops / 2 m^3.
  const auto elongation = [&](double m) { return std::abs(std::log(flops / 2) - 3 * std::log(m)); };
  const auto possible = [&](double m) { return m >= 1 && flops / (2 * m * m) >= 1; };
  if (!possible(flat) && !possible(deep)) return cube;
  if (!possible(deep)) return flat;
  if (!possible(flat)) return deep;
  return elongation(deep) < elongation(flat) ? deep : flat;
}

std::int64_t halved(std::int64_t dimension) {
  return std::max(kProductStep, (dimension / 2 + kProductStep - 1) / kProductStep * kProductStep);
}

}  // namespace

double ProductShape::flops() const {
  return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) * static_cast<double>(repeat);
}

double ProductShape::bytes(std::size_t input_bytes, std::size_t output_bytes) const {
  const double inputs = static_cast<double>(m + n) * static_cast<double>(k) * static_cast<double>(input_bytes);
  const double output = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(output_bytes);
  return (inputs + output) * static_cast<double>(repeat);
}

ProductShape product_shape(double flops, double bytes, std::size_t input_bytes, std::size_t output_bytes) {
  assert(flops > 0 && std::isfinite(flops) && bytes >= 0 && std::isfinite(bytes));
  const double side = side_of(flops, bytes, static_cast<double>(input_bytes), static_cast<double>(output_bytes));
  ProductShape shape;
  shape.m = shape.n = rounded(side);
  // k makes up for what the rounding of m and n did to the FLOPs.
  shape.k = rounded(flops / (2 * static_cast<double>(shape.m) * static_cast<double>(shape.n)));
  return shape;
}

ProductShape split_to_fit(ProductShape shape, std::size_t input_bytes, std::size_t output_bytes,
                          std::size_t largest_input, std::size_t largest_output) {
  const auto too_large = [](std::int64_t rows, std::int64_t columns, std::size_t element, std::size_t largest) {
    return static_cast<double>(rows) * static_cast<double>(columns) * static_cast<double>(element) >
           static_cast<double>(largest);
  };
  const auto halve = [&shape](std::int64_t& dimension) {
    if (dimension <= kProductStep) return false;
    dimension = halved(dimension);
    shape.repeat *= 2;
    return true;
  };
  while (too_large(shape.m, shape.n, output_bytes, largest_output))
    if (!halve(shape.m >= shape.n ? shape.m : shape.n)) break;
  while (too_large(std::max(shape.m, shape.n), shape.k, input_bytes, largest_input)) {
    std::int64_t& wider = shape.m >= shape.n ? shape.m : shape.n;
    if (!halve(shape.k >= wider ? shape.k : wider)) break;
  }
  return shape;
}

}  // namespace memwall
