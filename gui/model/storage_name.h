// What people call a storage, and which ops made and freed it.
#pragma once

#include <optional>
#include <string>

#include "gui/model/open_run.h"

namespace memwall::gui {

// Who made a storage: the first op that writes it, else the one that allocated it. Nothing where it was there before
// the first op, or the run does not tell. The allocation is looked for where its first residency begins, if run.history is
// loaded. Throws InputError.
std::optional<OpId> maker_of(const OpenRun& run, StorageId storage);

// The op that frees it, looked for where its last residency ends. Throws InputError.
std::optional<OpId> free_of(const OpenRun& run, StorageId storage);

// A storage as people see it: its label, else the op that made it; with module and phase of that. Throws InputError.
struct StorageName {
  std::string label, module;
  Phase phase = Phase::unknown;
};
// Without run.history the label is not known. REQUIRES: the storage is one of the run's.
StorageName name_of(const OpenRun& run, StorageId storage);

}  // namespace memwall::gui
