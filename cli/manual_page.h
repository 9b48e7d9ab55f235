// Manual pages of verbs (roff), from their descriptions, options and footers: what --help prints, so that the two
// cannot differ.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace memwall {

// The verbs that have a page of their own: all but help.
std::vector<std::string> verbs_with_manual(const CLI::App& program);

// "memwall-run.1". Throws UsageError with the nearest name where there is no such verb.
std::string manual_page(const CLI::App& program, const std::string& verb);

}  // namespace memwall
