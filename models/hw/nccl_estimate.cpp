#include "models/hw/nccl_estimate.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace memwall {
namespace {

// NCCL src/graph/tuning.cc, in us: rows tree, ring; columns LL, LL128, Simple.
constexpr double kBase[2][kNcclProtocols] = {{6.8, 14, 8.4}, {6.6, 14, 8.4}};
constexpr double kNvlink[2][kNcclProtocols] = {{0.6, 1.25, 4.0}, {0.6, 1.9, 3.4}};
constexpr double kPcie[2][kNcclProtocols] = {{1.0, 1.9, 4.0}, {1.0, 2.5, 5.7}};
constexpr double kNetwork[2][kNcclProtocols] = {{5.0, 8.5, 14}, {2.7, 4.0, 14}};
constexpr double kHost = 1;  // at least per step in a node of several, Intel; three times for Simple
constexpr double kInSwitch = 25, kInSwitchTreeNetwork = 20.9;
constexpr double kPatBase = 8, kPatNetwork = 14, kPatPerRank = 2.8;
constexpr double kPlateau = 1.4, kPlateauBytes = 64;  // of an all-reduce by ring and Simple across nodes, from sm80 on

bool is_all_reduce(CollectiveKind kind) { return kind == CollectiveKind::all_reduce; }

bool goes_by_tuner(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_gather:
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
      return true;
    default:
      return false;
  }
}

bool is_allowed(const NcclTopology& t, CollectiveKind kind, NcclAlgorithm algorithm, NcclProtocol protocol) {
  const bool scatters = kind == CollectiveKind::all_gather || kind == CollectiveKind::reduce_scatter;
  switch (algorithm) {
    case NcclAlgorithm::ring:
      return true;
    case NcclAlgorithm::tree:
      return is_all_reduce(kind);
    case NcclAlgorithm::nvls:
      return t.in_switch_bandwidth > 0 && t.nodes == 1 && is_all_reduce(kind) && protocol == NcclProtocol::simple;
    case NcclAlgorithm::nvls_tree:
      return t.in_switch_bandwidth > 0 && t.nodes > 1 && is_all_reduce(kind) && protocol == NcclProtocol::simple;
    case NcclAlgorithm::pat:
      return scatters && t.nodes > 1 && t.nodes == t.ranks && protocol == NcclProtocol::simple;
  }
  return false;
}

// B/s at most of LL by a ring: within a node by generation, else with a host of Intel's.
double most_of_ll(const NcclTopology& t) {
  if (t.nodes == 2) return 39e9;
  if (t.nodes > 2) return 20.4e9;
  return t.compute_major >= 10 ? 282e9 : t.compute_major == 9 ? 141e9 : 87.7e9;
}

double ring_share_of(NcclProtocol protocol) {
  return protocol == NcclProtocol::ll ? 0.5 : protocol == NcclProtocol::ll128 ? 0.92 : 1;
}

// Of the tree's own 0.92.
double tree_share_of(NcclProtocol protocol) {
  return protocol == NcclProtocol::ll ? 1 / 3.8 : protocol == NcclProtocol::ll128 ? 15.0 / 16 : 1;
}

struct Hops {
  double inside = 0, between = 0;  // us
};

Hops hops_of(const NcclTopology& t, bool ring, NcclProtocol protocol) {
  const auto p = static_cast<int>(protocol);
  Hops hops{(t.inside == Medium::pcie ? kPcie : kNvlink)[ring][p], kNetwork[ring][p]};
  if (ring && t.nodes > 1) {
    hops.inside = std::max(hops.inside, kHost * (protocol == NcclProtocol::simple ? 3 : 1));
    if (t.nodes == t.ranks) hops.between = kNetwork[0][p];
  }
  return hops;
}

NcclEstimate by_ring(const NcclTopology& t, CollectiveKind kind, double bytes, NcclProtocol protocol) {
  const double passes = is_all_reduce(kind) ? 2 : 1, steps = passes * (t.ranks - 1.0);
  const double between = passes * (t.nodes - 1.0);
  const Hops hops = hops_of(t, true, protocol);
  NcclEstimate e{NcclAlgorithm::ring, protocol, 0, 0};
  e.latency = kBase[1][static_cast<int>(protocol)] + (steps - between) * hops.inside + between * hops.between;
  const bool plateau = t.nodes > 1 && is_all_reduce(kind) && protocol == NcclProtocol::simple && t.compute_major >= 8 &&
                       bytes / (static_cast<double>(t.channels) * t.ranks) >= kPlateauBytes;
  if (plateau) e.latency *= kPlateau;
  double bandwidth = t.ring_bandwidth * ring_share_of(protocol);
  if (protocol == NcclProtocol::ll) bandwidth = std::min(bandwidth, most_of_ll(t));
  const bool whole = kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce;
  e.algorithm_bandwidth = whole ? bandwidth : bandwidth * t.ranks / steps;
  return e;
}

