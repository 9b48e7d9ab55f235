#include "gui/drawing/timeline_lanes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "sim/error.h"

namespace memwall::gui {
namespace {

[[noreturn]] void refuse_title(const std::string& title, const std::vector<TimelineLane>& all) {
  std::vector<std::string> known;
  for (const TimelineLane& lane : all) known.push_back(lane.name);
  const std::string near = nearest_name(title, known);
  throw UsageError(fmt::format("the lane \"{}\": the run has no such lane{}; expected some of \"{}\".", title,
                               near.empty() ? "" : fmt::format(" (nearest: \"{}\")", near),
                               fmt::join(known, "\", \"")));
}

}  // namespace

bool is_titled(const std::string& lane, const std::string& title) {
  if (lane == title) return true;
  if (!lane.starts_with(title + " (") || !lane.ends_with(')')) return false;
  return std::all_of(lane.begin() + static_cast<std::ptrdiff_t>(title.size()) + 2, lane.end() - 1,
                     [](unsigned char c) { return std::isdigit(c) != 0; });
}

std::vector<std::uint32_t> choose_lanes(const std::vector<TimelineLane>& all, const std::vector<std::string>& titles,
                                        std::vector<TimelineLane>& shown) {
  std::vector<std::uint32_t> place(all.size(), kNotShown);
  const auto show = [&](std::size_t lane) {
    if (place[lane] != kNotShown) return;
    place[lane] = static_cast<std::uint32_t>(shown.size());
    shown.push_back(all[lane]);
  };
  for (const std::string& title : titles) {
    bool found = false;
    for (std::size_t i = 0; i < all.size(); ++i)
      if (is_titled(all[i].name, title)) {
        show(i);
        found = true;
      }
    if (!found) refuse_title(title, all);
  }
  for (std::size_t i = 0; titles.empty() && i < all.size(); ++i) show(i);
  return place;
}

std::uint16_t kind_of(Timeline& timeline, std::string_view name) {
  const auto found = std::find(timeline.kinds.begin(), timeline.kinds.end(), name);
  const auto place = static_cast<std::uint16_t>(found - timeline.kinds.begin());
  if (found == timeline.kinds.end()) timeline.kinds.emplace_back(name);
  return place;
}

}  // namespace memwall::gui
