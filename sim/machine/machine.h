// A machine: tiers of memory, the links between them, GPU and host. Data only;
// models/hw reads it from a file. Every GPU of the machine is alike; what is
// described here is one GPU's view, with the sharing of common links stated.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/trace/attention_kernel.h"
#include "sim/trace/op.h"
#include "sim/units.h"

namespace memwall {

using BytesPerSecond = double;
using FlopsPerSecond = double;

// Share of the nominal rate reached at a size, interpolated linearly over log2(bytes),
// constant beyond the ends. Empty = 1. REQUIRES: sizes ascending, 0 < share <= 1 (of Gpu's curves: B/s, or s).
struct EfficiencyCurve {
  std::vector<std::pair<double, double>> points;  // (bytes, share)
  double at(double bytes) const;
  bool operator==(const EfficiencyCurve&) const = default;
};

enum class TierClass : std::uint8_t { device, host, storage };

struct Tier {
  std::string name;  // "hbm", "host", "nvme", "peer_hbm", "cxl"
  TierClass tier_class = TierClass::device;
  Bytes capacity = 0;
  Bytes unavailable = 0;           // context, driver, operating system: not for tensors
  double compression_ratio = 1;    // stored bytes = bytes / ratio
  FlopsPerSecond compute = 0;      // near-memory compute, 0 = none
  double picojoules_per_byte = 0;  // energy of an access, 0 = unknown
  double dollars_per_byte = 0;     // price, 0 = unknown
  std::int32_t memory_link = -1;   // index into links: what work done in this memory crosses; -1 = not stated
  std::uint32_t sharers = 0;       // GPUs whose ranks have it in common; 0 = those that share what leads to it
  // Of storage. The drives that it is made of, 0 = unknown; what may be written to one of them in its life, 0 =
  // unknown; index into links: what every byte written crosses and nothing else does, -1 = there is no such link.
  std::uint32_t drives = 0;
  Bytes endurance = 0;
  std::int32_t write_link = -1;
  Bytes usable() const { return capacity - unavailable; }
  // Bytes of tensors that fit: more than `usable` where the tier compresses.
  Bytes holds() const { return static_cast<Bytes>(static_cast<double>(usable()) * compression_ratio); }
  bool operator==(const Tier&) const = default;
};

// A resource that transfers share: one direction of a PCIe link, an NVLink port,
// host DRAM, HBM, NVMe reads. Shared max-min fairly.
struct Link {
  std::string name;              // "pcie_h2d", "nvlink_out", "hbm", "host_dram"
  BytesPerSecond bandwidth = 0;  // sustained, large transfers
  std::uint32_t sharers = 1;     // GPUs behind it: folded ranks count with this multiplicity
  double picojoules_per_byte = 0;
  // Of a link with drives behind it (Tier::write_link), all of them together: what their write cache takes at
  // `bandwidth`, and the rate at which they empty it, which is that of writes while it is full; 0 = they never fall
  // off.
  Bytes write_cache = 0;
  BytesPerSecond sustained = 0;
  bool falls_off() const { return sustained > 0 && sustained < bandwidth; }
  bool operator==(const Link&) const = default;
};

// How a storage device is asked: a transfer is cut into requests of `block` bytes, of which at most `depth` are under
// way. No faster than depth * block / latency (Little 1961, "A Proof for the Queuing Formula: L = lambda W"), nor than
// block * per_second.
struct StorageRequests {
  Bytes block = 0;  // 0 = not known: no limit
  double depth = 0;
  Duration latency{};     // of one request of `block` bytes alone
  double per_second = 0;  // 0 = no such limit
  bool operator==(const StorageRequests&) const = default;
};

// What a transfer between two tiers crosses.
struct Route {
  std::uint16_t from = 0, to = 0;  // indices into Machine::tiers
  bool pageable = false;           // host side not page-locked: staged by the CPU
  std::uint8_t engine = 0;  // copy-engine class: FIFO per direction (0 H2D, 1 D2H, 2 P2P, 3 storage read, 4 storage
                            // write, 5 within the device)
  std::vector<std::uint16_t> links;  // indices into Machine::links
  // Of the bytes, per link: less than 1 where they cross compressed; empty = all 1. `bandwidth` is of bytes before
  // that.
  std::vector<double> link_shares{};
  double share_of(std::uint16_t link) const;  // of the bytes; REQUIRES: it is one of `links`
  double weight = 1;                          // in the fair share of a common link (duplex asymmetry)
  BytesPerSecond bandwidth = 0;               // of one transfer alone; <= every link's, and what `requests` allow
  Duration latency{};                         // per transfer
  EfficiencyCurve efficiency;                 // by transfer size
  StorageRequests requests{};
  std::string name{};         // "h2d", as its file has it; "" = unknown
  BytesPerSecond stated = 0;  // what its file says of one transfer alone, links aside; 0 = nothing
  bool operator==(const Route&) const = default;
};
inline constexpr int kEngines = 6;
// Of `routes`, the one between two tiers, or null. A pageable copy without a pageable route takes the other.
const Route* route_among(const std::vector<Route>& routes, int from, int to, bool pageable);

struct PeakRate {
  DataType data_type = DataType::unknown;
  FlopsPerSecond flops = 0;  // dense
  bool operator==(const PeakRate&) const = default;
};

struct KernelEfficiency {
  OperatorClass operator_class = OperatorClass::other;
  double compute = 1;          // share of peak FLOP/s reached
  double memory = 1;           // share of HBM bandwidth reached
  Duration fixed{};            // smallest duration of such a kernel
  double backward_memory = 0;  // as `memory`, of the backward; 0 = as the forward
  EfficiencyCurve width{};     // factor of `memory` by the bytes of a row, where an op works on rows
  double residual = 0;         // 90 % of measurements lie within prediction x (1 +- residual); 0 = not known
  bool operator==(const KernelEfficiency&) const = default;
};

// What limits matrix products besides the peak rate; see models/hw/gemm_cost.h.
struct MatrixUnits {
  struct MainLoop {
    DataType data_type = DataType::unknown;
    double share = 1;            // of the peak rate, reached in the loop over k, in short runs
    double sustained = 0;        // likewise in a job that trains for hours: power and heat limit the clock; 0 = share
    FlopsPerSecond record = 0;   // the fastest product measured: none is priced faster; 0 = not known
    bool operator==(const MainLoop&) const = default;
  };
  std::vector<MainLoop> main_loops;  // empty: matrix products are priced by KernelEfficiency alone
  double convolution = 1;            // what convolutions reach of a product's main loop
  double convolution_backward = 0;   // likewise the backward; 0 = as the forward
  Duration start_up{};               // of a wave of output tiles, before the main loop is at full rate
  EfficiencyCurve alignment{};       // share of the rate by the alignment of rows in memory
  double residual = 0;               // as KernelEfficiency::residual
  bool operator==(const MatrixUnits&) const = default;
};

// Fused attention by one kernel; see models/hw/attention_cost.h.
struct AttentionCost {
  AttentionKernel kernel = AttentionKernel::flash_attention_2;
  EfficiencyCurve forward{};   // share of the peak rate by the bytes of one head's row
  double backward = 1;         // what the backward reaches of the forward's share
  double start_up = 0;         // keys' worth of work that each block of queries pays once
  double causal_start_up = 0;  // likewise with a causal mask: the diagonal's blocks are half wasted
  double residual = 0;         // as KernelEfficiency::residual
  FlopsPerSecond record = 0;   // the fastest forward measured: none is priced faster; 0 = not known
  bool operator==(const AttentionCost&) const = default;
};

// A size of GPU instance that MIG (Multi-Instance GPU) can cut from the GPU.
struct MigProfile {
  std::string name;  // "1g.10gb"
  Bytes memory = 0;  // of one instance
  std::uint32_t multiprocessors = 0;
  std::uint32_t compute_slices = 0, memory_slices = 0;  // that one takes; the largest profile takes all there are
  std::uint32_t count = 0;                              // how many there can be at once
  bool operator==(const MigProfile&) const = default;
};

struct Gpu {
  std::string name;                  // as deviceProperties report it
  std::vector<std::string> aliases;  // other names that captures use
  int compute_major = 0, compute_minor = 0;
  std::uint32_t multiprocessors = 0;
  std::uint32_t threads_per_multiprocessor = 2048;
  Bytes l2_bytes = 0;
  BytesPerSecond l2_bandwidth = 0;
  double l2_streaming = 0;          // share of it that kernels reach which read and write; 0 = 1
  double l2_kept = 0, l2_lost = 0;  // working set / L2 up to which all is found there, and from which nothing
  std::vector<PeakRate> peaks;
  std::vector<KernelEfficiency> efficiencies;
  MatrixUnits matrix;
  std::vector<AttentionCost> attention;  // of each kernel once; empty: priced by KernelEfficiency alone
  std::uint32_t collective_multiprocessors = 0;  // taken by a collective kernel
  std::vector<MigProfile> mig_profiles;          // none: the GPU cannot be cut
  // By working set, empty = not known. B/s that all multiprocessors together read again and again, each its own
  // (working set of one) or one that they share; s from one load to the next that depends on it.
  EfficiencyCurve private_read_bandwidth{}, shared_read_bandwidth{}, load_latency{};
  bool operator==(const Gpu&) const = default;
};

struct HostCosts {
  std::uint32_t cores = 0;  // of the whole host; 0 = unknown: work on the CPU never waits for one
  // Its cores and memory channels are divided evenly among these, and each rank is bound to the one next to its GPU.
  std::uint32_t numa_nodes = 1;
  // With which work on the CPU reaches `optimizer_bandwidth`; 0 = all cores of a NUMA node.
  std::uint32_t optimizer_threads = 0;
  BytesPerSecond optimizer_bandwidth = 0;  // DRAM bytes per second that the CPU optimizer sustains
  Duration launch{};                       // cudaLaunchKernel
  Duration launch_latency{};               // end of call to start on an idle stream
  Duration stream_gap{};                   // between queued kernels
  Duration copy_call{};                    // cudaMemcpyAsync
  Duration event_call{};                   // cudaEventRecord, cudaStreamWaitEvent
  Duration allocator_call{};               // a hit in the caching allocator
  Duration device_malloc{};                // cudaMalloc
  Duration device_free{};                  // cudaFree of an idle device
  Duration page_map{}, page_unmap{};       // of an expandable segment's page
  BytesPerSecond pinning = 0;              // host memory page-locked per second
  Duration pinned_allocation{};            // of a call that page-locks (cudaHostAlloc), besides its bytes
  Duration synchronize_return{};           // end of work to return of a synchronize
  double watts = 0;                        // of the whole host without its GPUs while they train; 0 = unknown
  // What a framework does for one operator besides the calls above (Op::framework_calls):
  Duration eager_forward{};       // dispatched from Python
  Duration eager_backward{};      // run by the autograd engine
  Duration eager_optimizer{};     // of a multi-tensor optimizer step
  Duration compiled_call{};       // one kernel of code that a compiler made
  double framework_residual = 0;  // as KernelEfficiency::residual, of the four
  bool operator==(const HostCosts&) const = default;
};

// What NCCL's tuner calls the wires of a fabric.
enum class Medium : std::uint8_t { unknown, nvlink, pcie, network };

enum class CollectiveAlgorithm : std::uint8_t { ring, tree, in_switch };

// One way to run collectives over a fabric; see models/hw/collective_cost.h.
struct CollectiveModel {
  std::string name;  // "pair", "nvls"
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::ring;
  std::vector<CollectiveKind> kinds;           // empty: all that the algorithm can do
  std::uint32_t min_ranks = 2, max_ranks = 0;  // 0 = unlimited
  BytesPerSecond bus_bandwidth = 0;            // as nccl-tests' busbw, large messages
  Duration step_latency{};
  Duration inner_step_latency{};  // of steps within reach of the next inner fabric
  bool inner_steps = false;       // are those told apart?
  Duration base_latency{};
  EfficiencyCurve efficiency{};  // by message size
  double residual = 0;           // as KernelEfficiency::residual
  bool operator==(const CollectiveModel&) const = default;
};

// The links over which GPUs of one process group talk.
struct Fabric {
  std::string name;                  // "nvlink", "pcie", "network"
  std::vector<std::uint16_t> links;  // crossed by one rank's traffic, egress first
  BytesPerSecond bus_bandwidth = 0;  // as nccl-tests' busbw, large messages
  Duration step_latency{};           // per ring step
  Duration base_latency{};
  std::uint32_t max_ranks = 0;                 // reach of this fabric; 0 = unlimited
  EfficiencyCurve efficiency;                  // by message size
  double residual = 0;                         // as KernelEfficiency::residual
  std::vector<CollectiveModel> collectives{};  // none: a ring with the numbers above, or as NCCL has it for `medium`
  Medium medium = Medium::unknown;
  bool operator==(const Fabric&) const = default;
};

// How well the prices of one kind of work hold: 90 % of measurements lie within price x (1 +- residual). Errors are
// common to all ops of a class, and independent between classes.
struct PriceError {
  OpKind kind = OpKind::kernel;  // kernel, collective, or host_work: what the framework does between calls
  OperatorClass operator_class = OperatorClass::other;  // of kernels
  double residual = 0;                                  // 0 = not known
  bool operator==(const PriceError&) const = default;
};

struct Machine {
  std::string name;         // "h100-sxm-80gb"
  std::string description;  // one sentence
  Gpu gpu;
  std::uint32_t gpu_count = 1;
  HostCosts host;
  std::vector<Tier> tiers;
  std::vector<Link> links;
  std::vector<Route> routes;
  std::vector<Fabric> fabrics;           // innermost first
  std::uint16_t hbm_link = 0;            // index into links: traffic of kernels
  std::uint16_t dram_link = 0;           // index into links: traffic of host work
  double dollars_per_hour = 0;           // of one GPU with its share of the host; 0 = unknown
  double watts = 0;                      // of one GPU under load; 0 = unknown
  double idle_watts = 0;                 // of one GPU that waits; 0 = unknown
  std::vector<PriceError> price_errors;  // of prices that were fitted or assumed; the rest are not known

  // Index by name, or -1.
  int tier(const std::string& name) const;
  int link(const std::string& name) const;
  // As route_among of the machine's.
  const Route* route(int from, int to, bool pageable) const { return route_among(routes, from, to, pageable); }
  // What work on the data of a tier crosses where it lies, and how fast that is: of a tier with compute its own memory
  // link; else the CPU does it, in the tier "host" through the host's DRAM, in another through the routes between that
  // tier and the host, half of the bytes each way. Nothing where there are no such routes.
  std::optional<Route> work_in(int tier) const;
  // Of price_errors; 0 if not there.
  double price_error(OpKind kind, OperatorClass operator_class) const;
  // The innermost fabric that reaches `ranks`, or null.
  const Fabric* fabric(std::uint32_t ranks) const;
  bool operator==(const Machine&) const = default;
};

}  // namespace memwall
