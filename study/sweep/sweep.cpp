#include "study/sweep/sweep.h"

#include <fmt/format.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <mutex>
#include <utility>

#include "sim/error.h"
#include "study/sweep/axis_target.h"
#include "study/sweep/outcome_fields.h"

namespace memwall {
namespace {

// Names that people write, and the field that is meant.
constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kShortNames = {
    {{"step_time", "step_time_s"},
     {"peak", "tiers.hbm.peak_reserved_bytes"},
     {"peak_reserved", "tiers.hbm.peak_reserved_bytes"},
     {"peak_allocated", "tiers.hbm.peak_allocated_bytes"},
     {"missing", "tiers.hbm.missing_bytes"},
     {"throughput", "samples_per_s"},
     {"price", "price_dollars"},
     {"energy", "energy_joules"}}};

// More of them is better.
constexpr std::array<std::string_view, 3> kMoreIsBetter = {"samples_per_s", "tokens_per_s", "mfu"};

PointRecord failed(const char* cause, const std::exception& error) { return {.error = error.what(), .cause = cause}; }

// Numbers and quoted names make one cause many.
std::string cause_of(const std::string& sentence) {
  std::string cause;
  for (const char c : sentence) {
    const bool is_digit = std::isdigit(static_cast<unsigned char>(c)) || c == '.';
    if (!is_digit)
      cause += c;
    else if (cause.empty() || cause.back() != '#')
      cause += '#';
  }
  return cause;
}

class Sweeper {
 public:
  Sweeper(Study& study, const SweepRequest& request, SweepJournal* journal, const SweepWatch& watch)
      : study_(study), request_(request), journal_(journal), watch_(watch) {
    read_axes();
    read_expressions();
  }

  SweepResult run() {
    make_points();
    find_finished();
    run_rest();
    if (journal_ != nullptr) {
      result_.journal_failure = journal_->failure();
    }
    require_fields();
    judge_all();
    return std::move(result_);
  }

 private:
  // --- what was asked ---
  void read_axes() {
    for (const Axis& axis : request_.space.axes) {
      result_.axes.push_back(axis.name);
      targets_.push_back(axis_target(axis.name, request_.base, request_.space.axes));
    }
  }

  bool is_axis(const std::string& name) const { return std::ranges::find(result_.axes, name) != result_.axes.end(); }

  // An axis has the unit of its values, of which all have one.
  FieldUnit unit_of(const std::string& name) const {
    const auto axis = std::ranges::find(request_.space.axes, name, &Axis::name);
    if (axis == request_.space.axes.end()) return unit_of_field(full_field_name(name));
    std::optional<FieldUnit> unit;
    for (const std::string& value : axis->values) {
      const std::optional<TypedNumber> number = typed_number(value);
      if (!number || (unit && !(*unit == number->unit)))
        throw UsageError(
            fmt::format("Axis {} stands in an expression, and its value {} is {}; expected numbers of one "
                        "unit.",
                        name, value, number ? "of another unit than those before" : "no number"));
      unit = number->unit;
    }
    return *unit;
  }

  Expression read(const std::string& text) {
    Expression expression(text, [this](const std::string& name) { return unit_of(name); });
    for (const std::string& name : expression.names()) want(name);
    return expression;
  }

  void want(const std::string& name) {
    if (is_axis(name)) return;
    wanted_.push_back(full_field_name(name));
    needs_all_ |= !is_quick_field(wanted_.back());
  }

  void read_expressions() {
    for (const std::string& text : request_.conditions) conditions_.push_back(read(text));
    for (const std::string& name : request_.fields) want(name);
    std::string text = request_.objective;
    if (text.empty()) return;
    bool maximizes = std::ranges::find(kMoreIsBetter, full_field_name(text)) != kMoreIsBetter.end();
    for (const auto& [word, is_most] : {std::pair("max ", true), std::pair("min ", false)})
      if (text.starts_with(word)) maximizes = is_most, text.erase(0, 4);
    objective_.emplace(read(text));
    result_.minimizes = !maximizes;
    result_.objective_unit = objective_->unit();
  }

  // --- points ---
  void make_points() {
    for (PointValues& values : points_of(request_.space)) {
      SweepPoint point;
      try {
        point.scenario = scenario_at(values, request_.base, targets_);
      } catch (const UsageError& error) {
        point.scenario = request_.base;
        point.record = failed("usage", error);
      }
      point.values = std::move(values);
      result_.points.push_back(std::move(point));
    }
    progress_.of = result_.points.size();
  }

  void find_finished() {
    if (journal_ != nullptr) {
      keys_.resize(result_.points.size());
      point_keys_.emplace();
      for (std::size_t i = 0; i < result_.points.size(); ++i) {
        SweepPoint& point = result_.points[i];
        if (!point.ran()) continue;
        keys_[i] = point_keys_->key(point.scenario);
        if (auto kept = journal_->find(keys_[i], needs_all_)) {
          point.record = std::move(*kept);
          point.is_kept = true;
        }
      }
    }
    for (std::size_t i = 0; i < result_.points.size(); ++i) {
      const SweepPoint& point = result_.points[i];
      if (point.is_kept || !point.ran())
        note(i);
      else
        left_.push_back(i);
    }
    tell();
  }

  // Neighbours share what they are made of: each thread takes a few in a row.
  void run_rest() {
    tbb::task_arena arena(static_cast<int>(std::max(1u, request_.jobs)));
    arena.execute([&] {
      tbb::parallel_for(tbb::blocked_range<std::size_t>(0, left_.size(), 1), [&](const auto& range) {
        for (std::size_t i = range.begin(); i < range.end(); ++i) run_point(left_[i]);
      });
    });
  }

