#include "gui/model/residency_history.h"

namespace memwall::gui {
struct ResidencyHistory::Changes {};
std::shared_ptr<const ResidencyHistory> ResidencyHistory::load(const RunSource&, const LoadProgress&) {
  return std::shared_ptr<const ResidencyHistory>(new ResidencyHistory);
}
KindBytes ResidencyHistory::by_kind(std::uint32_t, Time) const { return {}; }
std::vector<KindHigh> ResidencyHistory::highs(std::uint32_t, TimeRange, std::size_t) const { return {}; }
std::vector<std::uint32_t> ResidencyHistory::alive(std::uint32_t, Time) const { return {}; }
std::vector<std::uint32_t> ResidencyHistory::life(StorageId) const { return {}; }
std::size_t ResidencyHistory::resident_bytes() const { return 0; }
}  // namespace memwall::gui
