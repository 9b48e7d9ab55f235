// Where a verb's data goes: a file, written beside and renamed, or stdout.
#pragma once

#include <functional>
#include <iosfwd>
#include <string>

namespace memwall {

// `path` "" or "-" means stdout. Throws UsageError if the place cannot be written, and passes on
// what `write` throws; in neither case anything is left behind.
void write_output(const std::string& path, const std::function<void(std::ostream&)>& write);

}  // namespace memwall
