// CUPTI's records become the neutral form of a capture: calls with their threads, device work with the names and
// numbers that the pipeline knows, rows about synchronization, allocations.
#include "models/workload/import/cupti/cupti_import.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "models/workload/import/cupti/cupti_notes.h"
#include "models/workload/import/cupti/cupti_records.h"
#include "models/workload/import/cupti/nvtx_ranges.h"
#include "models/workload/import/cupti/occupancy.h"
#include "models/workload/import/execution_trace/timed_step.h"
#include "models/workload/import/timed/event_order.h"
#include "sim/error.h"

namespace memwall {
namespace {

using std::string_view;

constexpr std::uint32_t kDriver = 1;

// "cudaLaunchKernel_v7000" and "cudaMemcpyAsync_ptsz_v7000" are the calls of those names.
string_view call_name(string_view name) {
  const auto strip = [&](string_view suffix) {
    if (name.ends_with(suffix)) name.remove_suffix(suffix.size());
  };
  const std::size_t version = name.rfind("_v");
  if (version != string_view::npos && version + 2 < name.size() &&
      name.find_first_not_of("0123456789", version + 2) == string_view::npos)
    name = name.substr(0, version);
  strip("_ptsz");
  strip("_ptds");
  return name;
}

string_view memory_name(std::uint8_t kind) {
  constexpr string_view names[] = {"Unknown", "Pageable", "Pinned",        "Device",
                                   "Array",   "Managed",  "Device Static", "Managed Static"};
  return kind < std::size(names) ? names[kind] : names[0];
}

string_view copy_name(std::uint8_t kind) {
  constexpr string_view names[] = {"Unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA",
                                   "AtoD",    "DtoA", "DtoD", "HtoH", "PtoP"};
  return kind < std::size(names) ? names[kind] : names[0];
}

class Converter {
 public:
  Converter(CuptiRecords records, const std::string& step_range) : r_(std::move(records)), step_range_(step_range) {}

  CuptiCapture run() {
    out_.capture.path = r_.path;
    find_devices();
    add_calls();
    add_work();
    add_synchronizations();
    add_memory();
    found_.ranges = add_ranges(
        r_, step_range_, [this](std::uint32_t id) { return thread(id); }, out_.capture, span_);
    if (!step_range_.empty() && found_.ranges.steps == 0)
      throw UsageError(r_.path.string() + ": found no " + std::string(r_.words.ranges) +
                       " range whose name begins with \"" + step_range_ + "\" among " +
                       std::to_string(found_.ranges.ranges) + "; expected one around each step.");
    if (const std::string problem = span_.problem(); !problem.empty())
      throw InputError(r_.path.string() + ": " + problem);
    count_events();
    order_events(out_.capture, span_);
    const NoteList notes = cupti_notes(r_, found_);
    out_.notes = notes.notes();
    out_.note_kinds = notes.kinds();
    return std::move(out_);
  }

 private:
  void find_devices() {
    for (const CuptiContext& context : r_.contexts) device_of_context_.insert_or_assign(context.id, context.device);
    for (const CuptiDevice& device : r_.devices) {
      CapturedDevice captured;
      captured.id = device.id;
      captured.name = r_.strings[device.name];
      captured.memory = device.memory;
      captured.multiprocessors = device.multiprocessors;
      if (device.threads > 0) captured.threads_per_multiprocessor = device.threads;
      if (device.registers > 0) captured.registers_per_multiprocessor = device.registers;
      out_.capture.devices.push_back(captured);
      device_of_id_.emplace(device.id, &device);
    }
  }

  std::uint16_t thread(std::uint32_t id) {
    const auto [found, added] = threads_.try_emplace(id, static_cast<std::uint16_t>(out_.capture.threads.size()));
    if (added) {
      if (out_.capture.threads.size() >= 4096)
        throw InputError(r_.path.string() + ": found a 4,097th host thread; expected at most 4,096.");
      out_.capture.threads.push_back({r_.process, id});
    }
    return found->second;
  }

  void see(std::int64_t start, std::int64_t end) {
    span_.see(start);
    span_.see(end);
  }

  StringId text(StringId name) { return name == 0 ? 0 : out_.capture.strings.intern(r_.strings[name]); }

