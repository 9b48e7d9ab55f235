#include "models/workload/import/execution_trace/operator_match.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include "sim/text_hash.h"
#include "sim/trace/sequence_alignment.h"

namespace memwall {
namespace {

// The operators or nodes of one thread in host order: their indices, and their names as numbers.
struct Program {
  std::vector<std::uint32_t> index;
  std::vector<std::uint64_t> name;
};

class Names {
 public:
  std::uint32_t number(const std::string& name) {
    return numbers_.try_emplace(name, static_cast<std::uint32_t>(numbers_.size())).first->second;
  }
  std::size_t size() const { return numbers_.size(); }

 private:
  std::unordered_map<std::string, std::uint32_t> numbers_;  // looked up only
};

bool is_profiler_bookkeeping(const std::string& name) { return name.starts_with("[pytorch|profiler|"); }

// An upper bound of what two programs can have in common, without regard to order.
std::size_t common_names(const Program& a, const Program& b, std::size_t names) {
  std::vector<std::uint32_t> count(names, 0);
  for (const std::uint64_t n : a.name) ++count[n];
  std::size_t common = 0;
  for (const std::uint64_t n : b.name)
    if (count[n] > 0) --count[n], ++common;
  return common;
}

// The part of `whole` that holds `part` best, as a range of positions. A profiler may have recorded
// many iterations and the observer only one of them: then nearly all of `whole` has no partner, and
// among equal iterations the first is taken. Votes of runs of eight names decide the offset.
std::pair<std::size_t, std::size_t> window(const Program& part, const Program& whole) {
  constexpr std::size_t kRun = 8;
  const std::size_t n = part.name.size(), m = whole.name.size();
  if (m < 2 * n || n < kRun) return {0, m};
  const auto hash = [](const std::vector<std::uint64_t>& names, std::size_t at) {
    std::uint64_t h = hash_of("");
    for (std::size_t i = 0; i < kRun; ++i) h = mixed(h, names[at + i]);
    return h;
  };
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> places;
  for (std::size_t i = 0; i + kRun <= m; ++i) places[hash(whole.name, i)].push_back(static_cast<std::uint32_t>(i));
  std::vector<std::uint32_t> votes(n + m, 0);  // by position in `whole` less position in `part`, plus n
  std::size_t budget = 50'000'000;             // bounds the work where one run of names repeats without end
  for (std::size_t i = 0; i + kRun <= n; ++i) {
    const auto found = places.find(hash(part.name, i));
    if (found == places.end() || found->second.size() > budget) continue;
    budget -= found->second.size();
    for (const std::uint32_t at : found->second) ++votes[at + n - i];
  }
  const auto best = std::max_element(votes.begin(), votes.end());
  if (*best == 0) return {0, m};
  const std::int64_t offset = (best - votes.begin()) - static_cast<std::int64_t>(n);
  const std::int64_t slack = static_cast<std::int64_t>(n / 8 + kRun);
  const std::int64_t first = std::max<std::int64_t>(0, offset - slack);
  const std::int64_t last =
      std::min<std::int64_t>(static_cast<std::int64_t>(m), offset + static_cast<std::int64_t>(n) + slack);
  if (last <= first) return {0, m};
  return {static_cast<std::size_t>(first), static_cast<std::size_t>(last)};
}

constexpr std::size_t kCheapSteps = 1'000'000'000;  // of the alignment: about a second

class Matcher {
 public:
  Matcher(const TimedCapture& capture, const ExecutionTrace& execution) : capture_(capture), execution_(execution) {
    match_.node_of_operator.assign(capture.operators.size(), kNoIndex);
    match_.operator_of_node.assign(execution.nodes.size(), kNoIndex);
    captured_.resize(capture.threads.size());
    for (std::uint32_t i = 0; i < capture.operators.size(); ++i) {
      Program& program = captured_[capture.operators[i].thread];
      program.index.push_back(i);
      program.name.push_back(names_.number(capture.text(capture.operators[i].name)));
    }
    for (std::uint32_t i = 0; i < execution.nodes.size(); ++i) {
      const std::string& name = execution.name(execution.nodes[i]);
      if (is_profiler_bookkeeping(name)) continue;
      Program& program = nodes_[execution.nodes[i].thread];
      program.index.push_back(i);
      program.name.push_back(names_.number(name));
      ++match_.nodes;
    }
  }

  OperatorMatch run() && {
    for (const auto& [thread, captured] : pair_threads()) align_pair(thread, captured);
    std::sort(match_.threads.begin(), match_.threads.end(),
              [](const ThreadMatch& a, const ThreadMatch& b) { return a.node_thread < b.node_thread; });
    return std::move(match_);
  }

 private:
  using Pairing = std::vector<std::pair<std::int64_t, std::uint16_t>>;

  // Greedily by the most names in common; each thread once.
  Pairing pair_threads() const {
    std::vector<std::tuple<std::size_t, std::int64_t, std::uint16_t>> candidates;
    for (const auto& [thread, program] : nodes_)
      for (std::uint16_t c = 0; c < captured_.size(); ++c)
        if (const std::size_t common = common_names(program, captured_[c], names_.size()); common > 0)
          candidates.emplace_back(common, thread, c);
    std::sort(candidates.begin(), candidates.end(), [](const auto& a, const auto& b) {
      return std::get<0>(a) != std::get<0>(b) ? std::get<0>(a) > std::get<0>(b) : a < b;
    });
    Pairing result;
    for (const auto& [common, thread, captured] : candidates) {
      const bool taken = std::any_of(result.begin(), result.end(), [t = thread, c = captured](const auto& pair) {
        return pair.first == t || pair.second == c;
      });
      if (!taken) result.emplace_back(thread, captured);
    }
    return result;
  }

  void align_pair(std::int64_t thread, std::uint16_t captured) {
    const Program& nodes = nodes_.at(thread);
    const Program& operators = captured_[captured];
    const auto [first, last] = window(nodes, operators);
    const Keys part(operators.name.data() + first, last - first);
    // More than three nodes in ten without a partner are counted only while that is cheap: then the two
    // are not of one run, and the count is for the message.
    const std::size_t surplus = part.size() > nodes.name.size() ? part.size() - nodes.name.size() : 0;
    const std::size_t cheap = kCheapSteps / (part.size() + nodes.name.size() + 1);
    const auto most = static_cast<std::uint32_t>(
        std::min<std::size_t>(std::max(surplus + nodes.name.size() * 6 / 10 + 64, cheap), kNoIndex));
    ThreadMatch result{thread, captured, nodes.name.size(), operators.name.size(), 0};
    if (const auto alignment = longest_common_subsequence(nodes.name, part, most)) {
      result.matched = alignment->size();
      for (const auto& [n, o] : *alignment) {
        match_.node_of_operator[operators.index[first + o]] = nodes.index[n];
        match_.operator_of_node[nodes.index[n]] = operators.index[first + o];
      }
    }
    match_.matched += result.matched;
    match_.threads.push_back(result);
  }

  const TimedCapture& capture_;
  const ExecutionTrace& execution_;
  Names names_;
  std::vector<Program> captured_;
  std::map<std::int64_t, Program> nodes_;
  OperatorMatch match_;
};

}  // namespace

OperatorMatch match_operators(const TimedCapture& capture, const ExecutionTrace& execution) {
  return Matcher(capture, execution).run();
}

}  // namespace memwall
