#include "models/workload/import/timed/import_decisions.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "models/workload/import/timed/kernel_properties.h"
#include "sim/human_text.h"

namespace memwall {
namespace {

using std::string_view;

class Decisions {
 public:
  Decisions(const TimedCapture& capture, const ImportedTrace& imported)
      : c_(capture), i_(imported), s_(imported.summary) {}

  std::vector<Decision> all() {
    add_host();
    add_device_work();
    add_copies();
    add_phases();
    add_memory();
    add_constants();
    add_waits();
    add_edges();
    add_completeness();
    return std::move(all_);
  }

 private:
  void add(const char* subject, std::string sentence, std::uint64_t covered = 0, std::uint64_t of = 0) {
    all_.push_back({subject, std::move(sentence), covered, of});
  }

  void add_host() {
    add("host threads kept", "Threads that only ask for events (a communication library's watchdog) are left out.",
        s_.threads, s_.threads + s_.dropped_threads);
    std::uint64_t device = 0, inside = 0, modules = 0;
    for (OpId id = 0; id < i_.trace.ops.size(); ++id) {
      const Op& op = i_.trace.ops[id];
      if (!runs_on_device(op.kind)) continue;
      ++device;
      inside += i_.operator_of_op[id] != kNoIndex;
      modules += op.module != 0;
    }
    add("operators around launches", "A launch belongs to the innermost operator or range open on its thread.", inside,
        device);
    add("modules",
        c_.modules.empty() ? "The file names no modules (with_stack or with_modules): module paths are unknown."
                           : "The path is that of the module spans open on the launching thread.",
        modules, device);
  }

  void add_device_work() {
    add("device work with a launch",
        "Joined by correlation id; the rest has no runtime record: at the head of a stream it is placed as captured, "
        "later it goes with its predecessor.",
        c_.device_ops.size() - std::min<std::uint64_t>(s_.placed_ops, c_.device_ops.size()), c_.device_ops.size());
    const auto same = [&](const char* subject, std::uint64_t in_trace, std::uint64_t in_file) {
      if (in_file > 0) add(subject, "As many in the trace as in the file, unless a note says why.", in_trace, in_file);
    };
    same("kernels", s_.trace_kernels, s_.captured_kernels);
    same("collectives", s_.trace_collectives, s_.captured_collectives);
    same("copies", s_.trace_copies, s_.captured_copies);
    same("memsets", s_.trace_memsets, s_.captured_memsets);
    add("calls as host time", "Runtime calls that neither launch nor wait are part of the host's time.",
        s_.calls_as_host_time, c_.calls.size());
    if (s_.launches_without_record > 0)
      add("launches without device work", "Their kernels or copies are missing in the file; they count as host time.",
          s_.launches_without_record, c_.calls.size());
  }

  void add_copies() {
    std::uint64_t copies = 0, with_bytes = 0, from_call = 0, directed = 0, stated = 0, with_host = 0;
    for (OpId id = 0; id < i_.trace.ops.size(); ++id) {
      if (i_.device_of_op[id] == kNoIndex) continue;
      const CapturedDeviceOp& op = c_.device_ops[i_.device_of_op[id]];
      if (op.work != DeviceWork::copy) continue;
      const string_view name = c_.text(op.name);
      const CopyDirection direction = copy_direction(name);
      ++copies;
      with_bytes += i_.trace.ops[id].bytes > 0;
      from_call += op.bytes < 0 && i_.trace.ops[id].bytes > 0;
      directed += direction.known;
      const bool host = direction.from_host || direction.to_host;
      with_host += host;
      stated += host && (name.find("Pageable") != string_view::npos || name.find("Pinned") != string_view::npos);
    }
    if (copies == 0) return;
    add("bytes of copies",
        from_call > 0
            ? fmt::format("{} records have no bytes: theirs are those that the copying call was asked for.", from_call)
            : "As recorded.",
        with_bytes, copies);
    add("direction of copies", "By the record's name; one that does not say it is taken as within the device.",
        directed, copies);
    if (with_host > 0)
      add("host side of copies",
          "Pinned or pageable by the record's name; where it does not say, taken as page-locked.", stated, with_host);
  }

