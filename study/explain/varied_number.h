// A number that the outcome of a scenario may depend on, and the scenario with another value of it.
//
//   gpu.hbm.bandwidth          of the machine, as --set names it
//   scale.kernels              all durations of that kind, as --scale names them; their value is 1
//   offload.fraction           a parameter of one of the scenario's policies, or of its pager, defaults included
//   budget                     Scenario::budget
//   "host to hbm"              a way between two memories, in one direction; "between hbm and host": in both. The
//                              bandwidths of its links and routes grow together, for more of one alone gives nothing
//                              where another one holds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "study/scenario.h"
#include "study/study.h"

namespace memwall {

enum class NumberKind : std::uint8_t { machine, way, scale, policy, pager, budget };
std::string_view to_string(NumberKind kind);

struct VariedNumber {
  std::string name{};
  NumberKind kind = NumberKind::machine;
  double value = 0;                   // above 0, in `unit`
  std::string unit{};                 // "GB/s", "GiB", "%"; "" = none
  bool is_whole = false;              // it takes whole numbers alone
  std::string parameter{};            // of a policy or pager: its name
  std::size_t policy = 0;             // of a policy: index in Scenario::policies
  std::vector<VariedNumber> parts{};  // of a way: numbers of the machine, which change by the same factor
};

struct VariedNumbers {
  std::vector<VariedNumber> numbers;  // of the machine in the order of its file, ways, scales, policies, pager, budget
  // Names of those that cannot be varied by a share: they are 0, not set, or a curve, which no override takes.
  std::vector<std::string> fixed;
};

// All numbers of a scenario. Throws what Study::load throws.
VariedNumbers varied_numbers(Study& study, const Scenario& scenario);

// Those whose names match one of `patterns`, in which '*' stands for any letters; all where there are none. Throws
// UsageError for a pattern that matches nothing, with the nearest name.
VariedNumbers selected(VariedNumbers all, const std::vector<std::string>& patterns);

// The scenario with that value in place of its own. Whether the value makes sense is for Study::run to say.
Scenario with_value(Scenario scenario, const VariedNumber& number, double value);

// As one types it: "1.632e+03" is "1632.75GB/s".
std::string typed_value(const VariedNumber& number, double value);

// A number with its unit, apart: "25 MiB". False where the text is none.
bool split_quantity(const std::string& text, double& value, std::string& unit);

}  // namespace memwall
