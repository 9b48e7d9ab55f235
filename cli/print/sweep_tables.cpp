#include "cli/print/sweep_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "cli/print/answer.h"
#include "cli/print/shell_word.h"
#include "cli/print/table_cells.h"
#include "sim/error.h"
#include "sim/json_text.h"
#include "study/scenario.h"

namespace memwall {
namespace {

constexpr std::size_t kScreenRows = 20;
constexpr int kSchema = 1;
constexpr std::size_t kNamedFailures = 5;

Cell value_cell(std::optional<double> value, FieldUnit unit) {
  return value ? number_cell(value_text(*value, unit), plain_number(*value)) : number_cell("-", "");
}

// In the order in which points first have them.
std::vector<std::string> all_fields_of(const SweepResult& result) {
  std::vector<std::string> names;
  std::map<std::string, bool> seen;
  for (const SweepPoint& point : result.points)
    for (const auto& [name, value] : point.record.fields)
      if (seen.try_emplace(name, true).second) names.push_back(name);
  return names;
}

Table point_table(const SweepResult& result, const std::vector<std::string>& fields) {
  Table t{.name = "points",
          .title = result.best ? "Points, the best first" : "Points",
          .columns = {"point"},
          .headings = {},
          .rows = {}};
  for (const std::string& axis : result.axes) t.columns.push_back(axis);
  t.columns.push_back("meets");
  if (result.best) t.columns.push_back("objective");
  t.headings = t.columns;
  for (const std::string& name : fields) {
    t.columns.push_back(name);
    t.headings.push_back(field_heading(name));
  }
  for (const std::size_t i : order_of(result)) {
    const SweepPoint& point = result.points[i];
    std::vector<Cell> row{count_cell(i + 1)};
    for (const std::string& value : point.values) row.push_back(cell(value.empty() ? "-" : value, value));
    row.push_back(cell(!point.ran() ? "failed" : point.meets ? "yes" : "no"));
    if (result.best) row.push_back(value_cell(point.objective, result.objective_unit));
    for (const std::string& name : fields) {
      row.push_back(field_cell(point.record, name));
    }
    t.rows.push_back(std::move(row));
  }
  t.screen_rows = kScreenRows;
  return t;
}

Table failure_table(const SweepResult& result) {
  Table t{.name = "failures",
          .title = "Points that failed, by what they say",
          .columns = {"points", "sentence"},
          .headings = {"points", "the first one's sentence"},
          .rows = {}};
  for (const auto& [sentence, count] : result.failures_by_cause())
    t.rows.push_back({count_cell(count), cell(sentence)});
  t.screen_rows = kNamedFailures;
  return t;
}

// Where nothing meets the conditions: which of them are in the way.
std::string why_none_meets(const SweepResult& result) {
  std::string text = "No point meets the conditions:";
  for (std::size_t c = 0; c < result.conditions.size(); ++c) {
    const auto holds = std::ranges::count_if(result.points, [&](const SweepPoint& p) {
      return p.ran() && std::ranges::find(p.broken, c) == p.broken.end();
    });
    text += fmt::format("{} {} holds at {}", c == 0 ? "" : ",", result.conditions[c], holds);
  }
  return text + ".";
}

std::string best_sentence(const SweepResult& result) {
  const SweepPoint& best = result.points[*result.best];
  const std::size_t ties = result.ties();
  return fmt::format(
      "The {} {} is {}, at point {}: {}.{}", result.minimizes ? "least" : "largest", result.objective,
      value_text(*best.objective, result.objective_unit), *result.best + 1, point_text(result, best),
      ties == 0 ? "" : fmt::format(" {} as good.", ties == 1 ? "1 other is" : fmt::format("{} others are", ties)));
}

std::string effectless_sentence(const SweepResult& result) {
  const std::vector<std::string> axes = result.effectless_axes();
  if (axes.empty()) return "";
  return fmt::format("{} no time and no peak at any point.", axes.size() == 1
                                                                 ? fmt::format("The axis {} changes", axes.front())
                                                                 : fmt::format("The axes {} change", listed(axes)));
}

std::string folded_sentence(const SweepResult& result) {
  const auto folded = static_cast<std::size_t>(
      std::ranges::count_if(result.points, [](const SweepPoint& p) { return p.record.find("folded").has_value(); }));
  if (folded == 0) return "";
  return fmt::format(
      "{} many GPUs with folded passes: peaks are those of memwall run, steps about 1 % apart "
      "(--written-out for every operator).",
      folded == 1 ? "1 point is a job over" : fmt::format("{} points are jobs over", folded));
}

std::vector<std::string> sentences_of(const SweepResult& result) {
  const auto count = [&](const auto& is) {
    return static_cast<std::uint64_t>(std::ranges::count_if(result.points, is));
  };
  std::vector<std::string> sentences;
  const std::uint64_t meets = count([](const SweepPoint& p) { return p.meets; });
  if (result.best) sentences.push_back(best_sentence(result));
  sentences.push_back(fmt::format("{}: {} ran, {} of them meet the conditions, {} failed.",
                                  counted_text(result.points.size(), "point"), result.points.size() - result.failures(),
                                  meets, result.failures()));
  if (const std::string folded = folded_sentence(result); !folded.empty()) sentences.push_back(folded);
  if (meets == 0 && !result.conditions.empty()) sentences.push_back(why_none_meets(result));
  if (meets > 0 && !result.best && !result.objective.empty())
    sentences.push_back(fmt::format("The objective {} is known at none of them.", result.objective));
  if (const std::string effectless = effectless_sentence(result); !effectless.empty()) sentences.push_back(effectless);
  if (result.best)
    sentences.push_back("Again: memwall run " + shell_quoted(to_text(result.points[*result.best].scenario)));
  if (!result.journal_failure.empty()) sentences.push_back(result.journal_failure);
  return sentences;
}

std::string csv_quoted(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

void write_point(JsonText& json, const SweepResult& result, std::size_t index) {
  const SweepPoint& point = result.points[index];
  json.begin_object().field("point", static_cast<std::uint64_t>(index + 1)).key("axes").begin_object();
  for (std::size_t a = 0; a < result.axes.size(); ++a) {
    json.key(result.axes[a]);
    point.values[a].empty() ? json.null() : json.value(point.values[a]);
  }
  json.end_object().field("meets", point.meets).key("objective");
  point.objective ? json.value(*point.objective) : json.null();
  json.key("fields").begin_object();
  for (const auto& [name, value] : point.record.fields) json.field(name, value);
  json.end_object().field("scenario", to_text(point.scenario)).key("error");
  point.ran() ? json.null() : json.value(point.record.error);
  json.end_object();
}

}  // namespace

std::vector<std::size_t> order_of(const SweepResult& result) {
  std::vector<std::size_t> order(result.points.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (!result.best) return order;
  const auto rank = [&](std::size_t i) {
    const SweepPoint& point = result.points[i];
    const double objective = point.objective.value_or(0);
    return std::tuple(point.ran() ? (point.meets ? 0 : 1) : 2, point.objective ? 0 : 1,
                      result.minimizes ? objective : -objective);
  };
  std::ranges::stable_sort(order, {}, rank);
  return order;
}

std::vector<Table> sweep_tables(const SweepResult& result, const std::vector<std::string>& fields,
                                const std::string& title) {
  std::vector<Table> tables{answer_table(title, sentences_of(result)), point_table(result, fields)};
  if (result.failures() > 0) tables.push_back(failure_table(result));
  return tables;
}

std::string sweep_csv(const SweepResult& result) {
  const std::vector<std::string> fields = all_fields_of(result);
  std::string text = "point";
  for (const std::string& axis : result.axes) text += "," + csv_quoted(axis);
  text += ",meets,objective";
  for (const std::string& name : fields) text += "," + csv_quoted(name);
  text += ",scenario,error\n";
  for (std::size_t i = 0; i < result.points.size(); ++i) {
    const SweepPoint& point = result.points[i];
    text += std::to_string(i + 1);
    for (const std::string& value : point.values) text += "," + csv_quoted(value);
    text += point.meets ? ",1," : ",0,";
    if (point.objective) text += plain_number(*point.objective);
    std::size_t next = 0;  // mostly fields stand in the same order
    for (const std::string& name : fields) {
      text += ",";
      const auto& own = point.record.fields;
      if (next < own.size() && own[next].first == name)
        text += plain_number(own[next++].second);
      else if (const auto value = point.record.find(name))
        text += plain_number(*value);
    }
    text += "," + csv_quoted(to_text(point.scenario)) + "," + csv_quoted(point.record.error) + "\n";
  }
  return text;
}

std::string sweep_ndjson(const SweepResult& result) {
  std::string text;
  for (std::size_t i = 0; i < result.points.size(); ++i) {
    JsonText json(JsonText::Layout::line);
    write_point(json, result, i);
    text += json.finish();
  }
  return text;
}

std::string sweep_json(const SweepResult& result) {
  JsonText json;
  json.begin_object().field("schema", kSchema).key("axes").begin_array();
  for (const std::string& axis : result.axes) json.value(axis);
  json.end_array().key("fields").begin_array();
  for (const std::string& name : all_fields_of(result))
    json.begin_object().field("name", name).field("unit", to_string(unit_of_field(name))).end_object();
  json.end_array().field("minimizes", result.minimizes).key("best");
  result.best ? json.value(static_cast<std::uint64_t>(*result.best + 1)) : json.null();
  json.key("failures").begin_array();
  for (const auto& [sentence, count] : result.failures_by_cause())
    json.begin_object().field("points", static_cast<std::uint64_t>(count)).field("sentence", sentence).end_object();
  json.end_array().key("points").begin_array();
  for (std::size_t i = 0; i < result.points.size(); ++i) write_point(json, result, i);
  json.end_array().end_object();
  return json.finish();
}

std::string field_heading(const std::string& name) { return name == "peak" ? "peak reserved" : name; }

Cell field_cell(const PointRecord& record, const std::string& name) {
  const std::string full = full_field_name(name);
  const std::optional<double> value = record.find(full);
  if (is_truth_field(full) && value) return number_cell(*value != 0 ? "yes" : "no", *value != 0 ? "1" : "0");
  return value_cell(value, unit_of_field(full));
}

std::string point_text(const SweepResult& result, const SweepPoint& point) {
  std::string text;
  for (std::size_t a = 0; a < result.axes.size(); ++a)
    if (!point.values[a].empty())
      text += fmt::format("{}{}={}", text.empty() ? "" : ", ", result.axes[a], point.values[a]);
  return text.empty() ? "the step as it is" : text;
}

std::string value_text(double value, FieldUnit unit) {
  if (unit == FieldUnit{.seconds = 1}) return human_time(value);
  if (unit == FieldUnit{.bytes = 1} && std::abs(value) < 0x1p62) return human_bytes(static_cast<Bytes>(value));
  if (unit == FieldUnit{.seconds = -1, .bytes = 1}) return human_rate(value);
  if (unit == FieldUnit{.seconds = -1}) return fmt::format("{:.5g}/s", value);
  return unit.is_plain() ? fmt::format("{:.5g}", value) : fmt::format("{:.5g} {}", value, to_string(unit));
}

}  // namespace memwall
