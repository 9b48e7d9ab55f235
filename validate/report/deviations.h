// What is known to be off and has been explained: the table of validate/DEVIATIONS.md.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "validate/report/validation.h"

namespace memwall {

struct Deviation {
  std::string machine, case_name, metric;
  bool accepted = false;  // else open
};

// Rows of the Markdown table machine | case | metric | ours | theirs | why | accepted or open; text around it is
// for people. No file: none. Throws InputError "FILE:LINE: found, expected".
std::vector<Deviation> read_deviations(const std::filesystem::path& path);
std::vector<Deviation> parse_deviations(const std::string& text, const std::string& name);

// Rows that are outside and accepted under their machine, case and metric become `accepted`.
void accept_deviations(const std::vector<Deviation>& deviations, std::vector<ValidationRow>& rows);

}  // namespace memwall
