#include "cli/print/fit_tables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/print/answer.h"
#include "cli/print/sweep_tables.h"
#include "cli/print/table_cells.h"
#include "sim/json_text.h"

namespace memwall {
namespace {

constexpr int kFitSchema = 1;

const char* wanted(const FitRequest& request) { return request.largest ? "largest" : "smallest"; }

// "fits" is a verb: "the largest batch that fits", "at which step_time < 1s holds".
bool asks_only_to_fit(const FitRequest& request) { return request.conditions == std::vector<std::string>{"fits"}; }

// "3.5 GB are missing in hbm and 1.2 GB are missing in host"; "" where nothing is said to be missing.
std::string missing_text(const PointRecord& record) {
  std::string text;
  for (const auto& [name, value] : record.fields)
    if (name.starts_with("tiers.") && name.ends_with(".missing_bytes") && value > 0)
      text += fmt::format("{}{} are missing in {}", text.empty() ? "" : " and ", value_text(value, {.bytes = 1}),
                          name.substr(6, name.size() - 6 - std::string_view(".missing_bytes").size()));
  return text;
}

std::string stop_sentence(const FitRequest& request, const FitResult& result) {
  const FitProbe* const next = result.next();
  if (next == nullptr) return fmt::format("That is the {} value of the axis: it may go on.", wanted(request));
  const std::string value = fmt::format("{}={}", request.axis.name, result.values[next->value]);
  if (!next->point.ran()) return fmt::format("{} fails: {}", value, next->point.record.error);
  if (next->broken != std::vector<std::string>{"fits"})
    return fmt::format("At {} this does not hold: {}.", value, fmt::join(next->broken, "; "));
  const std::string missing = missing_text(next->point.record);
  return fmt::format("With {} it does not fit{}.", value, missing.empty() ? "" : ": " + missing);
}

std::vector<std::string> fit_sentences(const FitRequest& request, const FitResult& result) {
  std::vector<std::string> sentences;
  const std::string conditions = fmt::format("{}", fmt::join(request.conditions, " and "));
  const std::string which = asks_only_to_fit(request) ? "with which it fits" : "at which " + conditions + " holds";
  if (result.edge.last)
    sentences.push_back(fmt::format("The {} {} {} is {}.", wanted(request), request.axis.name, which,
                                    result.values[*result.edge.last]));
  else
    sentences.push_back(fmt::format("There is no {} on the axis {}.", request.axis.name, which));
  sentences.push_back(stop_sentence(request, result));
  if (!result.edge.anomalies.empty()) {
    std::vector<std::string> values;
    for (const std::size_t i : result.edge.anomalies) values.push_back(result.values[i]);
    sentences.push_back(fmt::format("The condition is not monotone: it does not hold at {} either, before that value.",
                                    fmt::join(values, ", ")));
  }
  if (!result.was_scanned)
    sentences.push_back(fmt::format("{} of {} values were looked at; what lies between two of them was not.",
                                    result.edge.probed.size(), result.values.size()));
  return sentences;
}

const char* verdict(const SweepPoint& point) { return !point.ran() ? "failed" : point.meets ? "yes" : "no"; }

Table probe_table(const FitRequest& request, const FitResult& result, const std::vector<std::string>& fields) {
  Table t{.name = "probes",
          .title = "Values that were looked at",
          .columns = {request.axis.name, "holds"},
          .headings = {},
          .rows = {}};
  t.headings = t.columns;
  for (const std::string& field : fields) {
    t.columns.push_back(field);
    t.headings.push_back(field_heading(field));
  }
  for (const FitProbe& probe : result.probes) {
    std::vector<Cell> row{cell(result.values[probe.value]), cell(verdict(probe.point))};
    for (const std::string& field : fields) row.push_back(field_cell(probe.point.record, field));
    t.rows.push_back(std::move(row));
  }
  t.screen_rows = 20;
  return t;
}

void write_list(JsonText& json, const char* name, const std::vector<std::string>& values) {
  json.key(name).begin_array();
  for (const std::string& value : values) json.value(value);
  json.end_array();
}

void write_value(JsonText& json, const std::string& value) {
  const std::optional<TypedNumber> number = typed_number(value);
  json.field("value", value).key("number");
  number ? json.value(number->value) : json.null();
  json.field("unit", to_string(number ? number->unit : FieldUnit{}));
}

void write_error(JsonText& json, const SweepPoint& point) {
  json.key("error");
  point.ran() ? json.null() : json.value(point.record.error);
}

void write_probe(JsonText& json, const FitResult& result, const FitProbe& probe) {
  json.begin_object();
  write_value(json, result.values[probe.value]);
  json.field("holds", probe.point.meets);
  write_list(json, "broken", probe.broken);
  json.key("fields").begin_object();
  for (const auto& [name, value] : probe.point.record.fields) json.field(name, value);
  json.end_object();
  write_error(json, probe.point);
  json.end_object();
}

}  // namespace

std::vector<Table> fit_tables(const FitRequest& request, const FitResult& result,
                              const std::vector<std::string>& fields) {
  return {answer_table("", fit_sentences(request, result)), probe_table(request, result, fields)};
}

std::string fit_json(const FitRequest& request, const FitResult& result) {
  JsonText json;
  json.begin_object().field("schema", kFitSchema).field("axis", request.axis.name).field("wanted", wanted(request));
  write_list(json, "conditions", request.conditions);
  json.field("found", result.edge.last.has_value());
  if (result.edge.last) write_value(json, result.values[*result.edge.last]);
  json.key("next");
  if (const FitProbe* const next = result.next()) {
    json.begin_object();
    write_value(json, result.values[next->value]);
    write_list(json, "broken", next->broken);
    write_error(json, next->point);
    json.end_object();
  } else {
    json.null();
  }
  std::vector<std::string> anomalies;
  for (const std::size_t i : result.edge.anomalies) anomalies.push_back(result.values[i]);
  json.field("monotone", anomalies.empty());
  write_list(json, "anomalies", anomalies);
  json.field("scanned", result.was_scanned).key("probes").begin_array();
  for (const FitProbe& probe : result.probes) write_probe(json, result, probe);
  json.end_array().end_object();
  return json.finish();
}

}  // namespace memwall
