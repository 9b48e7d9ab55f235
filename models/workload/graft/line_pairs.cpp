#include "models/workload/graft/line_pairs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>

#include "models/workload/graft/operator_key.h"
#include "sim/text_hash.h"
#include "sim/trace/sequence_alignment.h"

namespace memwall {
namespace {

// A longest common subsequence of sequences that differ more would take minutes: what occurs in order does then.
constexpr std::uint32_t kMostUnmatched = 20'000;
// Work that is paired by its place alone takes at most so many times what it is taken for.
constexpr double kPlausible = 5;

// Steps are of one size where so much of what has a shape in both agrees in it.
constexpr double kOneSize = 0.7;

// Runs of one operator are compared line by line up to so many pairs.
constexpr std::size_t kMostCompared = 4'000'000;

struct Range {
  std::size_t first = 0, last = 0;  // positions in lines of the device
};

// One of the two programs.
class Program {
 public:
  explicit Program(const Trace& trace) : trace_(trace) {}

  const Trace& trace() const { return trace_; }
  const Op& op(OpId id) const { return trace_.ops[id]; }

  // Of the ops first <= id < last.
  std::vector<OpId> device_lines(OpId first, OpId last) const {
    std::vector<OpId> all;
    for (OpId id = first; id < last; ++id)
      if (is_device_line(op(id).kind)) all.push_back(id);
    return all;
  }

  std::vector<OpId> host_lines(OpId first, OpId last) const {
    std::vector<OpId> all;
    for (OpId id = first; id < last; ++id)
      if (is_line(op(id).kind) && !is_device_line(op(id).kind)) all.push_back(id);
    return all;
  }

  // What a collective does has another name in each library and framework: nccl:all_reduce, c10d::allreduce_.
  std::string key(const Op& op) {
    if (op.kind == OpKind::collective && op.collective != CollectiveKind::none)
      return fmt::format("collective {}", static_cast<int>(op.collective));
    const StringId name = operator_or_name(op);
    if (keys_.size() <= name) keys_.resize(trace_.strings.size());
    if (keys_[name].empty()) keys_[name] = operator_key(trace_.strings[name]);
    return keys_[name];
  }

  // A call may fill memory by a memset and compute by kernels.
  std::uint64_t by_operator(const Op& op) { return hash(fmt::format("{} {}", key(op), static_cast<int>(op.phase))); }
  std::uint64_t by_name(const Op& op) {
    return hash(fmt::format("{} {} {}", key(op), static_cast<int>(op.kind), static_cast<int>(op.phase)));
  }
  std::uint64_t by_shape(const Op& op) {
    return hash(fmt::format("{} {} {} {}", key(op), static_cast<int>(op.kind), static_cast<int>(op.phase),
                            fmt::join(trace_.shapes[op.shape], ",")));
  }
  // Lines whose class says nothing agree with none.
  std::uint64_t by_class(const Op& op, std::uint64_t none) const {
    if (op.operator_class == OperatorClass::other || op.operator_class == OperatorClass::elementwise) return none;
    return hash(fmt::format("{} {} {}", static_cast<int>(op.operator_class), static_cast<int>(op.kind),
                            static_cast<int>(op.phase)));
  }
  // The first line of a step is called otherwise in every program.
  std::uint64_t of_host(OpId id) const {
    const Op& line = op(id);
    const bool begins = std::ranges::binary_search(trace_.steps, id, {}, &Step::first);
    return hash(begins ? "step" : fmt::format("{} {}", static_cast<int>(line.kind), trace_.strings[line.name]));
  }

  double seconds(std::span<const OpId> ops) const {
    Duration sum{};
    for (const OpId id : ops) sum += op(id).duration;
    return to_seconds(sum);
  }

 private:
  static std::uint64_t hash(std::string_view text) { return hash_of(text); }

