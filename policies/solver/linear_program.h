// A linear program: the least of a sum over columns, while sums over them stay between the bounds of rows. Columns may
// be bound to whole numbers.
//
// Solved by Clp, and by CBC where columns are whole (COIN-OR), in one thread with fixed seeds: the same program gives
// the same answer on the same computer, unless the limit of seconds ends the search.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace memwall {

struct SolverLimits {
  double seconds = std::numeric_limits<double>::infinity();       // of wall time; asked between nodes of the search
  std::int64_t nodes = std::numeric_limits<std::int32_t>::max();  // of the search
};

enum class SolverStatus : std::uint8_t {
  optimal,     // nothing is less
  limited,     // a limit was hit: `values` is the least that was found
  unknown,     // a limit was hit before anything was found
  infeasible,  // no values keep to all bounds
  unbounded
};

struct SolverAnswer {
  SolverStatus status = SolverStatus::unknown;
  bool has_values() const { return status == SolverStatus::optimal || status == SolverStatus::limited; }
  double objective = 0;          // of `values`
  double bound = 0;              // proved: no values cost less; -infinity where nothing is known
  std::vector<double> values{};  // by column; whole ones exactly
  // By row, of a program without whole columns: what the objective rises by where the row's bound rises by one.
  std::vector<double> duals{};
};

class LinearProgram {
 public:
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();

  struct Term {
    std::size_t column = 0;
    double factor = 0;
  };

  // False: built without the solver, or its libraries are not there; minimise() and relaxed() throw then.
  static bool is_available();
  // What is missing then, for people: "the solver CBC, without which this program was built: install ...".
  static const char* missing();

  // Each returns its index. Terms of one column add up. REQUIRES: low <= high, and columns that were added.
  std::size_t add_column(double low, double high, double cost, bool is_whole = false);
  std::size_t add_row(const std::vector<Term>& terms, double low, double high);

  std::size_t columns() const { return columns_.size(); }
  std::size_t rows() const { return rows_.size(); }
  void set_bounds(std::size_t column, double low, double high);
  double cost_of(const std::vector<double>& values) const;

  // `start`: by column, values from which the search begins; empty = none. Throws UsageError without the solver.
  SolverAnswer minimise(const SolverLimits& limits = {}, const std::vector<double>& start = {}) const;
  // The same where columns need not be whole: its objective is a bound of what minimise() finds. With duals.
  SolverAnswer relaxed(const SolverLimits& limits = {}) const;

 private:
  struct Column {
    double low = 0, high = 0, cost = 0;
    bool is_whole = false;
  };
  struct Row {
    double low = 0, high = 0;
    std::vector<Term> terms;  // ascending by column
  };
  struct Matrix;  // as solvers read it

  std::vector<Column> columns_;
  std::vector<Row> rows_;
};

}  // namespace memwall
