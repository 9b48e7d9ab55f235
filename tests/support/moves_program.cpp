#include "tests/support/moves_program.h"

#include <algorithm>
#include <map>

namespace memwall {
namespace {

using Term = LinearProgram::Term;
constexpr double kInfinity = LinearProgram::kInfinity;
// Bytes are counted in these.
constexpr double kUnit = 1e8;

class MovesProgram {
 public:
  MovesProgram(const StepCycle& cycle, const CycleLinks& links, Bytes budget, MovesWhole whole)
      : c_(cycle), path_(links.paths.front()), whole_(whole), slots_(static_cast<int>(cycle.size())) {
    for (int k = 0; k < slots_; ++k) {
      wait_out_.push_back(lp_.add_column(0, kInfinity, 1));
      wait_in_.push_back(lp_.add_column(0, kInfinity, 1));
    }
    out_first_.resize(static_cast<std::size_t>(slots_)), out_second_ = in_first_ = in_second_ = out_first_;
    memory_.resize(static_cast<std::size_t>(slots_));
    for (std::uint32_t g = 0; g < c_.gaps().size(); ++g) add_gap(g);
    for (const auto& [version, demands] : copies_) add_copy(demands);
    for (int k = 0; k < slots_; ++k) {
      const auto live = static_cast<double>(c_.live()[at(k)] - budget) / kUnit;
      if (live > 0) lp_.add_row(memory_[at(k)], live, kInfinity);
    }
    add_links();
  }

  MovesProgramAnswer solve(const SolverLimits& limits) {
    const double ideal = to_seconds(c_.turn());
    const SolverAnswer answer = whole_ == MovesWhole::nothing ? lp_.relaxed(limits) : lp_.minimise(limits);
    MovesProgramAnswer result;
    result.status = answer.status;
    result.seconds = ideal + std::max(0.0, answer.bound);
    if (!answer.has_values()) return result;
    result.found_seconds = ideal + answer.objective;
    for (const std::size_t column : away_) result.away.push_back(answer.values[column] > 0.5);
    for (int k = 0; k < slots_; ++k)
      result.waits.push_back(answer.values[wait_out_[at(k)]] + answer.values[wait_in_[at(k)]]);
    return result;
  }

 private:
  // Of a version: by slots since its write, the columns of drops that rely on its copy.
  struct Demand {
    int slots = 0;
    std::size_t column = 0;
  };
  struct Copy {
    int written = 0;
    double bytes = 0;
    std::vector<Demand> demands;
  };

  std::size_t at(int slot) const { return static_cast<std::size_t>(((slot % slots_) + slots_) % slots_); }

  void add_gap(std::uint32_t g) {
    const CycleGap& gap = c_.gaps()[g];
    const CycleStorage& storage = c_.storages()[gap.storage];
    const double held = static_cast<double>(storage.held) / kUnit;
    away_.push_back(lp_.add_column(0, 1, 0, whole_ != MovesWhole::nothing));
    std::vector<std::size_t> dropped, fetched;  // by slot from gap.begin; by slot from gap.begin + 1
    for (int k = gap.begin; k < gap.end; ++k) dropped.push_back(lp_.add_column(0, 1, 0, whole_ == MovesWhole::slots));
    for (int k = gap.begin + 1; k < gap.end; ++k)
      fetched.push_back(lp_.add_column(0, 1, 0, whole_ == MovesWhole::slots));
    fetched.push_back(away_.back());
    for (std::size_t i = 0; i < dropped.size(); ++i) {
      const std::size_t next = i + 1 < dropped.size() ? dropped[i + 1] : away_.back();
      lp_.add_row({{next, 1}, {dropped[i], -1}}, i + 1 < dropped.size() ? 0 : 0, kInfinity);
      if (i + 1 < fetched.size()) {
        lp_.add_row({{fetched[i + 1], 1}, {fetched[i], -1}}, 0, kInfinity);
        lp_.add_row({{dropped[i], 1}, {fetched[i], -1}}, 0, kInfinity);
      }
      auto& memory = memory_[at(gap.begin + static_cast<int>(i))];
      memory.push_back({dropped[i], held});
      if (i > 0) memory.push_back({fetched[i - 1], -held});
    }
    lp_.add_row({{dropped.back(), 1}, {away_.back(), -1}}, 0, 0);
    if (gap.needs_copy) {
      Copy& copy = copies_[gap.version];
      copy.written = gap.written;
      copy.bytes = (static_cast<double>(storage.moved) + to_seconds(path_.out_latency) * path_.out_rate) / kUnit;
      for (std::size_t i = 0; i < dropped.size(); ++i)
        copy.demands.push_back({gap.begin + static_cast<int>(i) - gap.written, dropped[i]});
    }
    if (gap.needs_content && gap.returns)
      add_fetch(gap, fetched,
                (static_cast<double>(storage.moved) + to_seconds(path_.in_latency) * path_.in_rate) / kUnit);
  }

