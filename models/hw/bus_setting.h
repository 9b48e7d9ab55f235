// Overrides that say what bus a machine has, where one number alone would change nothing: "pcie=gen5", "nvlink=off".
//
//   pcie=gen3 ... gen6   what a x16 slot of that generation sustains, on every link whose name begins with "pcie": the
//                        GPU's and, where there is one, the switch's uplink. Fabrics over them, and routes with a
//                        number of their own (page-locked ones: a pageable copy waits for a thread of the host), become
//                        faster in proportion. Latencies stay: they are those of the GPU's copy engine.
//   pcie=30GB/s          the same, with that bandwidth in each direction
//   nvlink=off           fabrics over links whose names begin with "nvlink" reach nobody, so that collectives take the
//                        next one, and copies between GPUs take the way of the fabric over PCIe, as fast as that.
#pragma once

#include <string>
#include <vector>

namespace memwall {

namespace schema {
class Machine;  // machine.pb.h
}

// "pcie", "nvlink".
const std::vector<std::string>& bus_settings();

// Of a machine file, with a source for every number. Throws UsageError: no such value (with the valid ones), or the
// machine has no such bus.
void set_bus(schema::Machine& machine, const std::string& bus, const std::string& value);

// The overrides "pcie=gen5" that raise this link of the machine above what it has; slowest first.
std::vector<std::string> faster_buses(const std::string& link, double bytes_per_second);

}  // namespace memwall
