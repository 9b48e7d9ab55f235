#include "policies/planners/checkmate_program.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace memwall {
namespace {

constexpr double kInfinite = LinearProgram::kInfinity;
constexpr double kMemoryUnit = 1 << 20;    // bytes: numbers of a program should not differ by too many orders
constexpr double kTimeUnit = 1e6;          // picoseconds
constexpr double kCostOfMemoryOver = 100;  // per unit beyond the limit, in total times of forward
constexpr std::uint32_t kPersistentSlots = 500;
constexpr std::array<double, 5> kThresholds = {0.5, 0.3, 0.7, 0.1, 0.9};
constexpr std::array<double, 4> kAllowances = {0, 0.05, 0.1, 0.2};  // of the limit, left free for what rounding adds

double memory_of(Bytes bytes) { return static_cast<double>(bytes) / kMemoryUnit; }
double time_of(Duration duration) { return static_cast<double>(duration.count()) / kTimeUnit; }

}  // namespace

CheckmateProgram::CheckmateProgram(CheckmateChain chain, Bytes limit)
    : c_(std::move(chain)), units_(static_cast<int>(c_.chain.stages.size()) - 1), limit_(memory_of(limit)) {
  add_columns();
  for (int k = 0; k < units_; ++k) {
    add_needs(k);
    for (int i = 0; i <= k; ++i)
      if (rerun(k, i) != kNone) add_rerun_row(k, i);
    add_backward_row(k);
  }
  add_forward_rows();
}

// --- columns

// Unit -1: what the chain starts from.
double CheckmateProgram::size(Value v, int unit) const {
  if (unit < 0) return v == kPassed ? memory_of(c_.chain.input_passed) : 0;
  if (v == kOwn) return memory_of(stage(unit).saved - stage(unit).output_saved);
  return memory_of(v == kSaved ? stage(unit).output_saved : stage(unit).output_passed);
}

bool CheckmateProgram::may_be_kept(Value v, int k, int unit) const {
  if (k < 0 || size(v, unit) <= 0) return false;
  if (v == kOwn) return unit <= k;
  return unit < k || (v == kSaved && unit == k && c_.reads_own_output[static_cast<std::size_t>(unit)]);
}

std::size_t CheckmateProgram::keep_place(Value v, int k, int unit) const {
  const auto row = static_cast<std::size_t>(k) * static_cast<std::size_t>(units_ + 1);
  return (row + static_cast<std::size_t>(unit + 1)) * kValues + v;
}
std::size_t CheckmateProgram::rerun_place(int k, int unit) const {
  return static_cast<std::size_t>(k) * static_cast<std::size_t>(units_) + static_cast<std::size_t>(unit);
}
std::size_t CheckmateProgram::keep(Value v, int k, int unit) const {
  return k < 0 ? kNone : keep_[keep_place(v, k, unit)];
}

void CheckmateProgram::add_columns() {
  double forward = 0;
  for (int i = 0; i < units_; ++i) forward += time_of(stage(i).forward);
  over_ = program_.add_column(0, 0, kCostOfMemoryOver * std::max(1.0, forward));
  keep_.assign(static_cast<std::size_t>(units_) * static_cast<std::size_t>(units_ + 1) * kValues, kNone);
  rerun_.assign(static_cast<std::size_t>(units_) * static_cast<std::size_t>(units_), kNone);
  for (int k = 0; k < units_; ++k) {
    for (int i = -1; i <= k; ++i)
      for (const Value v : {kOwn, kSaved, kPassed})
        if (may_be_kept(v, k, i)) keep_[keep_place(v, k, i)] = program_.add_column(0, 1, 0, true);
    for (int i = 0; i <= k; ++i)
      if (c_.is_repeatable[static_cast<std::size_t>(i)])
        reruns_.push_back(rerun_[rerun_place(k, i)] = program_.add_column(
                              0, 1, time_of(i == k ? stage(i).forward_last : stage(i).forward), true));
  }
}

// --- what a stage needs

// Kept into the stage, or made in it, where column `by` is 1; kNone: always.
void CheckmateProgram::require(Value v, int k, int unit, std::size_t by) {
  if (size(v, unit) <= 0) return;
  Sum sum;
  if (const std::size_t kept = keep(v, k, unit); kept != kNone) sum.add(kept, 1);
  if (unit >= 0 && rerun(k, unit) != kNone) sum.add(rerun(k, unit), 1);
  if (by != kNone) sum.add(by, -1);
  program_.add_row(sum.terms, by == kNone ? 1 : 0, kInfinite);
}

