// The device's view of memory: which bytes of a tier hold data, on the clock on which kernels and copies run.
//
// A caching allocator counts on the host's clock: a block is in use from the call that allocates it to the call that
// frees it, wherever the device is by then (Run::memory, Run::residency). The device comes to the same program later.
// On its clock
//
// - a storage holds data from the start of the first op on the device that writes it (from its allocation where the
//   host writes it, or nobody; from 0 where it lived before the first op)
// - until the end of the last op, on the device or on the host, that reads or writes it: one that the host has freed
//   while a kernel or a copy of it is pending is not free. One that is never freed is kept until the end of the run.
// - A move by a pager reads the storage where it was and writes it where it goes: the former tier holds it until the
//   move's end, the latter from the move's start, and of one that was freed no longer than to the end of its last move.
// - Of a storage on a device that no op names it is known only which ops may use it, because the allocator hands its
//   memory on in stream order: those that its stream was given between its allocation and its free. It counts from the
//   start of the first of them to the end of the last, and not where there is none. On other tiers it counts as the
//   host has it.
//
// An instant belongs to what begins in it and not to what ends in it, so that storages that take the same memory one
// after the other in stream order do not overlap. Bytes are as requested: rounding and cache are the allocator's.
// Untracked bytes are there all the time, as kind `unknown`.
#pragma once

#include <array>
#include <vector>

#include "traces/run/run.h"

namespace memwall {

// Whose time the bytes of a picture or table are counted on.
enum class MemoryClock : std::uint8_t { host, device };

// Does the run tell? Its trace must know what ops read and write, and residency must have been recorded.
bool has_device_clock(const Run& run);

// Where each storage holds data, and when: as Run::residency, on the device's clock. Ascending in begin, then in
// storage; none is of no length. REQUIRES: has_device_clock(run), and likewise below.
std::vector<Residency> device_residency(const Run& run);

// As memory_by_kind (traces/run/run.h). REQUIRES: tier < run.machine.tiers.size().
std::vector<KindPoint> device_memory_by_kind(const Run& run, int tier);

// When most bytes of a tier hold data: the first such instant.
struct DevicePeak {
  Time time{};
  Bytes bytes = 0;                             // the sum of `by_kind`
  std::array<Bytes, kStorageKinds> by_kind{};  // untracked bytes count as unknown
  Bytes unnamed = 0;                           // of storages on a device that no op names: in stream order, see above
};
// Of every tier. Takes time in proportion to ops and uses.
std::vector<DevicePeak> device_peaks(const Run& run);

}  // namespace memwall
