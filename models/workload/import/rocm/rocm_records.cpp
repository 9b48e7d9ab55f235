#include "models/workload/import/rocm/rocm_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "models/workload/import/rocm/rocm_process.h"
#include "sim/error.h"
#include "sim/human_text.h"

namespace memwall {
namespace {

using std::string_view;

constexpr std::uint32_t kNoCall = 0xfffffffe;            // of work without a correlation: no call has it
constexpr std::uint32_t kHsa = 1, kHip = 2;              // domains of CuptiCall: the driver's, the runtime's
constexpr std::uint32_t kDeviceMemory = 3, kPinned = 2;  // CUPTI's kinds of memory
constexpr std::uint32_t kFirstNumbered = 0x80000000;     // streams whose own number is larger

class RecordMaker {
 public:
  RecordMaker(const RocmProfile& profile, std::optional<std::uint32_t> rank) : p_(profile), rank_(rank) {
    r_.path = p_.path;
  }

  CuptiRecords run() {
    if (p_.work.empty() && p_.calls.empty())
      throw InputError(p_.path.string() +
                       ": found no kernels, copies or calls; expected a profile of `rocprofv3 --sys-trace`.");
    const ProcessChoice choice = choose_rocm_process(p_, rank_);
    process_ = static_cast<std::uint32_t>(choice.process);
    told_process_ = choice.sentence;
    number_devices();
    number_correlations();
    find_streams();
    add_calls();
    add_work();
    add_waits();
    add_allocations();
    shift_times();
    describe();
    return std::move(r_);
  }

 private:
  // --- devices ---
  void number_devices() {
    std::vector<const RocmAgent*> gpus;
    for (const RocmAgent& agent : p_.agents)
      if (agent.process == process_ && agent.gpu) gpus.push_back(&agent);
    std::stable_sort(gpus.begin(), gpus.end(), [](const RocmAgent* a, const RocmAgent* b) {
      return std::tie(a->ordinal, a->id) < std::tie(b->ordinal, b->id);
    });
    for (const RocmAgent* agent : gpus) {
      if (r_.devices.size() >= 4096 || !device_of_agent_.try_emplace(agent->id, r_.devices.size()).second) continue;
      CuptiDevice device;
      device.id = static_cast<std::uint32_t>(r_.devices.size());
      device.name = r_.strings.intern(agent->name);
      device.memory = agent->memory;
      device.multiprocessors = agent->compute_units;
      r_.devices.push_back(device);
    }
  }

  bool is_gpu(std::int64_t agent) const { return device_of_agent_.contains(agent); }

  // An agent that no row describes counts behind the others.
  std::uint32_t device(std::int64_t agent) {
    return device_of_agent_.try_emplace(agent, device_of_agent_.size()).first->second;
  }

  // --- correlation ---
  // The file's numbers have 64 bits. Anew they keep their order, which is that in which calls were made.
  void number_correlations() {
    std::set<std::int64_t> all;
    for (const RocmCall& call : p_.calls)
      if (call.process == process_ && call.correlation > 0) all.insert(call.correlation);
    std::uint32_t next = 1;
    for (const std::int64_t id : all) correlations_.emplace(id, next++);
  }

  std::uint32_t correlation(std::int64_t id) const {
    const auto found = correlations_.find(id);
    return found == correlations_.end() ? kNoCall : found->second;
  }

  // --- streams ---
  // HIP's, by number; where the file knows none, HSA's queues. Which stream an argument means say the calls that
  // launched work with it.
  void find_streams() {
    std::set<std::int64_t> queues;
    bool numbered = false;
    for (const RocmWork& work : p_.work) {
      if (work.process != process_) continue;
      numbered = numbered || work.stream != 0;
      if (!work.copy) queues.insert(work.queue);
    }
    by_queue_ = !numbered && queues.size() > 1;
    std::unordered_map<std::int64_t, const RocmCall*> calls;
    for (const RocmCall& call : p_.calls)
      if (call.process == process_ && call.stream != 0) calls.try_emplace(call.correlation, &call);
    for (const RocmWork& work : p_.work) {
      if (work.process != process_ || (by_queue_ && work.copy)) continue;
      if (const auto call = calls.find(work.correlation); call != calls.end())
        stream_of_argument_.try_emplace(call->second->stream, device_of(work), stream_of(work));
    }
  }

