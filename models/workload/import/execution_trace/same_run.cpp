#include "models/workload/import/execution_trace/same_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "models/workload/import/execution_trace/capture_rank.h"
#include "models/workload/import/timed/recorded_call.h"
#include "sim/error.h"
#include "sim/human_text.h"

namespace memwall {
namespace {

bool is_of_a_collective(const std::string& name) {
  return name.starts_with("c10d::") || name.starts_with("nccl:") || name.starts_with("rccl:") ||
         name == "record_param_comms";
}

class Comparison {
 public:
  Comparison(const TimedCapture& capture, const ExecutionTrace& execution, const OperatorMatch& match)
      : c_(capture), e_(execution), match_(match) {}

  ShapeComparison run() {
    for (std::uint32_t k = 0; k < c_.operators.size(); ++k) {
      const std::uint32_t n = match_.node_of_operator[k];
      if (n == kNoIndex || c_.operators[k].input_dims == 0) continue;
      compare(arguments(c_.operators[k]), n);
    }
    return result_;
  }

 private:
  const std::vector<RecordedArgument>& arguments(const CapturedOperator& op) {
    const auto [found, is_new] =
        known_.try_emplace({op.input_dims, op.input_types, op.concrete_inputs}, std::vector<RecordedArgument>{});
    if (is_new)
      found->second = recorded_arguments(c_.text(op.input_dims), c_.text(op.input_types), c_.text(op.concrete_inputs));
    return found->second;
  }

  void compare(const std::vector<RecordedArgument>& arguments, std::uint32_t n) {
    bool compared = false, differs = false;
    const std::span<const TensorUse> tensors = e_.inputs(e_.nodes[n]);
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const std::uint16_t at = tensors[i].argument;
      const bool alone =
          (i == 0 || tensors[i - 1].argument != at) && (i + 1 == tensors.size() || tensors[i + 1].argument != at);
      if (!alone || at >= arguments.size() || arguments[at].list || arguments[at].tensors.size() != 1) continue;
      const std::span<const std::int64_t> extents = e_.shape(tensors[i]);
      const Shape& recorded = arguments[at].tensors.front();
      if (recorded.empty() || extents.empty()) continue;
      compared = true;
      differs |= !std::ranges::equal(recorded, extents);
    }
    result_.compared += compared;
    if (!differs) return;
    ++result_.differing;
    const bool collective = is_of_a_collective(e_.name(e_.nodes[n]));
    if (result_.first == kNoIndex || (collective && result_.collectives_differing == 0)) result_.first = n;
    result_.collectives_differing += collective;
  }

  const TimedCapture& c_;
  const ExecutionTrace& e_;
  const OperatorMatch& match_;
  std::map<std::tuple<StringId, StringId, StringId>, std::vector<RecordedArgument>> known_;
  ShapeComparison result_;
};

void require_process(const TimedCapture& capture, const ExecutionTrace& execution) {
  if (execution.process <= 0) return;
  std::set<std::int64_t> processes;
  for (const CapturedThread& thread : capture.threads)
    if (thread.process > 0) processes.insert(thread.process);
  if (processes.empty() || processes.contains(execution.process)) return;
  throw InputError(
      fmt::format("{}: it was recorded by process {}, {} by process {}; expected one and the same: it is of "
                  "another rank, or of another run.",
                  execution.path.string(), execution.process, capture.path.string(), fmt::join(processes, ", ")));
}

void require_rank(const TimedCapture& capture, const ExecutionTrace& execution) {
  const std::int64_t rank = rank_of(execution);
  if (rank < 0 || capture.rank < 0 || rank == capture.rank) return;
  throw InputError(fmt::format("{}: its collectives are of rank {}, {} is of rank {}; expected one and the same.",
                               execution.path.string(), rank, capture.path.string(), capture.rank));
}

void require_shapes(const TimedCapture& capture, const ExecutionTrace& execution, const OperatorMatch& match) {
  const ShapeComparison r = compare_shapes(capture, execution, match);
  const bool many = static_cast<double>(r.differing) > kMostDiffering * static_cast<double>(r.compared);
  if (r.collectives_differing == 0 && !many) return;
  throw InputError(
      fmt::format("{}: {} of {} that list the shapes of their inputs in both files list others than in {}, the first "
                  "{} (node {}){}; "
                  "expected the same: it is of another rank, or of another run.",
                  execution.path.string(), r.differing, counted_text(r.compared, "operator"), capture.path.string(),
                  execution.name(execution.nodes[r.first]), execution.nodes[r.first].id,
                  r.collectives_differing > 0 ? fmt::format(", {} of them collectives", r.collectives_differing) : ""));
}

}  // namespace

ShapeComparison compare_shapes(const TimedCapture& capture, const ExecutionTrace& execution,
                               const OperatorMatch& match) {
  return Comparison(capture, execution, match).run();
}

void require_same_run(const TimedCapture& capture, const ExecutionTrace& execution, const OperatorMatch& match) {
  require_process(capture, execution);
  require_rank(capture, execution);
  require_shapes(capture, execution, match);
}

}  // namespace memwall
