// What a study asks of its points: conditions, an objective, and the fields that both and the tables need.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "study/sweep/axis.h"
#include "study/sweep/expression.h"
#include "study/sweep/sweep_point.h"

namespace memwall {

class SweepGoal {
 public:
  // Throws UsageError: an expression that is none, units that do not go together, an axis without numbers in one, an
  // objective that is true or false. `axes` outlive it.
  SweepGoal(const std::vector<Axis>& axes, const std::vector<std::string>& conditions, const std::string& objective,
            const std::vector<std::string>& fields);

  void judge(SweepPoint& point) const;  // sets meets, broken and objective
  // Does `one` meet the conditions, with a better objective than `other`, which meets them, too?
  bool is_better(const SweepPoint& one, const SweepPoint& other) const;

  bool has_objective() const { return objective_.has_value(); }
  std::string objective_text() const { return objective_ ? objective_->text() : std::string(); }
  bool minimizes() const { return minimizes_; }
  FieldUnit objective_unit() const { return objective_ ? objective_->unit() : FieldUnit{}; }

  bool needs_all() const { return needs_all_; }  // not only quick_fields()
  // The first of the fields that none of `known` has, in full; nothing where all are there. Axes are no fields.
  std::optional<std::string> unknown_field(const std::vector<const PointRecord*>& known) const;
  // All fields that are asked for, by their full names.
  const std::vector<std::string>& fields() const { return wanted_; }

 private:
  FieldUnit unit_of(const std::string& name) const;
  Expression read(const std::string& text);
  void want(const std::string& name);
  std::optional<double> value_of(const SweepPoint& point, const std::string& name) const;

  const std::vector<Axis>& axes_;
  std::vector<Expression> conditions_;
  std::optional<Expression> objective_;
  std::vector<std::string> wanted_;  // fields, by their full names
  bool needs_all_ = false, minimizes_ = true;
};

// A field's name in full: "step_time" is "step_time_s", "peak" is "peak_reserved_bytes".
std::string full_field_name(const std::string& name);

// Is it a field that is true or false, 1 or 0: "fits", "fits_device"? A condition may be its name alone.
bool is_truth_field(std::string_view name);

// Is more of this field better? Of throughput and utilization.
bool more_is_better(const std::string& field);
// An objective without "max " and "min ", the words that say what is best.
std::string wanted_of(const std::string& objective);

// Is it a field that a run may have: one of quick_fields(), or what a short name stands for?
bool is_known_name(const std::string& name);

// Is it near a field that all runs have, a short name or an axis, without being one? Where a run does not have it either,
// it is mistyped, whatever other steps, machines and policies have.
bool seems_mistyped(const std::string& name, const std::vector<Axis>& axes);

// " Did you mean ..." of fields that `known` have, short names and axes; "" where none is near.
std::string nearest_field(const std::string& name, const std::vector<Axis>& axes,
                          const std::vector<const PointRecord*>& known);

}  // namespace memwall
