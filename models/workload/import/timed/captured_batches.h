// Batches of sends and receives: the calls that one kernel of a communication library stands for.
//
// PyTorch's batch_isend_irecv calls send and recv between startCoalescing and endCoalescing
// (torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp). Each of these calls is recorded as an operator record_param_comms
// whose "Collective name" is "send" or "recv", since PyTorch 2.5 with the peer ("Dst Rank", "Src Rank":
// torch/csrc/profiler/util.cpp, saveNcclMeta; pytorch/pytorch#130812), and launches no kernel. ncclGroupEnd, in
// endCoalescing, then launches one for all of them; around that launch there is no such record
// (pytorch/pytorch#194693), at most a range "nccl:coalesced", which until 2.8 ended whenever its work was given back
// (#160680). So a kernel without a record of its own stands for the sends and receives that its thread recorded since
// it last launched a collective. Nothing is concluded where these are of several process groups, or another collective
// is recorded among them. Of a batch that the library runs as several kernels the first stands for all. Internal to the
// importers of timed captures.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/workload/import/timed/timed_capture.h"

namespace memwall {

struct JoinedCapture;

struct CapturedBatch {
  std::uint32_t device_op = kNoIndex;   // the kernel
  std::vector<std::uint32_t> messages;  // at least one: operators record_param_comms, in the order of their calls
};

// Ascending by device_op. REQUIRES: calls, device work and operators of `joined` are joined.
std::vector<CapturedBatch> find_batches(const JoinedCapture& joined);

// That of a kernel, or null. REQUIRES: ascending by device_op.
const CapturedBatch* batch_of(std::span<const CapturedBatch> batches, std::uint32_t device_op);

// Is the message one that is sent (else received)? REQUIRES: `message` is of a batch of the capture.
bool is_sent(const TimedCapture& capture, std::uint32_t message);

// What a batch carries in the direction that carries more, as far as elements and types are known: links carry both
// directions at once.
Bytes batch_bytes(const TimedCapture& capture, const CapturedBatch& batch);

}  // namespace memwall
