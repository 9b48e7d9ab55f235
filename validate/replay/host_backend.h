// The host back end: this computer stands in for a GPU machine, so that measuring, calibrating and
// replaying can be tried, and tested, everywhere.
//
// device   an arena in DRAM of stated size
// kernels  multiply-add loops and streaming loops (over memory of their own: host_kernel.h says why), one thread per
//          stream, pinned to core 0 where there is more than one
// collectives  stand-ins that take their share of the kernels' core for the time that the schedule gives
// copies   real memcpy in pieces, paced to a stated rate; one engine per direction, first in, first out
// NVMe     a real file through measurement/direct_file.h, read and write engines apart, paced to stated rates
// cores    at most `cores` threads compute or copy at once
#pragma once

#include <filesystem>
#include <memory>

#include "validate/replay/backend.h"

namespace memwall {

struct HostBackendSettings {
  Bytes device_capacity = GiB(2);
  double host_to_device = 1.0e9;             // bytes per second; a pinned copy's pace. Must be well below memcpy's
  double device_to_host = 1.0e9;             // likewise
  double within_device = 2.0e9;              // likewise: a copy inside the arena
  double pageable_share = 0.5;               // of these for pageable host memory
  Duration copy_latency = microseconds(20);  // added to every copy: the set-up of a DMA
  // Bytes per second of whole transfers from and to the file, paced too: how fast a file goes depends on caches
  // that are not ours and on who else uses the disk. 0 = as fast as it goes.
  double file_read = 0.5e9, file_write = 0.5e9;
  std::filesystem::path scratch;             // folder of the file that is the NVMe tier
  Bytes file_bytes = GiB(2);
  unsigned cores = 0;  // 0 = all
};

// While it lives the calling thread, and threads that it starts, keep off the kernels' core; make and destroy it in
// the thread that calls it. Throws UsageError: no such folder, rates that memcpy cannot reach, more memory than there
// is.
std::unique_ptr<Backend> make_host_backend(const HostBackendSettings& settings);

}  // namespace memwall