  // `left`: of the bytes that may have flowed by now, those that have not.
  void add_fetch(const CycleGap& gap, const std::vector<std::size_t>& fetched, double bytes) {
    std::size_t before = 0;
    bool any = false;
    const auto flow = [&](std::vector<Term>& link, std::size_t limit) {
      const std::size_t moved = lp_.add_column(0, bytes, 0), sum = lp_.add_column(0, bytes, 0);
      link.push_back({moved, 1});
      std::vector<Term> terms = {{sum, 1}, {moved, -1}};
      if (any) terms.push_back({before, -1});
      lp_.add_row(terms, 0, 0);
      lp_.add_row({{limit, bytes}, {sum, -1}}, 0, kInfinity);
      before = sum, any = true;
    };
    for (int k = gap.begin + 1; k <= gap.end; ++k) {
      const std::size_t limit = fetched[static_cast<std::size_t>(k - gap.begin - 1)];
      flow(in_second_[at(k)], limit);
      if (k < gap.end) flow(in_first_[at(k + 1)], limit);
    }
    lp_.add_row({{before, 1}, {away_.back(), -bytes}}, 0, 0);
  }

  void add_copy(const Copy& copy) {
    int last = 0;
    for (const Demand& demand : copy.demands) last = std::max(last, demand.slots);
    std::size_t before = 0;
    for (int k = 1; k <= last; ++k) {
      const std::size_t first = lp_.add_column(0, copy.bytes, 0), sum = lp_.add_column(0, copy.bytes, 0);
      std::vector<Term> terms = {{sum, 1}, {first, -1}};
      if (k > 1) {
        const std::size_t second = lp_.add_column(0, copy.bytes, 0);
        out_second_[at(copy.written + k - 1)].push_back({second, 1});
        terms.push_back({second, -1});
        terms.push_back({before, -1});
      }
      out_first_[at(copy.written + k)].push_back({first, 1});
      lp_.add_row(terms, 0, 0);
      for (const Demand& demand : copy.demands)
        if (demand.slots == k) lp_.add_row({{sum, 1}, {demand.column, -copy.bytes}}, 0, kInfinity);
      before = sum;
    }
  }

  // Out: while waiting for drops, then until the next slot's. In: until drops of the next slot are done, then while
  // waiting for what is touched.
  void add_links() {
    const double out = path_.out_rate / kUnit, in = path_.in_rate / kUnit;
    for (int k = 0; k < slots_; ++k) {
      const double time = to_seconds(c_.slots()[at(k)].time), before = to_seconds(c_.slots()[at(k - 1)].time);
      limit(out_first_[at(k)], {wait_out_[at(k)]}, out, 0);
      limit(out_second_[at(k)], {wait_in_[at(k)]}, out, time);
      limit(in_first_[at(k)], {wait_out_[at(k)]}, in, before);
      limit(in_second_[at(k)], {wait_in_[at(k)]}, in, 0);
    }
  }

  void limit(std::vector<Term> flows, const std::vector<std::size_t>& waits, double rate, double seconds) {
    if (flows.empty()) return;
    for (const std::size_t wait : waits) flows.push_back({wait, -rate});
    lp_.add_row(flows, -kInfinity, rate * seconds);
  }

  const StepCycle& c_;
  const CyclePath& path_;
  const MovesWhole whole_;
  const int slots_;
  LinearProgram lp_;
  std::vector<std::size_t> wait_out_, wait_in_;                                            // by slot
  std::vector<std::size_t> away_;                                                          // by gap
  std::vector<std::vector<Term>> out_first_, out_second_, in_first_, in_second_, memory_;  // by slot
  std::map<std::uint32_t, Copy> copies_;                                                   // by version
};

}  // namespace

MovesProgramAnswer solve_moves(const StepCycle& cycle, const CycleLinks& links, Bytes budget, MovesWhole whole,
                               const SolverLimits& limits) {
  return MovesProgram(cycle, links, budget, whole).solve(limits);
}

}  // namespace memwall
