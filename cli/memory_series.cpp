#include "cli/memory_series.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>

#include "cli/progress.h"
#include "sim/files/input_file.h"
#include "models/workload/memory/snapshot_device.h"
#include "study/workload_file.h"
#include "models/workload/forecast/memory_samples.h"
#include "models/workload/forecast/recorded_series.h"
#include "models/workload/import/bytes/byte_source.h"
#include "models/workload/import/snapshot/snapshot_reader.h"
#include "models/workload/memory/allocations.h"
#include "models/workload/memory/recording_replay.h"
#include "models/workload/memory/start_state.h"
#include "sim/error.h"
#include "traces/run/analysis/accounting.h"
#include "traces/run/file/run_file.h"

namespace memwall {
namespace {

namespace fs = std::filesystem;

void refuse_period(const fs::path& path, std::size_t period) {
  if (period > 0)
    throw UsageError(fmt::format("--period {}: {} says itself where its steps begin.", period, path.string()));
}

// Does the first line name the columns of a log of samples?
bool is_sample_log(const fs::path& path) {
  ByteSource source(path);
  std::array<char, 4096> start{};
  const std::string_view text(start.data(), source.read(start.data(), start.size()));
  const std::string_view line = text.substr(0, text.find('\n'));
  const bool plain = std::all_of(line.begin(), line.end(), [](char c) { return c == '\t' || c == '\r' || c >= ' '; });
  return plain && (line.starts_with("timestamp") || line.starts_with("seconds") || line.starts_with("bytes") ||
                   line.starts_with("index,") || line.find("memory.used") != std::string_view::npos);
}

JobMemory of_samples(const fs::path& path, std::size_t period) {
  JobMemory job{.name = path.filename().string(), .series = {}, .gpu_busy = {}, .notes = {}};
  MemorySamples read = read_memory_samples(path);
  job.notes = std::move(read.notes);
  for (const MemorySample& sample : read.samples) job.highest = std::max(job.highest, sample.used);
  job.series = series_of_samples(read.samples, job.notes);
  job.series.period = period;
  job.notes.push_back(
      "The bytes are what the log says: of nvidia-smi, everything on the GPU, the caches of allocators included.");
  return job;
}

// The tier's points within each step, in equal numbers.
JobMemory of_run(const fs::path& path, std::size_t period) {
  refuse_period(path, period);
  const Run run = read_run(path);
  JobMemory job{.name = path.filename().string(), .series = {}, .gpu_busy = {}, .notes = {}};
  if (!run.trace->knowledge.allocations)
    throw InputError(fmt::format(
        "{}: what its memory holds is not recorded, for its capture has no allocations; there is nothing to forecast.",
        path.string()));
  const int hbm = run.machine.tier("hbm");
  if (hbm < 0 || run.memory[static_cast<std::size_t>(hbm)].empty())
    throw InputError(fmt::format("{}: the run has no memory of a GPU; expected a step that allocates.", path.string()));
  const auto& points = run.memory[static_cast<std::size_t>(hbm)];
  std::vector<double> bytes;
  for (const auto& p : points) {
    bytes.push_back(static_cast<double>(p.allocated));
    job.highest = std::max(job.highest, p.allocated);
    job.reserved = std::max(job.reserved, p.reserved);
  }
  job.counted = "blocks in use";
  job.cache_on_top = true;
  job.reserved_where = "at most in the run";
  const std::vector<StepWindow> windows = step_windows(run);
  const auto index_at = [&](Time time) {
    return static_cast<std::size_t>(
        std::lower_bound(points.begin(), points.end(), time, [](const auto& p, Time t) { return p.time < t; }) -
        points.begin());
  };
  std::vector<std::size_t> boundaries;
  for (const StepWindow& w : windows) boundaries.push_back(index_at(w.begin));
  boundaries.push_back(points.size());
  job.series = resample_steps(bytes, boundaries, kStepSamples);
  const TimeAccounting accounting = account(run);
  Duration busy{}, total{};
  for (const StepAccounting& step : accounting.steps) {
    busy += step.times[TimeClass::compute] + step.times[TimeClass::recompute];
    total += step.times.total();
  }
  job.seconds_per_step = to_seconds(total) / static_cast<double>(windows.size());
  if (total.count() > 0) job.gpu_busy = to_seconds(busy) / to_seconds(total);
  job.notes.push_back(
      "The bytes are those of blocks in use on hbm; the allocator's cache and the CUDA context come on top.");
  return job;
}

void set_steps(const MemoryRecording& recording, const DeviceRecording& device, const AllocationTable& table,
               std::vector<double> bytes, JobMemory& job) {
  if (table.steps.size() < 2) {
    job.series.bytes = std::move(bytes);
    job.steps_told = false;
    job.notes.push_back(fmt::format(
        "The snapshot shows {}; samples are its events, and what is forecast are periods found in them, which may be "
        "those of layers or of parameters.",
        table.steps.empty() ? "no whole training step" : "one whole training step"));
    return;
  }
  std::vector<std::size_t> boundaries;
  for (const RecordedStep& step : table.steps) boundaries.push_back(step.begin);
  boundaries.push_back(table.steps.back().end);
  job.series = resample_steps(bytes, boundaries, kStepSamples);
  job.notes.push_back(fmt::format("{} steps, as `memwall memory` tells them.", table.steps.size()));
  const auto last = std::min<std::size_t>(boundaries.back(), device.events.size()) - 1;
  const std::int64_t span = device.events[last].time_us - device.events[boundaries.front()].time_us;
  if (recording.has_times && span > 0)
    job.seconds_per_step = static_cast<double>(span) * 1e-6 / static_cast<double>(table.steps.size());
}

Bytes missing_in(Bytes capacity, const MemoryRecording& recording, const DeviceRecording& device,
                 const StartState& start) {
  ReplayVariant variant;
  variant.settings = recording.settings;
  variant.capacity = capacity;
  if (variant.settings.backend == AllocatorSettings::Backend::cuda_malloc_async) variant.allocator = "cuda_async";
  return replay_variant(recording, device, start, variant).missing;
}

JobMemory of_snapshot(const fs::path& path, std::size_t period, std::optional<int> asked, Bytes capacity) {
  const MemoryRecording recording = [&] {
    const ReadingProgress progress(path);
    return read_snapshot(path);
  }();
  const DeviceRecording& device = recording.devices[snapshot_device(recording, path, asked)];
  if (device.events.empty())
    throw InputError(fmt::format("{}: the snapshot has no events of device {}, so there is no series.", path.string(),
                                 device.device));
  JobMemory job{.name = path.filename().string(), .series = {}, .gpu_busy = {}, .notes = {}};
  job.notes.push_back(
      "The bytes are those requested and alive; the allocator's rounding and cache, and the CUDA context, come on "
      "top.");
  std::vector<double> bytes = live_bytes_of(device);
  job.counted = "requested bytes";
  job.highest = static_cast<Bytes>(*std::max_element(bytes.begin(), bytes.end()));
  job.cache_on_top = true;
  for (const RecordedSegment& segment : device.segments) job.reserved += segment.size;
  job.reserved_where = "at the snapshot's end";
  const StartState start = find_start_state(device, recording.settings);
  if (capacity >= job.highest) job.missing = missing_in(capacity, recording, device, start);
  if (period > 0) {
    job.series.bytes = std::move(bytes);
    job.series.period = period;
    return job;
  }
  set_steps(recording, device, tabulate_allocations(recording, device, start), std::move(bytes), job);
  return job;
}

[[noreturn]] void refuse_workload(const fs::path& path) {
  const std::string kind = kind_of_workload(path);  // names what else it is
  throw UsageError(fmt::format(
      "{}: this is a step to simulate ({}); `memwall run {} --steps 5 -o run.h5` makes a run, which can be forecast.",
      path.string(), kind, path.filename().string()));
}

}  // namespace

JobMemory read_job_memory(const fs::path& path, std::size_t period, std::optional<int> device, Bytes capacity) {
  readable_path(path, "a memory snapshot (.pickle), a run (.h5) or a log of samples (.csv)");
  if (is_run_file(path)) return of_run(path, period);
  if (is_pickle(path)) return of_snapshot(path, period, device, capacity);
  if (is_sample_log(path)) return of_samples(path, period);
  refuse_workload(path);
}

double seconds_per_step(const JobMemory& job, const MemoryForecast& forecast) {
  if (job.seconds_per_step > 0) return job.seconds_per_step;
  return job.series.seconds_per_sample * static_cast<double>(forecast.period);
}

}  // namespace memwall
