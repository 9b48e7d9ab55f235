#include "models/workload/import/execution_trace/execution_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

#include "sim/error.h"

namespace memwall {
namespace {

constexpr std::int64_t kTicksPerNode = 4;  // begins at 0, issues at 1, ends at 2
constexpr std::int64_t kRangeScope = 7, kBackwardScope = 1;
constexpr std::string_view kModule = "nn.Module: ";

Time tick(std::size_t node, std::int64_t part) {
  return Time{} + Duration(static_cast<std::int64_t>(node) * kTicksPerNode + part);
}

// By range: the next node of its thread outside of it, or the number of nodes.
std::vector<std::uint32_t> next_outside(const ExecutionTrace& execution, const ExecutionOrder& order) {
  const auto count = static_cast<std::uint32_t>(execution.nodes.size());
  std::vector<std::uint32_t> next(count, count);
  std::unordered_map<std::int64_t, std::vector<std::uint32_t>> open;  // ranges by thread; looked up only
  for (std::uint32_t n = 0; n < count; ++n) {
    std::vector<std::uint32_t>& ranges = open[execution.nodes[n].thread];
    while (!ranges.empty() && order.last[ranges.back()] < n) {
      next[ranges.back()] = n;
      ranges.pop_back();
    }
    if (execution.nodes[n].scope == kRangeScope) ranges.push_back(n);
  }
  return next;
}

class Capture {
 public:
  Capture(const ExecutionTrace& execution, const ExecutionOrder& order) : execution_(execution), order_(order) {}

  TimedCapture make() && {
    capture_.path = execution_.path;
    engine_named_ = std::any_of(execution_.nodes.begin(), execution_.nodes.end(), [&](const ExecutionNode& n) {
      return execution_.name(n).starts_with("autograd::engine::evaluate_function");
    });
    if (!engine_named_) find_backward_threads();
    const std::vector<std::uint32_t> next = next_outside(execution_, order_);
    for (std::uint32_t n = 0; n < execution_.nodes.size(); ++n) add(n, next[n]);
    return std::move(capture_);
  }

 private:
  void add(std::uint32_t n, std::uint32_t next) {
    const ExecutionNode& node = execution_.nodes[n];
    const std::string& name = execution_.name(node);
    CapturedOperator op;
    op.name = capture_.strings.intern(name);
    op.thread = thread(node.thread);
    op.annotation = node.scope == kRangeScope;
    op.start = tick(n, 0);
    op.duration = (op.annotation ? tick(next, -1) : tick(order_.last[n], 2)) - op.start;
    op.parent = order_.parent[n];
    op.sequence_number = node.sequence_number;
    op.forward_thread = node.forward_thread;
    if (!engine_named_ && (node.scope == kBackwardScope || backward_threads_.contains(node.thread)))
      op.meaning = RangeMeaning::backward;
    if (op.annotation && name.starts_with(kModule)) add_module(op, name.substr(kModule.size()));
    capture_.operators.push_back(op);
  }

  // A compiled, filtered or cut trace may lack the engine's own entries. Then its functions are the backward pass, or
  // if they are missing too, the threads besides the first that run operators named *_backward.
  void find_backward_threads() {
    const auto is_function = [](const ExecutionNode& n) { return n.scope == kBackwardScope; };
    if (execution_.nodes.empty() || std::any_of(execution_.nodes.begin(), execution_.nodes.end(), is_function)) return;
    std::int64_t first = execution_.nodes.front().thread;
    for (const ExecutionNode& node : execution_.nodes)
      if (is_operator(execution_, node)) {
        first = node.thread;
        break;
      }
    for (const ExecutionNode& node : execution_.nodes)
      if (node.thread != first && execution_.name(node).find("_backward") != std::string::npos)
        backward_threads_.insert(node.thread);
  }

  void add_module(const CapturedOperator& op, const std::string& name) {
    CapturedModule module;
    module.name = capture_.strings.intern(name);
    module.start = op.start;
    module.duration = op.duration;
    module.thread = op.thread;
    std::vector<std::uint32_t>& open = open_modules_[op.thread];
    while (!open.empty() && capture_.modules[open.back()].end() < op.start) open.pop_back();
    if (!open.empty()) module.parent = open.back();
    open.push_back(static_cast<std::uint32_t>(capture_.modules.size()));
    capture_.modules.push_back(module);
  }

  std::uint16_t thread(std::int64_t id) {
    const auto [entry, is_new] = threads_.try_emplace(id, static_cast<std::uint16_t>(capture_.threads.size()));
    if (is_new) {
      if (capture_.threads.size() == std::numeric_limits<std::uint16_t>::max())
        throw InputError(fmt::format("{}: names more than 65535 threads.", execution_.path.string()));
      capture_.threads.push_back({execution_.process, id});
    }
    return entry->second;
  }

  const ExecutionTrace& execution_;
  const ExecutionOrder& order_;
  TimedCapture capture_;
  std::unordered_map<std::int64_t, std::uint16_t> threads_;  // looked up only
  std::unordered_map<std::uint16_t, std::vector<std::uint32_t>> open_modules_;
  bool engine_named_ = false;
  std::unordered_set<std::int64_t> backward_threads_;
};

}  // namespace

ExecutionOrder order_of(const ExecutionTrace& execution) {
  ExecutionOrder order;
  const auto count = static_cast<std::uint32_t>(execution.nodes.size());
  order.parent.assign(count, kNoIndex);
  order.last.resize(count);
  std::iota(order.last.begin(), order.last.end(), 0U);
  std::unordered_map<std::int64_t, std::vector<std::uint32_t>> open;  // by thread; looked up only
  for (std::uint32_t n = 0; n < count; ++n) {
    std::vector<std::uint32_t>& stack = open[execution.nodes[n].thread];
    while (!stack.empty() && execution.nodes[stack.back()].id != execution.nodes[n].parent) stack.pop_back();
    if (!stack.empty()) order.parent[n] = stack.back();
    stack.push_back(n);
  }
  for (std::uint32_t n = count; n-- > 0;)
    if (const std::uint32_t parent = order.parent[n]; parent != kNoIndex)
      order.last[parent] = std::max(order.last[parent], order.last[n]);
  order.ends.resize(count);
  std::iota(order.ends.begin(), order.ends.end(), 0U);
  std::sort(order.ends.begin(), order.ends.end(), [&](std::uint32_t a, std::uint32_t b) {
    return order.last[a] != order.last[b] ? order.last[a] < order.last[b] : a > b;  // of one end the inner first
  });
  return order;
}

bool is_bookkeeping(std::string_view name) {
  return name.starts_with("[pytorch|profiler|") || name.starts_with("## process_group:");
}

bool is_operator(const ExecutionTrace& execution, const ExecutionNode& node) {
  const std::string& name = execution.name(node);
  return node.scope != kRangeScope && node.scope != kBackwardScope && !is_bookkeeping(name) &&
         !name.starts_with("autograd::engine::");
}

TimedCapture logical_clock_capture(const ExecutionTrace& execution, const ExecutionOrder& order) {
  return Capture(execution, order).make();
}

Time logical_issue_time(const ExecutionOrder& order, std::uint32_t node) { return tick(order.last[node], 1); }

}  // namespace memwall
