#include "models/workload/import/timed/joined_capture.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "models/workload/import/timed/kernel_properties.h"
#include "models/workload/import/timed/name_text.h"
#include "sim/error.h"

namespace memwall {
namespace {

using std::string_view;

constexpr Bytes kStagedCopy = 64 << 10;  // larger pageable copies to the device wait for themselves

class Joiner {
 public:
  explicit Joiner(const TimedCapture& capture) : c_(capture) {
    j_.capture = &capture;
    j_.calls.resize(c_.calls.size());
    j_.device_ops.resize(c_.device_ops.size());
  }

  JoinedCapture run() {
    index_calls();
    find_streams();
    attach_device_ops();
    order_streams();
    find_operators();
    classify_calls();
    keep_threads();
    set_roles();
    j_.batches = find_batches(j_);
    return std::move(j_);
  }

 private:
  void index_calls() {
    j_.call_of_correlation.reserve(c_.calls.size());
    for (std::uint32_t i = 0; i < c_.calls.size(); ++i) {
      if (c_.calls[i].correlation > 0) j_.call_of_correlation.try_emplace(c_.calls[i].correlation, i);
      j_.rocm = j_.rocm || c_.text(c_.calls[i].name).starts_with("hip");
    }
  }

  void find_streams() {
    std::map<std::pair<std::int32_t, std::int64_t>, std::uint16_t> known;
    std::set<std::int32_t> devices;
    for (const CapturedDeviceOp& op : c_.device_ops) {
      known.try_emplace({op.device, op.stream}, 0);
      devices.insert(op.device);
    }
    if (known.size() > 4096)
      throw InputError(c_.path.string() + ": found " + std::to_string(known.size()) +
                       " streams; expected at most 4,096.");
    for (auto& [key, index] : known) {
      index = static_cast<std::uint16_t>(j_.streams.size());
      JoinedStream stream;
      stream.device = key.first;
      stream.id = key.second;
      stream.device_index = static_cast<std::uint16_t>(std::distance(devices.begin(), devices.find(key.first)));
      j_.streams.push_back(stream);
    }
    for (std::uint32_t i = 0; i < c_.device_ops.size(); ++i)
      j_.device_ops[i].stream = known[{c_.device_ops[i].device, c_.device_ops[i].stream}];
  }

  const CapturedDevice& device_of(std::int32_t id) {
    for (const CapturedDevice& device : c_.devices)
      if (device.id == id) return device;
    return unknown_device_;
  }

  void attach_device_ops() {
    std::vector<std::uint32_t> count(c_.calls.size() + 1, 0);
    for (std::uint32_t i = 0; i < c_.device_ops.size(); ++i) {
      const CapturedDeviceOp& op = c_.device_ops[i];
      JoinedDeviceOp& joined = j_.device_ops[i];
      joined.collective = is_collective(op, c_.text(op.name));
      if (op.work == DeviceWork::kernel)
        joined.waves = static_cast<float>(waves_of(c_.launches[op.launch], device_of(op.device)));
      const auto found = j_.call_of_correlation.find(op.correlation);
      if (op.correlation <= 0 || found == j_.call_of_correlation.end()) continue;
      joined.call = found->second;
      ++count[joined.call];
    }
    std::uint32_t total = 0;
    for (std::uint32_t call = 0; call < c_.calls.size(); ++call) {
      j_.calls[call].first_launched = total;
      total += count[call];
    }
    j_.launched.resize(total);
    for (std::uint32_t i = 0; i < c_.device_ops.size(); ++i) {  // by start, as device_ops are
      if (j_.device_ops[i].call == kNoIndex) continue;
      JoinedCall& call = j_.calls[j_.device_ops[i].call];
      j_.launched[call.first_launched + call.launched++] = i;
    }
  }

  // Launched work in the order of its calls. What has no call goes where its start puts it: the
  // start of the launching calls orders a stream, and starts within a stream follow it.
  void order_streams() {
    std::vector<std::vector<std::uint32_t>> unrecorded(j_.streams.size());
    for (std::uint32_t call = 0; call < j_.calls.size(); ++call)
      for (std::uint32_t k = 0; k < j_.calls[call].launched; ++k) {
        const std::uint32_t op = j_.launched[j_.calls[call].first_launched + k];
        j_.streams[j_.device_ops[op].stream].order.push_back(op);
      }
    for (std::uint32_t i = 0; i < j_.device_ops.size(); ++i)
      if (j_.device_ops[i].call == kNoIndex) unrecorded[j_.device_ops[i].stream].push_back(i);
    for (std::size_t s = 0; s < j_.streams.size(); ++s) {
      merge_unrecorded(j_.streams[s].order, unrecorded[s]);
      for (std::uint32_t k = 0; k < j_.streams[s].order.size(); ++k) j_.device_ops[j_.streams[s].order[k]].position = k;
    }
  }