  // --- calls ---
  // The runtime calls the driver inside its own calls, and CUPTI reports both: the inner ones are part of the outer.
  void add_calls() {
    std::vector<std::uint32_t> order;
    for (std::uint32_t i = 0; i < r_.calls.size(); ++i) {
      const CuptiCall& call = r_.calls[i];
      if (call.start == 0 || call.end < call.start)
        ++found_.unfinished_calls;
      else
        order.push_back(i);
    }
    std::sort(order.begin(), order.end(), [this](std::uint32_t a, std::uint32_t b) {
      const CuptiCall &x = r_.calls[a], &y = r_.calls[b];
      if (x.thread != y.thread) return x.thread < y.thread;
      if (x.start != y.start) return x.start < y.start;
      if (x.end != y.end) return x.end > y.end;
      if (x.domain != y.domain) return x.domain > y.domain;  // of the same length: the runtime's is the outer
      return a < b;
    });
    const CuptiCall* outer = nullptr;
    for (const std::uint32_t i : order) {
      const CuptiCall& call = r_.calls[i];
      if (outer != nullptr && outer->thread == call.thread && call.domain == kDriver && outer->domain != kDriver &&
          call.start < outer->end && call.end <= outer->end) {
        ++found_.inner_calls;
        if (call.correlation != outer->correlation) outer_of_.try_emplace(call.correlation, outer->correlation);
        continue;
      }
      outer = &call;
      add_call(call);
    }
  }

  void add_call(const CuptiCall& call) {
    CapturedCall captured;
    const string_view name = call_name(r_.strings[call.name]);
    captured.name =
        out_.capture.strings.intern(name.empty() ? "callback " + std::to_string(call.callback) : std::string(name));
    captured.start = Time(call.start);
    captured.duration = Duration(call.end - call.start);
    captured.thread = thread(call.thread);
    captured.correlation = call.correlation;
    captured.callback = call.callback;
    see(call.start, call.end);
    span_.busy_ns += static_cast<double>(call.end - call.start);
    thread_of_correlation_.try_emplace(call.correlation, captured.thread);
    ++(call.domain == kDriver ? found_.driver_calls : found_.runtime_calls);
    out_.capture.calls.push_back(captured);
  }

  std::int64_t correlation(std::uint32_t id) const {
    const auto outer = outer_of_.find(id);
    return outer == outer_of_.end() ? id : outer->second;
  }

  // --- device work ---
  void add_work() {
    for (const CuptiDeviceWork& work : r_.work) {
      if (work.start == 0 || work.end < work.start) {
        ++found_.unfinished_work;
        continue;
      }
      CapturedDeviceOp op;
      op.start = Time(work.start);
      op.duration = Duration(work.end - work.start);
      op.device = static_cast<std::int32_t>(std::min<std::uint32_t>(work.device, 0x7fffffff));
      op.stream = work.stream;
      op.correlation = correlation(work.correlation);
      op.bytes = work.bytes;
      describe(work, op);
      see(work.start, work.end);
      span_.busy_ns += static_cast<double>(work.end - work.start);
      found_.graph_nodes += work.graph != 0 && work.work != CuptiWork::graph;
      // A context that no record describes runs where its work ran.
      device_of_context_.try_emplace(work.context, work.device);
      out_.capture.device_ops.push_back(op);
    }
  }

  void describe(const CuptiDeviceWork& work, CapturedDeviceOp& op) {
    StringTable& strings = out_.capture.strings;
    switch (work.work) {
      case CuptiWork::copy:
        op.work = DeviceWork::copy;
        op.name = strings.intern("Memcpy " + std::string(copy_name(work.copy_kind)) + " (" +
                                 std::string(memory_name(work.source_kind)) + " -> " +
                                 std::string(memory_name(work.destination_kind)) + ")");
        ++found_.copies;
        return;
      case CuptiWork::memset:
        op.work = DeviceWork::memset;
        op.name = strings.intern("Memset (" + std::string(memory_name(work.destination_kind)) + ")");
        ++found_.memsets;
        return;
      case CuptiWork::graph:
        op.name = strings.intern("CUDA graph");
        ++found_.whole_graphs;
        return;
      default:
        op.name = work.name == 0 ? strings.intern("unnamed kernel") : text(work.name);
        ++found_.kernels;
        describe_kernel(work, op);
    }
  }

