// A sweep as a picture looks at it: which points, by which names, and in which units.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "study/charts/axis_words.h"
#include "study/charts/sweep_figure.h"

namespace memwall {

// Refers to what it is made of, which outlives it.
class ChartedSweep {
 public:
  // REQUIRES: `result` is that of `request`.
  ChartedSweep(const SweepFigure& figure, const SweepRequest& request, const SweepResult& result);

  const SweepResult& result() const { return result_; }
  const Axis& axis(const std::string& name) const;
  bool is_axis(const std::string& name) const;
  bool is_numeric_axis(const std::string& name) const { return axes_.at(name).numbers.has_value(); }
  // The points at which the fixed axes have their values: indices.
  const std::vector<std::size_t>& points() const { return points_; }

  const std::string& typed(const SweepPoint& point, const std::string& axis) const;  // "" = does not apply
  std::string shown(const std::string& axis, const std::string& typed) const;        // "-" = does not apply
  // Of all values of an axis, in their order.
  std::vector<std::string> shown_values(const std::string& axis) const;
  // The index of a point's value among them; nothing where the axis does not apply.
  std::optional<std::size_t> place(const SweepPoint& point, const std::string& axis) const;
  // "checkpoint, batch 8": values of those axes that apply; of numbers with the axis's name.
  std::string name_of(const SweepPoint& point, const std::vector<std::string>& axes) const;
  std::vector<std::string> varied_axes() const;
  const std::vector<std::vector<std::string>>& zips() const { return request_.space.zips; }

  // Of a field, an axis or the objective; nothing where it did not run, or is not known, or is not finite.
  std::optional<double> number(const SweepPoint& point, const std::string& name) const;
  NumberAxis number_axis(const std::string& name, bool is_logarithmic) const;
  bool is_more_better(const std::string& name) const;

  // "gpt_124m on a100-sxm-80gb; where fits; 80 points: 2 failed, 70 meet the conditions"
  std::string subtitle() const;

 private:
  // Found once: there may be as many values as points.
  struct DrawnAxis {
    std::size_t index = 0;                     // of its values in those of a point
    std::optional<NumberAxis> numbers{};       // of a numeric axis
    std::map<std::string, std::string> names;  // by values as typed
    std::map<std::string, std::size_t> places;
  };

  DrawnAxis drawn_axis(std::size_t index) const;
  std::string scenario_words() const;

  const SweepFigure& figure_;
  const SweepRequest& request_;
  const SweepResult& result_;
  std::map<std::string, DrawnAxis> axes_;
  std::vector<std::size_t> points_;
};

}  // namespace memwall
