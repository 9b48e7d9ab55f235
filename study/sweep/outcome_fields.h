// What a run says, as named numbers: the fields of `memwall run --format json` (docs/run_json.md), with their names;
// nested ones by dots ("tiers.hbm.peak_reserved_bytes"), true and false as 1 and 0.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "traces/run/run.h"

namespace memwall {

// In the order of the JSON. What is not known has none.
class OutcomeFields {
 public:
  void add(std::string name, double value) { fields_.emplace_back(std::move(name), value); }
  std::optional<double> find(std::string_view name) const;
  const std::vector<std::pair<std::string, double>>& all() const { return fields_; }

 private:
  std::vector<std::pair<std::string, double>> fields_;
};

// What follows from the result without a look at each op: `fits`, times, samples, tiers and links. `fits` says that
// the run keeps to the budgets of its policies, too. Costs microseconds.
OutcomeFields quick_fields(const Run& run);

// Those that are of no tier and no link.
std::span<const std::string_view> quick_fields_of_run();

// Is it one of those, on some machine?
bool is_quick_field(std::string_view name);

// All numbers of the JSON, quick_fields() among them. Costs about as much as the simulation.
OutcomeFields all_fields(const Run& run);

}  // namespace memwall
