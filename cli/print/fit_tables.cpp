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

std::string stop_sentence(const FitRequest& request, const FitResult& result) {
  const FitProbe* const next = result.next();
  if (next == nullptr)
    return fmt::format("That is the {} value of the axis: it may go on.", wanted(request));
  const std::string value = fmt::format("{}={}", request.axis.name, result.values[next->value]);
  if (!next->point.ran()) return fmt::format("{} fails: {}", value, next->point.record.error);
  return fmt::format("At {} this does not hold: {}.", value, fmt::join(next->broken, "; "));
}

std::vector<std::string> fit_sentences(const FitRequest& request, const FitResult& result) {
  std::vector<std::string> sentences;
  const std::string conditions = fmt::format("{}", fmt::join(request.conditions, " and "));
  if (result.edge.last)
    sentences.push_back(fmt::format("The {} {} at which {} holds is {}.", wanted(request), request.axis.name,
                                    conditions, result.values[*result.edge.last]));
  else
    sentences.push_back(fmt::format("There is no {} on the axis at which {} holds.", request.axis.name, conditions));
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

Table probe_table(const FitRequest& request, const FitResult& result) {
  Table t{.name = "probes",
          .title = "Values that were looked at",
          .columns = {request.axis.name, "holds"},
          .headings = {},
          .rows = {}};
  for (const std::string& field : request.fields) t.columns.push_back(field);
  for (const FitProbe& probe : result.probes) {
    std::vector<Cell> row{cell(result.values[probe.value]), cell(verdict(probe.point))};
    for (const std::string& field : request.fields) row.push_back(field_cell(probe.point.record, field));
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

std::vector<Table> fit_tables(const FitRequest& request, const FitResult& result) {
  return {answer_table("", fit_sentences(request, result)), probe_table(request, result)};
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
