#include "models/workload/import/ranks/clock_contradiction.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "sim/human_text.h"

namespace memwall {

ClockContradiction clock_contradiction(std::span<const MatchItem> reference, std::span<const MatchItem> own,
                                       std::span<const ItemPair> pairs) {
  std::vector<ItemPair> together;
  for (const ItemPair& pair : pairs)
    if (ends_together(own[pair.b].kind)) together.push_back(pair);
  ClockContradiction found;
  found.pairs = together.size();
  found.alike = agreeing_intervals(reference, own, together);
  Duration before{};
  for (std::size_t i = 0; i < together.size(); ++i) {
    const Duration difference = reference[together[i].a].end - own[together[i].b].end;
    if (i == 0) found.least = found.most = difference;
    found.least = std::min(found.least, difference);
    found.most = std::max(found.most, difference);
    const Duration change = difference - before;
    if (i > 0 && std::max(change, -change) > std::max(found.jump, -found.jump)) {
      found.jump = change;
      found.kind = own[together[i].b].kind;
      found.number = i + 1;
      found.at = own[together[i].b].end;
    }
    before = difference;
  }
  return found;
}

std::string reason_of_disagreement(const ClockContradiction& c) {
  if (c.follow_alike())
    return fmt::format(
        ". Its clock contradicts theirs: {} of {} collectives follow the one before as in those files, but the clocks' "
        "difference changes by {}, most at the {} number {}, {} behind the file's start, by {}. Expected clocks that "
        "run "
        "alike, but for an offset and a steady drift.",
        c.alike, c.pairs, human_time(c.range()), to_string(c.kind), c.number, human_time(c.at - Time{}),
        human_time(c.jump));
  const std::string other = ": the captures are not of the same time of the same run";
  if (c.pairs < 2) return other + ".";
  return fmt::format(
      "{}, or their clocks contradict each other throughout: at the ends of {} collectives that could be the same "
      "their "
      "difference changes by up to {}.",
      other, c.pairs, human_time(c.range()));
}

}  // namespace memwall
