#include "policies/solver/linear_program.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

#include "sim/error.h"

#ifdef MEMWALL_HAS_CBC
#include <coin/Cbc_C_Interface.h>
#include <coin/Clp_C_Interface.h>
#endif

namespace memwall {

std::size_t LinearProgram::add_column(double low, double high, double cost, bool is_whole) {
  columns_.push_back({low, high, cost, is_whole});
  return columns_.size() - 1;
}

std::size_t LinearProgram::add_row(const std::vector<Term>& terms, double low, double high) {
  Row row{low, high, terms};
  std::stable_sort(row.terms.begin(), row.terms.end(),
                   [](const Term& a, const Term& b) { return a.column < b.column; });
  std::size_t kept = 0;
  for (const Term& term : row.terms) {
    if (kept > 0 && row.terms[kept - 1].column == term.column)
      row.terms[kept - 1].factor += term.factor;
    else
      row.terms[kept++] = term;
  }
  row.terms.resize(kept);
  rows_.push_back(std::move(row));
  return rows_.size() - 1;
}

void LinearProgram::set_bounds(std::size_t column, double low, double high) {
  columns_[column].low = low;
  columns_[column].high = high;
}

double LinearProgram::cost_of(const std::vector<double>& values) const {
  double cost = 0;
  for (std::size_t i = 0; i < columns_.size(); ++i) cost += columns_[i].cost * values[i];
  return cost;
}

const char* LinearProgram::missing() {
  return "the solver CBC, without which this program was built: install coinor-libcbc-dev and coinor-libclp-dev "
         "(names of Debian's packages), configure and build again";
}

#ifndef MEMWALL_HAS_CBC

struct LinearProgram::Matrix {};

bool LinearProgram::is_available() { return false; }

SolverAnswer LinearProgram::minimise(const SolverLimits&, const std::vector<double>&) const {
  throw UsageError(std::string("A linear program needs ") + missing() + ".");
}

SolverAnswer LinearProgram::relaxed(const SolverLimits& limits) const { return minimise(limits, {}); }

#else

namespace {

using Model = std::unique_ptr<void, void (*)(void*)>;  // the handles of both solvers are untyped

}  // namespace

bool LinearProgram::is_available() { return true; }

// By column, as both solvers read it. Infinite bounds are the largest number for them.
struct LinearProgram::Matrix {
  explicit Matrix(const LinearProgram& program) {
    starts.assign(program.columns_.size() + 1, 0);
    for (const Row& row : program.rows_)
      for (const Term& term : row.terms) ++starts[term.column + 1];
    for (std::size_t i = 1; i < starts.size(); ++i) starts[i] += starts[i - 1];
    rows.resize(static_cast<std::size_t>(starts.back()));
    factors.resize(rows.size());
    std::vector<CoinBigIndex> next(starts.begin(), starts.end() - 1);
    for (std::size_t i = 0; i < program.rows_.size(); ++i)
      for (const Term& term : program.rows_[i].terms) {
        const auto at = static_cast<std::size_t>(next[term.column]++);
        rows[at] = static_cast<int>(i);
        factors[at] = term.factor;
      }
    for (const Column& column : program.columns_) {
      low.push_back(finite(column.low));
      high.push_back(finite(column.high));
      cost.push_back(column.cost);
    }
    for (const Row& row : program.rows_) {
      row_low.push_back(finite(row.low));
      row_high.push_back(finite(row.high));
    }
  }

  static double finite(double value) {
    constexpr double kMost = std::numeric_limits<double>::max();
    return std::clamp(value, -kMost, kMost);
  }