  void run_point(std::size_t index) {
    SweepPoint& point = result_.points[index];
    PointRecord record = outcome_of(point.scenario);
    const std::lock_guard lock(mutex_);
    point.record = std::move(record);
    if (journal_ != nullptr) journal_->add(keys_[index], point.scenario, point.record);
    note(index);
    tell();
  }

  PointRecord outcome_of(const Scenario& scenario) {
    try {
      const Outcome outcome = study_.run(scenario, {.record = false});
      return {.fields = (needs_all_ ? all_fields(outcome.run) : quick_fields(outcome.run)).all(),
              .has_all = needs_all_};
    } catch (const UsageError& error) {
      return failed("usage", error);
    } catch (const InputError& error) {
      return failed("input", error);
    } catch (const InfeasibleError& error) {
      return failed("infeasible", error);
    } catch (const std::exception& error) {  // of memory, of a file system: this point's, not the study's
      return failed("internal", error);
    }
  }

  // --- what comes of it ---
  void note(std::size_t index) {
    SweepPoint& point = result_.points[index];
    ++progress_.done;
    progress_.failed += point.ran() ? 0 : 1;
    progress_.kept += point.is_kept ? 1 : 0;
    judge(point);
    if (progress_.best == nullptr ? point.meets && point.objective.has_value() : is_better(point, *progress_.best))
      progress_.best = &point;
  }

  void tell() const {
    if (watch_) watch_(progress_);
  }

  void judge(SweepPoint& point) const {
    if (!point.ran()) return;
    const FieldLookup lookup = [&](const std::string& name) { return value_of(point, name); };
    point.meets = std::ranges::all_of(conditions_, [&](const Expression& c) { return c.holds(lookup); });
    if (objective_) point.objective = objective_->value(lookup);
  }

  std::optional<double> value_of(const SweepPoint& point, const std::string& name) const {
    const auto axis = std::ranges::find(result_.axes, name);
    if (axis != result_.axes.end()) {
      if (const auto number = typed_number(point.values[static_cast<std::size_t>(axis - result_.axes.begin())]))
        return number->value;
      return std::nullopt;
    }
    return point.record.find(full_field_name(name));
  }

  bool is_better(const SweepPoint& one, const SweepPoint& other) const {
    if (!one.meets || !one.objective) return false;
    return result_.minimizes ? *one.objective < *other.objective : *one.objective > *other.objective;
  }

  // In the order of points, whatever the order in which they finished: of equals the first.
  void judge_all() {
    for (std::size_t i = 0; i < result_.points.size(); ++i) {
      SweepPoint& point = result_.points[i];
      judge(point);
      if (!point.meets || !point.objective) continue;
      if (!result_.best || is_better(point, result_.points[*result_.best])) result_.best = i;
    }
  }

  // A name that no point has is a mistake; one that some lack is not known there.
  void require_fields() const {
    std::vector<std::string> known = result_.axes;
    bool any = false;
    for (const SweepPoint& point : result_.points) {
      if (!point.ran()) continue;
      any = true;
      for (const auto& [name, value] : point.record.fields) known.push_back(name);
      const bool are_there = std::ranges::all_of(
          wanted_, [&](const std::string& name) { return std::ranges::find(known, name) != known.end(); });
      if (are_there) return;
      known.erase(known.begin() + static_cast<std::ptrdiff_t>(result_.axes.size()), known.end());
    }
    if (!any) return;
    for (const SweepPoint& point : result_.points)
      for (const auto& [name, value] : point.record.fields) known.push_back(name);
    for (const std::string& name : wanted_)
      if (std::ranges::find(known, name) == known.end())
        throw UsageError(fmt::format("No point has a field \"{}\"; expected one of docs/run_json.md, or an axis.{}",
                                     name, did_you_mean(name, known)));
  }

  Study& study_;
  const SweepRequest& request_;
  SweepJournal* journal_;
  const SweepWatch& watch_;
  std::optional<PointKeys> point_keys_;
  std::vector<std::unique_ptr<AxisTarget>> targets_;
  std::vector<Expression> conditions_;
  std::optional<Expression> objective_;
  std::vector<std::string> wanted_;  // fields, by their full names
  bool needs_all_ = false;
  std::vector<std::string> keys_;
  std::vector<std::size_t> left_;
  std::mutex mutex_;
  SweepProgress progress_;
  SweepResult result_;
};

}  // namespace

std::size_t SweepResult::failures() const {
  return static_cast<std::size_t>(std::ranges::count_if(points, [](const SweepPoint& p) { return !p.ran(); }));
}

std::vector<std::pair<std::string, std::size_t>> SweepResult::failures_by_cause() const {
  std::vector<std::pair<std::string, std::size_t>> groups;
  std::map<std::string, std::size_t> group_of;
  for (const SweepPoint& point : points) {
    if (point.ran()) continue;
    const auto [at, is_new] = group_of.try_emplace(cause_of(point.record.error), groups.size());
    if (is_new) groups.emplace_back(point.record.error, 0);
    ++groups[at->second].second;
  }
  std::ranges::stable_sort(groups, std::greater{}, &std::pair<std::string, std::size_t>::second);
  return groups;
}

SweepResult sweep(Study& study, const SweepRequest& request, SweepJournal* journal, const SweepWatch& watch) {
  return Sweeper(study, request, journal, watch).run();
}

std::string full_field_name(const std::string& name) {
  const auto found = std::ranges::find(kShortNames, name, &std::pair<std::string_view, std::string_view>::first);
  return found == kShortNames.end() ? name : std::string(found->second);
}

}  // namespace memwall
