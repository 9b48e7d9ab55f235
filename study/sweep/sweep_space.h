// Which values of a study's axes stand together: its points.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "study/sweep/axis.h"

namespace memwall {

// A value per axis; "" where the axis does not apply (its condition does not hold).
using PointValues = std::vector<std::string>;

enum class Sampling : std::uint8_t { grid, random, latin };

struct SweepSpace {
  std::vector<Axis> axes;
  // Axes that go together, value by value, by name: of equal lengths. Each axis in one of them at most.
  std::vector<std::vector<std::string>> zips{};
  Sampling sampling = Sampling::grid;
  std::size_t samples = 0;  // of random and latin
  std::uint64_t seed = 1;
};

// Do both axes stand in one zip?
bool are_zipped(const std::vector<std::vector<std::string>>& zips, const std::string& one, const std::string& other);

inline constexpr std::size_t kMostPoints = 10'000'000;

// A grid has all combinations, the last axis fastest. Samples draw each axis by itself (or each zip): of a range any
// number, of a list any value; a Latin hypercube has one sample in each of equal parts of every axis. The same seed
// draws the same points. Points that agree in every value that applies stand once.
// Throws UsageError: a name twice or unknown in a zip or condition, zipped lengths that differ, more than kMostPoints.
std::vector<PointValues> points_of(const SweepSpace& space);

// "random:200", "latin:50:7" (with a seed). Throws UsageError.
void set_sampling(const std::string& text, SweepSpace& space);

}  // namespace memwall
