#include "traces/run/export/memory_changes.h"

#include <algorithm>
#include <tuple>

namespace memwall {
namespace {

class ChangeOrder {
 public:
  ChangeOrder(const Run& run, std::uint16_t tier)
      : run_(run), tier_(tier), alloc_of_(run.trace->storages.size(), kNoOp), free_of_(alloc_of_) {
    for (OpId id = 0; id < run.trace->ops.size(); ++id) {
      const Op& op = run.trace->ops[id];
      if (run.result.records[id].host_start == kNever) continue;
      if (op.kind == OpKind::alloc) alloc_of_[op.target] = id;
      if (op.kind == OpKind::free) free_of_[op.target] = id;
    }
  }

  std::vector<MemoryChange> run() {
    find();
    std::vector<MemoryChange> all;
    std::size_t next_end = 0;
    for (std::size_t i = 0; i < begins_.size(); ++i) {
      while (next_end < ends_.size() && ends_[next_end].residency < i && goes_before(ends_[next_end], begins_[i]))
        all.push_back(ends_[next_end++].change);
      all.push_back(begins_[i]);
    }
    for (; next_end < ends_.size(); ++next_end) all.push_back(ends_[next_end].change);
    return all;
  }

 private:
  struct End {
    MemoryChange change;
    std::size_t residency = 0;  // its number in begins_
    // Of those of one instant: what no call of the host did goes first.
    std::tuple<Time, bool, OpId, std::size_t> place() const {
      const bool by_host = change.op != kNoOp && change.asked == change.time;
      return {change.time, by_host, by_host ? change.op : 0, residency};
    }
  };

  void find() {
    for (const Residency& residency : run_.residency) {
      if (residency.tier != tier_) continue;
      const OpId alloc = alloc_of_[residency.storage];
      const bool by_op = alloc != kNoOp && run_.result.records[alloc].host_start <= residency.begin &&
                         residency.begin <= run_.result.records[alloc].host_end;
      begins_.push_back({residency.begin, residency.begin, residency.storage, by_op ? alloc : kNoOp, true});
      add_end(residency);
    }
    std::ranges::sort(ends_, {}, &End::place);
  }

  // What lives at the end of the run stays, unless a free gave it back just then.
  void add_end(const Residency& residency) {
    const OpId free = free_of_[residency.storage];
    const bool was_asked = free != kNoOp && run_.result.records[free].host_start <= residency.end;
    if (residency.end >= run_.result.end && !was_asked) return;
    const Time asked = was_asked ? std::max(run_.result.records[free].host_start, residency.begin) : residency.end;
    ends_.push_back({{residency.end, asked, residency.storage, was_asked ? free : kNoOp, false}, begins_.size() - 1});
  }

  static bool goes_before(const End& end, const MemoryChange& begin) {
    if (end.change.time != begin.time) return end.change.time < begin.time;
    const bool by_host = end.change.op != kNoOp && end.change.asked == end.change.time;
    return !by_host || begin.op == kNoOp || end.change.op < begin.op;
  }

  const Run& run_;
  std::uint16_t tier_;
  std::vector<OpId> alloc_of_, free_of_;  // by storage
  std::vector<MemoryChange> begins_;
  std::vector<End> ends_;
};

}  // namespace

std::vector<MemoryChange> memory_changes(const Run& run, std::uint16_t tier) { return ChangeOrder(run, tier).run(); }

}  // namespace memwall