  void add_phases() {
    const std::string first = i_.trace.steps.empty() ? "window" : i_.trace.steps.front().name;
    const std::string steps = counted_text(i_.trace.steps.size(), "step");
    add("steps",
        c_.operators.empty() || first.starts_with("window")
            ? "The file names no steps (ProfilerStep#N): all of it is one."
        : first.starts_with("iteration ")
            ? fmt::format("The file names no steps (ProfilerStep#N): {}, as operators come again alike.", steps)
            : fmt::format("{} by range on the thread that trains.", steps));
    std::array<std::uint64_t, 5> count{};
    std::uint64_t device = 0;
    for (const Op& op : i_.trace.ops) {
      if (!runs_on_device(op.kind)) continue;
      ++device;
      ++count[static_cast<std::size_t>(op.phase)];
    }
    // Ranges of NVTX may name phases; where they do, the rules for PyTorch's own operators come second.
    const bool named = std::any_of(c_.operators.begin(), c_.operators.end(), [](const CapturedOperator& op) {
      return op.meaning != RangeMeaning::none && op.meaning != RangeMeaning::step;
    });
    const std::string by_range = named ? "Ranges called so; besides them what lies " : "What lies ";
    const auto phase = [&](Phase p, const char* subject, const std::string& rule) {
      if (count[static_cast<std::size_t>(p)] > 0) add(subject, rule, count[static_cast<std::size_t>(p)], device);
    };
    phase(Phase::forward, "phase forward",
          by_range + "between the step's start, or the end of zero_grad, and the first backward.");
    phase(Phase::recompute, "phase recompute", "Forward operators inside backward ones.");
    phase(Phase::backward, "phase backward",
          by_range + "under autograd::engine::evaluate_function or operators named *Backward.");
    phase(Phase::optimizer, "phase optimizer", by_range + "under Optimizer.step#.");
    phase(Phase::unknown, "phase unknown", "In none of these ranges.");
  }

  void add_memory() {
    const std::uint64_t events = s_.device_memory_events + s_.host_memory_events;
    if (events == 0)
      return add("memory events", "The file has none (profile_memory): it says nothing of allocations.");
    add("memory events replayed", "Those on a device; those on the host are not.", s_.device_memory_events, events);
    add("frees of older storages", "Of what was allocated before the window: the storages exist at its start.",
        s_.preexisting, s_.frees);
    if (s_.memory_without_address > 0)
      add("memory events without address", "A free is taken for the newest allocation of its size: totals are exact.",
          s_.memory_without_address, s_.device_memory_events);
  }

  void add_constants() {
    constexpr std::array<const char*, kLaunchKinds> subjects{"launch latency of kernels", "launch latency of copies",
                                                             "launch latency of memsets"};
    const std::array<std::uint64_t, kLaunchKinds> launches{s_.captured_kernels + s_.captured_collectives,
                                                           s_.captured_copies, s_.captured_memsets};
    for (std::size_t kind = 0; kind < kLaunchKinds; ++kind) {
      if (launches[kind] == 0) continue;
      add(subjects[kind],
          fmt::format("{:.2f} us from the end of the call to the start on an idle stream, median of the samples{}.",
                      to_microseconds(i_.trace.constants.launch_latency[kind]),
                      s_.samples.launch_latency[kind] == 0 ? "; there are none: a usual value" : ""),
          s_.samples.launch_latency[kind], launches[kind]);
    }
    std::uint64_t gaps = 0;
    for (const auto& row : s_.samples.stream_gap)
      for (const std::uint64_t n : row) gaps += n;
    add("gap between queued neighbours",
        gaps == 0 ? "No two launches queued in one stream: a usual value, not measured."
                  : fmt::format("{:.2f} us between kernels, mean of the samples.",
                                to_microseconds(i_.trace.constants.stream_gap[0][0])),
        gaps, c_.device_ops.size());
    if (i_.trace.constants.launch_queue_depth == 0)
      add("queue of launches", "A ROCm capture: no limit of queued launches is known or applied.");
    else if (s_.queue_limited_launches > 0)
      add("queue of launches", "Launches that met a full queue: their waiting is left to the simulation.",
          s_.queue_limited_launches, c_.calls.size());
  }

