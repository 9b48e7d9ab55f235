// Rows of a validation, for people and programs, and the README that holds them.
#pragma once

#include <string>
#include <vector>

#include "cli/print/table.h"
#include "validate/report/validation.h"

namespace memwall {

// All rows; the title says how many there are of each status.
Table validation_table(const std::vector<ValidationRow>& rows);

// `page` with what stands between <!-- table begin --> and <!-- table end --> replaced by `text`. Throws InputError,
// with `name` in it, where the markers are absent.
std::string between_marks(const std::string& page, const std::string& text, const std::string& name);

// `readme` with what stands between <!-- table begin --> and <!-- table end --> replaced by the table. Throws
// InputError, with `name` in it, where the markers are absent.
std::string with_validation_table(const std::string& readme, const std::vector<ValidationRow>& rows,
                                  const std::string& name);

// One sentence per row that is outside its tolerance.
std::vector<std::string> outside_sentences(const std::vector<ValidationRow>& rows);

}  // namespace memwall
