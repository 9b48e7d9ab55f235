#include "models/workload/graft/grafted_program.h"

#include <algorithm>
#include <utility>

#include "models/workload/graft/part_of_time.h"

namespace memwall {
namespace {

constexpr std::uint32_t kNone = 0xffffffff;
constexpr std::uint16_t kNoThread = 0xffff;

class Merge {
 public:
  Merge(const Trace& measured, const Trace& complete, const GraftedOrder& order)
      : m_(measured),
        c_(complete),
        pairs_(order.pairs),
        order_(order),
        pair_of_(measured.ops.size(), kNone),
        taken_(order.left_out) {
    for (std::uint32_t p = 0; p < pairs_.size(); ++p) {
      for (const OpId id : pairs_[p].measured) pair_of_[id] = p;
      for (const OpId id : pairs_[p].complete) taken_[id] = true;
    }
  }

  std::vector<GraftedLine> run() {
    choose_threads();
    order();
    share_host_time();
    return std::move(lines_);
  }

 private:
  // A complete step may be of one thread, where the profile's backward has its own: what dies is given back on the
  // thread of the line before it, what is made is allocated on that of the line behind, of the same thread there.
  void choose_threads() {
    std::vector<std::uint16_t> of_pair(c_.ops.size(), kNoThread);
    for (const LinePair& pair : pairs_)
      for (const OpId id : pair.complete) of_pair[id] = m_.ops[pair.measured.back()].thread;
    threads_.assign(c_.ops.size(), kNoThread);
    std::vector<std::uint16_t> near(c_.threads.size(), kNoThread);
    const auto see = [&](OpId id, bool takes) {
      std::uint16_t& thread = near[c_.ops[id].thread];
      if (of_pair[id] != kNoThread) thread = of_pair[id];
      if (takes && threads_[id] == kNoThread) threads_[id] = thread;
    };
    const auto count = static_cast<OpId>(c_.ops.size());
    for (OpId id = 0; id < count; ++id) see(id, c_.ops[id].kind == OpKind::free);
    std::ranges::fill(near, kNoThread);
    for (OpId id = count; id-- > 0;) see(id, c_.ops[id].kind != OpKind::free);
    for (OpId id = 0; id < count; ++id)
      if (threads_[id] == kNoThread) threads_[id] = order_.threads[c_.ops[id].thread];
  }

  bool stays(OpId id) const { return is_line(m_.ops[id].kind) || order_.stays[id]; }

  void order() {
    for (OpId id = 0; id < m_.ops.size(); ++id) {
      if (!stays(id)) continue;
      if (pair_of_[id] == kNone)
        lines_.push_back({.measured = id, .thread = m_.ops[id].thread});
      else
        add_pair(id, pair_of_[id]);
    }
    add_complete_until(static_cast<OpId>(c_.ops.size()));
  }

  void add_pair(OpId id, std::uint32_t p) {
    const LinePair& pair = pairs_[p];
    if (id == pair.measured.front()) add_complete_until(pair.complete.front());
    const bool last_measured = id == pair.measured.back();
    for (std::size_t i = 0; i < pair.complete.size(); ++i) {
      if (i > 0) add_complete_until(pair.complete[i]);
      lines_.push_back({.measured = id,
                        .complete = pair.complete[i],
                        .pair = p,
                        .first_of_pair = id == pair.measured.front() && i == 0,
                        .last_of_pair = last_measured && i + 1 == pair.complete.size(),
                        .thread = m_.ops[id].thread});
    }
    if (!last_measured) return;
    next_ = pair.complete.back() + 1;
    add_frees();
  }

  // What dies behind the line is given back there, not behind measured lines that have no partner.
  void add_frees() {
    OpId end = next_;
    for (OpId id = next_; id < c_.ops.size() && !is_line(c_.ops[id].kind); ++id)
      if (c_.ops[id].kind == OpKind::free) end = id + 1;
    add_complete_until(end);
  }

  void add_complete_until(OpId end) {
    for (; next_ < end; ++next_) {
      const Op& op = c_.ops[next_];
      if (taken_[next_] || (is_line(op.kind) && !is_device_line(op.kind))) continue;
      lines_.push_back({.complete = next_, .thread = threads_[next_]});
    }
  }

