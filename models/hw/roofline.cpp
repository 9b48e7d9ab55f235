#include "models/hw/roofline.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include "models/hw/attention_cost.h"
#include "models/hw/kernel_cost.h"
#include "sim/machine/group_place.h"
#include "sim/machine/hbm_traffic.h"

namespace memwall {
namespace {

struct Placed {
  double compute = 0, l2 = 0, hbm = 0;  // seconds at the roof
  RooflineBound bound = RooflineBound::unknown;
  DataType arithmetic = DataType::unknown;
  double flops = 0, hbm_bytes = 0;
  double roof() const { return std::max({compute, l2, hbm}); }
};

Placed place(const Op& op, const Shape& shape, const Machine& machine) {
  const Gpu& gpu = machine.gpu;
  Placed p;
  p.flops = performed_flops(op, shape);
  p.hbm_bytes = hbm_bytes(gpu, op);
  p.arithmetic = arithmetic_type(gpu, op.data_type, op.operator_class);
  const double peak = peak_flops(gpu, op.data_type, op.operator_class);
  if (p.flops > 0 && peak > 0) p.compute = p.flops / peak;
  if (gpu.l2_bandwidth > 0) p.l2 = static_cast<double>(op.bytes) / gpu.l2_bandwidth;
  p.hbm = p.hbm_bytes / machine.links[machine.hbm_link].bandwidth;
  const double fixed = op.kernels * to_seconds(efficiency_of(gpu, op.operator_class).fixed) +
                       (op.kernels - 1) * to_seconds(machine.host.stream_gap);
  if (op.duration.count() > 0 && 2 * fixed >= to_seconds(op.duration))
    p.bound = RooflineBound::latency;
  else if (p.roof() > 0)
    p.bound = p.compute >= std::max(p.l2, p.hbm) ? RooflineBound::compute
              : p.hbm >= p.l2                    ? RooflineBound::hbm
                                                 : RooflineBound::l2;
  return p;
}

class Analysis {
 public:
  Analysis(const Trace& trace, const Machine& machine) : t_(trace), machine_(machine) {}

  Roofline run() && {
    for (const Op& op : t_.ops) {
      if (op.kind == OpKind::kernel || op.kind == OpKind::memset) add_kernel(op);
      if (op.kind == OpKind::copy || op.kind == OpKind::storage_io) add_copy(op);
      if (op.kind == OpKind::collective) add_collective(op);
    }
    add_roofs();
    for (auto& [key, group] : groups_) result_.operators.push_back(std::move(group));
    for (auto& [name, transfer] : transfers_) result_.transfers.push_back(std::move(transfer));
    const auto longest = [](const auto& a, const auto& b) { return a.duration > b.duration; };
    std::stable_sort(result_.operators.begin(), result_.operators.end(), longest);
    std::stable_sort(result_.transfers.begin(), result_.transfers.end(), longest);
    return std::move(result_);
  }

 private:
  void add_kernel(const Op& op) {
    const Placed p = place(op, t_.shapes[op.shape], machine_);
    result_.kernel_time += op.duration;
    result_.by_bound[static_cast<std::size_t>(p.bound)] += op.duration;
    const auto c = static_cast<std::size_t>(op.operator_class);
    result_.by_class[c] += op.duration;
    if (p.bound == RooflineBound::l2 || p.bound == RooflineBound::hbm) result_.memory_bound_by_class[c] += op.duration;
    if (op.flops > 0) used_.insert({p.arithmetic, peak_flops(machine_.gpu, op.data_type, op.operator_class)});
    RooflineOperator& g = group_of(op);
    ++g.ops;
    g.kernels += op.kernels;
    g.duration += op.duration;
    g.flops += p.flops;
    g.l2_bytes += static_cast<double>(op.bytes);
    g.hbm_bytes += p.hbm_bytes;
    g.roof_seconds += p.roof();
    g.by_bound[static_cast<std::size_t>(p.bound)] += op.duration;
    Duration& longest = longest_[&g];
    if (g.ops > 1 && op.duration <= longest) return;
    longest = op.duration;
    g.operator_class = op.operator_class;
    g.origin = op.origin;
    g.data_type = p.arithmetic;
  }

  RooflineOperator& group_of(const Op& op) {
    const StringId name = op.operator_name != 0 ? op.operator_name : op.name;
    const auto [folded, is_new] = folded_.try_emplace(op.module);
    if (is_new) folded->second = folded_module(t_.strings[op.module]);
    RooflineOperator& g = groups_[{t_.strings[name], folded->second, op.phase}];
    if (g.ops == 0) {
      g.name = t_.strings[name];
      g.module = folded->second;
      g.phase = op.phase;
    }
    return g;
  }

  void add_copy(const Op& op) {
    const std::string &from = t_.places[op.from], &to = t_.places[op.to];
    const Route* route = machine_.route(machine_.tier(from), machine_.tier(to), op.pageable);
    const double bandwidth = from == to ? bandwidth_within_gpu(op) : route != nullptr ? route->bandwidth : 0;
    add_transfer(from + " to " + to + (op.pageable ? ", pageable" : ""), op, bandwidth);
  }