  std::vector<CoinBigIndex> starts;
  std::vector<int> rows;
  std::vector<double> factors, low, high, cost, row_low, row_high;
};

SolverAnswer LinearProgram::relaxed(const SolverLimits& limits) const {
  const Matrix m(*this);
  const Model model(Clp_newModel(), Clp_deleteModel);
  Clp_setLogLevel(model.get(), 0);
  if (std::isfinite(limits.seconds)) Clp_setMaximumSeconds(model.get(), limits.seconds);
  Clp_loadProblem(model.get(), static_cast<int>(columns_.size()), static_cast<int>(rows_.size()), m.starts.data(),
                  m.rows.data(), m.factors.data(), m.low.data(), m.high.data(), m.cost.data(), m.row_low.data(),
                  m.row_high.data());
  Clp_initialSolve(model.get());
  SolverAnswer answer;
  answer.bound = -kInfinity;
  switch (Clp_status(model.get())) {
    case 0:
      answer.status = SolverStatus::optimal;
      break;
    case 1:
      answer.status = SolverStatus::infeasible;
      answer.bound = kInfinity;
      return answer;
    case 2:
      answer.status = SolverStatus::unbounded;
      return answer;
    default:
      return answer;
  }
  const double* const values = Clp_primalColumnSolution(model.get());
  const double* const duals = Clp_dualRowSolution(model.get());
  answer.values.assign(values, values + columns_.size());
  answer.duals.assign(duals, duals + rows_.size());
  answer.objective = answer.bound = cost_of(answer.values);
  return answer;
}

SolverAnswer LinearProgram::minimise(const SolverLimits& limits, const std::vector<double>& start) const {
  if (std::none_of(columns_.begin(), columns_.end(), [](const Column& c) { return c.is_whole; }))
    return relaxed(limits);
  const Matrix m(*this);
  const Model owner(Cbc_newModel(), Cbc_deleteModel);
  Cbc_Model* const model = owner.get();
  Cbc_loadProblem(model, static_cast<int>(columns_.size()), static_cast<int>(rows_.size()), m.starts.data(),
                  m.rows.data(), m.factors.data(), m.low.data(), m.high.data(), m.cost.data(), m.row_low.data(),
                  m.row_high.data());
  for (std::size_t i = 0; i < columns_.size(); ++i)
    if (columns_[i].is_whole) Cbc_setInteger(model, static_cast<int>(i));
  if (!start.empty()) {
    std::vector<int> indices(columns_.size());
    for (std::size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<int>(i);
    Cbc_setMIPStartI(model, static_cast<int>(indices.size()), indices.data(), start.data());
  }
  Cbc_setLogLevel(model, 0);
  Cbc_setParameter(model, "log", "0");
  Cbc_setParameter(model, "threads", "0");
  Cbc_setParameter(model, "randomSeed", "1");
  Cbc_setParameter(model, "randomCbcSeed", "1");
  Cbc_setParameter(model, "timeMode", "elapsed");
  if (std::isfinite(limits.seconds)) Cbc_setParameter(model, "seconds", std::to_string(limits.seconds).c_str());
  Cbc_setParameter(model, "maxNodes", std::to_string(limits.nodes).c_str());
  Cbc_solve(model);

  SolverAnswer answer;
  answer.bound = -kInfinity;
  if (Cbc_isProvenInfeasible(model) != 0) {
    answer.status = SolverStatus::infeasible;
    answer.bound = kInfinity;
    return answer;
  }
  if (Cbc_isContinuousUnbounded(model) != 0) {
    answer.status = SolverStatus::unbounded;
    return answer;
  }
  answer.bound = Cbc_getBestPossibleObjValue(model);
  const double* const best = Cbc_bestSolution(model);
  if (best == nullptr) return answer;
  answer.values.assign(best, best + columns_.size());
  for (std::size_t i = 0; i < columns_.size(); ++i)
    if (columns_[i].is_whole) answer.values[i] = std::round(answer.values[i]);
  answer.objective = cost_of(answer.values);
  answer.status = Cbc_isProvenOptimal(model) != 0 ? SolverStatus::optimal : SolverStatus::limited;
  if (answer.status == SolverStatus::optimal) answer.bound = answer.objective;
  return answer;
}

#endif

}  // namespace memwall
