#include "models/hw/transfer.h"

#include <fmt/format.h>

#include <cmath>

#include "models/hw/kernel_cost.h"
#include "models/hw/pricer.h"

namespace memwall {
namespace {

class Transfer {
 public:
  Transfer(const Trace& trace, const Machine* from, const Machine& to)
      : trace_(trace), from_(from), to_(to), new_prices_(make_pricer(to)) {
    if (from) old_prices_ = make_pricer(*from);
  }

  void carry(Op& op) {
    if (!runs_on_device(op.kind) && op.kind != OpKind::host_work) return;
    if (op.origin == Origin::modelled) return price(op);
    if (!from_) return;
    const double factor = ratio(op);
    if (factor == 1) return;  // the machines are alike in what this op needs
    ++changed_;
    op.duration = Duration(std::llround(static_cast<double>(op.duration.count()) * factor));
    op.origin = Origin::transferred;
  }

  std::size_t changed() const { return changed_; }
  std::size_t assumed_memory_bound() const { return assumed_memory_bound_; }

 private:
  void price(Op& op) const {
    switch (op.kind) {
      case OpKind::kernel:
      case OpKind::memset:
        if (op.flops > 0 || op.bytes > 0) op.duration = new_prices_->kernel(op, trace_.shapes[op.shape]);
        break;
      case OpKind::copy:
      case OpKind::storage_io:
        op.duration = copy_price(*new_prices_, op);
        break;
      case OpKind::host_work:
        if (op.bytes > 0)
          op.duration = new_prices_->memory_work(trace_.places.empty() ? "host" : trace_.places[op.from], op.bytes,
                                                 op.flops);
        break;
      default:
        break;  // a collective that a policy added is priced by that policy, on this machine
    }
  }

  Duration copy_price(const Pricer& pricer, const Op& op) const {
    return pricer.copy(trace_.places[op.from], trace_.places[op.to], op.bytes, op.pageable);
  }

  static double quotient(Duration there, Duration here) {
    return here.count() > 0 ? to_seconds(there) / to_seconds(here) : 1;
  }

  double ratio(const Op& op) {
    switch (op.kind) {
      case OpKind::copy:
      case OpKind::storage_io:
        if (op.from == op.to) return bandwidth_ratio();
        return quotient(copy_price(*new_prices_, op), copy_price(*old_prices_, op));
      case OpKind::collective:
        return bus_ratio();
      case OpKind::host_work:
        return 1;
      default:
        break;
    }
    const Shape& shape = trace_.shapes[op.shape];
    if (op.flops > 0 || op.bytes > 0) return quotient(new_prices_->kernel(op, shape), old_prices_->kernel(op, shape));
    const double factor = bandwidth_ratio();
    assumed_memory_bound_ += op.kind == OpKind::kernel && factor != 1;
    return factor;
  }

  double bandwidth_ratio() const { return from_->links[from_->hbm_link].bandwidth / to_.links[to_.hbm_link].bandwidth; }

  double bus_ratio() const {
    const std::uint32_t ranks = std::max(2u, trace_.ranks);
    const Fabric* there = to_.fabric(ranks);
    const Fabric* here = from_->fabric(ranks);
    return there && here ? here->bus_bandwidth / there->bus_bandwidth : 1;
  }

  const Trace& trace_;
  const Machine* from_;
  const Machine& to_;
  std::unique_ptr<Pricer> new_prices_, old_prices_;
  std::size_t changed_ = 0, assumed_memory_bound_ = 0;
};

}  // namespace

Trace transferred(Trace trace, const Machine* from, const Machine& to) {
  Transfer transfer(trace, from, to);
  for (Op& op : trace.ops) transfer.carry(op);
  if (transfer.changed() > 0)
    trace.notes.push_back(fmt::format(
        "Durations are carried from {} to {} by a model without an interval; host time is unchanged; {} kernels of "
        "unknown FLOPs and bytes are taken as memory-bound.",
        from->name, from->name == to.name ? to.name + " with the given settings" : to.name,
        transfer.assumed_memory_bound()));
  trace.machine = to.name;
  return trace;
}

}  // namespace memwall
