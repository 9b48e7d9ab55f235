#include "traces/run/analysis/pipeline_passes.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "sim/trace/pipeline_chunk.h"
#include "sim/trace/ranks.h"

namespace memwall {
namespace {

using Work = PassSpan::Work;

constexpr Duration kWaits = microseconds(100);  // between kernels of an update

struct PassMark {
  Work work = Work::forward;
  std::uint32_t stage = 0;
};

std::optional<PassMark> mark_of(std::string_view name) {
  if (name == kUpdateMark) return PassMark{Work::update, 0};
  for (const auto& [prefix, work] :
       {std::pair{kForwardMark, Work::forward}, std::pair{kBackwardMark, Work::backward}}) {
    if (!name.starts_with(prefix)) continue;
    PassMark mark{work, 0};
    const char* const end = name.data() + name.size();
    if (std::from_chars(name.data() + prefix.size(), end, mark.stage).ptr == end) return mark;
  }
  return std::nullopt;
}

class PassCollector {
 public:
  explicit PassCollector(const Run& run) : run_(run), ranks_(rank_count(run.trace)), counted_(ranks_.size()) {
    const Trace& trace = run.trace;
    for (StringId name = 0; name < trace.strings.size(); ++name)
      if (const auto mark = mark_of(trace.strings[name])) marks_.emplace(name, *mark);
    for (const Step& step : trace.steps) first_.push_back(step.first);
    std::sort(first_.begin(), first_.end());
  }

  std::vector<RankPasses> run() && {
    const Trace& trace = run_.trace;
    for (OpId id = 0; id < trace.ops.size() && id < run_.result.records.size() && !marks_.empty(); ++id) {
      const Op& op = trace.ops[id];
      if (op.kind == OpKind::mark)
        add_mark(id);
      else if (op.kind == OpKind::kernel || op.kind == OpKind::memset)
        add_kernel(id);
      else if (op.kind == OpKind::collective)
        add_message(id);
    }
    // A pass without kernels has no place in time.
    for (RankPasses& rank : ranks_)
      std::erase_if(rank.passes, [](const PassSpan& pass) { return pass.begin == kNever; });
    return std::move(ranks_);
  }

 private:
  void add_mark(OpId id) {
    const Op& op = run_.trace->ops[id];
    const std::uint16_t rank = rank_of(run_.trace, op);
    if (std::binary_search(first_.begin(), first_.end(), id)) counted_[rank].clear();
    const auto mark = marks_.find(op.name);
    if (mark == marks_.end()) return;
    const auto [work, stage] = mark->second;
    ranks_[rank].passes.push_back({work, stage, counted_[rank][{work, stage}]++, kNever, Time{}});
  }

  void add_kernel(OpId id) {
    const Op& op = run_.trace->ops[id];
    const OpRecord& record = run_.result.records[id];
    std::vector<PassSpan>& passes = ranks_[rank_of(run_.trace, op)].passes;
    if (passes.empty() || record.start == kNever || run_.trace->streams[op.stream].role != StreamRole::compute) return;
    // An update waits for all ranks amid its kernels; that is nobody's work.
    if (const PassSpan& last = passes.back();
        last.work == Work::update && last.begin != kNever && record.start > last.end + kWaits)
      passes.push_back({last.work, last.stage, last.microbatch, kNever, Time{}});
    passes.back().begin = std::min(passes.back().begin, record.start);
    passes.back().end = std::max(passes.back().end, record.end);
  }

  void add_message(OpId id) {
    const Trace& trace = run_.trace;
    const Op& op = trace.ops[id];
    const OpRecord& record = run_.result.records[id];
    if (record.start == kNever || op.group >= trace.groups.size() || trace.groups[op.group].name != "pipeline") return;
    const Time begin = record.peer < run_.result.records.size() ? run_.result.records[record.peer].start : record.start;
    ranks_[rank_of(trace, op)].messages.push_back({begin, record.end});
  }

  const Run& run_;
  std::vector<RankPasses> ranks_;
  std::unordered_map<StringId, PassMark> marks_;
  std::vector<OpId> first_;                                                       // of steps
  std::vector<std::map<std::pair<Work, std::uint32_t>, std::uint32_t>> counted_;  // by rank: passes so far, of its step
};

}  // namespace

std::vector<RankPasses> pipeline_passes(const Run& run) { return PassCollector(run).run(); }

}  // namespace memwall
