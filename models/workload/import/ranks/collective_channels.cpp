#include "models/workload/import/ranks/collective_channels.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace memwall {
namespace {

MatchItem item_of(const CapturedCollective& c) {
  return {.kind = c.kind,
          .type = c.type,
          .elements = c.elements,
          .sequence = c.sequence,
          .source = c.source,
          .destination = c.destination,
          .several_peers = c.several_peers,
          .start = c.start,
          .end = c.end};
}

bool lacks_peer(const CapturedCollective& c, const CapturedGroup& group) {
  return c.kind == CollectiveKind::send_receive && (c.source < 0 || c.destination < 0) && group.ranks != 2;
}

void sort_by_end(RankChannel& channel) {
  const auto earlier = [](const MatchItem& a, const MatchItem& b) { return a.end < b.end; };
  if (std::is_sorted(channel.items.begin(), channel.items.end(), earlier)) return;
  std::vector<std::uint32_t> order(channel.items.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return earlier(channel.items[a], channel.items[b]); });
  RankChannel sorted;
  for (const std::uint32_t i : order) {
    sorted.items.push_back(channel.items[i]);
    sorted.collective.push_back(channel.collective[i]);
  }
  channel = std::move(sorted);
}

}  // namespace

RankChannels channels_of(const RankCapture& capture) {
  RankChannels channels;
  for (std::uint32_t i = 0; i < capture.collectives.size(); ++i) {
    const CapturedCollective& c = capture.collectives[i];
    if (lacks_peer(c, capture.groups[c.group])) continue;
    ChannelKey key{c.group, -1, -1};
    if (c.kind == CollectiveKind::send_receive && c.source >= 0 && c.destination >= 0)
      key = {c.group, c.source, c.destination};
    RankChannel& channel = channels[key];
    channel.items.push_back(item_of(c));
    channel.collective.push_back(i);
  }
  for (auto& [key, channel] : channels) sort_by_end(channel);
  return channels;
}

std::vector<MatchItem> shifted(const std::vector<MatchItem>& items, const RankClock& clock) {
  std::vector<MatchItem> result = items;
  for (MatchItem& item : result) {
    item.start = clock.on_reference(item.start);
    item.end = clock.on_reference(item.end);
  }
  return result;
}

std::vector<ItemPair> match_on_clock(const ChannelKey& key, std::int64_t self, const std::vector<MatchItem>& known,
                                     const std::vector<MatchItem>& own) {
  std::vector<ItemPair> pairs = match_by_time(known, own);
  if (self < 0 || (self != key.source && self != key.destination)) return pairs;
  const bool sends = self == key.source;
  std::vector<ItemPair> in_order = sends ? match_sends(own, known) : match_sends(known, own);
  if (in_order.size() <= pairs.size()) return pairs;
  if (sends)
    for (ItemPair& pair : in_order) std::swap(pair.a, pair.b);
  return in_order;
}

}  // namespace memwall
