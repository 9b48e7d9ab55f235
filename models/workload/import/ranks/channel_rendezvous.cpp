#include "models/workload/import/ranks/channel_rendezvous.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <utility>

namespace memwall {
namespace {

class Meeting {
 public:
  Meeting(const std::vector<RankCapture>& captures, CollectiveMatches& out) : captures_(captures), out_(out) {
    for (const RankCapture& capture : captures)
      out_.rendezvous_of.emplace_back(capture.collectives.size(), kNoRendezvous);
  }

  void run(std::map<ChannelKey, JobChannel>& channels) {
    for (auto& [key, channel] : channels)
      for (std::vector<RendezvousMember>& members : channel.members)
        if (members.size() > 1) meet(key.group, std::move(members));
    count_exchanges();
    for (CollectiveRendezvous& rendezvous : out_.rendezvous) set_duration(rendezvous);
    sort_by_start();
    find_unanswered();
  }

 private:
  const CapturedCollective& collective(const RendezvousMember& member) const {
    return captures_[member.rank].collectives[member.collective];
  }
  Time on_first(std::uint32_t rank, Time time) const { return out_.ranks[rank].fit.clock.on_reference(time); }
  Time start(const RendezvousMember& member) const { return on_first(member.rank, collective(member).start); }
  Time end(const RendezvousMember& member) const { return on_first(member.rank, collective(member).end); }

  // What the same two kernels exchange is one rendezvous, however many messages it has.
  void meet(std::uint32_t group, std::vector<RendezvousMember> members) {
    std::sort(members.begin(), members.end(),
              [](const RendezvousMember& a, const RendezvousMember& b) { return a.rank < b.rank; });
    std::uint32_t number = known_rendezvous(members);
    if (number == kNoRendezvous) {
      std::optional<CollectiveRendezvous> found = rendezvous_of(group, members);
      if (!found) {
        ++out_.not_together;
        for (const RendezvousMember& member : members) apart_.emplace(member.rank, member.collective);
        return;
      }
      number = static_cast<std::uint32_t>(out_.rendezvous.size());
      out_.rendezvous.push_back(std::move(*found));
      if (is_of_batches(members)) of_kernels_.emplace(kernels(members), number);
    }
    for (const RendezvousMember& member : members) {
      out_.rendezvous_of[member.rank][member.collective] = number;
      ++out_.ranks[member.rank].met;
    }
  }

  using Kernels = std::array<std::uint32_t, 4>;  // rank and op of both

  bool is_of_batches(const std::vector<RendezvousMember>& members) const {
    return members.size() == 2 && collective(members[0]).batched && collective(members[1]).batched;
  }
  Kernels kernels(const std::vector<RendezvousMember>& members) const {
    return {members[0].rank, collective(members[0]).op, members[1].rank, collective(members[1]).op};
  }
  std::uint32_t known_rendezvous(const std::vector<RendezvousMember>& members) const {
    if (!is_of_batches(members)) return kNoRendezvous;
    const auto known = of_kernels_.find(kernels(members));
    return known == of_kernels_.end() ? kNoRendezvous : known->second;
  }

  // Nothing where one had ended before another began: they did not wait for each other.
  std::optional<CollectiveRendezvous> rendezvous_of(std::uint32_t group, std::vector<RendezvousMember> members) const {
    CollectiveRendezvous rendezvous{.group = group, .members = std::move(members)};
    Time latest_start = -kNever, earliest_end = kNever, latest_end = -kNever;
    for (std::uint32_t i = 0; i < rendezvous.members.size(); ++i) {
      const RendezvousMember& member = rendezvous.members[i];
      const CapturedCollective& c = collective(member);
      earliest_end = std::min(earliest_end, end(member));
      latest_end = std::max(latest_end, end(member));
      rendezvous.longest = std::max(rendezvous.longest, c.end - c.start);
      // Where ends agree the last arriver is the shortest, which needs no clock; else who began last.
      const CapturedCollective& last = collective(rendezvous.members[rendezvous.last]);
      const bool later = ends_together(c.kind) ? c.end - c.start < last.end - last.start : start(member) > latest_start;
      if (i == 0 || later) rendezvous.last = i;
      latest_start = std::max(latest_start, start(member));
    }
    if (latest_start > earliest_end + kEndsAgree) return std::nullopt;
    rendezvous.spread = latest_end - earliest_end;
    return rendezvous;
  }

