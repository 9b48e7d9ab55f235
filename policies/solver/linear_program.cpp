#include "policies/solver/linear_program.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <mutex>
#include <string>

#include "sim/error.h"

#ifdef MEMWALL_HAS_CBC
#include <dlfcn.h>

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

#ifndef MEMWALL_HAS_CBC

struct LinearProgram::Matrix {};

bool LinearProgram::is_available() { return false; }

const char* LinearProgram::missing() {
  return "the solver CBC, without which this program was built: install coinor-libcbc-dev and coinor-libclp-dev "
         "(names of Debian's packages), configure and build again";
}

SolverAnswer LinearProgram::minimise(const SolverLimits&, const std::vector<double>&) const {
  throw UsageError(std::string("A linear program needs ") + missing() + ".");
}

SolverAnswer LinearProgram::relaxed(const SolverLimits& limits) const { return minimise(limits, {}); }

#else

namespace {

using Model = std::unique_ptr<void, void (*)(void*)>;  // the handles of both solvers are untyped

// The functions of both solvers. They are loaded when a program is solved: linked, they and what they name, LAPACK and
// Fortran's among it, would be loaded each time that memwall starts.
class Solvers {
 public:
  // Null where the libraries are not there.
  static const Solvers* loaded() {
    static const Solvers all;
    return all.complete_ ? &all : nullptr;
  }
  static const Solvers& required() {
    if (const Solvers* const solvers = loaded()) return *solvers;
    throw UsageError(std::string("A linear program needs ") + LinearProgram::missing() + ".");
  }

  decltype(&Clp_newModel) clp_new = nullptr;
  decltype(&Clp_deleteModel) clp_delete = nullptr;
  decltype(&Clp_setLogLevel) clp_log = nullptr;
  decltype(&Clp_setMaximumSeconds) clp_seconds = nullptr;
  decltype(&Clp_loadProblem) clp_load = nullptr;
  decltype(&Clp_initialSolve) clp_solve = nullptr;
  decltype(&Clp_status) clp_status = nullptr;
  decltype(&Clp_primalColumnSolution) clp_values = nullptr;
  decltype(&Clp_dualRowSolution) clp_duals = nullptr;
  decltype(&Cbc_newModel) cbc_new = nullptr;
  decltype(&Cbc_deleteModel) cbc_delete = nullptr;
  decltype(&Cbc_loadProblem) cbc_load = nullptr;
  decltype(&Cbc_setInteger) cbc_whole = nullptr;
  decltype(&Cbc_setMIPStartI) cbc_start = nullptr;
  decltype(&Cbc_setLogLevel) cbc_log = nullptr;
  decltype(&Cbc_setParameter) cbc_set = nullptr;
  decltype(&Cbc_solve) cbc_solve = nullptr;
  decltype(&Cbc_isProvenInfeasible) cbc_infeasible = nullptr;
  decltype(&Cbc_isContinuousUnbounded) cbc_unbounded = nullptr;
  decltype(&Cbc_isProvenOptimal) cbc_optimal = nullptr;
  decltype(&Cbc_getBestPossibleObjValue) cbc_bound = nullptr;
  decltype(&Cbc_bestSolution) cbc_best = nullptr;

 private:
  Solvers() {
    void* const clp = opened("libClp.so.1", "libClp.so");
    void* const cbc = opened("libCbcSolver.so.3", "libCbcSolver.so");
    complete_ = clp != nullptr && cbc != nullptr;
    find(clp, clp_new, "Clp_newModel");
    find(clp, clp_delete, "Clp_deleteModel");
    find(clp, clp_log, "Clp_setLogLevel");
    find(clp, clp_seconds, "Clp_setMaximumSeconds");
    find(clp, clp_load, "Clp_loadProblem");
    find(clp, clp_solve, "Clp_initialSolve");
    find(clp, clp_status, "Clp_status");
    find(clp, clp_values, "Clp_primalColumnSolution");
    find(clp, clp_duals, "Clp_dualRowSolution");
    find(cbc, cbc_new, "Cbc_newModel");
    find(cbc, cbc_delete, "Cbc_deleteModel");
    find(cbc, cbc_load, "Cbc_loadProblem");
    find(cbc, cbc_whole, "Cbc_setInteger");
    find(cbc, cbc_start, "Cbc_setMIPStartI");
    find(cbc, cbc_log, "Cbc_setLogLevel");
    find(cbc, cbc_set, "Cbc_setParameter");
    find(cbc, cbc_solve, "Cbc_solve");
    find(cbc, cbc_infeasible, "Cbc_isProvenInfeasible");
    find(cbc, cbc_unbounded, "Cbc_isContinuousUnbounded");
    find(cbc, cbc_optimal, "Cbc_isProvenOptimal");
    find(cbc, cbc_bound, "Cbc_getBestPossibleObjValue");
    find(cbc, cbc_best, "Cbc_bestSolution");
  }