  // A copy within the GPU is a kernel that reads and writes its bytes; L2 serves those of a small one.
  double bandwidth_within_gpu(const Op& op) const {
    Op kernel = op;
    kernel.bytes = 2 * op.bytes;
    const Placed p = place(kernel, Shape(), machine_);
    const double seconds = std::max(p.l2, p.hbm);
    return seconds > 0 ? static_cast<double>(op.bytes) / seconds : 0;
  }

  void add_collective(const Op& op) {
    const Fabric* fabric = nullptr;
    if (const ProcessGroup group = process_group_of(t_, op); group.ranks > 1)
      if (const std::size_t f = fabric_of(machine_, place_of(machine_, group)); f != kNoFabric)
        fabric = &machine_.fabrics[f];
    add_transfer(std::string(to_string(op.collective)) + (fabric ? " over " + fabric->name : ""), op,
                 fabric ? fabric->bus_bandwidth : 0);
  }

  void add_transfer(const std::string& name, const Op& op, BytesPerSecond bandwidth) {
    RooflineTransfer& t = transfers_[name];
    t.name = name;
    ++t.ops;
    t.bytes += op.bytes;
    t.duration += op.duration;
    if (bandwidth > 0) t.roof_seconds += static_cast<double>(op.bytes) / bandwidth;
    t.bandwidth = t.roof_seconds > 0 ? static_cast<double>(t.bytes) / t.roof_seconds : bandwidth;
    Duration& longest = longest_transfer_[&t];
    if (t.ops > 1 && op.duration <= longest) return;
    longest = op.duration;
    t.origin = op.origin;
  }

  void add_roofs() {
    if (machine_.gpu.l2_bandwidth > 0) result_.memory.push_back({"L2", machine_.gpu.l2_bandwidth});
    result_.memory.push_back({"HBM", machine_.links[machine_.hbm_link].bandwidth});
    for (const auto& [type, flops] : used_) result_.compute.push_back({type, flops});
    std::stable_sort(result_.compute.begin(), result_.compute.end(),
                     [](const ComputeRoof& a, const ComputeRoof& b) { return a.flops > b.flops; });
  }

  const Trace& t_;
  const Machine& machine_;
  Roofline result_;
  std::map<std::tuple<std::string, std::string, Phase>, RooflineOperator> groups_;
  std::map<const RooflineOperator*, Duration> longest_;           // of its ops; nodes of groups_ do not move
  std::map<const RooflineTransfer*, Duration> longest_transfer_;  // likewise
  std::map<StringId, std::string> folded_;
  std::map<std::string, RooflineTransfer> transfers_;
  std::map<DataType, FlopsPerSecond> used_;
};

}  // namespace

std::string_view to_string(RooflineBound bound) {
  switch (bound) {
    case RooflineBound::compute:
      return "compute";
    case RooflineBound::l2:
      return "L2";
    case RooflineBound::hbm:
      return "HBM";
    case RooflineBound::latency:
      return "latency";
    case RooflineBound::unknown:
      break;
  }
  return "unknown";
}

RooflineBound RooflineOperator::bound() const {
  return static_cast<RooflineBound>(std::max_element(by_bound.begin(), by_bound.end()) - by_bound.begin());
}

double RooflineOperator::achieved() const { return duration.count() > 0 ? flops / to_seconds(duration) : 0; }
double RooflineOperator::attainable() const { return roof_seconds > 0 ? flops / roof_seconds : 0; }
double RooflineOperator::share_of_roof() const {
  return duration.count() > 0 ? roof_seconds / to_seconds(duration) : 0;
}
double RooflineTransfer::share_of_roof() const {
  return duration.count() > 0 ? roof_seconds / to_seconds(duration) : 0;
}
double RooflineOperator::intensity_at_l2() const { return l2_bytes > 0 ? flops / l2_bytes : 0; }
double RooflineOperator::intensity_at_hbm() const {
  if (flops <= 0 || l2_bytes <= 0) return 0;
  return hbm_bytes > 0 ? flops / hbm_bytes : std::numeric_limits<double>::infinity();
}

Duration Roofline::memory_bound() const {
  return by_bound[static_cast<std::size_t>(RooflineBound::l2)] + by_bound[static_cast<std::size_t>(RooflineBound::hbm)];
}

Roofline roofline(const Trace& trace, const Machine& machine) { return Analysis(trace, machine).run(); }

std::string folded_module(const std::string& module) {
  std::string folded;
  const auto digit = [&](std::size_t i) {
    return i < module.size() && std::isdigit(static_cast<unsigned char>(module[i]));
  };
  for (std::size_t i = 0; i < module.size(); ++i) {
    const bool begins = digit(i) && (i == 0 || module[i - 1] == '.' || module[i - 1] == '_');
    std::size_t end = i;
    while (begins && digit(end)) ++end;
    if (begins && (end == module.size() || module[end] == '.')) {
      folded += '*';
      i = end - 1;
    } else {
      folded += module[i];
    }
  }
  return folded;
}

}  // namespace memwall
