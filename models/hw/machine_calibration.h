// Which rows of which published tables the numbers of a machine answer for. The tables are nobody's to copy: a
// machine file names them, and says what was fitted and what was held out.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sim/units.h"

namespace memwall {

enum class ComponentMeasure : std::uint8_t {
  stream,           // HBM bandwidth of kernels that read and write
  private_read,     // Gpu::private_read_bandwidth
  shared_read,      // Gpu::shared_read_bandwidth
  load_latency,     // Gpu::load_latency
  small_kernel,     // back-to-back kernels of any size
  copy_time,        // copies by size, beyond what the smallest takes
  copy_rate,        // large copies over one route, alone or against another
  storage_rate,     // NVMe by block and depth
  collective_time,  // by kind, ranks and size
  product,          // matrix products
  attention         // fused attention
};
inline constexpr int kComponentMeasures = 11;
std::string_view to_string(ComponentMeasure measure);

struct ComponentRows {
  std::string name;  // "hbm", "nvls"
  ComponentMeasure measure = ComponentMeasure::stream;
  std::string table;                                       // "gpubenches_stream.csv"
  std::vector<std::pair<std::string, std::string>> where;  // column, text: all must hold
  std::string of;                      // route or routes meant: "h2d", "h2d+d2h"; of attention its kernel
  std::uint32_t every = 1, first = 0;  // of the rows chosen: `first`, then each `every`th
  bool held_out = false;               // nothing was fitted to them
  Bytes smallest = 0, largest = 0;     // sizes kept; 0 = no such bound
  double limit = 0;                    // of the median residual; its reason below
  std::string reason;                  // "" = the usual 5 %
};

// Of a machine's name or path, as load_machine finds it. Throws as load_machine does.
std::vector<ComponentRows> component_rows(const std::string& name_or_path);

}  // namespace memwall
