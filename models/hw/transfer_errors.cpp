#include "models/hw/transfer_errors.h"

#include <array>

namespace memwall {
namespace {

using C = OperatorClass;
using R = TransferRule;

// Sources: tables of `memwall validate --transfer`, the half of its rows that fits (by a hash of their names).
constexpr std::string_view
    kLiger = "p90 of Liger-Kernel's rows between A100 and H100 NVL",
    kStream = "p90 of gpu-benches' streaming kernels between V100, A100, H100, H200, GH200, MI300X",
    kSmall = "p90 of gpu-benches' small kernels, plain and with a barrier, between A100 and H200",
    kFlash = "p90 of FlashAttention 1 and 2 between A100 and H100",
    kProducts =
        "p90 of attention by separate operators between A100 and H100; more than that of "
        "the best products of each GPU (0.16)",
    kReduce = "p90 of NCCL all-reduces between A100, V100 and H200", kAsElementwise = "assumption: as elementwise",
    kResnet =
        "p90 of ResNet-50's convolutions between V100 (fp32, 2021) and H100 (TF32), at another batch: "
        "libraries choose other algorithms",
    kBoth =
        "p90 of Liger-Kernel's rows between A100 and H100 NVL and of ResNet-50's batch norms "
        "between V100 and H100",
    kGather = "assumption: more than other kernels that memory bounds; how rows hit L2 differs",
    kUnknown = "assumption: half more than where bytes are known",
    kNoClass = "assumption: nothing is known of the work", kRoof = "assumption: besides the distance to either roof",
    kCopies =
        "assumption: no table has copies of one size on two machines but those that they "
        "were fitted to";

constexpr std::array<TransferError, 23> kErrors{{
    {R::launch, C::other, 0.21, kSmall},
    {R::work, C::gemm, 0.24, kProducts},
    {R::work, C::convolution, 0.9, kResnet},
    {R::work, C::attention, 0.13, kFlash},
    {R::work, C::normalization, 0.46, kBoth},
    {R::work, C::elementwise, 0.26, kLiger},
    {R::work, C::reduction, 0.21, kLiger},
    {R::work, C::optimizer, 0.26, kAsElementwise},
    {R::work, C::embedding, 0.4, kGather},
    {R::work, C::memory, 0.15, kStream},
    {R::work, C::other, 0.32, kAsElementwise},
    {R::bandwidth, C::normalization, 0.69, kUnknown},
    {R::bandwidth, C::elementwise, 0.39, kUnknown},
    {R::bandwidth, C::reduction, 0.32, kUnknown},
    {R::bandwidth, C::optimizer, 0.39, kUnknown},
    {R::bandwidth, C::embedding, 0.6, kUnknown},
    {R::bandwidth, C::memory, 0.23, kUnknown},
    {R::bandwidth, C::other, 0.6, kNoClass},
    {R::between, C::gemm, 0.24, kRoof},
    {R::between, C::convolution, 0.9, kRoof},
    {R::between, C::attention, 0.24, kRoof},
    {R::route, C::memory, 0.2, kCopies},
    {R::fabric, C::other, 0.3, kReduce},
}};

constexpr double kUnknownBytes = 2;  // assumption: a collective of unknown bytes errs by twice as much

double stated(TransferRule rule, OperatorClass c) {
  for (const TransferError& e : kErrors)
    if (e.rule == rule && e.operator_class == c) return e.error;
  return 0;
}

}  // namespace

std::span<const TransferError> transfer_errors() { return kErrors; }
double launch_transfer_error() { return stated(R::launch, C::other); }
double kernel_transfer_error(TransferRule rule, OperatorClass c) { return stated(rule, c); }
// Assumption: steps that were carried between makers and measured on both were off by 20 % in the median (seven pairs);
// the deviation of a normal error of that median is 0.3, of which 90 % lie within 1.645 times as much.
double vendor_transfer_error() { return 0.49; }
double copy_transfer_error() { return stated(R::route, C::memory); }
double collective_transfer_error(bool known_bytes) {
  return stated(R::fabric, C::other) * (known_bytes ? 1 : kUnknownBytes);
}

}  // namespace memwall