  // Of each kernel of a batch: with how many others it exchanges. What no other has is one more.
  void count_exchanges() {
    for (std::uint32_t rank = 0; rank < captures_.size(); ++rank)
      for (std::uint32_t i = 0; i < captures_[rank].collectives.size(); ++i)
        if (const CapturedCollective& c = captures_[rank].collectives[i]; c.batched)
          exchanges_.insert({{rank, c.op, out_.rendezvous_of[rank][i]}});
  }

  bool has_several(const RendezvousMember& member) const {
    const CapturedCollective& c = collective(member);
    if (!c.batched) return false;
    auto at = exchanges_.lower_bound({{member.rank, c.op, 0}});
    return ++at != exchanges_.end() && (*at)[0] == member.rank && (*at)[1] == c.op;
  }

  void set_duration(CollectiveRendezvous& rendezvous) const {
    const RendezvousMember& last = rendezvous.members[rendezvous.last];
    rendezvous.own = collective(last).end - collective(last).start;
    if (!has_several(last)) return;
    for (const RendezvousMember& member : rendezvous.members) {
      const Duration captured = collective(member).end - collective(member).start;
      const Duration together = end(member) - start(last);
      rendezvous.own = std::min(rendezvous.own, together > Duration{} ? together : captured);
    }
  }

  void sort_by_start() {
    std::vector<std::uint32_t> order(out_.rendezvous.size()), place(order.size());
    std::vector<Time> starts;
    for (std::uint32_t i = 0; i < order.size(); ++i) {
      order[i] = i;
      starts.push_back(start(out_.rendezvous[i].members[out_.rendezvous[i].last]));
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return starts[a] < starts[b]; });
    std::vector<CollectiveRendezvous> sorted;
    for (std::uint32_t i = 0; i < order.size(); ++i) {
      place[order[i]] = i;
      sorted.push_back(std::move(out_.rendezvous[order[i]]));
    }
    out_.rendezvous = std::move(sorted);
    for (std::vector<std::uint32_t>& numbers : out_.rendezvous_of)
      for (std::uint32_t& number : numbers)
        if (number != kNoRendezvous) number = place[number];
  }

  // --- messages of batches that meet nobody, though the peer was recorded at the time ---
  void find_unanswered() {
    std::map<std::int64_t, std::uint32_t> capture_of;
    std::vector<std::pair<Time, Time>> recorded;  // of each rank, from its start to the end of its last collective
    for (std::uint32_t rank = 0; rank < captures_.size(); ++rank) {
      if (captures_[rank].rank >= 0) capture_of.try_emplace(captures_[rank].rank, rank);
      recorded.push_back({on_first(rank, Time{}), -kNever});
      for (const CapturedCollective& c : captures_[rank].collectives)
        recorded.back().second = std::max(recorded.back().second, on_first(rank, c.end));
    }
    for (std::uint32_t rank = 0; rank < captures_.size(); ++rank)
      for (std::uint32_t i = 0; i < captures_[rank].collectives.size(); ++i) {
        const CapturedCollective& c = captures_[rank].collectives[i];
        if (!c.batched || out_.rendezvous_of[rank][i] != kNoRendezvous || apart_.contains({rank, i})) continue;
        const auto peer = capture_of.find(c.source == captures_[rank].rank ? c.destination : c.source);
        if (peer == capture_of.end()) continue;
        const auto& [first, last] = recorded[peer->second];
        if (on_first(rank, c.start) < first || on_first(rank, c.end) > last) continue;
        if (++out_.ranks[rank].unanswered == 1) out_.ranks[rank].first_unanswered = i;
      }
  }

  const std::vector<RankCapture>& captures_;
  CollectiveMatches& out_;
  std::map<Kernels, std::uint32_t> of_kernels_;              // of batches: their rendezvous
  std::set<std::array<std::uint32_t, 3>> exchanges_;         // rank, op, rendezvous or kNoRendezvous
  std::set<std::pair<std::uint32_t, std::uint32_t>> apart_;  // rank, collective: has a counterpart, but not at the time
};

}  // namespace

void find_rendezvous(const std::vector<RankCapture>& captures, std::map<ChannelKey, JobChannel>& channels,
                     CollectiveMatches& out) {
  Meeting(captures, out).run(channels);
}

}  // namespace memwall