  std::uint32_t device_of(const RocmWork& work) {
    if (!work.copy) return device(work.agent);
    if (is_gpu(work.destination_agent)) return device(work.destination_agent);
    return is_gpu(work.source_agent) ? device(work.source_agent) : 0;
  }

  std::uint32_t stream_of(const RocmWork& work) {
    const std::int64_t number = by_queue_ ? work.queue : work.stream;
    if (number >= 0 && number < kFirstNumbered) return static_cast<std::uint32_t>(number);
    const auto next = kFirstNumbered + static_cast<std::uint32_t>(large_streams_.size());
    return large_streams_.try_emplace(number, next).first->second;
  }

  // --- calls and ranges ---
  void add_calls() {
    bool hip = false;
    for (const RocmCall& call : p_.calls) hip = hip || (call.process == process_ && call.domain == RocmDomain::hip);
    std::vector<const RocmCall*> calls;
    for (const RocmCall& call : p_.calls) {
      if (call.process != process_) continue;
      if (call.domain == RocmDomain::marker || call.domain == RocmDomain::rccl)
        add_range(call);
      else
        calls.push_back(&call);
    }
    std::stable_sort(calls.begin(), calls.end(), [](const RocmCall* a, const RocmCall* b) {
      return std::tuple(a->thread, a->start, -a->end) < std::tuple(b->thread, b->start, -b->end);
    });
    const RocmCall* outer = nullptr;  // the last of HIP's on the thread
    for (const RocmCall* call : calls) {
      if (call->domain == RocmDomain::hip) outer = call;
      const bool inside = outer != nullptr && outer->thread == call->thread && call->end <= outer->end;
      if (call->domain == RocmDomain::hsa && hip && !inside) {
        ++hsa_outside_;
        continue;
      }
      add_call(*call);
    }
  }

  void add_call(const RocmCall& call) {
    CuptiCall record;
    record.start = call.start;
    record.end = call.end;
    record.name = r_.strings.intern(p_.strings[call.name]);
    record.domain = call.domain == RocmDomain::hip ? kHip : kHsa;
    record.thread = call.thread;
    record.correlation = call.correlation > 0 ? correlation(call.correlation) : kNotSaid;
    r_.calls.push_back(record);
  }

  void add_range(const RocmCall& call) {
    constexpr std::uint32_t kStart = 2, kEnd = 4;
    NvtxMarker marker;
    marker.id = static_cast<std::uint32_t>(r_.markers.size());
    marker.thread = call.thread;
    marker.name = r_.strings.intern(p_.strings[call.name]);
    marker.time = call.start;
    marker.flags = kStart;
    r_.markers.push_back(marker);
    marker.time = call.end;
    marker.flags = kEnd;
    r_.markers.push_back(marker);
  }

  // --- device work ---
  void add_work() {
    for (const RocmWork& work : p_.work) {
      if (work.process != process_) continue;
      CuptiDeviceWork record;
      record.start = work.start;
      record.end = work.end;
      record.device = record.context = device_of(work);
      record.stream = stream_of(work);
      record.correlation = correlation(work.correlation);
      copies_ += work.copy;
      work.copy ? describe_copy(work, record) : describe_kernel(work, record);
      r_.work.push_back(record);
    }
  }

  void describe_copy(const RocmWork& work, CuptiDeviceWork& record) {
    constexpr std::uint8_t kToDevice = 1, kToHost = 2, kWithin = 8, kHosts = 9, kPeers = 10;
    const bool from = is_gpu(work.source_agent), to = is_gpu(work.destination_agent);
    record.work = CuptiWork::copy;
    record.bytes = work.bytes;
    record.copy_kind = from && to ? (work.source_agent == work.destination_agent ? kWithin : kPeers)
                                  : (to ? kToDevice : (from ? kToHost : kHosts));
    // Whether the host's side is pinned is not recorded.
    record.source_kind = from ? kDeviceMemory : 0;
    record.destination_kind = to ? kDeviceMemory : 0;
  }