void CheckmateProgram::add_needs(int k) {
  require(kOwn, k, k, kNone);
  if (c_.reads_own_output[static_cast<std::size_t>(k)]) require(kSaved, k, k, kNone);
  require(kSaved, k, k - 1, kNone);
  for (int i = 0; i <= k; ++i) {
    if (rerun(k, i) == kNone) continue;
    require(kSaved, k, i - 1, rerun(k, i));
    require(kPassed, k, i - 1, rerun(k, i));
  }
  for (int i = -1; i < k; ++i)
    for (const Value v : {kOwn, kSaved, kPassed})
      if (const std::size_t kept = keep(v, k - 1, i); kept != kNone) require(v, k, i, kept);
}

// --- rows of memory

// What is there of the value once all re-runs of the stage that read it have run.
void CheckmateProgram::add_later(Sum& sum, Value v, int k, int unit) const {
  if (v == kSaved && unit == k - 1)
    sum.constant += size(v, unit);
  else if (const std::size_t kept = keep(v, k - 1, unit); kept != kNone)
    sum.add(kept, size(v, unit));
}

// While unit `unit` runs again in stage k, of what it starts from: there if it runs, or if that is needed later.
void CheckmateProgram::add_input(Sum& sum, int k, int unit) {
  add_later(sum, kOwn, k, unit - 1);
  for (const Value v : {kSaved, kPassed}) {
    const double bytes = size(v, unit - 1);
    if (bytes <= 0) continue;
    const std::size_t later = keep(v, k - 1, unit - 1);
    if (v == kSaved && unit == k) {
      sum.constant += bytes;
    } else if (later == kNone) {
      sum.add(rerun(k, unit), bytes);
    } else {
      const std::size_t either = program_.add_column(0, 1, 0);
      program_.add_row({{either, 1}, {later, -1}}, 0, kInfinite);
      program_.add_row({{either, 1}, {rerun(k, unit), -1}}, 0, kInfinite);
      derived_.push_back({either, later, rerun(k, unit), false});
      sum.add(either, bytes);
    }
  }
}

void CheckmateProgram::add_rerun_row(int k, int unit) {
  Sum sum;
  for (int i = -1; i <= k; ++i) {
    if (i == unit) continue;  // its own are among what it holds while it runs
    if (i == unit - 1) {
      add_input(sum, k, unit);
      continue;
    }
    for (const Value v : {kOwn, kSaved, kPassed}) {
      if (i < unit)
        add_later(sum, v, k, i);
      else if (const std::size_t kept = keep(v, k, i); kept != kNone)
        sum.add(kept, size(v, i));
    }
  }
  const RotorStage& s = stage(unit);
  sum.constant += memory_of(stage(k).gradient);
  const Bytes last = s.while_last == RotorStage::kAsAgain ? s.while_saving : s.while_last;
  const std::size_t own_later = keep(kOwn, k - 1, unit);
  if (unit == k) {
    sum.add(rerun(k, unit), memory_of(last));
  } else {
    sum.add(rerun(k, unit), memory_of(s.while_passing));
    if (own_later != kNone && s.while_saving > s.while_passing) {
      const std::size_t saves = program_.add_column(0, 1, 0);
      program_.add_row({{saves, 1}, {own_later, -1}, {rerun(k, unit), -1}}, -1, kInfinite);
      derived_.push_back({saves, own_later, rerun(k, unit), true});
      sum.add(saves, memory_of(s.while_saving - s.while_passing));
    }
  }
  add_memory_row(sum);
}

void CheckmateProgram::add_backward_row(int k) {
  Sum sum;
  for (int i = -1; i < k; ++i)
    for (const Value v : {kOwn, kSaved, kPassed}) add_later(sum, v, k, i);
  sum.constant += memory_of(stage(k).while_backward);
  add_memory_row(sum);
}

