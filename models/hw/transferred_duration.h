// How one measured duration moves to another machine.
//
//   measured <= fixed          measured * fixed' / fixed: the op is all launch and latency
//   ... <= fixed + work        fixed' + (measured - fixed) * work' / work: the work went faster than it was priced
//   above                      measured * (fixed' + work') / (fixed + work): all of it went slower
//
// Fixed and work are what either machine's prices say of the op, so that what they have wrong in common cancels: an op
// that reached 0.7 of what the model attains on one machine does so on the other. There and back is what it was.
//
//   kernels of known work     the class's fixed time, and max(arithmetic, bytes at the rate of streaming kernels) of
//                             kernel_cost.h. No faster than the roof of the new machine, or by no more than the
//                             measurement was faster than that of the old one
//   kernels of unknown work   of a class that memory bounds, or of none: the bytes that would have taken as long on the
//                             old machine. Products, convolutions, attention: between the ratio of the peak rates and
//                             that of the bandwidths, the mean of both in logarithms
//   copies                    the route's latency, and bytes / bandwidth at their size
//   collectives               the fabric's latency, and bytes on the wire / bandwidth at their size, over their group
//
// A convolution in fp32 on a GPU without TF32 runs in TF32 on one that has it: PyTorch's default for convolutions, not
// for products (torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32).
//
// Copies, too, are no faster than their route, or by no more than the measurement was.
#pragma once

#include <cstdint>
#include <string_view>

#include "sim/machine/group_place.h"
#include "sim/machine/machine.h"
#include "sim/machine/pricer.h"
#include "sim/trace/op.h"

namespace memwall {

enum class TransferRule : std::uint8_t {
  unchanged,  // nothing is known by which it could be transferred
  launch,     // at most its fixed time: by the ratio of fixed times
  work,       // kernels of known FLOPs, bytes or shape
  bandwidth,  // kernels of unknown work that memory is taken to bound
  between,    // products, convolutions and attention of unknown work: between peak and bandwidth
  route,      // copies
  fabric      // collectives
};
inline constexpr int kTransferRules = 7;
std::string_view to_string(TransferRule rule);

struct TransferredDuration {
  Duration duration{};
  double error = 0;  // 90 % of truths lie within duration x (1 +- error): models/hw/transfer_errors.h; 0 = not known
  TransferRule rule = TransferRule::unchanged;
};

// An op as one machine runs it. References must outlive the call.
struct MachineWork {
  const Machine& machine;
  const Op& op;
  const Shape& shape;
};

// A machine with its prices.
struct PricedMachine {
  const Machine& machine;
  const Pricer& prices;
};

// Of kernels and memsets. What was measured is `from`; `to` is the same work, or the same kind at another size.
TransferredDuration transferred_kernel(Duration measured, const MachineWork& from, const MachineWork& to);

// The type in which the new machine's libraries compute the op by default: its own, or TF32 as said above.
DataType transferred_type(const Op& op, const Gpu& from, const Gpu& to);

// Between places of those names. Within the device: as a kernel that reads and writes the bytes. Throws UsageError
// where a machine has no such tier or route.
TransferredDuration transferred_copy(Duration measured, const Op& op, std::string_view source, std::string_view target,
                                     const PricedMachine& from, const PricedMachine& to);

// Over `ranks` (2 at least). Unchanged where either machine has no fabric that reaches them.
TransferredDuration transferred_collective(Duration measured, const Op& op, ProcessGroup group,
                                           const PricedMachine& from, const PricedMachine& to);

// Is memory what such kernels wait for, where nothing is known of their work? All but products, convolutions,
// attention.
constexpr bool memory_bound(OperatorClass c) {
  return c != OperatorClass::gemm && c != OperatorClass::convolution && c != OperatorClass::attention;
}

}  // namespace memwall
