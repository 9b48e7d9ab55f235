#include "models/workload/import/ranks/collective_rendezvous.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "models/workload/import/ranks/channel_rendezvous.h"
#include "models/workload/import/ranks/collective_channels.h"
#include "models/workload/import/ranks/collective_match.h"
#include "sim/error.h"

namespace memwall {
namespace {

constexpr std::uint32_t kNone = 0xffffffff;
constexpr std::int64_t kComparableClocks = 864'000'000'000'000;  // ns, 10 days: absolute times that mean the same

struct ChannelMatch {
  ChannelKey placed, own;  // keys of the consensus and of the rank's part
  std::vector<ItemPair> pairs;
  std::uint64_t agreeing = 0;
  bool by_number = false;
};

class Search {
 public:
  Search(const std::vector<RankCapture>& captures, const std::vector<std::string>& names)
      : captures_(captures), names_(names) {
    out_.ranks.resize(captures.size());
    for (const RankCapture& capture : captures) out_.group_of.emplace_back(capture.groups.size(), kNone);
  }

  CollectiveMatches run() && {
    for (std::uint32_t rank = 0; rank < captures_.size(); ++rank) {
      out_.ranks[rank].collectives = captures_[rank].collectives.size();
      if (captures_[rank].collectives.empty())
        throw InputError(
            fmt::format("{}: found no collective of NCCL or RCCL; expected those by which the rank meets "
                        "the ranks of the other files.",
                        names_[rank]));
    }
    std::vector<std::uint32_t> waiting;
    for (std::uint32_t rank = 1; rank < captures_.size(); ++rank) waiting.push_back(rank);
    begin(0);
    while (!waiting.empty()) {
      const auto placed = std::find_if(waiting.begin(), waiting.end(), [&](std::uint32_t rank) { return place(rank); });
      if (placed == waiting.end()) fail_apart(waiting.front());
      waiting.erase(placed);
    }
    find_rendezvous(captures_, channels_, out_);
    return std::move(out_);
  }

 private:
  RankChannels own_channels(std::uint32_t rank) {
    RankChannels channels = channels_of(captures_[rank]);
    out_.ranks[rank].unknown_peer = captures_[rank].collectives.size();
    for (const auto& [key, channel] : channels) out_.ranks[rank].unknown_peer -= channel.items.size();
    return channels;
  }

  // --- groups ---
  static bool is_named(const CapturedGroup& group) { return !group.name.empty(); }

  std::uint32_t named_group(const CapturedGroup& group) const {
    for (std::uint32_t g = 0; g < out_.groups.size(); ++g)
      if (out_.groups[g].name == group.name && out_.groups[g].ranks_text == group.ranks_text) return g;
    return kNone;
  }

  std::uint32_t add_group(const CapturedGroup& group) {
    out_.groups.push_back(group);
    out_.ranks_of_group.emplace_back();
    return static_cast<std::uint32_t>(out_.groups.size() - 1);
  }

  void bind(std::uint32_t rank, std::uint32_t own, std::uint32_t group) {
    if (out_.group_of[rank][own] != kNone) return;
    out_.group_of[rank][own] = group;
    out_.ranks_of_group[group].push_back(rank);
    if (out_.groups[group].ranks == 0) out_.groups[group].ranks = captures_[rank].groups[own].ranks;
  }

  bool has_group(std::uint32_t rank, std::uint32_t group) const {
    const std::vector<std::uint32_t>& groups = out_.group_of[rank];
    return std::find(groups.begin(), groups.end(), group) != groups.end();
  }

  // --- placing ---
  void begin(std::uint32_t rank) {
    const RankChannels parts = own_channels(rank);
    add_new(rank, parts, RankClock{});
  }

  bool place(std::uint32_t rank) {
    const RankChannels parts = own_channels(rank);
    std::vector<ChannelMatch> matches = named_matches(rank, parts);
    add_unnamed_matches(rank, parts, matches);
    if (matches.empty()) return false;
    for (const ChannelMatch& match : matches) bind(rank, match.own.group, match.placed.group);
    MatchedRank& placed = out_.ranks[rank];
    placed.fit = clock_of(rank, matches, parts);
    placed.contradiction = contradiction_of(matches, parts);
    for (int pass = 0; pass < 2; ++pass) {
      matches = on_clock(rank, parts, matches, placed.fit.clock);
      if (std::all_of(matches.begin(), matches.end(), [](const ChannelMatch& m) { return m.pairs.empty(); }))
        fail_run(rank, 0, 1);
      placed.fit = clock_of(rank, matches, parts);
    }
    check(rank, parts, matches);
    for (const ChannelMatch& match : matches) merge(rank, match, parts.at(match.own));
    add_new(rank, parts, placed.fit.clock);
    return true;
  }