  void merge_unrecorded(std::vector<std::uint32_t>& order, const std::vector<std::uint32_t>& unrecorded) {
    if (unrecorded.empty()) return;
    std::vector<std::uint32_t> merged;
    merged.reserve(order.size() + unrecorded.size());
    std::size_t next = 0;
    bool head = true;
    const auto take = [&] {
      j_.device_ops[unrecorded[next]].placement = head ? Placement::head : Placement::unlaunched;
      merged.push_back(unrecorded[next++]);
    };
    for (const std::uint32_t op : order) {
      while (next < unrecorded.size() && c_.device_ops[unrecorded[next]].start < c_.device_ops[op].start) take();
      merged.push_back(op);
      head = false;
    }
    while (next < unrecorded.size()) take();
    order = std::move(merged);
  }

  // A thread without operators that neither launches nor waits only polls: a watchdog, a pinning thread.
  void keep_threads() {
    j_.thread_kept.assign(c_.threads.size(), 0);
    for (const CapturedOperator& op : c_.operators) j_.thread_kept[op.thread] = 1;
    for (const CapturedMemory& event : c_.memory)
      if (event.on_device()) j_.thread_kept[event.thread] = 1;
    for (std::uint32_t i = 0; i < c_.calls.size(); ++i) {
      if (j_.calls[i].role != CallRole::plain) j_.thread_kept[c_.calls[i].thread] = 1;
    }
  }

  // Walks operators and calls (and memory events) of each thread together, by time.
  void find_operators() {
    j_.operator_of_memory.assign(c_.memory.size(), kNoIndex);
    std::vector<std::vector<std::uint32_t>> open(c_.threads.size());
    std::uint32_t next = 0;
    const auto innermost = [&](std::uint16_t thread, Time start, Time end) {
      while (next < c_.operators.size() && c_.operators[next].start <= start) {
        std::vector<std::uint32_t>& stack = open[c_.operators[next].thread];
        while (!stack.empty() && stack.back() != c_.operators[next].parent) stack.pop_back();
        stack.push_back(next++);
      }
      // The chain of parents, not the stack, is walked: what ended early may still be asked for.
      std::vector<std::uint32_t>& stack = open[thread];
      std::uint32_t op = stack.empty() ? kNoIndex : stack.back();
      while (op != kNoIndex && c_.operators[op].end() < end) op = c_.operators[op].parent;
      return op;
    };
    std::uint32_t memory = 0;
    const auto locate_memory = [&] {
      j_.operator_of_memory[memory] =
          innermost(c_.memory[memory].thread, c_.memory[memory].time, c_.memory[memory].time);
      ++memory;
    };
    for (std::uint32_t call = 0; call < c_.calls.size(); ++call) {
      while (memory < c_.memory.size() && c_.memory[memory].time <= c_.calls[call].start) locate_memory();
      j_.calls[call].operator_index = innermost(c_.calls[call].thread, c_.calls[call].start, c_.calls[call].end());
    }
    while (memory < c_.memory.size()) locate_memory();
  }

  void classify_calls() {
    std::vector<std::int32_t> last_stream(c_.threads.size(), -1);  // of each thread's last launch
    const std::unordered_map<std::int64_t, const CapturedSync*> rows = sync_rows();
    for (std::uint32_t i = 0; i < j_.calls.size(); ++i) {
      JoinedCall& call = j_.calls[i];
      const CapturedCall& captured = c_.calls[i];
      const string_view name = c_.text(captured.name);
      if (call.launched > 0) {
        classify_launch(call, name);
        last_stream[captured.thread] = call.stream;
      } else if (name.ends_with("Synchronize") || contains(name, "Synchronize_")) {
        const auto row = rows.find(captured.correlation);
        classify_synchronize(call, name, last_stream[captured.thread], row == rows.end() ? nullptr : row->second);
      } else if (contains(name, "Malloc") || contains(name, "HostAlloc") || contains(name, "Free") ||
                 contains(name, "StreamCreate") || contains(name, "HostRegister")) {
        call.role = CallRole::host_work;
      }
    }
  }

  std::unordered_map<std::int64_t, const CapturedSync*> sync_rows() const {
    std::unordered_map<std::int64_t, const CapturedSync*> rows;
    for (const CapturedSync& row : c_.syncs)
      if (row.kind != SyncKind::stream_wait_event && row.correlation > 0) rows.try_emplace(row.correlation, &row);
    return rows;
  }

  void classify_launch(JoinedCall& call, string_view name) {
    const std::uint32_t first = j_.launched[call.first_launched];
    const CapturedDeviceOp& op = c_.device_ops[first];
    call.stream = j_.device_ops[first].stream;
    call.role = call.launched > 1 || contains(name, "GraphLaunch") ? CallRole::graph : CallRole::launch;
    if (call.role == CallRole::graph || op.work != DeviceWork::copy) return;
    const CopyDirection direction = copy_direction(c_.text(op.name));
    const bool asynchronous = contains(name, "Async");
    const bool staged = direction.pageable && (direction.to_host || (direction.from_host && op.bytes > kStagedCopy));
    const bool device_only = !direction.from_host && !direction.to_host;
    if (staged || (!asynchronous && !device_only && contains(name, "emcpy"))) call.wait_for = WaitFor::own_op;
  }