  const Trace& trace_;
  std::vector<std::string> keys_;  // by string
};

// Positions of what has equal keys in both, ascending.
Alignment aligned(const std::vector<std::uint64_t>& a, const std::vector<std::uint64_t>& b) {
  if (auto longest = longest_common_subsequence(a, b, kMostUnmatched)) return std::move(*longest);
  return align_by_occurrence(a, b);
}

// Parts of `many` lines, one for each of `few`: by the share of time that each of the few takes.
std::vector<std::size_t> part_ends(const std::vector<double>& many, const std::vector<double>& few) {
  const auto total = [](const std::vector<double>& times) {
    double sum = 0;
    for (const double time : times) sum += time;
    return std::max(sum, 1e-300);
  };
  const double all_many = total(many), all_few = total(few);
  std::vector<std::size_t> ends;
  double wanted = 0, had = 0;
  std::size_t at = 0;
  for (std::size_t i = 0; i < few.size(); ++i) {
    wanted += few[i] / all_few;
    const std::size_t most = many.size() - (few.size() - 1 - i);  // one at least is left for each behind
    do had += many[at++] / all_many;
    while (at < most && had + many[at] / all_many / 2 <= wanted);
    if (i + 1 == few.size()) at = many.size();
    ends.push_back(at);
  }
  return ends;
}

// For each of the few one of the many, ascending, such that the ratios of their times are nearest to 1 in all.
// REQUIRES: few.size() <= many.size().
std::vector<std::size_t> nearest_in_order(const std::vector<double>& few, const std::vector<double>& many) {
  const std::size_t rows = few.size(), columns = many.size();
  const auto at = [&](std::size_t i, std::size_t j) { return i * (columns + 1) + j; };
  // Of the first i with partners among the first j; from where.
  std::vector<double> least((rows + 1) * (columns + 1), std::numeric_limits<double>::infinity());
  std::vector<bool> takes(least.size(), false);
  for (std::size_t j = 0; j <= columns; ++j) least[at(0, j)] = 0;
  for (std::size_t i = 1; i <= rows; ++i)
    for (std::size_t j = i; j <= columns; ++j) {
      const double apart = std::abs(std::log((few[i - 1] + 1e-9) / (many[j - 1] + 1e-9)));
      const double with = least[at(i - 1, j - 1)] + apart, without = least[at(i, j - 1)];
      takes[at(i, j)] = with < without;
      least[at(i, j)] = std::min(with, without);
    }
  std::vector<std::size_t> partners(rows);
  for (std::size_t i = rows, j = columns; i > 0; --j)
    if (takes[at(i, j)]) partners[--i] = j - 1;
  return partners;
}

class Pairing {
 public:
  Pairing(const Trace& measured, const Trace& complete, const OperatorCalls& calls)
      : m_(measured), c_(complete), calls_(calls) {}

  std::vector<LinePair> run() {
    const auto& m = m_.trace();
    const auto& c = c_.trace();
    const std::size_t steps = m.steps.size() == c.steps.size() ? m.steps.size() : 0;
    if (steps == 0) pair_step(0, end(m), 0, end(c));
    for (std::size_t s = 0; s < steps; ++s) {
      const auto bounds = [&](const Trace& trace) {
        return std::pair(s == 0 ? 0 : trace.steps[s].first, s + 1 == steps ? end(trace) : trace.steps[s + 1].first);
      };
      const auto [m_first, m_last] = bounds(m);
      const auto [c_first, c_last] = bounds(c);
      pair_step(m_first, m_last, c_first, c_last);
    }
    return std::move(pairs_);
  }

 private:
  static OpId end(const Trace& trace) { return static_cast<OpId>(trace.ops.size()); }

  void pair_step(OpId m_first, OpId m_last, OpId c_first, OpId c_last) {
    m_lines_ = m_.device_lines(m_first, m_last);
    c_lines_ = c_.device_lines(c_first, c_last);
    device_.clear();
    pair_range({0, m_lines_.size()}, {0, c_lines_.size()}, Level::shape);
    for (LinePair& pair : device_) {
      pair_host_lines(m_first, pair.measured.front(), c_first, pair.complete.front());
      m_first = pair.measured.back() + 1, c_first = pair.complete.back() + 1;
      pairs_.push_back(std::move(pair));
    }
    pair_host_lines(m_first, m_last, c_first, c_last);
  }

  void pair_host_lines(OpId m_first, OpId m_last, OpId c_first, OpId c_last) {
    const std::vector<OpId> m = m_.host_lines(m_first, m_last), c = c_.host_lines(c_first, c_last);
    if (m.empty() || c.empty()) return;
    std::vector<std::uint64_t> m_keys, c_keys;
    for (const OpId id : m) m_keys.push_back(m_.of_host(id));
    for (const OpId id : c) c_keys.push_back(c_.of_host(id));
    for (const auto& [i, j] : aligned(m_keys, c_keys)) pairs_.push_back({{m[i]}, {c[j]}, PairedBy::name});
  }

  enum class Level { shape, name, operator_class, place };

