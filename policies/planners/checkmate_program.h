// When each unit of a chain runs again and what is kept between, as a linear program with whole numbers.
//
// Jain et al. 2020, "Checkmate: Breaking the Memory Wall with Optimal Tensor Rematerialization" (MLSys 2020); details
// from memory of the paper, not checked against its code. Time is cut into stages, each of which ends with the backward
// of one unit (the paper's frontier-advancing form: nothing of backward runs twice, and nothing runs again in forward,
// where a chain has no use for it). Whole numbers, 0 or 1:
//   R[k][i]  unit i runs again in the stage of unit k
//   S[k][v]  value v is kept into that stage
// A unit makes up to three values: what only its own backward reads, and of its output what backward reads, too, and
// what only the next forward reads (rotor_chain.h). What a stage needs is kept or made again; what is kept into the
// next stage was there or was made. U, the bytes live, and FREE are not columns of their own: on a chain it is known
// after which re-run of a stage a value is not needed any more, so each row of memory sums values directly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "policies/planners/rotor_chain.h"
#include "policies/solver/linear_program.h"

namespace memwall {

struct CheckmateChain {
  RotorChain chain;                    // the last stage is no unit: it runs once
  std::vector<bool> is_repeatable;     // by unit
  std::vector<bool> reads_own_output;  // by unit: does its own backward read RotorStage::output_saved?
  bool operator==(const CheckmateChain&) const = default;
};

struct CheckmateSchedule {
  std::vector<RotorStep> steps;  // from the first backward on
  Duration time{};               // of what runs again
  double over = 0;               // bytes beyond the limit
  bool is_optimal = false;       // proved: none takes less time in the limit, or as little memory beyond it
};

class CheckmateProgram {
 public:
  CheckmateProgram(CheckmateChain chain, Bytes limit);

  // The least time that what runs again takes in any schedule within the limit, by the program's linear relaxation: no
  // schedule takes less. Nothing where no schedule keeps to the limit.
  std::optional<Duration> bound() const;
  // Values of the relaxation rounded, re-runs made to fit them (the paper's two-phase rounding); the fastest within the
  // limit of what several thresholds give, else the one that is over it by least.
  CheckmateSchedule rounded() const;
  // The fastest within the limit, as far as the solver's own limits let it be found; where there is none, the fastest
  // of those that are over it by least. The search begins with the better of rounded() and the fastest persistent
  // schedule (rotor_chain.h), which is also what is left where a limit of the solver is hit before it finds another.
  CheckmateSchedule exact(const SolverLimits& limits) const;

 private:
  enum Value : std::uint8_t { kOwn, kSaved, kPassed };
  static constexpr std::size_t kValues = 3;
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  // A sum over columns, and a number.
  struct Sum {
    std::vector<LinearProgram::Term> terms{};
    double constant = 0;
    void add(std::size_t column, double factor) { terms.push_back({column, factor}); }
  };
  // Column `of` is 1 where `first` or `second` is; `both`: where both are.
  struct Derived {
    std::size_t of = kNone, first = kNone, second = kNone;
    bool both = false;
  };

  const RotorStage& stage(int i) const { return c_.chain.stages[static_cast<std::size_t>(i)]; }
  double size(Value v, int unit) const;
  bool may_be_kept(Value v, int k, int unit) const;
  std::size_t keep_place(Value v, int k, int unit) const;
  std::size_t rerun_place(int k, int unit) const;
  // Columns; kNone: there is none.
  std::size_t keep(Value v, int k, int unit) const;
  std::size_t rerun(int k, int unit) const { return rerun_[rerun_place(k, unit)]; }

  void add_columns();
  void add_needs(int k);
  void require(Value v, int k, int unit, std::size_t by);
  void add_later(Sum& sum, Value v, int k, int unit) const;
  void add_input(Sum& sum, int k, int unit);
  void add_rerun_row(int k, int unit);
  void add_backward_row(int k);
  void add_forward_rows();
  void add_memory_row(const Sum& sum);

  std::vector<double> values_for(const std::vector<double>& relaxed, double threshold) const;
  std::vector<double> values_with_reruns(std::vector<double> values) const;
  std::vector<double> persistent() const;
  void satisfy(std::vector<double>& values, bool by_reruns) const;
  void need(Value v, int k, int unit, bool by_reruns, std::vector<double>& values) const;
  void fill_derived(std::vector<double>& values) const;
  double over_of(const std::vector<double>& values) const;
  CheckmateSchedule schedule_of(const std::vector<double>& values) const;
  std::vector<double> best_rounded() const;

  const CheckmateChain c_;
  const int units_;
  const double limit_;  // in the program's unit of memory
  LinearProgram program_;
  std::size_t over_ = kNone;               // column: memory beyond the limit
  std::vector<std::size_t> keep_, rerun_;  // by place
  std::vector<std::size_t> reruns_;        // all columns of re-runs, ascending
  std::vector<Sum> memory_;                // rows of memory
  std::vector<Derived> derived_;
};

}  // namespace memwall
