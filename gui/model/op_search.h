// Ops and storages by words.
#pragma once

#include <string>
#include <vector>

#include "gui/model/open_run.h"
#include "gui/model/selection.h"

namespace memwall::gui {

struct SearchResult {
  std::vector<OpRef> ops;            // ascending; `call` is not set: what has no work shows its call
  std::vector<StorageRef> storages;  // ascending
  bool complete = true;              // false: there are more than kMostFound
};
inline constexpr std::size_t kMostFound = 100'000;

// All words of `text` occur in one of name, operator and module (in labels, of storages), letters of either case.
// Words may stand in any order. "#123" is op 123, "storage 45" is storage 45. An empty text finds nothing. Throws
// InputError, LoadCancelled.
SearchResult search(const OpenRun& run, std::uint8_t number, const std::string& text, const LoadProgress& progress);

}  // namespace memwall::gui
