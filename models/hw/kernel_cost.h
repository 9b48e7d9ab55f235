// How long a kernel takes alone: a hierarchical roofline (multiprocessors, L2, HBM) with what kernels of
// its class reach, and with what its shape says where that is known.
//
//   duration = kernels * fixed + (kernels - 1) * gap between queued kernels + max(arithmetic, memory)
//
//   arithmetic   products and fused attention of known shape: gemm_cost.h, attention_cost.h; otherwise
//                flops / (peak * compute share * wave share), wave share = waves / ceil(waves): the tail
//                of the last wave of thread blocks
//   memory       hits / (L2 bandwidth * streaming share) + misses / (HBM bandwidth * memory share)
//                misses = bytes * share of the working set that L2 has lost: 0 up to Gpu::l2_kept times its
//                size, 1 from Gpu::l2_lost. A machine that does not state these: max(bytes / L2 bandwidth,
//                bytes^2 / L2 size / (HBM bandwidth * memory share)) up to the L2's size, bytes beyond
//                memory share = of the class and pass, times the factor of the width of a row
//
// The additive form is the law t = a + V/b that the gpu-small-kernels benchmark of RRZE's gpu-benches fits.
#pragma once

#include "sim/machine/arithmetic.h"
#include "sim/machine/machine.h"
#include "sim/trace/op.h"

namespace memwall {

inline constexpr double kLongestSeconds = 1e5;  // of one op, a day: beyond lies no work, but a mistaken number

// What kernels of a class reach; the entry of `other`, or 1, where the file has none.
KernelEfficiency efficiency_of(const Gpu& gpu, OperatorClass operator_class);

// Share of the peak rate in the main loop of a matrix product: that of the type it is computed in, sustained where the
// file says so, or the compute share of class gemm where none is listed.
double main_loop_share(const Gpu& gpu, DataType type);

// The machine as benchmarks of a few seconds meet it: at the clocks of short runs, not of a job that trains for hours.
Machine in_short_runs(Machine machine);

// Of one element; an unknown type counts as fp32.
double element_bytes(DataType type);

// From op.flops, op.bytes (traffic below the multiprocessors), op.data_type, op.operator_class, op.waves,
// op.kernels, op.phase and the shape of the work (Op::shape; one that does not fit the class is unknown). Throws
// UsageError where that is more than kLongestSeconds.
Duration kernel_duration(const Machine& machine, const Op& op, const Shape& shape);
inline Duration kernel_duration(const Machine& machine, const Op& op) { return kernel_duration(machine, op, Shape()); }

// The parts of which kernel_duration() is made, in seconds.
struct KernelParts {
  double fixed = 0;                   // of all the op's kernels, and the gaps between them
  double arithmetic = 0, memory = 0;  // what each would take were it alone
  double work() const { return arithmetic > memory ? arithmetic : memory; }
};
KernelParts kernel_parts(const Machine& machine, const Op& op, const Shape& shape);

// Is the arithmetic priced by the op's shape (a product, fused attention), not by its FLOPs?
bool prices_by_shape(const Gpu& gpu, const Op& op, const Shape& shape);

// 90 % of measurements lie within kernel_duration() x (1 +- this); 0 = not known.
double kernel_residual(const Gpu& gpu, const Op& op, const Shape& shape);

}  // namespace memwall