// The program's own forward, and what runs between the last unit and its backward.
void CheckmateProgram::add_forward_rows() {
  const int last = units_ - 1;
  const double rest_gradient = memory_of(stage(units_).gradient);
  for (int i = 0; i <= units_; ++i) {
    const RotorStage& s = stage(i);
    Sum sum;
    for (int j = -1; j < i; ++j)
      for (const Value v : {kOwn, kSaved, kPassed}) {
        if (j == i - 1 && v != kOwn) continue;
        if (const std::size_t kept = keep(v, last, j); kept != kNone) sum.add(kept, size(v, j));
      }
    sum.constant += size(kSaved, i - 1);
    const double input = size(kPassed, i - 1);
    const bool again = s.first_saving == RotorStage::kAsAgain;
    const double saving = again ? input + memory_of(s.while_saving) + rest_gradient : memory_of(s.first_saving);
    if (i == units_) {
      Sum backward = sum;
      backward.constant += memory_of(s.while_backward);
      add_memory_row(backward);
      sum.constant += saving;
      add_memory_row(sum);
      continue;
    }
    double passing = saving, alone = saving - input;
    if (c_.is_repeatable[static_cast<std::size_t>(i)]) {
      passing = again ? input + memory_of(s.while_passing) + rest_gradient : memory_of(s.first_passing);
      alone = again ? passing - input : memory_of(s.first_passing_alone);
    }
    sum.constant += passing;
    if (const std::size_t kept = keep(kOwn, last, i); kept != kNone && saving > passing)
      sum.add(kept, saving - passing);
    if (const std::size_t kept = keep(kPassed, last, i - 1); kept != kNone)
      sum.add(kept, std::max(0.0, alone + input - passing));
    add_memory_row(sum);
  }
}

void CheckmateProgram::add_memory_row(const Sum& sum) {
  std::vector<LinearProgram::Term> terms = sum.terms;
  terms.push_back({over_, -1});
  program_.add_row(terms, -kInfinite, limit_ - sum.constant);
  memory_.push_back(sum);
}

// --- answers

std::optional<Duration> CheckmateProgram::bound() const {
  const SolverAnswer relaxed = program_.relaxed();
  if (relaxed.status != SolverStatus::optimal) return std::nullopt;
  // Rounded down by more than the solver's tolerance.
  return Duration(static_cast<std::int64_t>(std::max(0.0, relaxed.objective * (1 - 1e-6) * kTimeUnit)));
}

CheckmateSchedule CheckmateProgram::rounded() const { return schedule_of(best_rounded()); }

std::vector<double> CheckmateProgram::best_rounded() const {
  std::vector<double> best;
  double least = kInfinite;
  for (const double allowance : kAllowances) {
    LinearProgram program = program_;
    program.set_bounds(over_, -allowance * limit_, kInfinite);
    const SolverAnswer relaxed = program.relaxed();
    if (!relaxed.has_values()) continue;
    for (const double threshold : kThresholds) {
      std::vector<double> values = values_for(relaxed.values, threshold);
      const double cost = program_.cost_of(values);
      if (cost >= least) continue;
      least = cost;
      best = std::move(values);
    }
  }
  return best;
}

CheckmateSchedule CheckmateProgram::exact(const SolverLimits& limits) const {
  std::vector<double> start = best_rounded();
  if (std::vector<double> other = persistent();
      !other.empty() && (start.empty() || program_.cost_of(other) < program_.cost_of(start)))
    start = std::move(other);
  const bool start_fits = !start.empty() && start[over_] <= 0;
  SolverAnswer answer;
  if (start_fits || bound().has_value())
    answer = program_.minimise(limits, start_fits ? start : std::vector<double>{});
  else
    answer.status = SolverStatus::infeasible;
  if (answer.status == SolverStatus::infeasible) {
    LinearProgram program = program_;
    program.set_bounds(over_, 0, kInfinite);
    answer = program.minimise(limits, start);
  }
  std::vector<double> values = start;
  if (answer.has_values()) {
    values = answer.values;
    values[over_] = over_of(values);
    if (!start.empty() && program_.cost_of(start) < program_.cost_of(values) && answer.status != SolverStatus::optimal)
      values = start;
  }
  CheckmateSchedule schedule = schedule_of(values);
  schedule.is_optimal = answer.status == SolverStatus::optimal;
  return schedule;
}

// What is kept, rounded, decides what has to run again; that, what has to be kept.
std::vector<double> CheckmateProgram::values_for(const std::vector<double>& relaxed, double threshold) const {
  std::vector<double> values(program_.columns(), 0);
  for (const std::size_t column : keep_)
    if (column != kNone) values[column] = relaxed[column] >= threshold ? 1 : 0;
  satisfy(values, true);
  return values_with_reruns(values);
}

// Of `values` what runs again, and nothing kept but what is needed for it.
std::vector<double> CheckmateProgram::values_with_reruns(std::vector<double> values) const {
  for (std::size_t column = 0; column < values.size(); ++column)
    if (!std::binary_search(reruns_.begin(), reruns_.end(), column)) values[column] = 0;
  satisfy(values, false);
  fill_derived(values);
  values[over_] = over_of(values);
  return values;
}