  // A grid counts work items, not workgroups (the HSA runtime's manual, hsa_kernel_dispatch_packet_t).
  void describe_kernel(const RocmWork& work, CuptiDeviceWork& record) {
    record.name = r_.strings.intern(p_.strings[work.name]);
    record.registers = std::min(work.registers, 1u << 16);
    record.shared_memory = std::min(work.group_memory, 1u << 30);
    record.blocks = 1;
    std::uint64_t threads = 1;
    for (int i = 0; i < 3; ++i) {
      const std::uint32_t group = std::max(work.group_items[i], 1u);
      record.blocks *= std::max(std::ceil(work.work_items[i] / group), 1.0);
      threads = std::min<std::uint64_t>(threads * std::min(group, 1u << 20), 1 << 20);
    }
    record.threads = static_cast<std::uint32_t>(threads);
  }

  // --- waits ---
  struct Stream {
    std::uint32_t device = 0, number = 0;
  };
  std::optional<Stream> stream_of_argument(StringId argument) const {
    const auto found = stream_of_argument_.find(argument);
    if (argument == 0 || found == stream_of_argument_.end()) return std::nullopt;
    return Stream{found->second.first, found->second.second};
  }

  void add_waits() {
    for (const RocmCall& call : p_.calls) {
      if (call.process != process_ || call.domain != RocmDomain::hip) continue;
      const string_view name = p_.strings[call.name];
      const bool wait = name.starts_with("hipStreamWaitEvent");
      if (!wait && !name.starts_with("hipEventRecord") && !name.starts_with("hipEventSynchronize") &&
          !name.starts_with("hipStreamSynchronize"))
        continue;
      const auto stream = stream_of_argument(call.stream);
      waits_for_streams_ += wait;
      if (name.starts_with("hipEventRecord")) {
        if (stream && call.event != 0) add_event(call, *stream);
        continue;
      }
      if (call.event == 0 && call.stream == 0) continue;  // arguments were not recorded
      if (!stream && !name.starts_with("hipEventSynchronize")) continue;
      add_wait(call, wait ? kWaitOfStream : (name.starts_with("hipEvent") ? kWaitForEvent : kWaitForStream), stream);
    }
  }

  static constexpr std::uint32_t kWaitForEvent = 1, kWaitOfStream = 2, kWaitForStream = 3;  // as CUPTI numbers them

  void add_event(const RocmCall& call, const Stream& stream) {
    CuptiEvent event;
    event.correlation = correlation(call.correlation);
    event.context = stream.device;
    event.stream = stream.number;
    event.event = call.event;
    r_.events.push_back(event);
    device_of_event_.insert_or_assign(call.event, stream.device);
  }

  void add_wait(const RocmCall& call, std::uint32_t type, const std::optional<Stream>& stream) {
    CuptiSynchronization wait;
    wait.start = call.start;
    wait.end = call.end;
    wait.type = type;
    wait.correlation = correlation(call.correlation);
    const auto device = device_of_event_.find(call.event);
    wait.context = stream ? stream->device : (device == device_of_event_.end() ? 0 : device->second);
    wait.stream = stream ? stream->number : kNotSaid;
    wait.event = call.event == 0 ? kNotSaid : call.event;
    told_waits_ += type == kWaitOfStream;
    r_.synchronizations.push_back(wait);
  }

  // --- memory ---
  void add_allocations() {
    constexpr std::uint32_t kAllocation = 1, kRelease = 2;  // as CUPTI numbers them
    std::vector<const RocmAllocation*> order;
    for (const RocmAllocation& allocation : p_.allocations)
      if (allocation.process == process_) order.push_back(&allocation);
    std::stable_sort(order.begin(), order.end(),
                     [](const RocmAllocation* a, const RocmAllocation* b) { return a->time < b->time; });
    std::unordered_map<std::uint64_t, std::pair<std::uint32_t, std::uint32_t>> live;  // kind and device, by address
    for (const RocmAllocation* allocation : order) {
      CuptiMemory record;
      record.time = allocation->time;
      record.address = allocation->address;
      record.size = allocation->size;
      record.operation = allocation->release ? kRelease : kAllocation;
      record.kind = kDeviceMemory;
      const std::uint32_t own = correlation(allocation->correlation);
      record.correlation = own != kNoCall ? own : correlation(allocation->ancestor);
      if (allocation->release) {
        const auto found = live.find(allocation->address);
        if (found != live.end()) std::tie(record.kind, record.device) = found->second, live.erase(found);
      } else {
        if (!is_gpu(allocation->agent)) record.kind = kPinned;
        if (is_gpu(allocation->agent)) record.device = device(allocation->agent);
        live.insert_or_assign(allocation->address, std::pair(record.kind, record.device));
      }
      r_.memory.push_back(record);
    }
  }