NcclEstimate by_tree(const NcclTopology& t, NcclProtocol protocol) {
  const Hops hops = hops_of(t, false, protocol);
  NcclEstimate e{NcclAlgorithm::tree, protocol, 0, 0};
  const double levels = std::log2(static_cast<double>(t.nodes));
  e.latency = kBase[0][static_cast<int>(protocol)] +
              2 * ((static_cast<double>(t.ranks) / t.nodes - 1) * hops.inside + levels * hops.between);
  e.algorithm_bandwidth = t.ring_bandwidth * 0.92 * tree_share_of(protocol) / 2;
  return e;
}

// Between two nodes a tree sends the message once each way, among more an inner node of it twice; a ring 2 (n-1)/n
// times.
NcclEstimate by_in_switch_tree(const NcclTopology& t) {
  NcclEstimate e{NcclAlgorithm::nvls_tree, NcclProtocol::simple, 0, 0};
  e.latency = kInSwitch + 2 * std::log2(static_cast<double>(t.nodes)) * kInSwitchTreeNetwork;
  const double between = t.ring_bandwidth / (t.nodes == 2 ? 1 : 2);
  e.algorithm_bandwidth = std::min(between, t.in_switch_bandwidth / 2 * t.ranks / (t.ranks - 1.0));
  return e;
}

NcclEstimate in_switch(const NcclTopology& t) {
  NcclEstimate e{NcclAlgorithm::nvls, NcclProtocol::simple, kInSwitch, 0};
  e.algorithm_bandwidth = t.in_switch_bandwidth / 2 * t.ranks / (t.ranks - 1.0);
  return e;
}

NcclEstimate by_pat(const NcclTopology& t) {
  NcclEstimate e{NcclAlgorithm::pat, NcclProtocol::simple, 0, 0};
  e.latency = kPatBase + std::log2(static_cast<double>(t.nodes)) * kPatNetwork / 3.5 + kPatPerRank * t.ranks;
  e.algorithm_bandwidth = t.ring_bandwidth * 0.75 * t.ranks / (t.ranks - 1.0);
  return e;
}

}  // namespace

std::string NcclEstimate::name() const {
  static constexpr const char* kAlgorithm[kNcclAlgorithms] = {"ring", "tree", "NVLS", "NVLS tree", "PAT"};
  static constexpr const char* kProtocol[kNcclProtocols] = {" LL", " LL128", " Simple"};
  const std::string text = kAlgorithm[static_cast<int>(algorithm)];
  return algorithm <= NcclAlgorithm::tree ? text + kProtocol[static_cast<int>(protocol)] : text;
}

std::optional<NcclEstimate> nccl_estimate(const NcclTopology& t, CollectiveKind kind, double bytes,
                                          NcclAlgorithm algorithm, NcclProtocol protocol) {
  if (t.ranks < 2 || !goes_by_tuner(kind) || !is_allowed(t, kind, algorithm, protocol)) return std::nullopt;
  NcclEstimate e;
  switch (algorithm) {
    case NcclAlgorithm::ring:
      e = by_ring(t, kind, bytes, protocol);
      break;
    case NcclAlgorithm::tree:
      e = by_tree(t, protocol);
      break;
    case NcclAlgorithm::nvls:
      e = in_switch(t);
      break;
    case NcclAlgorithm::nvls_tree:
      e = by_in_switch_tree(t);
      break;
    case NcclAlgorithm::pat:
      e = by_pat(t);
      break;
  }
  e.latency *= 1e-6;
  return e;
}

std::optional<NcclEstimate> nccl_choice(const NcclTopology& t, CollectiveKind kind, double bytes) {
  std::optional<NcclEstimate> best;
  for (int a = 0; a < kNcclAlgorithms; ++a)
    for (int p = 0; p < kNcclProtocols; ++p) {
      const auto e = nccl_estimate(t, kind, bytes, static_cast<NcclAlgorithm>(a), static_cast<NcclProtocol>(p));
      if (e && (!best || e->seconds(bytes) < best->seconds(bytes))) best = e;
    }
  return best;
}

}  // namespace memwall
