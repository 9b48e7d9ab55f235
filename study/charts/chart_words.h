// Titles of charts, and the order of their series.
#pragma once

#include <cctype>
#include <map>
#include <string>
#include <vector>

#include "study/charts/sweep_figure.h"

namespace memwall {

// Of words; an expression stays as it is.
inline std::string capitalized(std::string text) {
  if (!text.empty() && text.find_first_of("_.*/+-()<>=") == std::string::npos)
    text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

// Where names first stand.
class NamesInOrder {
 public:
  std::size_t of(const std::string& name) {
    const auto [at, is_new] = place_of_.try_emplace(name, names_.size());
    if (is_new) names_.push_back(name);
    return at->second;
  }
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::map<std::string, std::size_t> place_of_;
  std::vector<std::string> names_;
};

// The axes of a line chart: x, then those of its series.
inline std::vector<std::string> with_series(std::string x, const SweepFigure& figure) {
  std::vector<std::string> axes{std::move(x)};
  axes.insert(axes.end(), figure.series.begin(), figure.series.end());
  return axes;
}

}  // namespace memwall