  // What a thread's host did between two measured lines: gaps, and calls of the allocator.
  void share_host_time() {
    std::vector<std::vector<std::size_t>> by_thread(m_.threads.size());
    for (std::size_t i = 0; i < lines_.size(); ++i) by_thread[lines_[i].thread].push_back(i);
    std::vector<std::vector<OpId>> measured(m_.threads.size());
    for (OpId id = 0; id < m_.ops.size(); ++id) measured[m_.ops[id].thread].push_back(id);
    for (std::size_t thread = 0; thread < by_thread.size(); ++thread) share(by_thread[thread], measured[thread]);
  }

  void share(const std::vector<std::size_t>& lines, const std::vector<OpId>& measured) {
    std::size_t at = 0;
    Duration open{};
    for (const OpId id : measured) {
      const Op& op = m_.ops[id];
      if (op.placed) {  // of before the window: its gap is when it began, no host's time
        set_placed(lines, id);
        continue;
      }
      open += op.host_gap;
      if (!stays(id)) {
        open += op.host_cost;
        continue;
      }
      std::size_t end = at;
      while (lines_[lines[end]].measured != id) ++end;
      share_among(std::vector<std::size_t>(lines.begin() + static_cast<std::ptrdiff_t>(at),
                                           lines.begin() + static_cast<std::ptrdiff_t>(end)),
                  &lines_[lines[end]], open);
      lines_[lines[end]].host_cost = op.host_cost;
      open = Duration{};
      at = end + 1;  // further lines of a measured one that is several share what lies behind it
    }
    const std::vector<std::size_t> rest(lines.begin() + static_cast<std::ptrdiff_t>(at), lines.end());
    share_among(rest, nullptr, open);
  }

  void set_placed(const std::vector<std::size_t>& lines, OpId id) {
    for (const std::size_t line : lines)
      if (lines_[line].measured == id) lines_[line].host_gap = m_.ops[id].host_gap;
  }

  bool is_placed(const GraftedLine& line) const { return line.measured != kNoOp && m_.ops[line.measured].placed; }

  // As in the complete step. `last`: the measured line behind, or null at the end, where what nothing was measured of
  // keeps its own times.
  void share_among(const std::vector<std::size_t>& rest, GraftedLine* last, Duration open) {
    std::vector<Duration*> parts;
    std::vector<std::int64_t> weights;
    const auto add = [&](Duration& part, Duration weight) {
      parts.push_back(&part);
      weights.push_back(weight.count());
    };
    for (const std::size_t i : rest) {
      if (is_placed(lines_[i])) continue;
      const Op& op = c_.ops[lines_[i].complete];
      add(lines_[i].host_gap, op.host_gap);
      add(lines_[i].host_cost, op.host_cost);
    }
    if (last != nullptr)
      add(last->host_gap, last->complete != kNoOp && last->first_of_pair ? c_.ops[last->complete].host_gap
                                                                         : m_.ops[last->measured].host_gap);
    std::int64_t all = 0;
    for (const std::int64_t weight : weights) all += weight;
    if (all == 0 && last != nullptr) {
      last->host_gap = open;
      return;
    }
    if (last == nullptr && open == Duration{}) open = Duration(all);
    std::int64_t before = 0;
    for (std::size_t i = 0; i < parts.size() && all > 0; ++i) {
      const std::int64_t behind = before + weights[i];
      *parts[i] = part_of_time(open, before, behind, all);
      before = behind;
    }
  }

  const Trace &m_, &c_;
  const std::vector<LinePair>& pairs_;
  const GraftedOrder& order_;
  std::vector<std::uint32_t> pair_of_;  // by measured op
  std::vector<std::uint16_t> threads_;  // by op of the complete step: the measured thread, of what is not paired
  std::vector<bool> taken_;             // by op of the complete step: paired, or left out
  std::vector<GraftedLine> lines_;
  OpId next_ = 0;  // of the complete step
};

}  // namespace

std::vector<GraftedLine> grafted_program(const Trace& measured, const Trace& complete, const GraftedOrder& order) {
  return Merge(measured, complete, order).run();
}

}  // namespace memwall
