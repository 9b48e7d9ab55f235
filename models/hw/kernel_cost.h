// How long a kernel takes alone: a hierarchical roofline (multiprocessors, L2, HBM)
// with what kernels of its class reach.
//
//   duration = fixed + max(flops / (peak * compute share * wave share),
//                          bytes / L2 bandwidth,
//                          bytes that miss L2 / (HBM bandwidth * memory share))
//
// The additive form is the law t = a + V/b that the gpu-small-kernels benchmark
// of RRZE's gpu-benches fits; wave share = waves / ceil(waves) is the tail of the
// last wave of thread blocks.
#pragma once

#include "sim/machine.h"
#include "sim/op.h"

namespace memwall {

// What kernels of a class reach; the entry of `other`, or 1, where the file has none.
KernelEfficiency efficiency_of(const Gpu& gpu, OperatorClass operator_class);

// Dense FLOP/s for a data type. Matrix classes (gemm, convolution, attention) use the tensor
// rate of the type, the rest plain fp32 (fp64 for fp64) arithmetic. A type that the GPU lacks
// runs at the next wider one that it has.
FlopsPerSecond peak_flops(const Gpu& gpu, DataType type, OperatorClass operator_class);

// From op.flops, op.bytes (traffic below the multiprocessors), op.data_type, op.operator_class, op.waves.
Duration kernel_duration(const Machine& machine, const Op& op);

}  // namespace memwall
