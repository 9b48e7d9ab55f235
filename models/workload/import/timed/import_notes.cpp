#include "models/workload/import/timed/import_notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "models/workload/import/timed/capture_completeness.h"
#include "sim/human_text.h"

namespace memwall {
namespace {

constexpr const char* kKindNames[kLaunchKinds] = {"kernels", "copies", "memsets"};

void append_part(std::string& line, const std::string& part) { line += (line.empty() ? "" : ", ") + part; }

std::string counts_line(const ImportSummary& s) {
  std::string line;
  const auto add = [&](const char* what, std::uint64_t captured, std::uint64_t kept) {
    if (captured + kept > 0) append_part(line, fmt::format("{} {} and {}", what, captured, kept));
  };
  add("kernels", s.captured_kernels, s.trace_kernels);
  add("collectives", s.captured_collectives, s.trace_collectives);
  add("copies", s.captured_copies, s.trace_copies);
  add("memsets", s.captured_memsets, s.trace_memsets);
  return line;
}

void add_memory(const CapturedLifetimes& l, const ImportSummary& s, NoteList& notes) {
  if (s.device_memory_events + s.host_memory_events == 0) {
    notes.missing("The file has no memory events: it says nothing of allocations.");
    return;
  }
  std::string line = fmt::format("Memory events: {} on the device ({}, {}", s.device_memory_events,
                                 counted_text(s.allocs, "allocation"), counted_text(s.frees, "free"));
  if (s.preexisting > 0) line += fmt::format(", {} of them of storages from before the window", s.preexisting);
  line += ")";
  if (s.host_memory_events > 0)
    line += fmt::format(", {} on the host, which {} not replayed", s.host_memory_events,
                        by_number(s.host_memory_events, "is", "are"));
  notes.counted(line + ".");
  if (l.untracked > 0)
    notes.missing(
        fmt::format("{} were allocated before the window and not freed in it; what they hold is not in the file.",
                    human_bytes(l.untracked)));
  if (l.without_address > 0)
    notes.assumed(
        fmt::format("Without an address: {}. A free is taken for the newest allocation of its size, which keeps totals "
                    "exact and says little about lifetimes.",
                    counted_text(l.without_address, "memory event")));
  if (l.replaced > 0)
    notes.missing(fmt::format("At an address still in use: {}; the frees before are missing from the file.",
                              counted_text(l.replaced, "allocation")));
  if (l.resized > 0)
    notes.missing(
        fmt::format("Of another size than was allocated at the address: {}.", counted_text(l.resized, "free")));
}

// Streams know their device, storages do not.
void add_devices(const JoinedCapture& j, const ImportSummary& s, NoteList& notes) {
  std::set<std::int32_t> devices;
  for (const JoinedStream& stream : j.streams) devices.insert(stream.device);
  if (devices.size() > 1 && s.device_memory_events > 0)
    notes.assumed(
        fmt::format("Kernels of {} devices, which one process uses: what is allocated on any of them is counted in one "
                    "device memory, so that peaks are sums.",
                    devices.size()));
}

// "1.67 us (n = 60)"; where nothing was there to measure: "2.50 us, a usual value".
std::string sampled_text(Duration d, std::uint64_t samples) {
  const std::string value = fmt::format("{:.2f} us", to_microseconds(d));
  return samples > 0 ? fmt::format("{} (n = {})", value, samples) : value + ", a usual value";
}

void add_constants(const JoinedCapture& j, const ImportSummary& s, const ReplayConstants& c, NoteList& notes) {
  const std::uint64_t launches[kLaunchKinds] = {s.captured_kernels + s.captured_collectives, s.captured_copies,
                                                s.captured_memsets};
  std::string line;
  for (int kind = 0; kind < kLaunchKinds; ++kind)
    if (launches[kind] > 0)
      append_part(line, fmt::format("{} {}", kKindNames[kind],
                                    sampled_text(c.launch_latency[kind], s.samples.launch_latency[kind])));
  const bool usual = line.find("a usual value") != std::string::npos;
  line = "Launch latency, end of call to start on an idle stream (median): " + line + ".";
  if (std::any_of(std::begin(launches), std::end(launches), [](std::uint64_t n) { return n > 0; }))
    usual ? notes.assumed(line) : notes.counted(line);
  line.clear();
  for (int a = 0; a < kLaunchKinds; ++a)
    for (int b = 0; b < kLaunchKinds; ++b)
      if (s.samples.stream_gap[a][b] > 0)
        append_part(line, fmt::format("{} to {} {}", kKindNames[a], kKindNames[b],
                                      sampled_text(c.stream_gap[a][b], s.samples.stream_gap[a][b])));
  if (line.empty())
    notes.assumed("No two launches queued in one stream: the gap between them is a usual value, not measured.");
  else
    notes.counted("Gap between queued neighbours of a stream (mean): " + line + ".");
  if (s.samples.graph_gap > 0)
    notes.counted(
        fmt::format("Gap between nodes of a CUDA graph: {}.", sampled_text(c.graph_gap, s.samples.graph_gap)));
  if (j.rocm) notes.assumed("A ROCm capture: no limit of queued launches is applied.");
}

void add_edges(const ImportSummary& s, NoteList& notes) {
  if (s.given_edges + s.inferred_edges == 0) return;
  std::string line;
  if (s.given_edges > 0) append_part(line, fmt::format("{} stated by the file", s.given_edges));
  if (s.inferred_edges > 0) append_part(line, fmt::format("{} inferred", s.inferred_edges));
  if (s.moved_edges > 0)
    append_part(line, fmt::format("{} of them moved back because captured times contradict {}", s.moved_edges,
                                  by_number(s.moved_edges, "it", "them")));
  if (s.ignored_waits > 0)
    line += fmt::format("; {} {} a communication library's own", counted_text(s.ignored_waits, "wait"),
                        by_number(s.ignored_waits, "is", "are"));
  line = "Edges between streams: " + line + ".";
  s.inferred_edges > 0 ? notes.assumed(line) : notes.counted(line);
}

void add_waits(const ImportSummary& s, NoteList& notes) {
  for (const auto& [kind, calls] : s.blocking) {
    std::string line;
    if (calls.waited > 0)
      append_part(line, fmt::format("{} waited (return delay {:.1f} us, median)", calls.waited,
                                    to_microseconds(calls.return_delay)));
    if (calls.did_not_wait > 0) append_part(line, fmt::format("{} did not wait", calls.did_not_wait));
    if (!line.empty()) notes.counted(fmt::format("Blocking calls, {}: {}.", kind, line));
  }
  if (s.frees_with_pending_work > 0)
    notes.assumed(fmt::format("With pending work: {}, at the captured cost, which may contain waiting.",
                              counted_text(s.frees_with_pending_work, "call of cudaFree", "calls of cudaFree")));
  if (s.hand_overs > 0)
    notes.counted(
        fmt::format("{} between host threads{}.", counted_text(s.hand_overs, "hand-over"),
                    s.side_by_side * 2 > s.hand_overs
                        ? fmt::format(", {} within 5 us: threads that run side by side, whose order may differ in "
                                      "another run",
                                      s.side_by_side)
                        : ""));
  if (s.dropped_threads > 0)
    notes.counted(fmt::format("Left out: {} with nothing but questions whether events have happened.",
                              counted_text(s.dropped_threads, "thread")));
  add_edges(s, notes);
  if (s.idle_steps > 0)
    notes.counted(
        fmt::format("Left out: {} of the profiler in which nothing was launched.", counted_text(s.idle_steps, "step")));
  if (s.queue_limited_launches > 0)
    notes.counted(fmt::format("Met a full queue: {}; the captured waiting is left to the simulation.",
                              counted_text(s.queue_limited_launches, "launch", "launches")));
}

void add_completeness(const JoinedCapture& j, const ImportSummary& s, NoteList& notes) {
  if (s.placed_ops > 0)
    notes.missing(
        fmt::format("Without a runtime record: {} of {}; at the head of a stream they are placed as captured.",
                    s.placed_ops, counted_text(j.device_ops.size(), "device op")));
  if (s.calls_as_host_time > 0) {
    std::string line = fmt::format("Host time, as they neither launch nor wait: {}",
                                   counted_text(s.calls_as_host_time, "runtime call"));
    if (s.launches_without_record > 0)
      line += fmt::format("; {} of them would have launched, but the file has no device work for {}",
                          s.launches_without_record, by_number(s.launches_without_record, "it", "them"));
    line += ".";
    s.launches_without_record > 0 ? notes.missing(line) : notes.counted(line);
  }
  if (s.unexplained_waits > 0)
    notes.missing(fmt::format(
        "More than 50 us behind every known bound: {}, {} in all, of which {}, {:.2f} % of the GPU span, delay what "
        "comes after.",
        counted_text(s.unexplained_waits, "start"), human_time(s.unexplained_time), human_time(s.unexplained_delay),
        100 * s.unexplained_share));
  if (std::string clocks = clock_contradiction(j, s); !clocks.empty()) {
    clocks.front() = 'T';
    notes.missing(clocks + ".");
  }
  if (s.early_starts > 0)
    notes.missing(fmt::format("More than 50 us before the end of what was before them in their stream: {}.",
                              counted_text(s.early_starts, "start")));
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
}

void note_steps(const CapturePhases& phases, NoteList& notes) {
  if (phases.marks_steps()) return;
  const std::size_t steps = phases.steps().size();
  if (steps > 0)
    return notes.assumed(fmt::format(
        "The file marks no steps: its operators come {} times alike, each time with {}, and count as so many "
        "steps.",
        steps,
        phases.iterations() == steps ? "an optimizer step or a backward pass" : "optimizer steps that take turns"));
  if (phases.iterations() == 1)
    return notes.counted("The file marks no steps: all of it is one, with one optimizer step or backward pass.");
  notes.missing(phases.iterations() > 1
                    ? fmt::format("The file marks no steps: all of it counts as one, with {} optimizer steps or "
                                  "backward passes in it.",
                                  phases.iterations())
                    : std::string("The file marks no steps: all of it counts as one."));
}

NoteList import_notes(const JoinedCapture& joined, const CapturedLifetimes& lifetimes, const ImportSummary& summary,
                      const ReplayConstants& constants) {
  NoteList notes;
  const std::string device = device_name(joined);
  if (device.empty())
    notes.missing("The file does not name its device.");
  else
    notes.counted("Captured on: " + device + ".");
  if (const std::string counts = counts_line(summary); counts.empty())
    notes.missing("The file has no device work.");
  else
    notes.counted("Device work in the file and in the trace: " + counts + ".");
  add_memory(lifetimes, summary, notes);
  add_devices(joined, summary, notes);
  add_constants(joined, summary, constants, notes);
  add_waits(summary, notes);
  add_completeness(joined, summary, notes);
  return notes;
}

}  // namespace memwall