  std::vector<ChannelMatch> named_matches(std::uint32_t rank, const RankChannels& parts) const {
    std::vector<ChannelMatch> matches;
    for (const auto& [key, part] : parts) {
      const CapturedGroup& group = captures_[rank].groups[key.group];
      if (!is_named(group)) continue;
      const std::uint32_t known = named_group(group);
      const auto channel = channels_.find({known, key.source, key.destination});
      if (known == kNone || channel == channels_.end()) continue;
      ChannelMatch match = compare(rank, channel->second, part);
      match.placed = channel->first;
      match.own = key;
      if (!match.pairs.empty()) matches.push_back(std::move(match));
    }
    return matches;
  }

  // Each unnamed group of the rank goes to the unnamed group that it matches best, the best first.
  void add_unnamed_matches(std::uint32_t rank, const RankChannels& parts, std::vector<ChannelMatch>& matches) const {
    std::vector<ChannelMatch> candidates;
    for (const auto& [key, part] : parts) {
      if (is_named(captures_[rank].groups[key.group])) continue;
      for (const auto& [known, channel] : channels_) {
        if (is_named(out_.groups[known.group]) || known.source != key.source || known.destination != key.destination)
          continue;
        ChannelMatch match = compare(rank, channel, part);
        match.placed = known;
        match.own = key;
        // Without a name only the times say that it is the same group.
        if (match.agreeing * 2 > match.pairs.size()) candidates.push_back(std::move(match));
      }
    }
    std::stable_sort(candidates.begin(), candidates.end(), [](const ChannelMatch& a, const ChannelMatch& b) {
      return a.agreeing != b.agreeing ? a.agreeing > b.agreeing : a.pairs.size() > b.pairs.size();
    });
    std::map<std::uint32_t, std::uint32_t> taken, given;  // own group to known, known to own
    for (ChannelMatch& candidate : candidates) {
      const auto [own, is_first] = taken.try_emplace(candidate.own.group, candidate.placed.group);
      if (!is_first && own->second != candidate.placed.group) continue;
      const auto [known, is_free] = given.try_emplace(candidate.placed.group, candidate.own.group);
      if (!is_free && known->second != candidate.own.group) {
        if (is_first) taken.erase(own);
        continue;
      }
      matches.push_back(std::move(candidate));
    }
  }

  ChannelMatch compare(std::uint32_t rank, const JobChannel& channel, const RankChannel& part) const {
    ChannelMatch match;
    match.pairs = match_by_number(channel.items, part.items);
    match.agreeing = agreeing_intervals(channel.items, part.items, match.pairs);
    match.by_number = match.agreeing * 2 > match.pairs.size();
    if (match.by_number) return match;
    const std::optional<Duration> expected = expected_offset(rank);
    match.pairs = match_by_order(channel.items, part.items, expected.has_value(), expected.value_or(Duration{}));
    match.agreeing = agreeing_intervals(channel.items, part.items, match.pairs);
    return match;
  }

  // By the hosts' own clocks, where those tell the time of day.
  std::optional<Duration> expected_offset(std::uint32_t rank) const {
    const RankCapture &first = captures_[0], &own = captures_[rank];
    const auto apart = static_cast<std::int64_t>(static_cast<std::uint64_t>(own.start_ns) -
                                                 static_cast<std::uint64_t>(first.start_ns));
    if (apart > kComparableClocks || apart < -kComparableClocks) return std::nullopt;
    return nanoseconds(apart) + own.start_fraction - first.start_fraction;
  }

  // Which ends tell how clocks run: those that agree on all ranks; where there are none, of sends whose kernel serves
  // one peer; where there are none either, of any, and of these the ones that agree with the hosts' clocks, if some do.
  enum class Ends : std::uint8_t { together, one_peer, any };

  // From the channel whose times agree best, then all that agree with it.
  ClockFit clock_of(std::uint32_t rank, const std::vector<ChannelMatch>& matches, const RankChannels& parts) const {
    for (const Ends kind : {Ends::together, Ends::one_peer, Ends::any}) {
      const ChannelMatch* best = nullptr;
      for (const ChannelMatch& match : matches)
        if (is_better(match, best) && !ends_of(match, parts, kind).empty()) best = &match;
      if (best == nullptr) continue;
      std::vector<EndPair> ends = ends_of(*best, parts, kind);
      if (kind == Ends::any) keep_expected(rank, *best, parts, ends);
      const ClockFit first = fit_clock(ends);
      for (const ChannelMatch& match : matches) {
        if (&match == best || kind == Ends::any) continue;
        for (const EndPair& pair : ends_of(match, parts, kind)) {
          const Duration error = first.clock.on_reference(pair.own) - pair.reference;
          if (error <= kEndsAgree && -error <= kEndsAgree) ends.push_back(pair);
        }
      }
      return fit_clock(std::move(ends));
    }
    fail_apart(rank);
  }