  void pair_range(Range m, Range c, Level level) {
    if (m.first == m.last || c.first == c.last) return;
    if (level == Level::place) return pair_by_place(m, c);
    const Alignment pairs = aligned(keys(m_, m_lines_, m, level, 1), keys(c_, c_lines_, c, level, 2));
    std::vector<std::pair<Range, Range>> paired;
    for (const auto& [i, j] : pairs) paired.push_back({{m.first + i, m.first + i + 1}, {c.first + j, c.first + j + 1}});
    if (level == Level::name) settle_runs(m, c, paired);
    if (level == Level::shape && !are_of_one_size(paired.size(), m, c)) paired.clear();
    if (level != Level::operator_class) take_further_lines(m, c, paired);
    const Level next = static_cast<Level>(static_cast<int>(level) + 1);
    for (const auto& [m_pair, c_pair] : paired) {
      pair_range({m.first, m_pair.first}, {c.first, c_pair.first}, next);
      add(ops(m_lines_, m_pair), ops(c_lines_, c_pair), by(level));
      m.first = m_pair.last, c.first = c_pair.last;
    }
    pair_range(m, c, next);
  }

  // Of another batch, what agrees in shape is another layer's.
  bool are_of_one_size(std::size_t paired, const Range& m, const Range& c) const {
    const auto with_shape = [](const Program& program, std::span<const OpId> lines) {
      return std::ranges::count_if(lines, [&](OpId id) { return program.op(id).shape != 0; });
    };
    const auto most = std::min(with_shape(m_, ops(m_lines_, m)), with_shape(c_, ops(c_lines_, c)));
    return static_cast<double>(paired) >= kOneSize * static_cast<double>(most);
  }

  static PairedBy by(Level level) { return level == Level::operator_class ? PairedBy::operator_class : PairedBy::name; }

  // Of several lines of one operator in a row, of which the profile has fewer: which are missing, only their times
  // tell.
  void settle_runs(const Range& m, const Range& c, std::vector<std::pair<Range, Range>>& paired) {
    std::size_t first = 0;  // of the pairs of the run
    for (std::size_t begin = c.first, end; begin < c.last; begin = end) {
      const std::uint64_t key = c_.by_name(c_.op(c_lines_[begin]));
      for (end = begin + 1; end < c.last && c_.by_name(c_.op(c_lines_[end])) == key;) ++end;
      std::size_t last = first;
      while (last < paired.size() && paired[last].second.first < end) ++last;
      const std::size_t from = first == 0 ? m.first : paired[first - 1].first.last;
      const std::size_t to = last == paired.size() ? m.last : paired[last].first.first;
      if (last > first && last - first < end - begin) settle_run(key, {from, to}, {begin, end}, first, last, paired);
      first = last;
    }
  }

  void settle_run(std::uint64_t key, const Range& m, const Range& c, std::size_t first, std::size_t last,
                  std::vector<std::pair<Range, Range>>& paired) {
    std::vector<std::size_t> ours;
    for (std::size_t i = m.first; i < m.last; ++i)
      if (m_.by_name(m_.op(m_lines_[i])) == key) ours.push_back(i);
    const std::size_t theirs = c.last - c.first;
    if (ours.size() != last - first || ours.size() * theirs > kMostCompared) return;
    std::vector<double> m_times, c_times;
    for (const std::size_t i : ours) m_times.push_back(to_seconds(m_.op(m_lines_[i]).duration));
    for (std::size_t j = c.first; j < c.last; ++j) c_times.push_back(to_seconds(c_.op(c_lines_[j]).duration));
    const std::vector<std::size_t> partners = nearest_in_order(m_times, c_times);
    for (std::size_t i = 0; i < ours.size(); ++i)
      paired[first + i] = {{ours[i], ours[i] + 1}, {c.first + partners[i], c.first + partners[i] + 1}};
  }

  // Measured lines of the same operator or call beside a pair are the same call's, where the complete step has none
  // left for them there: libraries compute one call in several kernels, PyTorch adds a convolution's bias by an
  // operator.
  void take_further_lines(const Range& m, const Range& c, std::vector<std::pair<Range, Range>>& paired) {
    for (std::size_t i = 0; i < paired.size(); ++i) {
      auto& [lines, partner] = paired[i];
      const OpId of = m_lines_[lines.first];
      const bool is_first = i == 0, is_last = i + 1 == paired.size();
      const Range before{is_first ? c.first : paired[i - 1].second.last, partner.first};
      const Range behind{partner.last, is_last ? c.last : paired[i + 1].second.first};
      const std::size_t first = is_first ? m.first : paired[i - 1].first.last;
      const std::size_t last = is_last ? m.last : paired[i + 1].first.first;
      while (lines.first > first && is_part_of(of, m_lines_[lines.first - 1], before)) --lines.first;
      while (lines.last < last && is_part_of(of, m_lines_[lines.last], behind)) ++lines.last;
    }
  }