  void describe_kernel(const CuptiDeviceWork& work, CapturedDeviceOp& op) {
    CapturedLaunch launch{
        .threads_per_block = work.threads, .registers_per_thread = work.registers, .shared_memory = work.shared_memory};
    const auto device = device_of_id_.find(work.device);
    if (device != device_of_id_.end() && device->second->multiprocessors > 0) {
      launch.blocks_per_multiprocessor = work.blocks / device->second->multiprocessors;
      launch.occupancy_percent = occupancy_percent(*device->second, work);
    }
    op.launch = out_.capture.launches.intern(launch);
  }

  // --- synchronization ---
  void add_synchronizations() {
    index_events();
    for (const CuptiSynchronization& sync : r_.synchronizations) {
      constexpr SyncKind kinds[] = {SyncKind::event, SyncKind::stream_wait_event, SyncKind::stream, SyncKind::context};
      if (sync.type < 1 || sync.type > std::size(kinds)) continue;
      CapturedSync row;
      row.kind = kinds[sync.type - 1];
      row.start = Time(sync.start);
      if (sync.start > 0) row.duration = Duration(std::max<std::int64_t>(sync.end - sync.start, 0));
      const auto device = device_of_context_.find(sync.context);
      if (device != device_of_context_.end()) row.device = static_cast<std::int32_t>(device->second & 0x7fffffff);
      if (sync.stream != kNotSaid && row.kind != SyncKind::context) row.stream = sync.stream;
      row.correlation = correlation(sync.correlation);
      if (row.kind == SyncKind::event || row.kind == SyncKind::stream_wait_event) {
        if (const CuptiEvent* event = recorded(sync)) {
          row.awaited_stream = event->stream;
          row.record_correlation = correlation(event->correlation);
        } else {
          ++found_.unknown_events;
        }
      }
      if (sync.start == 0 && span_.first_ns > span_.last_ns) continue;
      if (sync.start == 0) row.start = Time(span_.first_ns);  // its call has the time
      see(row.start.count(), (row.start + row.duration).count());
      out_.capture.syncs.push_back(row);
    }
  }

  void index_events() {
    for (const CuptiEvent& event : r_.events) {
      if (event.event_sync != 0) by_sync_.insert_or_assign(event.event_sync, &event);
      by_event_[{event.context, event.event}].push_back(&event);
    }
    for (auto& [key, records] : by_event_)
      std::stable_sort(records.begin(), records.end(),
                       [](const CuptiEvent* a, const CuptiEvent* b) { return a->correlation < b->correlation; });
  }

  // The record that a wait means: by CUPTI's own number, else the last one before it of the same event. Correlation
  // numbers count up as calls are made.
  const CuptiEvent* recorded(const CuptiSynchronization& sync) const {
    if (const auto exact = by_sync_.find(sync.event_sync); sync.event_sync != 0 && exact != by_sync_.end())
      return exact->second;
    const auto records = by_event_.find({sync.context, sync.event});
    if (records == by_event_.end()) return nullptr;
    const auto after = std::partition_point(records->second.begin(), records->second.end(),
                                            [&](const CuptiEvent* e) { return e->correlation < sync.correlation; });
    return after == records->second.begin() ? nullptr : *(after - 1);
  }

  // --- memory ---
  void add_memory() {
    std::vector<const CuptiMemory*> order;
    for (const CuptiMemory& event : r_.memory) order.push_back(&event);
    std::stable_sort(order.begin(), order.end(),
                     [](const CuptiMemory* a, const CuptiMemory* b) { return a->time < b->time; });
    for (const CuptiMemory* event : order) add_memory_event(*event);
    out_.capture.profiled_memory = !out_.capture.memory.empty();
  }

