#include "gui/model/resident_set.h"

namespace memwall::gui {
ResidentSet resident_set(const OpenRun&, std::uint32_t, Time) { return {}; }
StorageName name_of(const OpenRun&, StorageId) { return {}; }
PeakExplanation explain_peak(const OpenRun&, std::uint32_t) { return {}; }
}  // namespace memwall::gui
