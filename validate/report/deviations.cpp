#include "validate/report/deviations.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "models/workload/import/bytes/file_text.h"
#include "models/workload/import/bytes/quote_for_message.h"
#include "sim/error.h"

namespace memwall {
namespace {

std::string trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\r`");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t\r`") - first + 1);
}

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::stringstream in(line.substr(1));
  for (std::string cell; std::getline(in, cell, '|');) cells.push_back(trimmed(cell));
  if (!cells.empty() && cells.back().empty()) cells.pop_back();
  return cells;
}

bool is_rule(const std::string& line) { return line.find_first_not_of("|-: \r") == std::string::npos; }

}  // namespace

std::vector<Deviation> parse_deviations(const std::string& text, const std::string& name) {
  std::vector<Deviation> deviations;
  std::stringstream in(text);
  std::size_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (!line.starts_with("|") || is_rule(line)) continue;
    const std::vector<std::string> cells = cells_of(line);
    if (!cells.empty() && cells[0] == "machine") continue;
    if (cells.size() != 7)
      throw InputError(
          fmt::format("{}:{}: found {} cells; expected 7: machine, case, metric, ours, theirs, why, accepted or open.",
                      name, number, cells.size()));
    if (cells[6] != "accepted" && cells[6] != "open")
      throw InputError(fmt::format("{}:{}: found {} in the last cell; expected accepted or open.", name, number,
                                   quote_for_message(cells[6])));
    deviations.push_back({cells[0], cells[1], cells[2], cells[6] == "accepted"});
  }
  return deviations;
}

std::vector<Deviation> read_deviations(const std::filesystem::path& path) {
  if (path.empty() || !std::filesystem::exists(path)) return {};
  return parse_deviations(read_file_text(path), path.filename().string());
}

void accept_deviations(const std::vector<Deviation>& deviations, std::vector<ValidationRow>& rows) {
  for (ValidationRow& row : rows) {
    if (row.status != ValidationStatus::outside) continue;
    const bool accepted = std::any_of(deviations.begin(), deviations.end(), [&](const Deviation& d) {
      return d.accepted && d.machine == row.machine && d.case_name == row.case_name && d.metric == row.metric;
    });
    if (accepted) row.status = ValidationStatus::accepted;
  }
}

}  // namespace memwall