  // 0 means unknown to those who read the records, and times count from when the machine started.
  void shift_times() {
    std::int64_t earliest = std::numeric_limits<std::int64_t>::max();
    const auto see = [&](const auto& list) {
      for (const auto& record : list) earliest = std::min(earliest, record.start);
    };
    see(r_.calls), see(r_.work), see(r_.synchronizations);
    for (const NvtxMarker& marker : r_.markers) earliest = std::min(earliest, marker.time);
    for (const CuptiMemory& memory : r_.memory) earliest = std::min(earliest, memory.time);
    const auto shift = [&](auto& list) {
      for (auto& record : list) record.start += 1 - earliest, record.end += 1 - earliest;
    };
    shift(r_.calls), shift(r_.work), shift(r_.synchronizations);
    for (NvtxMarker& marker : r_.markers) marker.time += 1 - earliest;
    for (CuptiMemory& memory : r_.memory) memory.time += 1 - earliest;
  }

  void describe() {
    const RocmProcess& process = p_.processes[process_];
    r_.process = static_cast<std::uint32_t>(std::clamp<std::int64_t>(process.id, 0, 0xffffffff));
    r_.counts.ended = true;
    r_.words = {.ranges = "roctx", .interface = "HSA", .driver = "HSA"};
    r_.recorder = fmt::format("Recorded by {}, process {}{}{}.", p_.writer, process.id,
                              process.command.empty() ? "" : ": ", process.command.substr(0, 200));
    r_.recorder += told_process_;
    std::vector<std::string> left_out;
    const auto leave = [&](std::uint64_t number, string_view word, string_view of) {
      if (number > 0) left_out.push_back(fmt::format("{} {}", counted_text(number, word), of));
    };
    leave(p_.without_times, "record", "without possible times");
    leave(hsa_outside_, "call", "of HSA outside of HIP's, by threads of the runtime itself");
    leave(p_.other_calls, "region", "of other kinds");
    leave(p_.scratch, "allocation", "of kernels' scratch memory");
    leave(p_.instants, "instant", "");
    for (std::string& part : left_out)
      if (part.ends_with(' ')) part.pop_back();
    if (!left_out.empty()) say("Left out: {}.", fmt::join(left_out, ", "));
    describe_streams();
  }

  void describe_streams() {
    if (by_queue_)
      say("The file does not know HIP's streams: HSA's queues stand for them{}.",
          copies_ > 0 ? ", and copies, which have none, for a stream of their own" : "");
    if (waits_for_streams_ > told_waits_)
      say("Of {}, {} not told by arguments what they wait for.",
          counted_text(waits_for_streams_, "wait of a stream for an event", "waits of streams for events"),
          waits_for_streams_ - told_waits_ == 1 ? "one is" : fmt::format("{} are", waits_for_streams_ - told_waits_));
  }

  template <class... Parts>
  void say(fmt::format_string<Parts...> sentence, Parts&&... parts) {
    r_.recorder += ' ' + fmt::format(sentence, std::forward<Parts>(parts)...);
  }

  const RocmProfile& p_;
  CuptiRecords r_;
  std::uint32_t process_ = 0;
  std::uint64_t hsa_outside_ = 0, copies_ = 0, waits_for_streams_ = 0, told_waits_ = 0;
  std::optional<std::uint32_t> rank_;
  std::string told_process_;
  bool by_queue_ = false;
  std::unordered_map<std::int64_t, std::uint32_t> device_of_agent_;  // GPUs, and agents that no row describes
  std::unordered_map<std::int64_t, std::uint32_t> correlations_;
  std::map<std::int64_t, std::uint32_t> large_streams_;
  std::unordered_map<StringId, std::pair<std::uint32_t, std::uint32_t>> stream_of_argument_;  // device, stream
  std::unordered_map<StringId, std::uint32_t> device_of_event_;
};

}  // namespace

CuptiRecords rocm_records(const RocmProfile& profile, std::optional<std::uint32_t> rank) {
  return RecordMaker(profile, rank).run();
}

}  // namespace memwall
