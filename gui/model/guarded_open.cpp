#include "gui/model/guarded_open.h"

namespace memwall::gui {
std::optional<std::string> refused_by_probe(const std::filesystem::path&, const std::filesystem::path&,
                                            const ProbeLimits&, const LoadProgress&) {
  return std::nullopt;
}
int probe_main(const std::filesystem::path&, const ProbeLimits&) { return 0; }
}  // namespace memwall::gui
