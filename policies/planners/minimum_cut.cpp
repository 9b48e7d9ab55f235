#include "policies/planners/minimum_cut.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <tuple>

// Its iterators over edges are optional, which GCC takes for uninitialized.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/boykov_kolmogorov_max_flow.hpp>
#pragma GCC diagnostic pop

namespace memwall {
namespace {

constexpr std::size_t kLongChain = 100;  // ops
constexpr std::size_t kFarthest = 100;   // ops to backward that weigh

class Bans {
 public:
  Bans(const StepProfile& profile, const ForwardGraph& graph, const std::vector<bool>& allowed)
      : p_(profile), g_(graph), allowed_(allowed), banned_(graph.ops.size(), false) {
    for (std::size_t i = 0; i < g_.ops.size(); ++i)
      if (!g_.ops[i].is_repeatable) banned_[i] = true;
  }

  void add(const BanRules& rules) {
    for (std::size_t i = 0; i < g_.ops.size(); ++i)
      if (is_banned_itself(i, rules)) ban(i);
    if (rules.used_far_apart)
      for (std::size_t i = 0; i < g_.ops.size(); ++i) ban_far_readers(i);
    if (rules.long_chains) ban_long_chains();
  }
  std::vector<bool> banned() && { return std::move(banned_); }

 private:
  using Seen = std::tuple<std::size_t, bool>;  // an op, and is it merged with the one before?

  void ban(std::size_t op) {
    if (allowed_.empty() || !allowed_[op]) banned_[op] = true;
  }

  bool merges(std::size_t maker, std::size_t reader) const {
    return is_fusible(g_.ops[maker].type, g_.ops[reader].type);
  }

  bool is_banned_itself(std::size_t op, const BanRules& rules) const {
    const PartitionerOperator& type = g_.ops[op].type;
    if (rules.not_on_list ? !type.recomputable : type.random || type.compute_intensive) return true;
    if (rules.materialized_backward && is_read_unmerged(op)) return true;
    return rules.reductions && bytes_made(p_, g_, op) * 4 < bytes_read(p_, g_, op);
  }

  bool is_read_unmerged(std::size_t op) const {
    const Trace& t = p_.trace();
    for (const std::size_t v : g_.ops[op].makes)
      for (const OpId reader : g_.values[v].backward)
        if (!is_fusible(g_.ops[op].type, partitioner_operator(t, t.ops[reader]))) return true;
    return false;
  }

  std::set<std::size_t> readers_of(std::size_t op) const {
    std::set<std::size_t> readers;
    for (const std::size_t v : g_.ops[op].makes)
      readers.insert(g_.values[v].readers.begin(), g_.values[v].readers.end());
    return readers;
  }

  // The first op behind `starts`, and not behind `last`, that is not merged with what it reads.
  std::size_t first_unmerged(const std::set<std::size_t>& starts, std::size_t last) const {
    std::set<Seen> open;
    for (const std::size_t start : starts) open.insert({start, true});
    while (!open.empty()) {
      const auto [op, merged] = *open.begin();
      open.erase(open.begin());
      if (!merged) return op;
      for (const std::size_t reader : readers_of(op))
        if (reader <= last) open.insert({reader, merges(op, reader)});
    }
    return last;
  }

  void ban_far_readers(std::size_t op) {
    const std::set<std::size_t> readers = readers_of(op);
    if (readers.size() < 2) return;
    const std::size_t first = first_unmerged(readers, *readers.rbegin());
    for (const std::size_t reader : readers)
      if (reader > first && merges(op, reader)) ban(reader);
  }

  void ban_long_chains() {
    std::vector<bool> seen(g_.ops.size(), false);
    for (std::size_t start = 0; start < g_.ops.size(); ++start) {
      std::set<std::size_t> open = {start};
      while (!open.empty()) {
        const std::size_t op = *open.begin();
        open.erase(open.begin());
        if (seen[op]) continue;
        seen[op] = true;
        if (op > start + kLongChain && open.empty()) {
          ban(op);
          break;
        }
        for (const std::size_t reader : readers_of(op))
          if (merges(op, reader) && !banned_[reader]) open.insert(reader);
      }
    }
  }

  const StepProfile& p_;
  const ForwardGraph& g_;
  const std::vector<bool>& allowed_;
  std::vector<bool> banned_;
};

// --- weights

// Ops between the value and backward, by value; at most kFarthest.
std::vector<std::size_t> distances(const ForwardGraph& g) {
  std::vector<std::size_t> of_value(g.values.size(), kFarthest), of_op(g.ops.size(), kFarthest);
  for (std::size_t op = g.ops.size(); op-- > 0;)
    for (const std::size_t v : g.ops[op].makes) {
      std::size_t& distance = of_value[v];
      if (!g.values[v].backward.empty()) distance = 1;
      for (const std::size_t reader : g.values[v].readers) distance = std::min(distance, of_op[reader] + 1);
      of_op[op] = std::min(of_op[op], distance);
    }
  return of_value;
}

bool is_materialized(const Trace& t, const ForwardGraph& g, const GraphValue& value) {
  const PartitionerOperator& maker = g.ops[value.maker].type;
  const auto unmerged = [&](const PartitionerOperator& reader) { return !is_fusible(maker, reader); };
  return std::ranges::any_of(value.readers, [&](std::size_t reader) { return unmerged(g.ops[reader].type); }) ||
         std::ranges::any_of(value.backward, [&](OpId id) { return unmerged(partitioner_operator(t, t.ops[id])); });
}

// --- the cut

class Network {
  using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
  struct Node {
    boost::default_color_type color{};
    std::int64_t distance = 0;
    Traits::edge_descriptor predecessor{};
  };
  struct Edge {
    std::int64_t capacity = 0, residual = 0;
    Traits::edge_descriptor reverse{};
  };
  using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, Node, Edge>;