  static bool is_better(const ChannelMatch& match, const ChannelMatch* than) {
    if (than == nullptr) return true;
    return match.agreeing != than->agreeing ? match.agreeing > than->agreeing : match.pairs.size() > than->pairs.size();
  }

  std::vector<EndPair> ends_of(const ChannelMatch& match, const RankChannels& parts, Ends kind) const {
    std::vector<EndPair> ends;
    const JobChannel& channel = channels_.at(match.placed);
    const RankChannel& part = parts.at(match.own);
    for (const ItemPair& pair : agreeing_pairs(channel.items, part.items, match.pairs)) {
      const MatchItem &known = channel.items[pair.a], &own = part.items[pair.b];
      if (kind == Ends::together && !ends_together(own.kind)) continue;
      if (kind == Ends::one_peer && (known.several_peers || own.several_peers)) continue;
      ends.push_back({known.end, own.end});
    }
    return ends;
  }

  // Of the ends of kernels that serve several peers, those that agree with the hosts' clocks. Where none does, the
  // hosts' clocks themselves, if by them all these kernels were at it together.
  void keep_expected(std::uint32_t rank, const ChannelMatch& match, const RankChannels& parts,
                     std::vector<EndPair>& ends) const {
    const std::optional<Duration> expected = expected_offset(rank);
    if (!expected) return;
    std::vector<EndPair> kept;
    for (const EndPair& pair : ends) {
      const Duration error = pair.reference - pair.own - *expected;
      if (error <= kEndsAgree && -error <= kEndsAgree) kept.push_back(pair);
    }
    const bool together = std::all_of(match.pairs.begin(), match.pairs.end(), [&](const ItemPair& pair) {
      const MatchItem &known = channels_.at(match.placed).items[pair.a], &own = parts.at(match.own).items[pair.b];
      return own.start + *expected <= known.end && known.start <= own.end + *expected;
    });
    if (kept.empty() && together) kept.push_back({ends.front().own + *expected, ends.front().own});
    if (!kept.empty()) ends = std::move(kept);
  }

  // Of the channel in which the clocks contradict each other most.
  ClockContradiction contradiction_of(const std::vector<ChannelMatch>& matches, const RankChannels& parts) const {
    ClockContradiction most;
    for (const ChannelMatch& match : matches) {
      const ClockContradiction found =
          clock_contradiction(channels_.at(match.placed).items, parts.at(match.own).items, match.pairs);
      if (most.pairs == 0 || found.range() > most.range()) most = found;
    }
    return most;
  }

  // The same channels once more, now that times can be compared.
  std::vector<ChannelMatch> on_clock(std::uint32_t rank, const RankChannels& parts,
                                     const std::vector<ChannelMatch>& before, const RankClock& clock) const {
    std::vector<ChannelMatch> matches;
    for (const auto& [key, part] : parts) {
      const std::uint32_t group = out_.group_of[rank][key.group];
      const auto channel = channels_.find({group, key.source, key.destination});
      if (group == kNone || channel == channels_.end()) continue;
      const auto known =
          std::find_if(before.begin(), before.end(), [&](const ChannelMatch& m) { return m.own == key; });
      ChannelMatch match;
      match.placed = channel->first;
      match.own = key;
      if (known != before.end() && known->by_number) {
        match.pairs = known->pairs;
        match.by_number = true;
      } else {
        const bool members_known = !captures_[rank].groups[key.group].members.empty();
        match.pairs = match_on_clock(key, members_known ? captures_[rank].rank : -1, channel->second.items,
                                     shifted(part.items, clock));
      }
      match.agreeing = agreeing_intervals(channel->second.items, part.items, match.pairs);
      matches.push_back(std::move(match));
    }
    return matches;
  }

