// How long NCCL's tuner believes a collective takes, by algorithm and protocol, and which of them it takes.
//
// NCCL src/graph/tuning.cc (5067397c): time = latency + S / algbw, where
//
//   ring  latency = base + (steps - X) intra + X inter; steps 2(n-1) of an all-reduce, else n-1; X those between nodes,
//         2(nodes-1) or nodes-1; algbw = bandwidth n / steps
//   tree  latency = base + 2 ((n/nodes - 1) intra + log2(nodes) inter); algbw = bandwidth / 2; all-reduce
//   pat   latency = base + log2(nodes) inter / 3.5 + 2.8 us n; all-gather and reduce-scatter, one GPU per node
//   nvls  latency = 25 us, in one node; NVLS tree: 25 us + 2 log2(nodes) 20.9 us, in several
//
// with base, intra and inter by protocol (LL, LL128, Simple) and medium. The estimates choose; they are lower than what
// is measured of small messages, by a factor of 1.5 to 3.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/machine/machine.h"

namespace memwall {

enum class NcclAlgorithm : std::uint8_t { ring, tree, nvls, nvls_tree, pat };
inline constexpr int kNcclAlgorithms = 5;
enum class NcclProtocol : std::uint8_t { ll, ll128, simple };
inline constexpr int kNcclProtocols = 3;

struct NcclTopology {
  std::uint32_t ranks = 2, nodes = 1;
  Medium inside = Medium::nvlink;  // of a node; between nodes it is a network
  int compute_major = 8;           // of the GPU's compute capability
  std::uint32_t channels = 16;
  BytesPerSecond ring_bandwidth = 0;  // of all channels, as the graph search finds it
  BytesPerSecond in_switch_bandwidth =
      0;  // bus bandwidth of an all-reduce in the switch of one node; 0 = there is none
};

struct NcclEstimate {
  NcclAlgorithm algorithm = NcclAlgorithm::ring;
  NcclProtocol protocol = NcclProtocol::simple;
  double latency = 0;              // s
  double algorithm_bandwidth = 0;  // B/s
  double seconds(double bytes) const { return latency + bytes / algorithm_bandwidth; }
  std::string name() const;  // "ring LL128"
};

// Nothing where NCCL does not run that kind of collective so. `bytes`: the whole message.
std::optional<NcclEstimate> nccl_estimate(const NcclTopology& topology, CollectiveKind kind, double bytes,
                                          NcclAlgorithm algorithm, NcclProtocol protocol);
// The least of all; nothing for kinds that the tuner is not asked for (send and receive, all-to-all, barrier).
std::optional<NcclEstimate> nccl_choice(const NcclTopology& topology, CollectiveKind kind, double bytes);

}  // namespace memwall
