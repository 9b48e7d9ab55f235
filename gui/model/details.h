// All about one op or one storage, as lines for a panel.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gui/model/open_run.h"
#include "gui/model/selection.h"

namespace memwall::gui {

// A line of a panel; where it names an op or a storage, a click goes there.
struct DetailLine {
  std::string name, value;
  std::optional<OpRef> op;
  std::optional<StorageRef> storage;
};
struct DetailSection {
  std::string title;  // "Time", "Waits for", "Followed by", "Storages"
  std::vector<DetailLine> lines;
};

// Name, kind, phase, module, times and where they come from, bytes, FLOPs and what they achieve, why it began when it
// did, predecessors (causes, the one before it in its lane, writers of what it reads), successors, storages.
std::vector<DetailSection> details_of(const OpenRun& run, OpRef op);
// Label, kind, bytes, its life across tiers, who makes, reads and frees it. Needs run.history for its life.
std::vector<DetailSection> details_of(const OpenRun& run, StorageRef storage);
// As text for the clipboard.
std::string to_text(const std::vector<DetailSection>& sections);

}  // namespace memwall::gui
