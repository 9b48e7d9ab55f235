#include "traces/run/analysis/rank_meetings.h"

#include <map>
#include <utility>

#include "sim/trace/ranks.h"
#include "sim/trace/rendezvous.h"

namespace memwall {
namespace {

struct GroupCount {
  GroupMeetings meetings;
  std::map<std::size_t, std::uint64_t> last;  // by rank: to how many it came last
};

class MeetingCounter {
 public:
  explicit MeetingCounter(const Run& run) : run_(run) {}

  void add(std::span<const OpId> members) {
    const Trace& trace = run_.trace;
    const std::vector<OpRecord>& records = run_.result.records;
    OpId last = kNoOp;
    for (const OpId id : members)
      if (records[id].peer >= records.size()) last = id;
    if (last == kNoOp) return;
    const std::size_t last_rank = rank_of(trace, trace.ops[last]);
    const auto [entry, added] = groups_.try_emplace(trace.ops[last].group);
    GroupCount& group = entry->second;
    if (added) group.meetings.group = process_group_of(trace, trace.ops[last]);
    ++group.meetings.collectives;
    ++group.last[last_rank];
    for (const OpId id : members) {
      const Duration time = records[last].start - records[id].start;
      if (id == last || time.count() <= 0) continue;
      group.meetings.waited += time;
      PeerWait& wait = waits_[{rank_of(trace, trace.ops[id]), last_rank}];
      wait.time += time;
      ++wait.count;
    }
  }

  RankMeetings meetings() && {
    RankMeetings all;
    for (auto& [ranks, wait] : waits_) {
      std::tie(wait.waiter, wait.last) = ranks;
      all.waits.push_back(wait);
    }
    for (auto& [number, group] : groups_) {
      for (const auto& [rank, count] : group.last)
        if (count > group.meetings.last_count) {
          group.meetings.last = rank;
          group.meetings.last_count = count;
        }
      all.groups.push_back(std::move(group.meetings));
    }
    return all;
  }

 private:
  const Run& run_;
  std::map<std::pair<std::size_t, std::size_t>, PeerWait> waits_;
  std::map<std::uint16_t, GroupCount> groups_;
};

}  // namespace

RankMeetings rank_meetings(const Run& run) {
  if (rank_count(run.trace) == 1) return {};
  MeetingCounter counter(run);
  const RendezvousTable rendezvous(run.trace);
  for (std::size_t m = 0; m < rendezvous.size(); ++m) counter.add(rendezvous.members(m));
  return std::move(counter).meetings();
}

}  // namespace memwall
