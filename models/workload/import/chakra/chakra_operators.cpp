#include "models/workload/import/chakra/chakra_operators.h"

#include <algorithm>
#include <map>
#include <string>

namespace memwall {
namespace {

// "aten::mm" of "aten::mm(1)"; the whole name if there is no number behind it.
std::string_view without_piece(std::string_view name) {
  if (!name.ends_with(')')) return name;
  const std::size_t open = name.rfind('(');
  if (open == std::string_view::npos || open + 2 >= name.size()) return name;
  const std::string_view number = name.substr(open + 1, name.size() - open - 2);
  const bool digits = std::all_of(number.begin(), number.end(), [](char c) { return c >= '0' && c <= '9'; });
  return digits ? name.substr(0, open) : name;
}

class Operators {
 public:
  Operators(ChakraGraph& graph, const ChakraOrder& order) : g_(graph), o_(order) {}

  ChakraOperators run() && {
    arguments_ = std::move(g_.tensors.nodes);
    result_.execution = std::move(g_.tensors);
    result_.execution.nodes.clear();
    result_.operator_of.assign(o_.nodes.size(), kNoIndex);
    result_.launched_by.assign(o_.nodes.size(), kNoIndex);
    result_.pieces = has_pieces();
    for (std::uint32_t p = 0; p < o_.nodes.size(); ++p)
      if (o_.on_host[p])
        add_host_node(p);
      else
        add_device_node(p);
    return std::move(result_);
  }

 private:
  const ChakraNode& node(std::uint32_t position) const { return g_.nodes[o_.nodes[position]]; }

  bool has_pieces() const {
    std::map<std::int64_t, std::uint32_t> nodes;  // by number in the host's order
    for (std::uint32_t p = 0; p < o_.nodes.size(); ++p)
      if (o_.on_host[p] && node(p).record_function >= 0 && ++nodes[node(p).record_function] > 1) return true;
    return false;
  }

  std::uint32_t add(std::uint32_t position) {
    const ChakraNode& n = node(position);
    ExecutionTrace& t = result_.execution;
    ExecutionNode e = n.arguments != ChakraNode::kNoArguments ? arguments_[n.arguments] : ExecutionNode{};
    e.id = static_cast<std::int64_t>(n.id);
    // Where operators are cut, ids were given anew and the callers' were not.
    const bool has_caller = !result_.pieces && n.control_count > 0;
    e.parent = has_caller ? static_cast<std::int64_t>(g_.dependencies[n.first_control]) : -1;
    e.record_function_id = static_cast<std::int64_t>(t.nodes.size());
    e.sequence_number = n.sequence;
    e.thread = n.thread;
    e.forward_thread = n.forward_thread;
    e.scope = n.scope;
    e.name = result_.pieces ? t.strings.intern(std::string(without_piece(t.strings[n.name]))) : n.name;
    e.schema = n.schema;
    t.nodes.push_back(e);
    return static_cast<std::uint32_t>(t.nodes.size() - 1);
  }

  void add_host_node(std::uint32_t p) {
    const ChakraNode& n = node(p);
    if (!result_.pieces || n.record_function < 0) {
      result_.operator_of[p] = add(p);
      return;
    }
    const auto [entry, is_new] = of_number_.try_emplace({n.thread, n.record_function}, 0);
    if (is_new) entry->second = add(p);
    result_.operator_of[p] = entry->second;
  }

  // Launched by the last host node that it waits for.
  void add_device_node(std::uint32_t p) {
    const std::span<const std::uint32_t> producers = o_.producers_of(p);
    const auto host =
        std::find_if(producers.rbegin(), producers.rend(), [&](std::uint32_t q) { return o_.on_host[q]; });
    if (host != producers.rend()) {
      result_.launched_by[p] = *host;
      result_.operator_of[p] = result_.operator_of[*host];
    } else if (node(p).arguments != ChakraNode::kNoArguments) {
      result_.operator_of[p] = add(p);
    }
  }

  ChakraGraph& g_;
  const ChakraOrder& o_;
  std::vector<ExecutionNode> arguments_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::uint32_t> of_number_;
  ChakraOperators result_;
};

}  // namespace

ChakraOperators operators_of(ChakraGraph& graph, const ChakraOrder& order) { return Operators(graph, order).run(); }

}  // namespace memwall
