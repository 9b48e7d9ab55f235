#include "study/sweep/asked_points.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <istream>
#include <utility>

#include "sim/error.h"
#include "sim/json_text.h"
#include "study/parallel_tasks.h"
#include "study/sweep/axis_check.h"
#include "study/sweep/axis_target.h"
#include "study/sweep/point_outcome.h"

namespace memwall {

namespace dom = simdjson::dom;

// What a line asks for.
struct AskedPoints::Asked {
  std::string id = "null";  // as JSON
  std::vector<Axis> axes{};
};

namespace {

constexpr std::size_t kLongestLine = 1 << 20;

// As one types it.
std::string value_of(const std::string& axis, dom::element value) {
  std::string_view text;
  if (!value.get(text)) return std::string(text);
  std::int64_t whole = 0;
  if (value.is<std::int64_t>() && !value.get(whole)) return fmt::format("{}", whole);
  double number = 0;
  if (value.is<double>() && !value.get(number)) return fmt::format("{}", number);
  throw UsageError(fmt::format("\"set\" gives {} as {}; expected a text or a number, as in \"32GB/s\" or 8.", axis,
                               simdjson::minify(value)));
}

std::vector<Axis> axes_of(dom::element set, const std::vector<Axis>& known) {
  dom::object values;
  if (set.get(values))
    throw UsageError(fmt::format("\"set\" is {}; expected an object of axes and their values.", simdjson::minify(set)));
  std::vector<std::string> names;
  for (const Axis& axis : known) names.push_back(axis.name);
  std::vector<Axis> axes;
  for (const auto& [key, value] : values) {
    std::string name(key);
    if (std::ranges::find(axes, name, &Axis::name) != axes.end())
      throw UsageError(fmt::format("\"set\" gives {} twice; expected it once.", name));
    if (!known.empty() && std::ranges::find(names, name) == names.end())
      throw UsageError(fmt::format("\"set\" gives {}, which is no axis of --over; expected one of {}.{}", name,
                                   listed(names), did_you_mean(name, names)));
    if (!value.is_null()) axes.push_back({.name = name, .values = {value_of(name, value)}});
  }
  return axes;
}

// Values as the axes of the goal have them.
PointValues values_of(const std::vector<Axis>& axes, const std::vector<Axis>& set) {
  PointValues values;
  for (const Axis& axis : axes) {
    const auto found = std::ranges::find(set, axis.name, &Axis::name);
    values.push_back(found == set.end() ? "" : found->values.front());
  }
  return values;
}

void write_number(JsonText& json, const std::string& name, std::optional<double> value) {
  json.key(name);
  value ? json.value(*value) : json.null();
}

// Behind the id, which is written as it came.
std::string answer_text(const std::string& id, const SweepPoint& point, const std::string& objective,
                        const std::vector<std::string>& fields, bool says_scenario) {
  JsonText json(JsonText::Layout::line);
  json.begin_object().key("objectives").begin_object();
  if (!objective.empty()) write_number(json, objective, point.objective);
  json.end_object().key("fits");
  const std::optional<double> fits = point.record.find("fits");
  fits ? json.value(*fits != 0) : json.null();
  json.field("feasible", point.meets).key("fields").begin_object();
  for (const std::string& field : fields) write_number(json, field, point.record.find(full_field_name(field)));
  json.end_object().key("scenario");
  says_scenario ? json.value(to_text(point.scenario)) : json.null();
  json.key("error");
  point.ran() ? json.null() : json.value(point.record.error);
  return fmt::format("{{\"id\":{},{}", id, json.end_object().finish().substr(1));
}

bool names_axis(const std::string& name, const Scenario& base) {
  try {
    (void)axis_target(name, base, {});
    return true;
  } catch (const UsageError&) {
    return false;
  }
}

void refuse_mistyped(const SweepGoal& goal, const std::vector<Axis>& axes, const PointRecord& record) {
  for (const std::string& name : goal.fields())
    if (!record.find(name) && seems_mistyped(name, axes))
      throw UsageError(fmt::format("No point has a field \"{}\"; expected one of docs/run_json.md, or an axis.{}", name,
                                   nearest_field(name, axes, {&record})));
}

}  // namespace

AskedPoints::AskedPoints(Study& study, AskedRequest request, SweepJournal* journal)
    : study_(study), request_(std::move(request)), journal_(journal), folded_(study) {
  SweepGoal goal(request_.axes, request_.conditions, request_.objective, request_.fields);
  require_spelt(goal);
  if (!request_.axes.empty()) goal_.emplace(std::move(goal));
}

// A program that searches would otherwise wait for an objective that no answer has.
void AskedPoints::require_spelt(const SweepGoal& goal) {
  const Scenario& base = request_.base;
  const bool is_doubtful = std::ranges::any_of(goal.fields(), [&](const std::string& name) {
    return seems_mistyped(name, request_.axes) && (!request_.axes.empty() || !names_axis(name, base));
  });
  if (!is_doubtful || base.step.empty()) return;
  const PointRecord record = point_outcome(study_, base, {.needs_all = true, .accept_gaps = request_.accept_gaps});
  if (record.error.empty()) refuse_mistyped(goal, request_.axes, record);  // else lines may set what the base lacks
}

PointRecord AskedPoints::record_of(const Scenario& scenario, const SweepGoal& goal) {
  const bool needs_all = goal.needs_all(),
             folds = !request_.written_out && std::ranges::all_of(goal.fields(), is_folded_field);
  const PointSettings settings{needs_all, request_.accept_gaps, folds ? &folded_ : nullptr};
  if (journal_ == nullptr) return point_outcome(study_, scenario, settings);
  std::string key;
  try {
    key = keys_.key(scenario, request_.accept_gaps, folds && FoldedScenarios::takes(study_, scenario));
  } catch (const InputError& error) {
    return failed_point("input", error);
  }
  {
    const std::lock_guard lock(mutex_);
    if (auto kept = journal_->find(key, needs_all)) return std::move(*kept);
  }
  PointRecord record = point_outcome(study_, scenario, settings);
  const std::lock_guard lock(mutex_);
  journal_->add(key, scenario, record);
  return record;
}

SweepPoint AskedPoints::point_of(const Asked& asked, const SweepGoal& goal) {
  SweepPoint point;
  AxisTargets targets;
  PointValues values;
  for (const Axis& axis : asked.axes) {
    targets.push_back(axis_target(axis.name, request_.base, asked.axes));
    values.push_back(axis.values.front());
  }
  require_separate(asked.axes, targets, request_.base);
  point.scenario = scenario_at(values, request_.base, targets);
  if (point.scenario.step.empty())
    throw UsageError("There is no step; expected one in the command, or \"step\" among the axes that are set.");
  point.values = values_of(request_.axes.empty() ? asked.axes : request_.axes, asked.axes);
  point.record = record_of(point.scenario, goal);
  if (point.ran()) refuse_mistyped(goal, asked.axes, point.record);
  goal.judge(point);
  return point;
}

std::string AskedPoints::answer(const std::string& line, std::size_t number) {
  Asked asked;
  SweepPoint point;
  bool is_asked = false;
  try {
    if (line.size() > kLongestLine)
      throw UsageError(fmt::format("it has {} bytes; expected at most {}", line.size(), kLongestLine));
    dom::parser parser;
    const simdjson::padded_string text(line);
    dom::object asks;
    if (parser.parse(text).get(asks))
      throw UsageError("it is no object of JSON; expected {\"id\": ..., \"set\": {AXIS: VALUE, ...}}.");
    for (const auto& [key, value] : asks) {
      if (key == "id")
        asked.id = simdjson::minify(value);
      else if (key != "set")
        throw UsageError(fmt::format("it has a key \"{}\"; expected \"id\" and \"set\".", key));
    }
    dom::element set;
    if (asks["set"].get(set)) throw UsageError("it has no \"set\"; expected the axes and their values in it.");
    asked.axes = axes_of(set, request_.axes);
    is_asked = true;
    point = goal_ ? point_of(asked, *goal_)
                  : point_of(asked, SweepGoal(asked.axes, request_.conditions, request_.objective, request_.fields));
  } catch (const UsageError& error) {
    point = {};
    point.record.error = is_asked ? error.what() : fmt::format("Line {}: {}", number, error.what());
  } catch (const InputError& error) {
    if (journal_ != nullptr && is_asked) throw;  // a damaged journal is not this point's
    point = {};
    point.record.error = error.what();
  }
  const std::string objective = request_.objective.empty() ? "" : wanted_of(request_.objective);
  return answer_text(asked.id, point, objective, request_.fields, !point.scenario.step.empty());
}

std::size_t answer_all(std::istream& in, AskedPoints& points, unsigned jobs,
                       const std::function<void(const std::string&)>& tell) {
  std::mutex reading, telling;
  std::size_t lines = 0;
  bool is_over = false;
  // Each thread waits for the next line by itself: what is asked is computed while others are awaited.
  const auto work = [&] {
    for (;;) {
      std::string line;
      std::size_t number = 0;
      {
        const std::lock_guard lock(reading);
        if (is_over || !std::getline(in, line)) return;
        number = ++lines;
      }
      if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
      try {
        const std::string answer = points.answer(line, number);
        const std::lock_guard lock(telling);
        tell(answer);
      } catch (...) {
        const std::lock_guard lock(reading);
        is_over = true;
        throw;
      }
    }
  };
  const unsigned threads = std::max(1u, jobs);
  run_tasks(std::vector<std::function<void()>>(threads, work), threads);
  return lines;
}

}  // namespace memwall
