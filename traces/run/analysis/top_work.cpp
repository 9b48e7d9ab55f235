#include "traces/run/analysis/top_work.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "sim/machine/arithmetic.h"
#include "sim/trace/ranks.h"
#include "traces/run/analysis/run_scan.h"

namespace memwall {
namespace {

constexpr double kKnownEnough = 0.99;  // of the time of matrix products: then their FLOPs are known

StringId operator_of(const Op& op) { return op.operator_name != 0 ? op.operator_name : op.name; }

HostWork work_of(const Trace& trace, const PathSegment& segment) {
  switch (segment.part) {
    case PathPart::gap:
      return HostWork::gap;
    case PathPart::latency:
      // A call that returns late has waited before.
      return segment.op != kNoOp && trace.ops[segment.op].kind == OpKind::synchronize ? HostWork::synchronize
                                                                                      : HostWork::latency;
    default:
      break;
  }
  if (segment.op == kNoOp) return HostWork::call;
  const Op& op = trace.ops[segment.op];
  if (op.kind == OpKind::synchronize) return HostWork::synchronize;
  return op.kind == OpKind::host_work ? HostWork::work : HostWork::call;
}

std::vector<HostTotal> host_totals(const Run& run, const std::vector<PathSegment>& path) {
  const Trace& trace = run.trace;
  std::map<std::pair<StringId, HostWork>, HostTotal> totals;
  for (const PathSegment& segment : path) {
    if (segment.time_class != TimeClass::host) continue;
    const HostWork work = work_of(trace, segment);
    const bool named = segment.op != kNoOp && work != HostWork::latency;
    HostTotal& total = totals[{named ? operator_of(trace.ops[segment.op]) : StringId{0}, work}];
    total.time += segment.end - segment.begin;
    ++total.count;
  }
  std::vector<HostTotal> list;
  for (auto& [key, total] : totals) {
    total.name = trace.strings[key.first];
    total.work = key.second;
    list.push_back(std::move(total));
  }
  std::sort(list.begin(), list.end(), [](const HostTotal& a, const HostTotal& b) {
    if (a.time != b.time) return a.time > b.time;
    return std::tie(a.name, a.work) < std::tie(b.name, b.work);
  });
  return list;
}

std::vector<WorkTotal> most(const Trace& trace, const std::vector<WorkCollector::Sum>& sums, std::size_t limit,
                            std::uint64_t& names) {
  std::vector<WorkTotal> all;
  for (std::size_t s = 0; s < sums.size(); ++s)
    if (sums[s].count > 0)
      all.push_back({trace.strings[static_cast<StringId>(s)], sums[s].count, sums[s].time, sums[s].flops});
  names = all.size();
  std::sort(all.begin(), all.end(), [](const WorkTotal& a, const WorkTotal& b) {
    return a.time.seconds() != b.time.seconds() ? a.time.seconds() > b.time.seconds() : a.name < b.name;
  });
  if (all.size() > limit) all.resize(limit);
  return all;
}

}  // namespace

std::string_view to_string(HostWork work) {
  switch (work) {
    case HostWork::call:
      return "call";
    case HostWork::work:
      return "work";
    case HostWork::synchronize:
      return "synchronize";
    case HostWork::gap:
      return "gap";
    case HostWork::latency:
      return "latency";
  }
  return "";
}

WorkCollector::WorkCollector(const Run& run)
    : run_(run), operators_(run.trace->strings.size()), kernels_(run.trace->strings.size()) {
  const std::vector<StepWindow> steps = step_windows(run);
  for (const Rank& rank : run.trace->rank_table) times_.push_back(1.0 + static_cast<double>(rank.stands_for.size()));
  if (steps.empty()) return;
  begin_ = steps.front().begin;
  for (const StepWindow& step : steps) {
    begin_ = std::min(begin_, step.begin);
    step_seconds_ += to_seconds(step.end - step.begin) * (times_.empty() ? 1 : times_[step.rank]);
  }
}

void WorkCollector::add(OpId first, OpId last) {
  const Trace& trace = run_.trace;
  for (OpId id = first; id < last; ++id) {
    const OpRecord& record = run_.result.records[id];
    if (record.start == kNever) continue;
    const Op& op = trace.ops[id];
    const Duration time = record.end - record.start;
    device_ += time;
    const double flops = performed_flops(op, trace.shapes[op.shape]);
    for (Sum* sum : {&operators_[operator_of(op)], &kernels_[op.name]}) {
      ++sum->count;
      sum->time += time;
      sum->flops += flops;
    }
    if (op.kind == OpKind::kernel && record.start >= begin_) add_flops(op, to_seconds(time));
  }
}

double WorkCollector::times_of(const Op& op) const { return times_.empty() ? 1 : times_[rank_of(run_.trace, op)]; }

void WorkCollector::add_flops(const Op& op, double seconds) {
  if (uses_matrix_units(op.operator_class)) {
    (op.flops > 0 ? known_seconds_ : unknown_seconds_) += seconds;
    by_type_[static_cast<std::size_t>(op.data_type)] += op.flops;
  }
  const bool again = op.phase == Phase::recompute;
  (again ? recomputed_ : flops_) += op.flops;
  (again ? counted_recomputed_ : counted_flops_) += op.flops * times_of(op);
}

std::optional<FlopsUse> WorkCollector::flops_use() const {
  if (known_seconds_ <= 0 || known_seconds_ < kKnownEnough * (known_seconds_ + unknown_seconds_)) return std::nullopt;
  const auto most = std::max_element(by_type_.begin(), by_type_.end()) - by_type_.begin();
  const Gpu& gpu = run_.machine.gpu;
  const auto type = static_cast<DataType>(most);
  const double peak = peak_flops(gpu, type, OperatorClass::gemm);
  if (peak <= 0 || step_seconds_ <= 0) return std::nullopt;
  return FlopsUse{flops_, recomputed_, arithmetic_type(gpu, type, OperatorClass::gemm),
                  counted_flops_ / peak / step_seconds_,
                  (counted_flops_ + counted_recomputed_) / peak / step_seconds_};
}

TopWork WorkCollector::top(const std::vector<PathSegment>& path, std::size_t limit) const {
  TopWork top;
  top.operators = most(run_.trace, operators_, limit, top.operator_names);
  top.kernels = most(run_.trace, kernels_, limit, top.kernel_names);
  top.device = device_;
  top.host = host_totals(run_, path);
  top.flops = flops_use();
  return top;
}

TopWork top_work(const Run& run, const std::vector<PathSegment>& path, std::size_t limit) {
  WorkCollector work(run);
  scan(run, work);
  return work.top(path, limit);
}

}  // namespace memwall
