#include "models/hw/transferred_duration.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "models/hw/attention_cost.h"
#include "models/hw/kernel_cost.h"
#include "models/hw/pricer.h"
#include "models/hw/transfer_errors.h"
#include "sim/machine/hbm_traffic.h"

namespace memwall {
namespace {

constexpr Bytes kMostOpBytes = Bytes{1} << 52;  // of one op: beyond lies no work, but numbers that overflow
const Shape kUnknownShape;

// Seconds of one op on one machine: what it pays whatever its size, and what grows with that.
struct Price {
  double fixed = 0, work = 0;
};

struct Split {
  double fixed = 0, work = 0;  // of the transferred duration
  bool launch = false;
  double seconds() const { return fixed + work; }
};

// A measurement below the price says that the work went faster; one above it, that all of it went slower.
// REQUIRES: old.work > 0 or old.fixed >= measured.
Split split(double measured, const Price& old, const Price& now) {
  if (measured <= old.fixed) return {measured * (now.fixed / old.fixed), 0, true};
  const double slower = std::max(1.0, measured / (old.fixed + old.work));
  return {slower * now.fixed, (measured - slower * old.fixed) * (now.work / old.work), false};
}

double hbm_bandwidth(const Machine& m) { return m.links[m.hbm_link].bandwidth; }

// The least time in which a machine could do the work.
double roof_seconds(const MachineWork& w) {
  const Gpu& gpu = w.machine.gpu;
  double seconds = hbm_bytes(gpu, w.op) / hbm_bandwidth(w.machine);
  if (gpu.l2_bandwidth > 0) seconds = std::max(seconds, static_cast<double>(w.op.bytes) / gpu.l2_bandwidth);
  const double peak = peak_flops(gpu, w.op.data_type, w.op.operator_class);
  if (w.op.flops > 0 && peak > 0) seconds = std::max(seconds, w.op.flops / peak);
  return seconds;
}

// By which factor less a product gains from the new machine in jobs of hours than in short runs, or the other way
// round, less 1: prices are those of jobs, but a capture may have been either. 0 where a machine knows one rate only.
double load_reach(const MachineWork& from, const MachineWork& to) {
  const auto of = [](const MachineWork& w) {
    const OperatorClass c = w.op.operator_class;
    if (c != OperatorClass::gemm && c != OperatorClass::convolution) return 1.0;
    const DataType used = arithmetic_type(w.machine.gpu, w.op.data_type, OperatorClass::gemm);
    for (const MatrixUnits::MainLoop& loop : w.machine.gpu.matrix.main_loops)
      if (loop.data_type == used) return loop.sustained > 0 ? loop.share / loop.sustained : 1.0;
    return 1.0;
  };
  const double ratio = of(to) / of(from);
  return std::max(ratio, 1 / ratio) - 1;
}

// Makers that are known and differ.
bool other_vendor(const Gpu& a, const Gpu& b) {
  const auto vendor = [](const Gpu& gpu) {
    for (const std::string_view name : {"NVIDIA", "AMD", "Intel"})
      if (gpu.name.starts_with(name)) return name;
    return std::string_view();
  };
  return !vendor(a).empty() && !vendor(b).empty() && vendor(a) != vendor(b);
}

// In what a kernel uses, how far apart are the machines? 1: by a factor of two or more in something.
double difference(double here, double there) {
  if (here == there) return 0;
  return here > 0 && there > 0 ? std::abs(std::log2(here / there)) : 1;
}

double distance(const MachineWork& from, const MachineWork& to) {
  const Gpu &a = from.machine.gpu, &b = to.machine.gpu;
  const double fixed_here = to_seconds(efficiency_of(a, from.op.operator_class).fixed);
  const double fixed_there = to_seconds(efficiency_of(b, to.op.operator_class).fixed);
  const double far = std::max({difference(hbm_bandwidth(from.machine), hbm_bandwidth(to.machine)),
                               difference(a.l2_bandwidth, b.l2_bandwidth), difference(fixed_here, fixed_there),
                               difference(static_cast<double>(a.l2_bytes), static_cast<double>(b.l2_bytes)),
                               difference(a.multiprocessors, b.multiprocessors),
                               difference(peak_flops(a, from.op.data_type, from.op.operator_class),
                                          peak_flops(b, to.op.data_type, to.op.operator_class))});
  return std::min(far, 1.0);
}

TransferredDuration result(const Split& s, TransferRule rule, double error_of_work, double near) {
  const double total = s.fixed + s.work;
  const double error = total > 0 ? (s.fixed * launch_transfer_error() + s.work * error_of_work) / total : 0;
  return {from_seconds(s.seconds()), near * error, s.launch ? TransferRule::launch : rule};
}

// Seconds that a kernel's bytes take at what streaming kernels reach: shares of classes are about kernels, which are
// the same on both machines, and machine files have them from tables of different kinds.
double streaming_seconds(const Machine& machine, Op op, Bytes bytes) {
  op.operator_class = OperatorClass::memory;
  op.phase = Phase::forward;
  op.bytes = bytes;
  return kernel_parts(machine, op, kUnknownShape).memory;
}

double fixed_seconds(const MachineWork& w) { return kernel_parts(w.machine, w.op, kUnknownShape).fixed; }

// Where one machine's L2 holds what the other's does not, whether the kernel profits depends on who touched the bytes
// before it, which nobody knows: between both answers, the mean in logarithms.
struct MemorySeconds {
  double old = 0, now = 0;
  double reach = 0;  // from the mean to either answer
};

MemorySeconds memory_seconds(const MachineWork& from, const MachineWork& to) {
  const auto missing = [](const MachineWork& w) {
    return hbm_bytes(w.machine.gpu, w.op) / static_cast<double>(w.op.bytes);
  };
  const MemorySeconds with_l2{streaming_seconds(from.machine, from.op, from.op.bytes),
                              streaming_seconds(to.machine, to.op, to.op.bytes), 0};
  if (missing(from) == missing(to)) return with_l2;
  const auto from_hbm = [](const MachineWork& w) {
    return static_cast<double>(w.op.bytes) /
           (hbm_bandwidth(w.machine) * efficiency_of(w.machine.gpu, OperatorClass::memory).memory);
  };
  const MemorySeconds mean{std::sqrt(with_l2.old * from_hbm(from)), std::sqrt(with_l2.now * from_hbm(to)), 0};
  const double ratios = (with_l2.now / with_l2.old) / (from_hbm(to) / from_hbm(from));
  return {mean.old, mean.now, std::sqrt(std::max(ratios, 1 / ratios)) - 1};
}

// The bytes that the old machine would move in this time.
Bytes bytes_that_take(double seconds, const Op& op, const Machine& machine) {
  Bytes low = 0, high = kMostOpBytes;
  while (high - low > std::max<Bytes>(low >> 30, 1)) {
    const Bytes middle = low + (high - low) / 2;
    (streaming_seconds(machine, op, middle) < seconds ? low : high) = middle;
  }
  return high;
}

TransferredDuration by_bandwidth(double measured, const MachineWork& from, const MachineWork& to) {
  const double left = std::max(measured - fixed_seconds(from), 0.0);
  const Price old{fixed_seconds(from), left};
  Price now{fixed_seconds(to), left};
  Op here = from.op, there = to.op;
  double reach = 0;
  if (left > 0) {
    here.bytes = there.bytes = bytes_that_take(left, here, from.machine);
    const MemorySeconds memory = memory_seconds({from.machine, here, from.shape}, {to.machine, there, to.shape});
    now.work = left * (memory.now / memory.old);
    reach = memory.reach;
  }
  const double error = kernel_transfer_error(TransferRule::bandwidth, here.operator_class);
  return result(split(measured, old, now), TransferRule::bandwidth, std::hypot(error, reach), distance(from, to));
}

TransferredDuration between_roofs(double measured, const MachineWork& from, const MachineWork& to) {
  const OperatorClass c = from.op.operator_class;
  const auto memory_rate = [](const Machine& m) {
    return hbm_bandwidth(m) * efficiency_of(m.gpu, OperatorClass::memory).memory;
  };
  const auto rate = [&](const MachineWork& w) {
    return peak_flops(w.machine.gpu, w.op.data_type, c) * efficiency_of(w.machine.gpu, c).compute;
  };
  const double memory = memory_rate(from.machine) / memory_rate(to.machine);
  const double there = rate(to);
  const double arithmetic = there > 0 && rate(from) > 0 ? rate(from) / there : memory;
  const double ratio = std::sqrt(memory * arithmetic);
  const double reach = std::max(memory, arithmetic) / ratio - 1;  // from the mean to the farther roof
  const double left = std::max(measured - fixed_seconds(from), 0.0);
  return result(split(measured, {fixed_seconds(from), left}, {fixed_seconds(to), left * ratio}), TransferRule::between,
                std::hypot(reach, kernel_transfer_error(TransferRule::between, c)), distance(from, to));
}

TransferredDuration by_work(double measured, const MachineWork& from, const MachineWork& to) {
  // Arithmetic is priced alike on both sides, by shape or by FLOPs: only then does what the prices have wrong cancel.
  const bool by_shape =
      prices_by_shape(from.machine.gpu, from.op, from.shape) && prices_by_shape(to.machine.gpu, to.op, to.shape);
  const auto arithmetic = [&](const MachineWork& w) {
    return kernel_parts(w.machine, w.op, by_shape ? w.shape : kUnknownShape).arithmetic;
  };
  const MemorySeconds memory = from.op.bytes > 0 && to.op.bytes > 0 ? memory_seconds(from, to) : MemorySeconds();
  const Price old{fixed_seconds(from), std::max(arithmetic(from), memory.old)};
  const Price now{fixed_seconds(to), std::max(arithmetic(to), memory.now)};
  const double reach = old.work == memory.old || now.work == memory.now ? memory.reach : 0;
  Split s = split(measured, old, now);
  const double roof = roof_seconds(from);
  const double least = roof > 0 ? roof_seconds(to) * std::min(1.0, measured / roof) : 0;
  if (s.fixed + s.work < least) s.work = least - s.fixed;
  const double error = kernel_transfer_error(TransferRule::work, from.op.operator_class);
  TransferredDuration carried = result(s, TransferRule::work, std::hypot(error, reach), distance(from, to));
  if (!s.launch) carried.error = std::hypot(carried.error, load_reach(from, to));
  return carried;
}

TransferredDuration over_links(double measured, const Price& old, const Price& now, TransferRule rule, double error) {
  const double far = std::max(difference(old.fixed, now.fixed), difference(old.work, now.work));
  if (far == 0 || (old.work <= 0 && measured > old.fixed)) return {from_seconds(measured), 0, TransferRule::unchanged};
  const Split s = split(measured, old, now);
  return {from_seconds(s.seconds()), std::min(1.0, far) * error, s.launch ? TransferRule::launch : rule};
}

// The bytes at the rate of the whole route; 0 where there is none.
double route_seconds(const Machine& machine, const Op& op, const std::string& source, const std::string& target) {
  const Route* route = machine.route(machine.tier(source), machine.tier(target), op.pageable);
  return route != nullptr && route->bandwidth > 0 ? static_cast<double>(op.bytes) / route->bandwidth : 0;
}

// FLOPs that a shape implies where the op states none.
Op with_flops(Op op, const Shape& shape) {
  if (op.flops > 0 || std::any_of(shape.begin(), shape.end(), [](std::int64_t e) { return e < 0; })) return op;
  const auto at = [&](std::size_t i) { return static_cast<double>(shape[i]); };
  if (op.operator_class == OperatorClass::gemm && shape.size() == 4) op.flops = 2 * at(0) * at(1) * at(2) * at(3);
  if (op.operator_class == OperatorClass::attention && shape.size() >= 7 && at(4) > 0)
    op.flops = attention_flops(shape) * (op.phase == Phase::backward ? kAttentionBackward : 1);
  return op;
}

}  // namespace

std::string_view to_string(TransferRule rule) {
  constexpr std::string_view kNames[kTransferRules] = {"unchanged", "launch", "work",  "bandwidth",
                                                       "between",   "route",  "fabric"};
  return kNames[static_cast<std::size_t>(rule)];
}

DataType transferred_type(const Op& op, const Gpu& from, const Gpu& to) {
  const bool single = op.data_type == DataType::fp32 || op.data_type == DataType::unknown;
  const auto in_tf32 = [](const Gpu& gpu) {
    return arithmetic_type(gpu, DataType::tf32, OperatorClass::convolution) == DataType::tf32;
  };
  const bool changes = op.operator_class == OperatorClass::convolution && single && !in_tf32(from);
  return changes && in_tf32(to) ? DataType::tf32 : op.data_type;
}

TransferredDuration transferred_kernel(Duration measured, const MachineWork& from, const MachineWork& to) {
  const double seconds = to_seconds(measured);
  if (seconds <= 0) return {measured, 0, TransferRule::unchanged};
  const Op here = with_flops(from.op, from.shape);
  Op there = with_flops(to.op, to.shape);
  there.data_type = transferred_type(there, from.machine.gpu, to.machine.gpu);
  const MachineWork old{from.machine, here, from.shape}, now{to.machine, there, to.shape};
  const bool memory = memory_bound(here.operator_class);
  const bool known = memory ? here.bytes > 0 && there.bytes > 0
                            : kernel_parts(from.machine, here, from.shape).arithmetic > 0 &&
                                  kernel_parts(to.machine, there, to.shape).arithmetic > 0;
  TransferredDuration carried = known    ? by_work(seconds, old, now)
                                : memory ? by_bandwidth(seconds, old, now)
                                         : between_roofs(seconds, old, now);
  if (other_vendor(from.machine.gpu, to.machine.gpu))
    carried.error = std::hypot(carried.error, vendor_transfer_error());
  return carried;
}

TransferredDuration transferred_copy(Duration measured, const Op& op, std::string_view source, std::string_view target,
                                     const PricedMachine& from, const PricedMachine& to) {
  const double seconds = to_seconds(measured);
  if (seconds <= 0) return {measured, 0, TransferRule::unchanged};
  if (source == target) {
    Op inside = op;
    inside.kind = OpKind::kernel;
    inside.operator_class = OperatorClass::memory;
    inside.bytes = 2 * std::min(op.bytes, kMostOpBytes);
    return transferred_kernel(measured, {from.machine, inside, kUnknownShape}, {to.machine, inside, kUnknownShape});
  }
  const std::string a(source), b(target);
  const auto price = [&](const Pricer& pricer) {
    const double latency = to_seconds(pricer.copy(a, b, 0, op.pageable));
    return Price{latency, to_seconds(pricer.copy(a, b, std::max<Bytes>(op.bytes, 1), op.pageable)) - latency};
  };
  TransferredDuration copy =
      over_links(seconds, price(from.prices), price(to.prices), TransferRule::route, copy_transfer_error());
  const double roof = route_seconds(from.machine, op, a, b);
  const double least = roof > 0 ? route_seconds(to.machine, op, a, b) * std::min(1.0, seconds / roof) : 0;
  if (copy.rule != TransferRule::unchanged) copy.duration = std::max(copy.duration, from_seconds(least));
  return copy;
}

namespace {

// Of a collective: the price of a message of so many bytes, the whole of it.
Price message_price(const Pricer& pricer, CollectiveKind kind, Bytes message, const ProcessGroup& group) {
  const double latency = to_seconds(pricer.collective(kind, 0, group));
  return {latency, to_seconds(pricer.collective(kind, message, group)) - latency};
}

bool reaches(const Machine& machine, const ProcessGroup& group) {
  return fabric_of(machine, place_of(machine, group)) != kNoFabric;
}

// The whole message, from what one rank sends of it; where that is not known, the one that would have taken as long.
Bytes message_of(double seconds, const Op& op, const ProcessGroup& group, const Pricer& pricer) {
  constexpr Bytes kUnit = Bytes{1} << 40;
  const auto sent = static_cast<double>(pricer.wire_bytes(op.collective, kUnit, group.ranks));
  if (sent <= 0) return 0;
  if (op.bytes > 0)
    return std::llround(static_cast<double>(std::min(op.bytes, kMostOpBytes)) * (static_cast<double>(kUnit) / sent));
  Bytes low = 0, high = kUnit;
  while (high - low > std::max<Bytes>(low >> 20, 1)) {
    const Bytes middle = low + (high - low) / 2;
    const Price p = message_price(pricer, op.collective, middle, group);
    (p.fixed + p.work < seconds ? low : high) = middle;
  }
  return high;
}

}  // namespace

TransferredDuration transferred_collective(Duration measured, const Op& op, ProcessGroup group,
                                           const PricedMachine& from, const PricedMachine& to) {
  group.ranks = std::max(group.ranks, 2u);
  const double seconds = to_seconds(measured);
  if (seconds <= 0 || op.collective == CollectiveKind::none || !reaches(from.machine, group) ||
      !reaches(to.machine, group))
    return {measured, 0, TransferRule::unchanged};
  const Bytes message = message_of(seconds, op, group, from.prices);
  return over_links(seconds, message_price(from.prices, op.collective, message, group),
                    message_price(to.prices, op.collective, message, group), TransferRule::fabric,
                    collective_transfer_error(op.bytes > 0));
}

}  // namespace memwall
