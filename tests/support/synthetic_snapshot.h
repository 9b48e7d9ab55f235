// Memory snapshots made by hand, as PyTorch 2.5 and later write them. For tests; older forms are made by removing keys.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/pickle_writer.h"

namespace memwall {

Plain snapshot_frame(const std::string& name, const std::string& file, int line);
// One of device_traces. `action`: "alloc", "free_requested", ...
Plain snapshot_entry(const std::string& action, std::uint64_t address, std::int64_t size,
                     const Plain& frames = Plain::list({}), std::int64_t time_us = 1'700'000'000'000'000,
                     std::int64_t stream = 0);
// `state`: "active_allocated", "inactive", ...
Plain snapshot_block(std::uint64_t address, std::int64_t size, std::int64_t requested,
                     const std::string& state = "active_allocated", const Plain& frames = Plain::list({}));
// Size and sums are those of its blocks, which must be whole; 2 MiB segments are small ones.
Plain snapshot_segment(std::uint64_t address, std::vector<Plain> blocks, int device = 0, std::int64_t stream = 0);
Plain snapshot_settings(const std::string& text = "");
Plain snapshot_annotation(const std::string& stage, const std::string& name, std::int64_t time_us);
// `traces`: one list of entries per device.
Plain snapshot_of(std::vector<Plain> segments, std::vector<Plain> traces, Plain settings = snapshot_settings());

// A recording from empty: two allocations in a segment of 2 MiB and one of its own, one of them freed; frames.
Plain small_snapshot();

// A pickle of about `bytes`, of trace entries with 48 frames each, in CPython's style: nearly all of it references.
void write_large_snapshot(const std::filesystem::path& path, std::uint64_t bytes);

}  // namespace memwall