  // By the name of the version whose header was read; else by that which its package for developers gives it.
  static void* opened(const char* versioned, const char* plain) {
    void* const library = dlopen(versioned, RTLD_NOW | RTLD_LOCAL);
    return library != nullptr ? library : dlopen(plain, RTLD_NOW | RTLD_LOCAL);
  }

  template <typename Function>
  void find(void* library, Function& function, const char* name) {
    if (library != nullptr) function = reinterpret_cast<Function>(dlsym(library, name));
    complete_ = complete_ && function != nullptr;
  }

  bool complete_ = false;
};

}  // namespace

bool LinearProgram::is_available() { return Solvers::loaded() != nullptr; }

const char* LinearProgram::missing() {
  return "the solver CBC, whose libraries were not found: install coinor-libcbc3 and coinor-libclp1 (names of Debian's "
         "packages)";
}

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
  const Solvers& use = Solvers::required();
  const Matrix m(*this);
  const Model model(use.clp_new(), use.clp_delete);
  use.clp_log(model.get(), 0);
  if (std::isfinite(limits.seconds)) use.clp_seconds(model.get(), limits.seconds);
  use.clp_load(model.get(), static_cast<int>(columns_.size()), static_cast<int>(rows_.size()), m.starts.data(),
               m.rows.data(), m.factors.data(), m.low.data(), m.high.data(), m.cost.data(), m.row_low.data(),
               m.row_high.data());
  use.clp_solve(model.get());
  SolverAnswer answer;
  answer.bound = -kInfinity;
  switch (use.clp_status(model.get())) {
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
  const double* const values = use.clp_values(model.get());
  const double* const duals = use.clp_duals(model.get());
  answer.values.assign(values, values + columns_.size());
  answer.duals.assign(duals, duals + rows_.size());
  answer.objective = answer.bound = cost_of(answer.values);
  return answer;
}

// CBC's C interface keeps parameters for all of its models: two threads would mix theirs.
std::mutex& one_at_a_time() {
  static std::mutex mutex;
  return mutex;
}

SolverAnswer LinearProgram::minimise(const SolverLimits& limits, const std::vector<double>& start) const {
  const std::lock_guard lock(one_at_a_time());
  if (std::none_of(columns_.begin(), columns_.end(), [](const Column& c) { return c.is_whole; }))
    return relaxed(limits);
  const Solvers& use = Solvers::required();
  const Matrix m(*this);
  const Model owner(use.cbc_new(), use.cbc_delete);
  Cbc_Model* const model = owner.get();
  use.cbc_load(model, static_cast<int>(columns_.size()), static_cast<int>(rows_.size()), m.starts.data(), m.rows.data(),
               m.factors.data(), m.low.data(), m.high.data(), m.cost.data(), m.row_low.data(), m.row_high.data());
  for (std::size_t i = 0; i < columns_.size(); ++i)
    if (columns_[i].is_whole) use.cbc_whole(model, static_cast<int>(i));
  if (!start.empty()) {
    std::vector<int> indices(columns_.size());
    for (std::size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<int>(i);
    use.cbc_start(model, static_cast<int>(indices.size()), indices.data(), start.data());
  }
  use.cbc_log(model, 0);
  use.cbc_set(model, "log", "0");
  use.cbc_set(model, "threads", "0");
  use.cbc_set(model, "probing", "off");
  use.cbc_set(model, "randomSeed", "1");
  use.cbc_set(model, "randomCbcSeed", "1");
  use.cbc_set(model, "timeMode", "elapsed");
  if (std::isfinite(limits.seconds)) {
    use.cbc_set(model, "seconds", std::to_string(limits.seconds).c_str());
    // CBC 2.10 ends in a segmentation fault where the limit passes within its preprocessing.
    use.cbc_set(model, "preprocess", "off");
  }
  use.cbc_set(model, "maxNodes", std::to_string(limits.nodes).c_str());
  use.cbc_solve(model);

  SolverAnswer answer;
  answer.bound = -kInfinity;
  if (use.cbc_infeasible(model) != 0) {
    answer.status = SolverStatus::infeasible;
    answer.bound = kInfinity;
    return answer;
  }
  if (use.cbc_unbounded(model) != 0) {
    answer.status = SolverStatus::unbounded;
    return answer;
  }
  answer.bound = use.cbc_bound(model);
  const double* const best = use.cbc_best(model);
  if (best == nullptr) return answer;
  answer.values.assign(best, best + columns_.size());
  for (std::size_t i = 0; i < columns_.size(); ++i)
    if (columns_[i].is_whole) answer.values[i] = std::round(answer.values[i]);
  answer.objective = cost_of(answer.values);
  answer.status = use.cbc_optimal(model) != 0 ? SolverStatus::optimal : SolverStatus::limited;
  if (answer.status == SolverStatus::optimal) answer.bound = answer.objective;
  return answer;
}

#endif

}  // namespace memwall
