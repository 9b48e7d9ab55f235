// Where a verb's data goes: a file, written beside and renamed, or stdout.
#pragma once

#include <filesystem>
#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

namespace memwall {

// `path` "" or "-" means stdout. Throws UsageError if the place cannot be written, and passes on
// what `write` throws; in neither case anything is left behind.
void write_output(const std::string& path, const std::function<void(std::ostream&)>& write);

// What a verb says about what it wrote: on stdout, unless that is where `path` went; on stderr then.
void print_beside(const std::string& path, const std::string& report);

// Throws UsageError if writing `path` and renaming it would destroy something: a file that was read
// (`inputs`), a device, a folder. "" and "-" are stdout.
void require_harmless(const std::string& path, const std::vector<std::filesystem::path>& inputs);

}  // namespace memwall
