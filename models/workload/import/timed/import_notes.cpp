#include "models/workload/import/timed/import_notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace memwall {
namespace {

constexpr const char* kKindNames[kLaunchKinds] = {"kernels", "copies", "memsets"};

std::string counts_line(const ImportSummary& s) {
  return fmt::format(
      "Device work in the file and in the trace: kernels {} and {}, collectives {} and {}, copies {} and {}, memsets "
      "{} and {}.",
      s.captured_kernels, s.trace_kernels, s.captured_collectives, s.trace_collectives, s.captured_copies,
      s.trace_copies, s.captured_memsets, s.trace_memsets);
}

void add_memory(const CapturedLifetimes& l, const ImportSummary& s, std::vector<std::string>& notes) {
  if (s.device_memory_events + s.host_memory_events == 0) {
    notes.push_back("The file has no memory events: the trace knows nothing of allocations.");
    return;
  }
  notes.push_back(
      fmt::format("Memory events: {} on the device ({} allocations, {} frees, {} of them of storages from before the "
                  "window), {} on the "
                  "host, which are not replayed.",
                  s.device_memory_events, s.allocs, s.frees, s.preexisting, s.host_memory_events));
  if (l.untracked > 0)
    notes.push_back(
        fmt::format("{} bytes were allocated before the window and not freed in it; what they hold is not in the file.",
                    l.untracked));
  if (l.without_address > 0)
    notes.push_back(
        fmt::format("{} memory events carry no address: a free is taken for the newest allocation of its size, which "
                    "keeps totals exact and says little about lifetimes.",
                    l.without_address));
  if (l.replaced > 0)
    notes.push_back(fmt::format(
        "{} allocations were at an address still in use; their frees are missing from the file.", l.replaced));
  if (l.resized > 0)
    notes.push_back(fmt::format("{} frees were of another size than was allocated at their address.", l.resized));
}

// Streams know their device, storages do not.
void add_devices(const JoinedCapture& j, const ImportSummary& s, std::vector<std::string>& notes) {
  std::set<std::int32_t> devices;
  for (const JoinedStream& stream : j.streams) devices.insert(stream.device);
  if (devices.size() > 1 && s.device_memory_events > 0)
    notes.push_back(
        fmt::format("Kernels of {} devices, which one process uses: what is allocated on any of them is counted in one "
                    "device memory, so that peaks are sums.",
                    devices.size()));
}

void add_constants(const JoinedCapture& j, const ImportSummary& s, const ReplayConstants& c,
                   std::vector<std::string>& notes) {
  std::string line = "Launch latency, end of call to start on an idle stream (median):";
  for (int kind = 0; kind < kLaunchKinds; ++kind)
    line += fmt::format(" {} {:.2f} us (n = {}){}", kKindNames[kind], to_microseconds(c.launch_latency[kind]),
                        s.samples.launch_latency[kind], kind + 1 < kLaunchKinds ? "," : ".");
  notes.push_back(line);
  line = "Gap between queued neighbours of a stream (mean):";
  std::uint64_t all = 0;
  for (int a = 0; a < kLaunchKinds; ++a)
    for (int b = 0; b < kLaunchKinds; ++b) {
      if (s.samples.stream_gap[a][b] == 0) continue;
      line += fmt::format("{} {} to {} {:.2f} us (n = {})", all == 0 ? "" : ",", kKindNames[a], kKindNames[b],
                          to_microseconds(c.stream_gap[a][b]), s.samples.stream_gap[a][b]);
      all += s.samples.stream_gap[a][b];
    }
  notes.push_back(all == 0
                      ? "No two launches queued in one stream: the gap between them is a usual value, not measured."
                      : line + ".");
  if (s.samples.graph_gap > 0)
    notes.push_back(fmt::format("Gap between nodes of a CUDA graph: {:.2f} us (n = {}).", to_microseconds(c.graph_gap),
                                s.samples.graph_gap));
  if (j.rocm) notes.push_back("A ROCm capture: no limit of queued launches is applied.");
}

void add_waits(const ImportSummary& s, std::vector<std::string>& notes) {
  for (const auto& [kind, calls] : s.blocking)
    notes.push_back(fmt::format("Blocking calls, {}: {} waited (return delay {:.1f} us, median), {} did not.", kind,
                                calls.waited, to_microseconds(calls.return_delay), calls.did_not_wait));
  if (s.frees_with_pending_work > 0)
    notes.push_back(
        fmt::format("{} calls of cudaFree met pending work; their captured cost is kept and may contain waiting.",
                    s.frees_with_pending_work));
  if (s.hand_overs > 0)
    notes.push_back(
        fmt::format("{} hand-overs between host threads{}.", s.hand_overs,
                    s.side_by_side * 2 > s.hand_overs
                        ? fmt::format(", {} within 5 us: threads that run side by side, whose order may differ in "
                                      "another run",
                                      s.side_by_side)
                        : ""));
  if (s.dropped_threads > 0)
    notes.push_back(fmt::format("{} threads that only ask for events are left out.", s.dropped_threads));
  if (s.given_edges + s.inferred_edges > 0)
    notes.push_back(
        fmt::format("Edges between streams: {} stated by the file, {} inferred, {} of them moved back because captured "
                    "times contradict them; {} waits are a communication library's own.",
                    s.given_edges, s.inferred_edges, s.moved_edges, s.ignored_waits));
  if (s.queue_limited_launches > 0)
    notes.push_back(fmt::format("{} launches met a full queue; their captured waiting is left to the simulation.",
                                s.queue_limited_launches));
}

void add_completeness(const JoinedCapture& j, const ImportSummary& s, std::vector<std::string>& notes) {
  if (s.placed_ops > 0)
    notes.push_back(
        fmt::format("{} device ops of {} have no runtime record; at the head of a stream they are placed as captured.",
                    s.placed_ops, j.device_ops.size()));
  notes.push_back(fmt::format(
      "{} runtime calls neither launch nor wait: they are host time; {} of them would have launched, but the "
      "file has no device work for them.",
      s.calls_as_host_time, s.launches_without_record));
  notes.push_back(fmt::format(
      "{} starts lie more than 50 us behind every known bound, {:.1f} us in all; {:.1f} us of it, {:.2f} % of the "
      "GPU span, delay what comes after.",
      s.unexplained_waits, to_microseconds(s.unexplained_time), to_microseconds(s.unexplained_delay),
      100 * s.unexplained_share));
  if (!s.explained)
    notes.push_back(
        "This capture does not explain itself: over 2 % of its span are waits without a cause in the file, or most of "
        "its "
        "work has no launch. Its records are incomplete, and a comparison of step times means nothing.");
}

}  // namespace

