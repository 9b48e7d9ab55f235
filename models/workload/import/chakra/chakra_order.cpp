#include "models/workload/import/chakra/chakra_order.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <unordered_map>

#include "sim/error.h"

namespace memwall {
namespace {

// Of nodes without work and of what waits for them, all together: each may wait for all before it, which a small file
// can say of many.
constexpr std::size_t kMostHandedOn = std::size_t{1} << 26;

class Orderer {
 public:
  explicit Orderer(const ChakraGraph& graph) : g_(graph) {}

  ChakraOrder run() && {
    find_hosts();
    find_edges();
    sort();
    place();
    return std::move(o_);
  }

 private:
  // Files of before the attribute: an operator has a number in the host's order, or a schema.
  bool on_host(const ChakraNode& n) const {
    return n.host_stated ? n.on_host : n.record_function >= 0 || n.schema != 0;
  }

  void find_hosts() {
    for (const ChakraNode& n : g_.nodes) o_.has_host |= n.type != ChakraNodeType::metadata && on_host(n);
  }

  // What waits for whom, by index.
  void find_edges() {
    std::unordered_map<std::uint64_t, std::uint32_t> index;  // looked up only
    for (std::uint32_t i = 0; i < g_.nodes.size(); ++i)
      o_.duplicate_ids += !index.try_emplace(g_.nodes[i].id, i).second;
    first_.push_back(0);
    for (const ChakraNode& n : g_.nodes) {
      const auto add = [&](std::uint32_t first, std::uint32_t count) {
        for (std::uint32_t d = first; d < first + count; ++d) {
          const auto found = index.find(g_.dependencies[d]);
          if (found == index.end())
            ++o_.dangling;
          else
            edges_.push_back(found->second);
        }
      };
      add(n.first_data, n.data_count);
      if (o_.has_host)
        o_.callers += n.control_count;
      else
        add(n.first_control, n.control_count);
      const auto begin = edges_.begin() + static_cast<std::ptrdiff_t>(first_.back());
      std::sort(begin, edges_.end());
      edges_.erase(std::unique(begin, edges_.end()), edges_.end());
      first_.push_back(edges_.size());
    }
  }

  void sort() {
    const auto count = static_cast<std::uint32_t>(g_.nodes.size());
    std::vector<std::uint32_t> open(count, 0);  // producers that have not been placed
    std::vector<std::size_t> first_consumer(count + 1, 0);
    for (const std::uint32_t producer : edges_) ++first_consumer[producer + 1];
    for (std::uint32_t i = 0; i < count; ++i) first_consumer[i + 1] += first_consumer[i];
    std::vector<std::uint32_t> consumers(edges_.size());
    std::vector<std::size_t> at(first_consumer.begin(), first_consumer.end() - 1);
    for (std::uint32_t i = 0; i < count; ++i)
      for (std::size_t e = first_[i]; e < first_[i + 1]; ++e) {
        consumers[at[edges_[e]]++] = i;
        ++open[i];
      }
    std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> ready;
    for (std::uint32_t i = 0; i < count; ++i)
      if (open[i] == 0) ready.push(i);
    rank_.assign(count, count);
    std::uint32_t next = 0;  // the first of the file that may not have been placed
    while (sorted_.size() < count) {
      if (ready.empty()) {  // a circle: its first node of the file starts it
        while (rank_[next] != count) ++next;
        ready.push(next);
      }
      const std::uint32_t i = ready.top();
      ready.pop();
      if (rank_[i] != count) continue;
      rank_[i] = static_cast<std::uint32_t>(sorted_.size());
      sorted_.push_back(i);
      for (std::size_t c = first_consumer[i]; c < first_consumer[i + 1]; ++c)
        if (open[consumers[c]] > 0 && --open[consumers[c]] == 0 && rank_[consumers[c]] == count)
          ready.push(consumers[c]);
    }
  }

  // Positions are given to nodes of work; what a node without work waits for is handed on.
  void place() {
    constexpr std::uint32_t kNone = 0xffffffff;
    std::vector<std::uint32_t> position(g_.nodes.size(), kNone);
    std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> handed_on;  // by node without work
    o_.first.push_back(0);
    std::vector<std::uint32_t> mine;
    std::size_t handed = 0;
    for (const std::uint32_t i : sorted_) {
      mine.clear();
      for (std::size_t e = first_[i]; e < first_[i + 1]; ++e) {
        const std::uint32_t producer = edges_[e];
        if (rank_[producer] >= rank_[i]) {
          ++o_.broken;
        } else if (position[producer] != kNone) {
          mine.push_back(position[producer]);
        } else {
          const std::vector<std::uint32_t>& others = handed_on[producer];
          mine.insert(mine.end(), others.begin(), others.end());
          handed += others.size();
          if (handed > kMostHandedOn)
            throw InputError(g_.path.string() + ": dependencies on nodes without work stand for more than " +
                             std::to_string(kMostHandedOn) + " on others; expected a graph of fewer.");
        }
      }
      std::sort(mine.begin(), mine.end());
      mine.erase(std::unique(mine.begin(), mine.end()), mine.end());
      const ChakraNode& n = g_.nodes[i];
      if (n.type == ChakraNodeType::metadata || n.type == ChakraNodeType::invalid) {
        ++o_.metadata;
        handed_on[i] = mine;
        continue;
      }
      position[i] = static_cast<std::uint32_t>(o_.nodes.size());
      o_.nodes.push_back(i);
      o_.on_host.push_back(on_host(n));
      o_.producers.insert(o_.producers.end(), mine.begin(), mine.end());
      o_.first.push_back(o_.producers.size());
    }
  }

  const ChakraGraph& g_;
  ChakraOrder o_;
  std::vector<std::size_t> first_;     // by node: where its edges begin
  std::vector<std::uint32_t> edges_;   // producers
  std::vector<std::uint32_t> sorted_;  // all nodes
  std::vector<std::uint32_t> rank_;    // by node: place in sorted_
};

}  // namespace

ChakraOrder order_of(const ChakraGraph& graph) { return Orderer(graph).run(); }

}  // namespace memwall