  void add_memory_event(const CuptiMemory& event) {
    constexpr std::uint32_t kAllocation = 1, kRelease = 2, kDevice = 3, kArray = 4, kManaged = 5, kManagedStatic = 7;
    if (event.time == 0 || (event.operation != kAllocation && event.operation != kRelease)) return;
    if (event.kind == kManaged || event.kind == kManagedStatic) {
      ++found_.managed;
      if (event.operation == kAllocation) found_.managed_bytes += static_cast<double>(event.size);
      return;
    }
    CapturedMemory captured;
    captured.time = Time(event.time);
    const auto thread = thread_of_correlation_.find(static_cast<std::uint32_t>(correlation(event.correlation)));
    captured.thread = thread == thread_of_correlation_.end() ? first_thread() : thread->second;
    captured.device_type = event.kind == kDevice || event.kind == kArray ? 1 : 0;
    captured.device =
        static_cast<std::int16_t>(captured.on_device() ? static_cast<int>(std::min(event.device, 0x7fffu)) : -1);
    captured.has_address = true;
    captured.address = event.address;
    captured.bytes = event.operation == kAllocation ? event.size : -released(event);
    if (captured.bytes == 0) return;
    if (event.operation == kAllocation) live_.insert_or_assign(event.address, event.size);
    found_.from_pool += event.from_pool;
    span_.see(event.time);
    out_.capture.memory.push_back(captured);
  }

  // CUPTI does not always say what a release gives back.
  Bytes released(const CuptiMemory& event) {
    const auto live = live_.find(event.address);
    const Bytes known = live == live_.end() ? 0 : live->second;
    if (live != live_.end()) live_.erase(live);
    found_.unknown_releases += known == 0 && event.size == 0;
    return event.size > 0 ? event.size : known;
  }

  std::uint16_t first_thread() { return out_.capture.threads.empty() ? thread(r_.process) : std::uint16_t{0}; }

  void count_events() {
    std::map<std::string, std::uint64_t>& counts = out_.capture.events_by_category;
    const auto add = [&](const char* category, std::uint64_t count) {
      if (count > 0) counts[category] = count;
    };
    add("kernel", found_.kernels);
    add("copy", found_.copies);
    add("memset", found_.memsets);
    add("graph", found_.whole_graphs);
    add("runtime call", found_.runtime_calls);
    add("driver call", found_.driver_calls + found_.inner_calls);
    add("synchronization", r_.synchronizations.size());
    add("event recorded", r_.events.size());
    add("memory", r_.memory.size());
    add((std::string(r_.words.ranges) + " range").c_str(), found_.ranges.ranges);
    add("unified memory", r_.counts.unified);
  }

  CuptiRecords r_;
  const std::string& step_range_;
  CuptiCapture out_;
  CuptiFindings found_;
  CaptureTimeRange span_;
  std::unordered_map<std::uint32_t, std::uint32_t> device_of_context_;
  std::unordered_map<std::uint32_t, const CuptiDevice*> device_of_id_;
  std::unordered_map<std::uint32_t, std::uint16_t> threads_;                // by the system's number
  std::unordered_map<std::uint32_t, std::uint32_t> outer_of_;               // correlation of a call in another
  std::unordered_map<std::uint32_t, std::uint16_t> thread_of_correlation_;  // of calls that are kept
  std::unordered_map<std::uint64_t, const CuptiEvent*> by_sync_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<const CuptiEvent*>> by_event_;  // context, event
  std::unordered_map<std::uint64_t, Bytes> live_;                                               // by address
};

}  // namespace

CuptiCapture convert_cupti_records(CuptiRecords records, const std::string& step_range) {
  return Converter(std::move(records), step_range).run();
}

ImportedTrace import_cupti_capture(const CuptiCapture& capture) {
  ImportedTrace imported = import_timed_capture(capture.capture);
  for (const string_view ending : {".gz", ".mwi", ".sqlite", ".db", ".json"})
    if (imported.trace.name.ends_with(ending)) imported.trace.name.resize(imported.trace.name.size() - ending.size());
  imported.trace.notes.insert(imported.trace.notes.begin(), capture.notes.begin(), capture.notes.end());
  imported.note_kinds.insert(capture.note_kinds.begin(), capture.note_kinds.end());
  return imported;
}

ImportedStep cupti_step(const CuptiCapture& capture, ImportedTrace imported, std::vector<Decision> decisions) {
  for (const std::string& note : capture.notes) decisions.push_back({"recorded", note, 0, 0});
  ImportedStep step = step_of(std::move(imported), capture.capture);
  step.decisions = std::move(decisions);
  return step;
}

}  // namespace memwall