  void add_waits() {
    for (const auto& [kind, calls] : s_.blocking)
      all_.push_back({"blocking: " + kind,
                      calls.return_delay_samples == 0
                          ? std::string("Waited, told by the end of the awaited work.")
                          : fmt::format("Waited, told by the end of the awaited work; return delay {:.1f} us (median "
                                        "of {}).",
                                        to_microseconds(calls.return_delay), calls.return_delay_samples),
                      calls.waited, calls.waited + calls.did_not_wait});
    if (s_.hand_overs > 0)
      add("hand-overs side by side",
          "Of the hand-overs between host threads, those within 5 us: their order may differ in another run.",
          s_.side_by_side, s_.hand_overs);
    if (s_.frees_with_pending_work > 0)
      add("cudaFree with pending work", "Kept at its captured cost, which may contain waiting.",
          s_.frees_with_pending_work, c_.calls.size());
  }

  void add_edges() {
    const std::uint64_t edges = s_.given_edges + s_.inferred_edges;
    if (edges == 0) return;
    add("edges stated", "Waits between streams that the file names with the record they wait for.", s_.given_edges,
        edges);
    add("edges inferred", "A wait without a stated record: taken to the work submitted last before the record.",
        s_.inferred_edges, edges);
    if (s_.moved_edges > 0)
      add("edges moved", "Captured times contradict them: moved back to the last producer that does not.",
          s_.moved_edges, edges);
    if (s_.ignored_waits > 0)
      add("waits ignored", fmt::format("{} are a communication library's own.", s_.ignored_waits));
  }

  void add_completeness() {
    add("starts explained",
        fmt::format(
            "Device work that starts within 50 us of the latest bound that is known; the rest delays {:.2f} % of "
            "the GPU span.",
            100 * s_.unexplained_share),
        c_.device_ops.size() - std::min<std::uint64_t>(s_.unexplained_waits, c_.device_ops.size()),
        c_.device_ops.size());
    if (s_.launched > 0)
      add("clocks of host and GPU",
          "Work starts behind the start of the call that launches it, but for 10 us that clocks may differ.",
          s_.launched - s_.before_launch, s_.launched);
    if (s_.returns > 0)
      add("clocks of host and GPU, at waits",
          "Calls that wait return behind the end of what they wait for, but for 10 us that clocks may differ.",
          s_.returns - s_.early_returns, s_.returns);
    add("completeness", i_.trace.completeness == Completeness::complete
                            ? "The capture explains its own times."
                            : fmt::format("{}: {}", to_string(i_.trace.completeness), i_.trace.completeness_reason));
  }

  const TimedCapture& c_;
  const ImportedTrace& i_;
  const ImportSummary& s_;
  std::vector<Decision> all_;
};

}  // namespace

std::vector<Decision> import_decisions(const TimedCapture& capture, const ImportedTrace& imported) {
  return Decisions(capture, imported).all();
}

std::vector<Decision> shape_decisions(const RecordedShapes& s) {
  if (s.with_inputs == 0)
    return {{"inputs of operators", "The file has none (record_shapes): FLOPs and bytes are unknown.", 0, s.operators}};
  return {
      {"inputs of operators", "As record_shapes wrote them; what operators return follows from their rules.",
       s.with_inputs, s.operators},
      {"bytes of kernels",
       fmt::format("Each tensor of the operator once per direction, shared among its kernels by duration; {:.1f} % of "
                   "the kernels' time.",
                   s.time.count() == 0 ? 0 : 100 * to_seconds(s.time_with_bytes) / to_seconds(s.time)),
       s.with_bytes, s.kernels},
      {"shapes of kernels", "By operator class (sim/trace/op.h).", s.with_shape, s.kernels},
      {"FLOPs of products",
       fmt::format("Matrix products, convolutions and attention by their shapes: {:.4g} in all.", s.flops),
       s.with_flops, s.products}};
}

}  // namespace memwall