std::string device_name(const JoinedCapture& joined) {
  const TimedCapture& c = *joined.capture;
  if (!joined.streams.empty())
    for (const CapturedDevice& device : c.devices)
      if (device.id == joined.streams.front().device) return device.name;
  return c.devices.empty() ? "" : c.devices.front().name;
}

void count_memory(const TimedCapture& capture, ImportSummary& s) {
  for (const CapturedMemory& event : capture.memory) {
    ++(event.on_device() ? s.device_memory_events : s.host_memory_events);
    s.memory_without_address += event.on_device() && !event.has_address;
  }
}

void count_capture(const JoinedCapture& joined, ImportSummary& s) {
  const TimedCapture& c = *joined.capture;
  s.file_counts = c.events_by_category;
  for (std::size_t i = 0; i < c.device_ops.size(); ++i) {
    if (c.device_ops[i].work == DeviceWork::copy)
      ++s.captured_copies;
    else if (c.device_ops[i].work == DeviceWork::memset)
      ++s.captured_memsets;
    else
      ++(joined.device_ops[i].collective ? s.captured_collectives : s.captured_kernels);
  }
  s.threads = static_cast<std::uint64_t>(std::count(joined.thread_kept.begin(), joined.thread_kept.end(), 1));
  s.dropped_threads = c.threads.size() - s.threads;
  s.streams = joined.streams.size();
  // Work that is merely placed as captured explains nothing.
  if (s.placed_ops * 2 > c.device_ops.size()) s.explained = false;
}

std::vector<std::string> import_notes(const JoinedCapture& joined, const CapturedLifetimes& lifetimes,
                                      const ImportSummary& summary, const ReplayConstants& constants) {
  std::vector<std::string> notes;
  const std::string device = device_name(joined);
  notes.push_back(device.empty() ? "The file does not name its device." : "Captured on: " + device + ".");
  notes.push_back(counts_line(summary));
  add_memory(lifetimes, summary, notes);
  add_devices(joined, summary, notes);
  add_constants(joined, summary, constants, notes);
  add_waits(summary, notes);
  add_completeness(joined, summary, notes);
  return notes;
}

}  // namespace memwall
