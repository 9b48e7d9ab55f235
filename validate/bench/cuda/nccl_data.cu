#include <algorithm>

#include "validate/bench/cuda/nccl_data.h"

namespace memwall {
namespace {

constexpr unsigned kThreadsNcclData = 256;
constexpr std::size_t kMostBlocks = 65536;

// Number `index` of the whole buffer as `rank` has it: 0 to 7.
__device__ float element(int rank, std::size_t index) {
  return static_cast<float>(pattern_word(static_cast<std::uint64_t>(rank) + 1, index) >> 61);
}

// `first`: where in the whole buffer the sent part begins.
__global__ void fill(float* send, std::size_t count, std::size_t first, int rank) {
  const std::size_t step = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step)
    send[i] = element(rank, first + i);
}

// `share`: elements of one rank in the whole buffer; `first`: where in it the received part begins.
__global__ void compare(NcclCollective collective, const float* receive, std::size_t count, std::size_t first,
                        std::size_t share, int ranks, DeviceTally* tally) {
  const std::size_t step = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    float expected = 0;
    if (collective == NcclCollective::all_gather)
      expected = element(static_cast<int>(i / share), i);
    else
      for (int rank = 0; rank < ranks; ++rank) expected += element(rank, first + i);
    note_value(tally, i, receive[i], expected, 0);
  }
}

unsigned blocks_for(std::size_t count) {
  return static_cast<unsigned>(
      std::clamp<std::size_t>((count + kThreadsNcclData - 1) / kThreadsNcclData, 1, kMostBlocks));
}

}  // namespace

void fill_nccl(NcclCollective collective, float* send, float* receive, std::size_t elements, int rank, int ranks,
               cudaStream_t stream) {
  const std::size_t share = elements / static_cast<std::size_t>(ranks);
  const bool gathers = collective == NcclCollective::all_gather,
             scatters = collective == NcclCollective::reduce_scatter;
  const std::size_t sent = gathers ? share : elements, received = scatters ? share : elements;
  fill<<<blocks_for(sent), kThreadsNcclData, 0, stream>>>(send, sent,
                                                          gathers ? share * static_cast<std::size_t>(rank) : 0, rank);
  check(cudaGetLastError(), "launch of the kernel that fills what a rank sends");
  check(cudaMemsetAsync(receive, 0xff, received * sizeof(float), stream), "cudaMemsetAsync");
}

void check_nccl(NcclCollective collective, const float* receive, std::size_t elements, int rank, int ranks,
                DeviceTally* tally, cudaStream_t stream) {
  const std::size_t share = elements / static_cast<std::size_t>(ranks);
  const bool scatters = collective == NcclCollective::reduce_scatter;
  const std::size_t received = scatters ? share : elements;
  compare<<<blocks_for(received), kThreadsNcclData, 0, stream>>>(
      collective, receive, received, scatters ? share * static_cast<std::size_t>(rank) : 0, share, ranks, tally);
  check(cudaGetLastError(), "launch of the kernel that checks what a rank received");
}

}  // namespace memwall
