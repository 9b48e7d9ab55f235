// What the name and launch geometry of device work tell: collectives, copies, waves.
#pragma once

#include <string>
#include <string_view>

#include "models/workload/import/timed/timed_capture.h"
#include "sim/trace/op.h"

namespace memwall {

// Is it a kernel of NCCL or RCCL?
bool is_collective(const CapturedDeviceOp& op, std::string_view name);

// Does a kernel's name say that it computes in TF32? As cuDNN, cuBLAS and CUTLASS name them:
// "sm80_xmma_fprop_implicit_gemm_tf32f32_...". Tensors of fp32 say nothing about that (torch.backends.cudnn.allow_tf32).
bool is_in_tf32(std::string_view kernel_name);
// Does its name say that it only brings tensors into another layout: "nchwToNhwcKernel", "im2col_kernel"?
bool only_moves_data(std::string_view kernel_name);
// From a kernel's name ("ncclKernel_AllReduce_RING_LL_Sum_float(...)") or, where that is generic,
// from the annotation around its launch ("nccl:all_to_all"); `none` where neither says.
CollectiveKind collective_kind(std::string_view kernel_name, std::string_view annotation);

// From what PyTorch calls it ("_allgather_base", "all_to_allv", "send"); `none` where that is none of NCCL's.
CollectiveKind collective_kind_by_name(std::string_view collective_name);

// "Memcpy HtoD (Pageable -> Device)" and its relatives, "CopyHostToDevice" of older ROCm among them.
struct CopyDirection {
  bool from_host = false, to_host = false, between_devices = false;
  bool pageable = false;  // the host side is known not to be page-locked
  bool known = true;
};
CopyDirection copy_direction(std::string_view name);

// Thread blocks over blocks resident at once; 0 where it cannot be told.
// resident = occupancy x threads per multiprocessor / threads per block.
double waves_of(const CapturedLaunch& launch, const CapturedDevice& device);

// Bytes of one element by PyTorch's name of a type ("float", "c10::BFloat16", "Half"); 0 if unknown.
int element_size(std::string_view type);
// The bytes that a collective carries on the wire per rank: from the message's elements where the
// file has them, else from the annotation's first input. Ring algorithms: nccl-tests' doc/PERFORMANCE.md.
Bytes wire_bytes(CollectiveKind kind, Bytes message, std::int64_t ranks);
// Elements of the first tensor in a JSON text of "Input Dims", or -1.
std::int64_t first_tensor_elements(std::string_view input_dims);
// The first name in a JSON text of "Input type".
std::string first_tensor_type(std::string_view input_types);

}  // namespace memwall
