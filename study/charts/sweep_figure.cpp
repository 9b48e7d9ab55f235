#include "study/charts/sweep_figure.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "sim/error.h"
#include "study/charts/axis_words.h"
#include "study/text_parts.h"

namespace memwall {
namespace {

constexpr std::size_t kMostHeatCells = 40'000;

struct KindOfFigure {
  const char* name;
  std::vector<std::string> keys;
};
const std::array<KindOfFigure, 5>& kinds() {
  static const std::array<KindOfFigure, 5> all{{{"line", {"x", "y", "series", "log"}},
                                                {"pareto", {"x", "y", "series", "log", "more"}},
                                                {"heatmap", {"x", "y", "value", "log"}},
                                                {"tornado", {"value", "log"}},
                                                {"budget", {"x", "y", "series", "log"}}}};
  return all;
}

class FigureReader {
 public:
  FigureReader(const std::string& text, const SweepRequest& request) : text_(text), request_(request) {
    for (const Axis& axis : request.space.axes) names_.push_back(axis.name);
  }

  SweepFigure read() {
    const std::size_t colon = std::min(text_.find(':'), text_.size());
    read_kind(text_.substr(0, colon));
    if (colon < text_.size())
      for (const auto& [key, value] : settings_of(text_.substr(colon + 1))) read_setting(key, value);
    const bool draws_all = figure_.kind == SweepFigureKind::pareto || names_.size() == 1;
    if (request_.space.sampling != Sampling::grid && !draws_all)
      fail("needs all combinations of the axes, and --sample draws some; expected pareto, or no --sample");
    choose();
    return std::move(figure_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw UsageError(fmt::format("--figure {}: {}.", text_, what));
  }

  const char* kind_name() const { return kinds()[static_cast<std::size_t>(figure_.kind)].name; }
  const std::vector<std::string>& keys() const { return kinds()[static_cast<std::size_t>(figure_.kind)].keys; }

  // --- what was said ---
  void read_kind(const std::string& word) {
    const std::vector<std::string> names = sweep_figure_names();
    const auto at = std::ranges::find(names, word);
    if (at == names.end())
      fail(fmt::format("\"{}\" is no kind of picture; expected {}{}", word, fmt::join(names, ", "),
                       did_you_mean(word, names).empty() ? "" : " (nearest: " + nearest_name(word, names) + ")"));
    figure_.kind = static_cast<SweepFigureKind>(at - names.begin());
  }

  bool is_axis(const std::string& name) const { return std::ranges::find(names_, name) != names_.end(); }
  const Axis& axis(const std::string& name) const { return *std::ranges::find(request_.space.axes, name, &Axis::name); }

  // Values may hold commas themselves (offload:what=activations,to=host): what begins with no key goes on.
  std::vector<std::pair<std::string, std::string>> settings_of(const std::string& text) const {
    std::vector<std::pair<std::string, std::string>> found;
    for (const std::string& part : parts_of(text, ',')) {
      const std::size_t equals = part.find('=');
      const std::string key = part.substr(0, equals);
      const bool begins = std::ranges::find(keys(), key) != keys().end() || is_axis(key);
      if (!begins && !found.empty() && is_axis(found.back().first)) {
        found.back().second += "," + part;
        continue;
      }
      if (!begins || equals == std::string::npos) refuse_key(key);
      found.emplace_back(key, part.substr(equals + 1));
    }
    return found;
  }

  [[noreturn]] void refuse_key(const std::string& key) const {
    fail(
        fmt::format("\"{}\" is neither a setting of {} nor an axis; expected {}=..., or one of the axes {} with its "
                    "value",
                    key, kind_name(), fmt::join(keys(), "=..., "), fmt::join(names_, ", ")));
  }

  void read_setting(const std::string& key, const std::string& value) {
    if (value.empty()) fail(fmt::format("{} has no value", key));
    if (key == "x") figure_.x = value;
    if (key == "y") figure_.y = value;
    if (key == "value") figure_.value = value;
    if (key == "series") figure_.series = parts_of(value, '+');
    if (key == "log")
      read_sides(key, value, {{"x", &figure_.log_x}, {"y", &figure_.log_y}, {"value", &figure_.log_value}});
    if (key == "more") read_sides(key, value, {{"x", &figure_.more_x}, {"y", &figure_.more_y}});
    if (std::ranges::find(keys(), key) == keys().end()) fix(key, value);
  }

  void read_sides(const std::string& key, const std::string& text,
                  const std::vector<std::pair<std::string, bool*>>& known) {
    std::vector<std::string> sides;
    for (const auto& [side, to] : known)
      if (std::ranges::find(keys(), side) != keys().end()) sides.push_back(side);
    for (const std::string& part : parts_of(text, '+')) {
      if (std::ranges::find(sides, part) == sides.end())
        fail(fmt::format("{}={}: expected {}", key, part, fmt::join(sides, " or ")));
      for (const auto& [side, to] : known) *to |= side == part;
    }
  }

  // By the value as it was typed, or as pictures call it.
  void fix(const std::string& name, const std::string& value) {
    const Axis& one = axis(name);
    for (const auto& [typed, shown] : value_names(one))
      if (typed == value || shown == value) {
        figure_.fixed.emplace_back(name, typed);
        return;
      }
    constexpr std::size_t kMostNamed = 12;
    std::vector<std::string> some = one.values;
    if (some.size() > kMostNamed) some.resize(kMostNamed), some.emplace_back("...");
    fail(fmt::format("axis {} has no value \"{}\"; expected one of {}", name, value, fmt::join(some, ", ")));
  }

  // --- what was not ---
  bool is_fixed(const std::string& name) const {
    return std::ranges::any_of(figure_.fixed, [&](const auto& one) { return one.first == name; });
  }

  // Given one value, the other has one.
  bool go_together(const std::string& one, const std::string& other) const {
    return one == other || are_zipped(request_.space.zips, one, other);
  }

  // Axes that still vary where those of `placed` and the fixed ones have a value.
  std::vector<std::string> left(const std::vector<std::string>& placed) const {
    std::vector<std::string> found;
    for (const Axis& one : request_.space.axes) {
      const auto goes = [&](const std::string& name) { return go_together(one.name, name); };
      const bool is_held = std::ranges::any_of(placed, goes) ||
                           std::ranges::any_of(figure_.fixed, [&](const auto& f) { return goes(f.first); });
      if (!is_held && (one.values.size() > 1 || one.range)) found.push_back(one.name);
    }
    return found;
  }

  void choose() {
    const std::string outcome = request_.objective.empty() ? "step_time" : kObjectiveName;
    const auto unless_said = [](std::string& name, const std::string& otherwise) {
      if (name.empty()) name = otherwise;
    };
    switch (figure_.kind) {
      case SweepFigureKind::line:
        if (figure_.x.empty()) figure_.x = chosen_line_axis();
        unless_said(figure_.y, outcome);
        return check_lines();
      case SweepFigureKind::budget:
        if (figure_.x.empty()) figure_.x = budget_axis();
        unless_said(figure_.y, "step_time");
        return check_lines();
      case SweepFigureKind::pareto:
        unless_said(figure_.x, "peak");
        unless_said(figure_.y, pareto_outcome());
        return check_pareto();
      case SweepFigureKind::heatmap:
        unless_said(figure_.value, outcome);
        return check_heat_map();
      case SweepFigureKind::tornado:
        unless_said(figure_.value, outcome);
        return require_objective(figure_.value);
    }
  }

  // Step times of different batches say little beside each other.
  std::string pareto_outcome() const {
    if (!request_.objective.empty() && full_field_name(wanted_of(request_.objective)) != full_field_name(figure_.x))
      return kObjectiveName;
    const bool varies = std::ranges::any_of(names_, [](const std::string& name) {
      return name == "batch" || name == "tokens" || name == "sequence" || name == "accumulation";
    });
    return varies ? "throughput" : "step_time";
  }

  // The first numeric axis that varies, else the first that does.
  std::string chosen_line_axis() const {
    const std::vector<std::string> varied = left({});
    const auto numeric = std::ranges::find_if(varied, [&](const std::string& name) { return is_numeric(axis(name)); });
    if (numeric != varied.end()) return *numeric;
    return varied.empty() ? names_.front() : varied.front();
  }

  std::string budget_axis() const {
    for (const char* name : {"budget", "gpu.hbm.capacity"})
      if (is_axis(name)) return name;
    fail("there is no axis \"budget\" or \"gpu.hbm.capacity\"; expected one, as in --over budget=8..40GiB:9");
  }

  void require_axis(const std::string& key, const std::string& name) const {
    if (!is_axis(name))
      fail(fmt::format("{}={}: there is no such axis; expected one of {}", key, name, fmt::join(names_, ", ")));
    if (is_fixed(name)) fail(fmt::format("axis {} is {}, and has one value as well; expected one of both", name, key));
  }

  void require_objective(const std::string& name) const {
    if (name == kObjectiveName && request_.objective.empty()) fail("there is no --objective; expected one, or a field");
  }

  void require_logarithm(const std::string& name) const {
    if (!is_axis(name)) return;
    const Axis& one = axis(name);
    if (!is_numeric(one)) fail(fmt::format("log=x: the values of axis {} are no numbers", name));
    for (const std::string& value : one.values)
      if (!(typed_number(value)->value > 0)) fail(fmt::format("log=x: axis {} has the value {}", name, value));
  }

  void check_lines() {
    require_axis("x", figure_.x);
    require_objective(figure_.y);
    if (figure_.log_x) require_logarithm(figure_.x);
    if (figure_.series.empty()) figure_.series = left({figure_.x});
    std::vector<std::string> placed = figure_.series;
    for (const std::string& name : figure_.series) {
      require_axis("series", name);
      if (name == figure_.x) fail(fmt::format("axis {} is x and series; expected two axes", name));
    }
    placed.push_back(figure_.x);
    require_nothing_left(placed, "neither x nor series");
  }

  // Says how to hold what has no place in the picture.
  void require_nothing_left(const std::vector<std::string>& placed, const char* what) const {
    const std::vector<std::string> over = left(placed);
    if (over.empty()) return;
    const Axis& one = axis(over.front());
    fail(fmt::format("axis {} has {} values and is {}; expected one of them: {}:{}={}", one.name, one.values.size(),
                     what, text_.substr(0, text_.find(':')), one.name,
                     one.values.empty() ? "VALUE" : one.values.front()));
  }

  void check_pareto() {
    for (const auto& [key, name, is_log] :
         {std::tuple("x", figure_.x, figure_.log_x), {"y", figure_.y, figure_.log_y}}) {
      require_objective(name);
      if (is_axis(name) && !is_numeric(axis(name)))
        fail(fmt::format("{}={}: the values of this axis are no numbers; expected a field, or an axis of numbers", key,
                         name));
      if (is_log) require_logarithm(name);
    }
    for (const std::string& name : figure_.series) require_axis("series", name);
    figure_.more_x |= more_is_better(figure_.x);
    figure_.more_y |= more_is_better(figure_.y);
    if (!figure_.series.empty()) return;
    for (const std::string& name : left({}))
      if (!is_numeric(axis(name))) {
        figure_.series = {name};
        return;
      }
  }

  void check_heat_map() {
    std::vector<std::string> varied = left({});
    for (std::string* name : {&figure_.x, &figure_.y}) {
      if (!name->empty()) continue;
      const std::string& other = name == &figure_.x ? figure_.y : figure_.x;
      const auto free = std::ranges::find_if(
          varied, [&](const std::string& one) { return other.empty() || !go_together(one, other); });
      if (free == varied.end())
        fail(fmt::format("a heat map needs two axes with more than one value; there {} {}",
                         varied.size() == 1 ? "is" : "are", varied.size()));
      *name = *free;
    }
    require_axis("x", figure_.x);
    require_axis("y", figure_.y);
    require_objective(figure_.value);
    if (figure_.x == figure_.y) fail(fmt::format("axis {} is x and y; expected two axes", figure_.x));
    require_nothing_left({figure_.x, figure_.y}, "neither x nor y");
    const std::size_t cells = axis(figure_.x).values.size() * axis(figure_.y).values.size();
    if (cells > kMostHeatCells) fail(fmt::format("{} cells; expected {} at most", cells, kMostHeatCells));
  }

  const std::string text_;
  const SweepRequest& request_;
  std::vector<std::string> names_;  // of axes
  SweepFigure figure_;
};

}  // namespace

SweepFigure parse_sweep_figure(const std::string& text, const SweepRequest& request) {
  return FigureReader(text, request).read();
}

std::vector<std::string> fields_of(const SweepFigure& figure, const SweepRequest& request) {
  std::vector<std::string> fields;
  for (const std::string& name : {figure.x, figure.y, figure.value}) {
    const bool is_axis = std::ranges::find(request.space.axes, name, &Axis::name) != request.space.axes.end();
    if (!name.empty() && name != kObjectiveName && !is_axis) fields.push_back(name);
  }
  return fields;
}

std::vector<std::string> sweep_figure_names() {
  std::vector<std::string> names;
  for (const KindOfFigure& kind : kinds()) names.emplace_back(kind.name);
  return names;
}

}  // namespace memwall