  // Is the other measured line of the same call as the first? `left`: lines of the complete step that could be its own.
  bool is_part_of(OpId first, OpId other, const Range& left) {
    const std::uint64_t key = m_.by_operator(m_.op(other));
    return (calls_.are_of_one(first, other) || key == m_.by_operator(m_.op(first))) && !has(left, key);
  }

  bool has(const Range& c, std::uint64_t key) {
    return std::ranges::any_of(ops(c_lines_, c), [&](OpId id) { return c_.by_operator(c_.op(id)) == key; });
  }

  static std::vector<std::uint64_t> keys(Program& program, const std::vector<OpId>& lines, const Range& range,
                                         Level level, std::uint64_t none) {
    std::vector<std::uint64_t> all;
    for (std::size_t i = range.first; i < range.last; ++i) {
      const Op& op = program.op(lines[i]);
      if (level == Level::shape)
        all.push_back(op.shape == 0 ? none : program.by_shape(op));
      else
        all.push_back(level == Level::name ? program.by_name(op) : program.by_class(op, none));
    }
    return all;
  }

  static std::span<const OpId> ops(const std::vector<OpId>& lines, const Range& range) {
    return {lines.data() + range.first, range.last - range.first};
  }

  // Phase by phase: each part with the next one of the same phase.
  void pair_by_place(Range m, Range c) {
    for (; m.first < m.last; m.first = phase_part(m_, m_lines_, m).last) {
      const Phase phase = m_.op(m_lines_[m.first]).phase;
      Range rest = c;
      while (rest.first < rest.last && c_.op(c_lines_[rest.first]).phase != phase)
        rest.first = phase_part(c_, c_lines_, rest).last;
      if (rest.first == rest.last) continue;
      const Range c_part = phase_part(c_, c_lines_, rest);
      const auto m_ops = ops(m_lines_, phase_part(m_, m_lines_, m)), c_ops = ops(c_lines_, c_part);
      const double measured = m_.seconds(m_ops), complete = c_.seconds(c_ops);
      if (measured <= kPlausible * complete && complete <= kPlausible * measured) add(m_ops, c_ops, PairedBy::place);
      c.first = c_part.last;
    }
  }

  static Range phase_part(const Program& program, const std::vector<OpId>& lines, const Range& range) {
    Range part{range.first, range.first};
    const Phase phase = program.op(lines[range.first]).phase;
    while (part.last < range.last && program.op(lines[part.last]).phase == phase) ++part.last;
    return part;
  }

  // As many on both sides are pairs; else each of the fewer takes a part of the others.
  void add(std::span<const OpId> m, std::span<const OpId> c, PairedBy by) {
    if (m.size() == c.size()) {
      for (std::size_t i = 0; i < m.size(); ++i) device_.push_back({{m[i]}, {c[i]}, by});
      return;
    }
    const bool more_measured = m.size() > c.size();
    const auto many = more_measured ? m : c, few = more_measured ? c : m;
    const std::vector<std::size_t> ends =
        part_ends(times(more_measured ? m_ : c_, many), times(more_measured ? c_ : m_, few));
    std::size_t first = 0;
    for (std::size_t i = 0; i < few.size(); ++i) {
      std::vector<OpId> part(many.begin() + static_cast<std::ptrdiff_t>(first),
                             many.begin() + static_cast<std::ptrdiff_t>(ends[i]));
      first = ends[i];
      if (more_measured)
        device_.push_back({std::move(part), {few[i]}, by});
      else
        device_.push_back({{few[i]}, std::move(part), by});
    }
  }

  static std::vector<double> times(const Program& program, std::span<const OpId> ops) {
    std::vector<double> all;
    for (const OpId id : ops) all.push_back(to_seconds(program.op(id).duration));
    return all;
  }

  Program m_, c_;
  const OperatorCalls& calls_;
  std::vector<OpId> m_lines_, c_lines_;  // of the device, of the step
  std::vector<LinePair> device_;         // of the step
  std::vector<LinePair> pairs_;
};

}  // namespace

std::string_view to_string(PairedBy by) {
  constexpr std::string_view kWords[] = {"name", "class of work", "place"};
  return kWords[static_cast<std::size_t>(by)];
}

std::vector<LinePair> pair_lines(const Trace& measured, const Trace& complete, const OperatorCalls& calls) {
  return Pairing(measured, complete, calls).run();
}

}  // namespace memwall