  void classify_synchronize(JoinedCall& call, string_view name, std::int32_t last_stream, const CapturedSync* row) {
    call.role = CallRole::synchronize;
    if (contains(name, "DeviceSynchronize") || contains(name, "CtxSynchronize")) {
      call.wait_for = WaitFor::device;
    } else if (contains(name, "StreamSynchronize")) {
      // Rows that memwall writes name the stream as the one that is awaited, and none of their own.
      const std::int64_t named = row == nullptr || row->kind != SyncKind::stream ? -1
                                 : row->stream >= 0                              ? row->stream
                                                                                 : row->awaited_stream;
      const int stated = named >= 0 ? j_.stream_index(row->device, named) : -1;
      const int stream = stated >= 0 ? stated : last_stream;
      if (stated < 0 && named >= 0 && named < 0xffffffff) {
        call.role = CallRole::host_work;  // a stream on which nothing ran
      } else if (stream < 0) {
        call.role = CallRole::host_work;
      } else {
        call.wait_for = WaitFor::stream;
        call.stream_is_stated = stated >= 0;
        call.stream = static_cast<std::uint16_t>(stream);
      }
    } else {
      classify_event_synchronize(call, row);
    }
  }

  // Without ids nobody can tell which event is meant: the captured cost stays.
  void classify_event_synchronize(JoinedCall& call, const CapturedSync* row) {
    call.role = CallRole::host_work;
    if (row == nullptr || row->kind != SyncKind::event || row->record_correlation <= 0) return;
    const auto record = j_.call_of_correlation.find(row->record_correlation);
    const int stream = j_.stream_index(row->device, row->awaited_stream);
    if (record == j_.call_of_correlation.end() || stream < 0) return;
    const std::uint32_t self = static_cast<std::uint32_t>(&call - j_.calls.data());
    if (record->second >= self || !j_.last_before(static_cast<std::uint16_t>(stream), record->second)) return;
    call.role = CallRole::synchronize;
    call.wait_for = WaitFor::event;
    call.stream = static_cast<std::uint16_t>(stream);
    call.awaited_record = record->second;
  }

  void set_roles() {
    for (JoinedStream& stream : j_.streams) {
      bool only_copies = true;
      for (const std::uint32_t op : stream.order) {
        if (j_.device_ops[op].collective) stream.role = StreamRole::communication;
        const CopyDirection d = copy_direction(c_.text(c_.device_ops[op].name));
        only_copies = only_copies && c_.device_ops[op].work == DeviceWork::copy && (d.from_host || d.to_host);
      }
      if (only_copies) stream.role = StreamRole::copy;
    }
  }

  const TimedCapture& c_;
  JoinedCapture j_;
  CapturedDevice unknown_device_;
};

}  // namespace

std::size_t JoinedCapture::first_from(std::uint16_t stream, std::uint32_t call) const {
  // Work without a call counts with its predecessor.
  const std::vector<std::uint32_t>& order = streams[stream].order;
  const auto earlier = [&](std::uint32_t op) {
    std::uint32_t at = device_ops[op].position;
    while (device_ops[order[at]].placement == Placement::unlaunched && at > 0) --at;
    const JoinedDeviceOp& joined = device_ops[order[at]];
    return joined.call == kNoIndex || joined.call < call;
  };
  return static_cast<std::size_t>(std::partition_point(order.begin(), order.end(), earlier) - order.begin());
}

std::optional<std::uint32_t> JoinedCapture::last_before(std::uint16_t stream, std::uint32_t call) const {
  const std::size_t position = first_from(stream, call);
  if (position == 0) return std::nullopt;
  return static_cast<std::uint32_t>(position - 1);
}

std::optional<std::uint32_t> JoinedCapture::first_after(std::uint16_t stream, std::uint32_t call) const {
  const std::size_t position = first_from(stream, call + 1);
  if (position == streams[stream].order.size()) return std::nullopt;
  return static_cast<std::uint32_t>(position);
}

int JoinedCapture::stream_index(std::int32_t device, std::int64_t id) const {
  for (std::size_t s = 0; s < streams.size(); ++s)
    if (streams[s].id == id && (device < 0 || streams[s].device == device)) return static_cast<int>(s);
  return -1;
}

std::uint32_t JoinedCapture::predecessor(std::uint32_t device_op) const {
  const JoinedDeviceOp& op = device_ops[device_op];
  return op.position == 0 ? kNoIndex : streams[op.stream].order[op.position - 1];
}

JoinedCapture join_capture(const TimedCapture& capture) { return Joiner(capture).run(); }

}  // namespace memwall