  // Do the ends of what should end together agree, for more than half of what both captured at the time?
  void check(std::uint32_t rank, const RankChannels& parts, const std::vector<ChannelMatch>& matches) {
    MatchedRank& placed = out_.ranks[rank];
    std::uint64_t alone = 0;
    for (const ChannelMatch& match : matches) {
      const JobChannel& channel = channels_.at(match.placed);
      const std::vector<MatchItem> own = shifted(parts.at(match.own).items, placed.fit.clock);
      std::vector<bool> matched(own.size(), false);
      for (const ItemPair& pair : match.pairs) {
        matched[pair.b] = true;
        if (!ends_together(own[pair.b].kind)) continue;
        ++placed.checked;
        const Duration error = own[pair.b].end - channel.items[pair.a].end;
        placed.agreeing += error <= kEndsAgree && -error <= kEndsAgree;
      }
      placed.numbered += match.by_number ? match.pairs.size() : 0;
      if (channel.items.empty()) continue;
      for (std::size_t i = 0; i < own.size(); ++i)
        alone += !matched[i] && ends_together(own[i].kind) && own[i].end > channel.items.front().end &&
                 own[i].end < channel.items.back().end;
    }
    if (placed.agreeing * 2 < placed.checked + alone) fail_run(rank, placed.agreeing, placed.checked + alone);
  }

  // --- keeping what was found ---
  void merge(std::uint32_t rank, const ChannelMatch& match, const RankChannel& part) {
    JobChannel& channel = channels_.at(match.placed);
    for (const ItemPair& pair : match.pairs) {
      channel.members[pair.a].push_back({rank, part.collective[pair.b]});
      MatchItem& item = channel.items[pair.a];
      if (item.elements < 0) item.elements = part.items[pair.b].elements;
      if (item.type == DataType::unknown) item.type = part.items[pair.b].type;
      item.start = std::min(item.start, out_.ranks[rank].fit.clock.on_reference(part.items[pair.b].start));
      is_placed_.emplace(rank, part.collective[pair.b]);
    }
  }

  // What no placed rank has becomes part of the channels, for the ranks to come.
  void add_new(std::uint32_t rank, const RankChannels& parts, const RankClock& clock) {
    for (const auto& [key, part] : parts) {
      bind_new(rank, key.group);
      JobChannel& channel = channels_[{out_.group_of[rank][key.group], key.source, key.destination}];
      JobChannel merged;
      const std::vector<MatchItem> own = shifted(part.items, clock);
      std::size_t at = 0;
      for (std::size_t i = 0; i < own.size(); ++i) {
        if (is_placed_.contains({rank, part.collective[i]})) continue;
        for (; at < channel.items.size() && channel.items[at].end <= own[i].end; ++at) take(channel, at, merged);
        merged.items.push_back(own[i]);
        merged.members.push_back({{rank, part.collective[i]}});
      }
      for (; at < channel.items.size(); ++at) take(channel, at, merged);
      channel = std::move(merged);
    }
    // Of a group of which no collective says with whom it meets there is no channel.
    for (std::uint32_t own = 0; own < captures_[rank].groups.size(); ++own) bind_new(rank, own);
  }

  // One that no collective has told to be another rank's.
  void bind_new(std::uint32_t rank, std::uint32_t own) {
    if (out_.group_of[rank][own] != kNone) return;
    const CapturedGroup& group = captures_[rank].groups[own];
    const std::uint32_t known = is_named(group) ? named_group(group) : kNone;
    bind(rank, own, known == kNone ? add_group(group) : known);
  }

  static void take(JobChannel& from, std::size_t at, JobChannel& to) {
    to.items.push_back(from.items[at]);
    to.members.push_back(std::move(from.members[at]));
  }

  // --- what cannot be joined ---
  [[noreturn]] void fail_apart(std::uint32_t rank) const {
    std::string others;
    for (std::uint32_t r = 0; r < captures_.size(); ++r)
      if (r != rank) others += (others.empty() ? "" : ", ") + names_[r];
    throw InputError(
        fmt::format("{}: none of its {} collectives matches one of the other files ({}) in process group, "
                    "kind, data type and message; expected captures of one run of one job.",
                    names_[rank], captures_[rank].collectives.size(), others));
  }

  [[noreturn]] void fail_run(std::uint32_t rank, std::uint64_t agreeing, std::uint64_t of) const {
    const std::string found = fmt::format(
        "{}: {} of the {} collectives that it should share with the files before it end when theirs do "
        "(within {} us, whatever the offset of the clocks)",
        names_[rank], agreeing, of, to_microseconds(kEndsAgree));
    throw InputError(found + "; expected more than half" + reason_of_disagreement(out_.ranks[rank].contradiction));
  }

  const std::vector<RankCapture>& captures_;
  const std::vector<std::string>& names_;
  CollectiveMatches out_;
  std::map<ChannelKey, JobChannel> channels_;
  std::set<std::pair<std::uint32_t, std::uint32_t>> is_placed_;  // rank, collective
};

}  // namespace

CollectiveMatches match_collectives(const std::vector<RankCapture>& captures, const std::vector<std::string>& names) {
  return Search(captures, names).run();
}

}  // namespace memwall
