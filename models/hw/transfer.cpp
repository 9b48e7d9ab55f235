#include "models/hw/transfer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "models/hw/pricer.h"
#include "models/hw/transfer_counts.h"
#include "models/hw/transferred_duration.h"
#include "models/hw/transferred_host.h"
#include "sim/error.h"
#include "sim/human_text.h"

namespace memwall {
namespace {

constexpr double kLargestPermille = 60000;  // of Op::error_permille, which has 16 bits

class Transfer {
 public:
  Transfer(const Trace& trace, const Machine* from, const Machine& to)
      : trace_(trace), from_(from), to_(to), new_prices_(make_pricer(to)) {
    if (from) old_prices_ = make_pricer(*from);
  }

  void transfer(Op& op) {
    if (!runs_on_device(op.kind) && op.kind != OpKind::host_work) return;
    if (op.origin == Origin::modelled) return model_anew(op);
    if (!from_ || op.kind == OpKind::host_work || op.kind == OpKind::graph_launch) return;
    const TransferredDuration result = transferred_op(op);
    counts_.add(op, result);
    if (result.duration == op.duration && result.error == 0) return;  // alike in what this op needs
    op.duration = result.duration;
    op.origin = Origin::transferred;
    const DataType type = transferred_type(op, from_->gpu, to_.gpu);
    in_tf32_ += type != op.data_type;
    op.data_type = type;
    op.error_permille = static_cast<std::uint16_t>(std::lround(std::clamp(result.error * 1000, 1.0, kLargestPermille)));
  }

  const TransferCounts& counts() const { return counts_; }
  std::size_t in_tf32() const { return in_tf32_; }
  std::size_t modelled() const { return modelled_; }  // of these, those that changed

 private:
  void model_anew(Op& op) {
    const Duration before = op.duration;
    price(op);
    modelled_ += op.duration != before;
  }

  void price(Op& op) const {
    switch (op.kind) {
      case OpKind::kernel:
      case OpKind::memset:
        if (op.flops > 0 || op.bytes > 0) op.duration = new_prices_->kernel(op, trace_.shapes[op.shape]);
        break;
      case OpKind::copy:
      case OpKind::storage_io:
        op.duration = new_prices_->copy(trace_.places[op.from], trace_.places[op.to], op.bytes, op.pageable);
        break;
      case OpKind::host_work:
        if (op.bytes > 0)
          op.duration =
              new_prices_->memory_work(trace_.places.empty() ? "host" : trace_.places[op.from], op.bytes, op.flops);
        break;
      default:
        break;  // a collective that a policy added is priced by that policy, on this machine
    }
  }

  TransferredDuration transferred_op(const Op& op) const {
    const PricedMachine here{*from_, *old_prices_}, there{to_, *new_prices_};
    const Shape& shape = trace_.shapes[op.shape];
    switch (op.kind) {
      case OpKind::copy:
      case OpKind::storage_io:
        return transferred_copy(op.duration, op, trace_.places[op.from], trace_.places[op.to], here, there);
      case OpKind::collective:
        return transferred_collective(op.duration, op, process_group_of(trace_, op), here, there);
      default:
        return transferred_kernel(op.duration, {*from_, op, shape}, {to_, op, shape});
    }
  }

  const Trace& trace_;
  const Machine* from_;
  const Machine& to_;
  std::unique_ptr<Pricer> new_prices_, old_prices_;
  TransferCounts counts_;
  std::size_t in_tf32_ = 0, modelled_ = 0;
};

std::string name_of_target(const Machine& from, const Machine& to) {
  return from.name == to.name ? to.name + " with the given settings" : to.name;
}

// Of durations that were modelled before: nothing of them is measured, on either machine.
std::string note_of_modelled(std::size_t count, const Machine& from, const Machine& to) {
  return fmt::format("Transferred from {} to {}: {} that nobody measured {} modelled for the latter", from.name,
                     name_of_target(from, to), counted_text(count, "duration"), count == 1 ? "is" : "are");
}

// Prices the same ops on two machines.
class PricePair {
 public:
  PricePair(const Trace& trace, const Machine& one, const Machine& other, bool measured)
      : trace_(trace),
        one_(one),
        other_(other),
        one_prices_(make_pricer(one)),
        other_prices_(make_pricer(other)),
        measured_(measured) {}

  bool alike(const Op& op) const {
    if (op.kind == OpKind::host_work) return op.origin != Origin::modelled || op.bytes <= 0 || same_work(op);
    if (!runs_on_device(op.kind) || op.kind == OpKind::graph_launch) return true;
    if (op.origin == Origin::measured && !measured_) return true;
    const PricedMachine here{one_, *one_prices_}, there{other_, *other_prices_};
    const Shape& shape = trace_.shapes[op.shape];
    switch (op.kind) {
      case OpKind::copy:
      case OpKind::storage_io:
        return unchanged(op,
                         transferred_copy(op.duration, op, trace_.places[op.from], trace_.places[op.to], here, there));
      case OpKind::collective:
        return unchanged(op, transferred_collective(op.duration, op, process_group_of(trace_, op), here, there));
      default:
        if (op.origin == Origin::modelled) return one_prices_->kernel(op, shape) == other_prices_->kernel(op, shape);
        return unchanged(op, transferred_kernel(op.duration, {one_, op, shape}, {other_, op, shape}));
    }
  }

 private:
  static bool unchanged(const Op& op, const TransferredDuration& there) { return there.duration == op.duration; }

  bool same_work(const Op& op) const {
    const std::string tier = trace_.places.empty() ? "host" : trace_.places[op.from];
    return one_prices_->memory_work(tier, op.bytes, op.flops) == other_prices_->memory_work(tier, op.bytes, op.flops);
  }

  const Trace& trace_;
  const Machine &one_, &other_;
  const std::unique_ptr<Pricer> one_prices_, other_prices_;
  const bool measured_;
};

}  // namespace

Trace transferred(Trace trace, const Machine* from, const Machine& to, const TransferSettings& settings) {
  Transfer transfer(trace, from, to);
  for (Op& op : trace.ops) transfer.transfer(op);
  if (from && transfer.counts().changed() > 0) {
    trace.notes.push_back(
        fmt::format("Durations are transferred from {} to {} by operator class (models/hw/transferred_duration.h), "
                    "each with an interval "
                    "that holds 90 % of truths{}.",
                    from->name, name_of_target(*from, to), settings.host ? "" : "; host time is unchanged"));
    for (std::string& line : transfer.counts().lines()) trace.notes.push_back(std::move(line));
    if (transfer.in_tf32() > 0)
      trace.notes.push_back(fmt::format(
          "Transferred: {} in fp32, which {} has no TF32 for, {} taken to run in TF32 on {}, as is PyTorch's default.",
          counted_text(transfer.in_tf32(), "convolution"), from->name, transfer.in_tf32() == 1 ? "is" : "are",
          to.name));
  }
  if (from && transfer.modelled() > 0)
    trace.notes.push_back(note_of_modelled(transfer.modelled(), *from, to) +
                          (settings.host || transfer.counts().changed() > 0 ? "." : "; host time is unchanged."));
  if (from && settings.host) transfer_host_time(trace, from->host, to.host);
  trace.machine = to.name;
  return trace;
}

bool priced_alike(const Trace& trace, const Machine& one, const Machine& other, bool measured) {
  const PricePair prices(trace, one, other, measured);
  try {
    return std::all_of(trace.ops.begin(), trace.ops.end(), [&](const Op& op) { return prices.alike(op); });
  } catch (const UsageError&) {
    return false;  // one of them cannot do it at all
  }
}

}  // namespace memwall