 public:
  static constexpr std::int64_t kEndless = std::numeric_limits<std::int64_t>::max() / 4;

  explicit Network(std::size_t nodes) : graph_(nodes) {}

  void join(std::size_t from, std::size_t to, std::int64_t capacity) {
    const auto forth = boost::add_edge(from, to, graph_).first, back = boost::add_edge(to, from, graph_).first;
    graph_[forth].capacity = capacity;
    graph_[forth].reverse = back;
    graph_[back].reverse = forth;
  }

  // By node: can it still reach the sink when as much flows as can? Of several minimum cuts it is the one nearest to
  // the sink, as networkx gives it.
  std::vector<bool> sink_side(std::size_t source, std::size_t sink) {
    boost::boykov_kolmogorov_max_flow(graph_, boost::get(&Edge::capacity, graph_), boost::get(&Edge::residual, graph_),
                                      boost::get(&Edge::reverse, graph_), boost::get(&Node::predecessor, graph_),
                                      boost::get(&Node::color, graph_), boost::get(&Node::distance, graph_),
                                      boost::get(boost::vertex_index, graph_), source, sink);
    std::vector<bool> reaches(boost::num_vertices(graph_), false);
    std::vector<std::size_t> open = {sink};
    reaches[sink] = true;
    while (!open.empty()) {
      const std::size_t node = open.back();
      open.pop_back();
      // Every edge has one back, so that those out lead to all that may lead here.
      for (const auto& edge : boost::make_iterator_range(boost::out_edges(node, graph_))) {
        const std::size_t other = boost::target(edge, graph_);
        if (reaches[other] || graph_[graph_[edge].reverse].residual == 0) continue;
        reaches[other] = true;
        open.push_back(other);
      }
    }
    return reaches;
  }

 private:
  Graph graph_;
};

std::vector<bool> saved_values(const Trace& t, const ForwardGraph& g, const std::vector<bool>& banned) {
  // Nodes: source, sink, one per op, two per value.
  constexpr std::size_t kSource = 0, kSink = 1, kFirst = 2;
  const auto into = [&](std::size_t value) { return kFirst + g.ops.size() + 2 * value; };
  Network network(into(g.values.size()));
  const std::vector<std::size_t> distance = distances(g);
  for (std::size_t op = 0; op < g.ops.size(); ++op) {
    if (banned[op]) network.join(kSource, kFirst + op, Network::kEndless);
    for (const std::size_t v : g.ops[op].makes) network.join(kFirst + op, into(v), Network::kEndless);
  }
  for (std::size_t v = 0; v < g.values.size(); ++v) {
    const GraphValue& value = g.values[v];
    std::int64_t weight = Network::kEndless;
    if (value.is_last)
      weight = static_cast<std::int64_t>(static_cast<double>(value.bytes) *
                                         std::pow(1.1, static_cast<double>(std::max<std::size_t>(1, distance[v])))) *
               (is_materialized(t, g, value) ? 1 : 2);
    network.join(into(v), into(v) + 1, weight);
    for (const std::size_t reader : value.readers) network.join(into(v) + 1, kFirst + reader, Network::kEndless);
    if (!value.backward.empty()) network.join(into(v) + 1, kSink, Network::kEndless);
  }
  const std::vector<bool> behind = network.sink_side(kSource, kSink);
  std::vector<bool> saved(g.values.size());
  for (std::size_t v = 0; v < g.values.size(); ++v) saved[v] = !behind[into(v)] && behind[into(v) + 1];
  return saved;
}

}  // namespace

ValueCut minimum_cut(const StepProfile& profile, const ForwardGraph& graph, const BanRules& rules,
                     const std::vector<bool>& allowed) {
  Bans bans(profile, graph, allowed);
  bans.add(rules);
  ValueCut cut;
  cut.banned = std::move(bans).banned();
  cut.saved = saved_values(profile.trace(), graph, cut.banned);
  return cut;
}

ValueCut least_cut(const StepProfile& profile, const ForwardGraph& graph) {
  ValueCut cut;
  cut.banned = Bans(profile, graph, {}).banned();
  cut.saved = saved_values(profile.trace(), graph, cut.banned);
  return cut;
}

Bytes saved_bytes(const ForwardGraph& graph, const ValueCut& cut) {
  Bytes bytes = 0;
  for (std::size_t v = 0; v < graph.values.size(); ++v)
    if (cut.saved[v]) bytes += graph.values[v].bytes;
  return bytes;
}

}  // namespace memwall
