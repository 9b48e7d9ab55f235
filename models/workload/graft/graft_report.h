// What of two programs was paired, by what, and what was not: in lines of the device and their time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/workload/graft/line_pairs.h"
#include "models/workload/operator_calls.h"
#include "sim/trace/trace.h"

namespace memwall {

// Matrix products, convolutions, attention: what a network's layers are told by.
constexpr bool is_product(OperatorClass of) {
  return of == OperatorClass::gemm || of == OperatorClass::convolution || of == OperatorClass::attention;
}

struct GraftedWork {
  std::uint64_t lines = 0;  // on the device
  Duration time{};
};

// Of one kind: "aten::mul_ as aten::_foreach_mul_". Most time first.
struct GraftedOperator {
  std::string what;
  GraftedWork work;
};

struct GraftReport {
  GraftedWork measured;                            // all of the device's lines
  GraftedWork by_name, by_class, by_place, alone;  // parts of it
  GraftedWork priced;                              // lines of the complete step that nothing was measured of
  std::uint64_t differing = 0;                     // pairs that differ in shape
  // Do so many differ that the programs are of different sizes? Then by how much more samples the measured one has,
  // where each class of work differs as another batch makes it; else 1. And how many pairs say so.
  bool is_of_other_size = false;
  double batch_ratio = 1;
  std::uint64_t of_that_ratio = 0;
  // Products, convolutions and attention without a partner, of those of the program that has more: the lesser of their
  // shares of calls and of time.
  double products_alone = 0;
  std::uint64_t workspaces = 0;  // of the profile that stay (workspaces.h)
  Bytes largest_workspace = 0;
  std::uint64_t steps = 0, repeats = 0;  // of the result; how often the complete step stands in it
  std::vector<GraftedOperator> taken_for, left_alone, left_priced;  // by class or place; without a partner

  // Of either program's device time, as far as it is in the result: without a partner in the other; the larger of the
  // two. An operator that has another name in one of them is without a partner in both, and counts once.
  double unpaired_share() const;
  // Of the measured device time: paired by name or class of work.
  double sure_share() const;
};

// Fills what follows from the pairs: times, lines, products, names, steps.
// `calls`: of the measured program.
void account(const Trace& measured, const Trace& complete, const std::vector<LinePair>& pairs,
             const OperatorCalls& calls, GraftReport& report);

}  // namespace memwall
