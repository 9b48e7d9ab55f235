#include "validate/replay/host_settings.h"

#include <algorithm>
#include <cstdio>

#include "sim/byte_units.h"
#include "sim/error.h"
#include "validate/replay/host_computer.h"
#include "validate/replay/host_kernel.h"

namespace memwall {
namespace {

// Besides the device: scratch memory of kernels and some room for everybody else.
constexpr Bytes kMargin = MiB(256);
// A copy is paced to at most this share of what memcpy reaches, or its pace could not be kept beside other work.
constexpr double kMostOfMemcpy = 0.5;

std::string decimal_bytes(double bytes) { return scaled_text(bytes, kDecimalBytes, 4); }

std::string in_units(double value, const char* unit) {
  char text[64];
  std::snprintf(text, sizeof text, "%.3g%s", value, unit);
  return text;
}

void check_rate(const char* what, double rate) {
  if (!(rate > 0)) throw UsageError(std::string("the host back end's ") + what + " rate must be above 0.");
  const double most = kMostOfMemcpy * memcpy_rate();
  if (rate <= most) return;
  throw UsageError(std::string("the host back end's ") + what + " rate is " + decimal_bytes(rate) +
                   "/s; copies are real, and this computer's memcpy leaves room for at most " + decimal_bytes(most) +
                   "/s.");
}

}  // namespace

void check_host_settings(const HostBackendSettings& settings) {
  if (settings.device_capacity <= 0) throw UsageError("the host back end's device memory must be above 0 bytes.");
  if (settings.copy_latency.count() < 0) throw UsageError("the host back end's copy latency must not be negative.");
  if (!(settings.pageable_share > 0 && settings.pageable_share <= 1))
    throw UsageError("the host back end's pageable share must be above 0 and at most 1.");
  if (!settings.scratch.empty() && !std::filesystem::is_directory(settings.scratch))
    throw UsageError("the folder \"" + settings.scratch.string() + "\" for the host back end's file does not exist.");
  const Bytes beside = kMargin + 2 * ScratchMemory::bytes_for(settings.device_capacity);
  if (settings.device_capacity > available_memory() - beside)
    throw UsageError("the host back end's device needs " +
                     decimal_bytes(static_cast<double>(settings.device_capacity)) + " of memory and " +
                     decimal_bytes(static_cast<double>(beside)) + " beside it; " +
                     decimal_bytes(static_cast<double>(available_memory())) + " are free.");
  check_rate("host-to-device", settings.host_to_device);
  check_rate("device-to-host", settings.device_to_host);
  check_rate("within-device", settings.within_device);
  for (const double rate : {settings.file_read, settings.file_write})
    if (!(rate >= 0 && rate <= 1e15))
      throw UsageError(
          "the host back end's rate of file transfers must be above 0, or 0 for as fast as the file goes.");
}

// The bounds are some ten minutes of a core of today.
void refuse_endless(const Trace& schedule) {
  constexpr double kMostFlops = 5e13, kMostBytes = 1e13, kMostSeconds = 600;
  double flops = 0, bytes = 0, given = 0;
  for (const Op& op : schedule.ops) {
    flops += op.flops;
    bytes += static_cast<double>(op.bytes);
    given += to_seconds(op.duration);
  }
  if (given > kMostSeconds)
    throw UsageError("a pass of schedule \"" + schedule.name + "\" has collectives of " + in_units(given, " s") +
                     " together; the host back end takes at most " + in_units(kMostSeconds, " s") +
                     ": scale it down with `memwall schedule --scale bytes=...`.");
  if (flops <= kMostFlops && bytes <= kMostBytes) return;
  throw UsageError("a pass of schedule \"" + schedule.name + "\" does " + in_units(flops / 1e12, " TFLOP") +
                   " and moves " + in_units(bytes / 1e12, " TB") + "; the host back end takes at most " +
                   in_units(kMostFlops / 1e12, " TFLOP") + " and " + in_units(kMostBytes / 1e12, " TB") +
                   ": scale it down with `memwall schedule --scale flops=...,bytes=...`.");
}

Environment describe(const HostBackendSettings& settings) {
  const auto whole = [](double value) { return std::to_string(static_cast<std::int64_t>(value)); };
  const std::size_t present = allowed_cores().size();
  const std::size_t used = settings.cores == 0 ? present : std::min<std::size_t>(present, settings.cores);
  return {
      {"backend", "host"},
      {"gpu.name", "host back end"},
      {"gpu.memory_bytes", std::to_string(settings.device_capacity)},
      {"gpu.multiprocessors", "1"},
      {"host_backend.host_to_device_bytes_per_second", whole(settings.host_to_device)},
      {"host_backend.device_to_host_bytes_per_second", whole(settings.device_to_host)},
      {"host_backend.within_device_bytes_per_second", whole(settings.within_device)},
      {"host_backend.file_read_bytes_per_second", whole(settings.file_read)},
      {"host_backend.file_write_bytes_per_second", whole(settings.file_write)},
      {"host_backend.pageable_share", std::to_string(settings.pageable_share)},
      {"host_backend.copy_latency_ns", std::to_string(settings.copy_latency.count() / 1000)},
      {"host_backend.cores", std::to_string(used)},
      {"cpu.name", processor_name()},
      {"cpu.count", std::to_string(present)},
  };
}

}  // namespace memwall