// The fastest persistent schedule, where there is one; it is one of those among which the program chooses.
std::vector<double> CheckmateProgram::persistent() const {
  const auto schedule = RotorTable(c_.chain, static_cast<Bytes>(limit_ * kMemoryUnit), kPersistentSlots).schedule();
  if (!schedule) return {};
  std::vector<double> values(program_.columns(), 0);
  auto stage_end = schedule->steps.begin();
  const auto is_backward = [](const RotorStep& step) { return step.kind == RotorStep::Kind::backward; };
  stage_end = std::find_if(stage_end, schedule->steps.end(), is_backward);  // what comes before is the program's
  while (stage_end != schedule->steps.end()) {
    const auto begin = stage_end + 1;
    stage_end = std::find_if(begin, schedule->steps.end(), is_backward);
    for (auto step = begin; step != stage_end; ++step)
      if (const std::size_t column = rerun(static_cast<int>(stage_end->stage), static_cast<int>(step->stage));
          column != kNone)
        values[column] = 1;
  }
  return values_with_reruns(std::move(values));
}

// What each stage needs is made in it where `by_reruns`, and else kept; stages in reverse, since what is kept into one
// is needed in the one before it.
void CheckmateProgram::satisfy(std::vector<double>& values, bool by_reruns) const {
  for (int k = 0; k < units_; ++k) {
    need(kOwn, k, k, by_reruns, values);
    if (c_.reads_own_output[static_cast<std::size_t>(k)]) need(kSaved, k, k, by_reruns, values);
    need(kSaved, k, k - 1, by_reruns, values);
    for (int i = -1; i < k; ++i)
      for (const Value v : {kOwn, kSaved, kPassed})
        if (const std::size_t kept = keep(v, k - 1, i); kept != kNone && values[kept] > 0)
          need(v, k, i, by_reruns, values);
    for (int i = k; i >= 0; --i) {
      if (rerun(k, i) == kNone || values[rerun(k, i)] == 0) continue;
      need(kSaved, k, i - 1, by_reruns, values);
      need(kPassed, k, i - 1, by_reruns, values);
    }
  }
}

void CheckmateProgram::need(Value v, int k, int unit, bool by_reruns, std::vector<double>& values) const {
  if (size(v, unit) <= 0) return;
  const std::size_t kept = keep(v, k, unit), again = unit < 0 ? kNone : rerun(k, unit);
  if ((kept != kNone && values[kept] > 0) || (again != kNone && values[again] > 0)) return;
  if (again != kNone && (by_reruns || kept == kNone))
    values[again] = 1;
  else if (kept != kNone)
    values[kept] = 1;
}

void CheckmateProgram::fill_derived(std::vector<double>& values) const {
  for (const Derived& d : derived_)
    values[d.of] =
        d.both ? std::max(0.0, values[d.first] + values[d.second] - 1) : std::max(values[d.first], values[d.second]);
}

double CheckmateProgram::over_of(const std::vector<double>& values) const {
  double over = 0;
  for (const Sum& sum : memory_) {
    double bytes = sum.constant;
    for (const LinearProgram::Term& term : sum.terms) bytes += term.factor * values[term.column];
    over = std::max(over, bytes - limit_);
  }
  return over < 1e-6 * std::max(1.0, limit_) ? 0 : over;
}

CheckmateSchedule CheckmateProgram::schedule_of(const std::vector<double>& values) const {
  using Kind = RotorStep::Kind;
  CheckmateSchedule schedule;
  schedule.steps.push_back({Kind::backward, static_cast<std::uint32_t>(units_)});
  for (int k = units_ - 1; k >= 0; --k) {
    for (int i = 0; i <= k; ++i) {
      if (rerun(k, i) == kNone || values.empty() || values[rerun(k, i)] < 0.5) continue;
      const std::size_t own_later = keep(kOwn, k - 1, i);
      const bool saves = i == k || (own_later != kNone && values[own_later] > 0.5);
      schedule.steps.push_back({saves ? Kind::forward_saving : Kind::forward, static_cast<std::uint32_t>(i)});
      schedule.time += i == k ? stage(i).forward_last : stage(i).forward;
    }
    schedule.steps.push_back({Kind::backward, static_cast<std::uint32_t>(k)});
  }
  if (!values.empty()) schedule.over = values[over_] * kMemoryUnit;
  return schedule;
}

}  // namespace memwall
