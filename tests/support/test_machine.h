// A machine of round numbers and closed forms, on which a test can be worked out by hand.
//
// No latency anywhere, no host cost for calls, no efficiency curve: a transfer takes exactly
// bytes / bandwidth. A test that needs a latency or a smaller tier changes the returned value.
//
// | tiers | capacity | | routes | rate | links crossed |
// |---|---|---|---|---|---|
// | hbm | 80 GB | | hbm -> host, host -> hbm | 10 GB/s (pageable 5 GB/s) | pcie_d2h or pcie_h2d, host_dram |
// | host | 1 TB | | hbm -> peer_hbm, back | 100 GB/s | nvlink_out or nvlink_in |
// | nvme | 10 TB | | host -> nvme, nvme -> host | 2 GB/s, 4 GB/s | nvme_write or nvme_read, host_dram |
// | peer_hbm | 80 GB | | hbm -> hbm | 500 GB/s | hbm |
//
// HBM carries 1 TB/s, host DRAM 200 GB/s, the CPU optimizer sustains 100 GB/s of it. The GPU
// has 100 TFLOP/s for any data type and 100 multiprocessors. Fabrics: nvlink up to 8 ranks at
// 100 GB/s of bus bandwidth, then network at 10 GB/s without limit.
#pragma once

#include <memory>

#include "sim/machine/machine.h"
#include "sim/machine/pricer.h"

namespace memwall {

Machine test_machine();

// The same without NVLink: the peer is reached over PCIe at 10 GB/s, collectives likewise.
Machine test_machine_without_nvlink();

// Prices in closed form from the machine's numbers: a transfer is latency + bytes / bandwidth, a
// kernel max(FLOPs / peak, bytes / HBM bandwidth), a collective wire bytes / bus bandwidth, host
// work bytes / optimizer bandwidth. `machine` must outlive it.
std::unique_ptr<Pricer> test_pricer(const Machine& machine);

}  // namespace memwall
