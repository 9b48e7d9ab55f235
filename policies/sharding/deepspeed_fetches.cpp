#include "policies/sharding/deepspeed_fetches.h"

#include <algorithm>
#include <deque>
#include <optional>

namespace memwall {
namespace {

constexpr std::size_t kFetchEvents = 2;  // max_ongoing_fetch_events
// Host time in that of one hook of forward, as models/hw/calibrate/deepspeed_host.py measures it.
constexpr double kBackwardHook = 0.5, kGatherCall = 1;
// Elements that share a scale. Source: partition_parameters.py, CUDAQuantizer.target_group_size.
constexpr std::int64_t kQuantizationGroup = 8000;

class ParameterFetches {
 public:
  ParameterFetches(DeepSpeedProgram& program, const ZeroAnalysis& analysis, const FetchPlan& plan,
                   const DeepSpeedSettings& settings)
      : p_(program), edit_(program.edit()), t_(program.base()), analysis_(analysis), plan_(plan), settings_(settings) {
    for (const ModuleCall& call : plan.calls)
      for (const OpId id : call.ops)
        if (runs_on_device(t_.ops[id].kind) && !has_compute_) {
          compute_ = t_.ops[id].stream;
          has_compute_ = true;
        }
    gather_ = settings.overlap_comm ? edit_.stream("deepspeed.allgather", StreamRole::communication) : compute_;
    if (settings.offload_param != OffloadDevice::none) fetch_ = edit_.stream("deepspeed.fetch", StreamRole::copy);
  }

  DeepSpeedFetches run() {
    cut();
    for (std::size_t i = 0; i < plan_.hooks.size(); ++i) {
      const ModuleCall& call = plan_.calls[plan_.hooks[i].call];
      if (!plan_.hooks[i].behind) {
        begin(call);
        continue;
      }
      const InsertionPoint behind{call.last, true};
      p_.hook(behind, hooks_of(call));
      release(behind, call);
      const bool ends = i + 1 == plan_.hooks.size() || plan_.calls[plan_.hooks[i + 1].call].pass != call.pass;
      if (ends) end_pass(behind);
    }
    return std::move(result_);
  }

 private:
  struct InFlight {
    Storages parameters;
    StorageId flat = kNoStorage;
    Storages staged;  // read by the collective itself
    Storages views;   // of one buffer, which goes with the last of them; `left` are not released yet
    std::size_t left = 0;
    std::uint32_t event = 0;
    bool complete = false;
  };
  // A wait of the host is behind it, and what it may give back then.
  struct FetchEvent {
    std::uint32_t event = 0;
    Storages staged;
  };

  std::int64_t share(StorageId id, std::uint32_t ranks) const { return (plan_.elements.at(id) + ranks - 1) / ranks; }
  Bytes whole_bytes(StorageId id) const { return t_.storages[id].bytes; }

  void cut() {
    const bool on_host = settings_.offload_param != OffloadDevice::none;
    for (std::int64_t i = 0; i < settings_.param_buffer_count && !plan_.on_nvme.empty(); ++i)
      free_buffers_.push_back(p_.host_storage(settings_.buffer_size * plan_.element.at(*plan_.on_nvme.begin()),
                                              StorageKind::workspace, "parameter_swap_buffer",
                                              settings_.reads_into_gpu() ? "hbm" : "host"));
    for (const StorageId id : analysis_.parameters) {
      const Storage& base = t_.storages[id];
      edit_.resize(id, share(id, settings_.ranks) * plan_.element.at(id));
      if (on_host) {
        const bool on_nvme = plan_.on_nvme.contains(id);
        const std::uint8_t place = edit_.tables().place(on_nvme ? "nvme" : "host");
        edit_.tables().storages[id].place = place;
        edit_.tables().storages[id].pinned = !on_nvme;
      }
      if (plan_.persistent.contains(id)) {
        const StorageId whole =
            edit_.builder().add_storage(base.bytes, StorageKind::parameter, "hbm", t_.strings[base.label], true);
        edit_.tables().storages[whole].stream = gather_;
        result_.persistent[id] = whole;
        current_[id] = whole;
      } else if (settings_.hpz_partition_size > 1) {
        const Bytes bytes = share(id, settings_.hpz_partition_size) * plan_.element.at(id);
        secondary_[id] =
            edit_.builder().add_storage(bytes, StorageKind::parameter, "hbm", t_.strings[base.label], true);
        result_.secondary_bytes += bytes;
      }
    }
  }

  // Every module has hooks, with parameters or without; those of backward do half as much.
  static double hooks_of(const ModuleCall& call) { return call.phase == Phase::backward ? kBackwardHook : 1; }

  void begin(const ModuleCall& call) {
    const InsertionPoint before{call.first, false};
    p_.hook(before, hooks_of(call));
    for (const StorageId id : call.read) start_read(before, id);
    gather(before, call.fetched, call.phase);
    for (const StorageId id : call.awaited) await(before, id, !call.is_leaf);
    if (!call.parameters.empty()) p_.wait_stream(before, compute_, gather_);
    if (call.phase == Phase::forward) cut_secondary(before, call);
    gather(before, call.prefetched, call.phase);
    for (const StorageId id : call.read_ahead) start_read(before, id);
    for (const OpId id : call.ops) repoint(id);
  }

  // ---- gathers ----

  void gather(InsertionPoint point, const Storages& parameters, Phase phase) {
    if (parameters.empty()) return;
    // The update has written the partitions in the compute stream.
    const bool updated = gathered_once_ && analysis_.updates_between(last_gather_, point.op);
    if (updated || !gathered_once_ || settings_.one_queue) p_.wait_stream(point, gather_, compute_);
    gathered_once_ = true;
    last_gather_ = point.op;
    if (settings_.allgather_sequential || parameters.size() == 1) {
      for (const StorageId id : parameters) gather_together(point, {id}, phase);
    } else {
      gather_together(point, parameters, phase);
    }
  }

  void gather_together(InsertionPoint point, const Storages& parameters, Phase phase) {
    const bool near = settings_.hpz_partition_size > 1 && phase != Phase::forward;
    const std::uint32_t among = near ? settings_.hpz_partition_size : settings_.ranks;
    Bytes own = 0, message = 0, total = 0;
    Storages slices, whole;
    for (const StorageId id : parameters) {
      const std::int64_t elements = share(id, among);
      own += elements * plan_.element.at(id);
      message += among * travelling(elements, plan_.element.at(id));
      slices.push_back(near ? secondary_.at(id) : id);
      whole.push_back(p_.device_storage(whole_bytes(id), StorageKind::parameter, gather_, "whole"));
      edit_.tables().storages[whole.back()].label = t_.storages[id].label;
      total += whole_bytes(id);
    }
    p_.hook(point, kGatherCall);
    InFlight flight;
    flight.parameters = parameters;
    const Storages staged = near ? slices : bring_to_device(point, slices, flight.staged);
    const bool reduces =
        settings_.use_all_reduce_for_fetch_params && parameters.size() > 1 && !settings_.quantized_weights && !near;
    if (reduces) {
      flight.views = whole;
      flight.left = whole.size();
      total = make_views(point, parameters, whole, staged, own);
    } else if (parameters.size() > 1 || settings_.quantized_weights) {
      flight.flat = p_.device_storage(message, StorageKind::communication_buffer, gather_, "flat_parameters");
      edit_.alloc(point, flight.flat);
      p_.kernel(point, gather_, settings_.quantized_weights ? "quantize" : "copy_partitions", own + message / among,
                staged, {flight.flat});
      total += message;
    }
    for (std::size_t i = 0; i < whole.size(); ++i) {
      if (!reduces) edit_.alloc(point, whole[i]);
      current_[parameters[i]] = whole[i];
      flight_of_[parameters[i]] = flights_.size();
    }
    flight.event =
        p_.start_collective(point, gather_, reduces ? CollectiveKind::all_reduce : CollectiveKind::all_gather, message,
                            slices, whole, near ? RankSet{among, 1} : RankSet{});
    flights_.push_back(std::move(flight));
    result_.largest_gather = std::max(result_.largest_gather, total);
  }

  // The pieces of a zeroed buffer, each padded to equal partitions. The collective alone counts as their writer, so
  // that policies which re-run ops find who brings them together. Returns the bytes of all.
  Bytes make_views(InsertionPoint point, const Storages& parameters, const Storages& views, const Storages& staged,
                   Bytes own) {
    Bytes all = 0;
    for (std::size_t i = 0; i < views.size(); ++i) {
      const Bytes bytes = share(parameters[i], settings_.ranks) * settings_.ranks * plan_.element.at(parameters[i]);
      edit_.resize(views[i], bytes);
      edit_.alloc(point, views[i]);
      all += bytes;
    }
    p_.kernel(point, gather_, "zero", all, {}, {});
    p_.kernel(point, gather_, "copy_partitions", 2 * own, staged, {});
    return all;
  }

  // Bytes of so many elements on the wire.
  Bytes travelling(std::int64_t elements, Bytes element) const {
    if (!settings_.quantized_weights) return elements * element;
    return elements + 4 * ((elements + kQuantizationGroup - 1) / kQuantizationGroup);
  }

  // Where the partitions stand then. One blocking copy for each that is in host memory, in a stream that waits for
  // nobody, into one of `copies`.
  Storages bring_to_device(InsertionPoint point, const Storages& slices, Storages& copies) {
    if (settings_.offload_param == OffloadDevice::none) return slices;
    await_reads(point, slices);
    Storages there;
    for (const StorageId id : slices) {
      const auto buffer = buffers_.find(id);
      if (buffer != buffers_.end() && settings_.reads_into_gpu()) {
        there.push_back(buffer->second);
        continue;
      }
      const Bytes bytes = edit_.tables().storages[id].bytes;
      there.push_back(p_.device_storage(bytes, StorageKind::communication_buffer, fetch_, "partition"));
      edit_.alloc(point, there.back());
      p_.copy(point, fetch_, bytes, buffer == buffers_.end() ? id : buffer->second, {there.back()}, true);
      copies.push_back(there.back());
    }
    if (!copies.empty()) p_.wait_stream(point, gather_, fetch_);
    return there;
  }

  // From NVMe into a buffer.
  void start_read(InsertionPoint point, StorageId id) {
    buffers_[id] = free_buffers_.back();
    free_buffers_.pop_back();
    std::optional<std::uint32_t> behind;
    if (const auto found = gathered_from_.find(buffers_.at(id)); found != gathered_from_.end()) behind = found->second;
    reads_[id] = p_.storage_io(point, true, edit_.tables().storages[id].bytes, {buffers_.at(id)}, {id},
                               settings_.parameter_reads(), behind);
  }

  // The host waits for all that is being read once it needs one of these.
  void await_reads(InsertionPoint point, const Storages& slices) {
    if (std::ranges::none_of(slices, [this](StorageId id) { return reads_.contains(id); })) return;
    for (const auto& [id, event] : reads_) p_.synchronize_event(point, event);
    reads_.clear();
  }

  // ---- waits ----

  void await(InsertionPoint point, StorageId parameter, bool counts) {
    if (events_.size() > kFetchEvents) {
      p_.synchronize_event(point, events_.front().event);
      for (const StorageId staged : events_.front().staged) edit_.free(point, staged);
      events_.pop_front();
    }
    InFlight& flight = flights_[flight_of_.at(parameter)];
    if (!flight.complete) materialize(point, flight);
    if (counts || !flight.staged.empty()) events_.push_back({edit_.record(point, gather_), std::move(flight.staged)});
    flight.staged.clear();
  }

  void materialize(InsertionPoint point, InFlight& flight) {
    flight.complete = true;
    edit_.wait(point, flight.event, gather_);
    if (flight.flat == kNoStorage) return;
    for (const StorageId id : flight.parameters) {
      const Bytes read = settings_.quantized_weights ? plan_.elements.at(id) : whole_bytes(id);
      p_.kernel(point, gather_, settings_.quantized_weights ? "dequantize" : "materialize", read + whole_bytes(id),
                {flight.flat, current_.at(id)}, {});
    }
    edit_.free(point, flight.flat);
  }

  // What was staged is given back in the order of the stream that it came in.
  void end_pass(InsertionPoint point) {
    Storages staged;
    for (FetchEvent& event : events_) {
      staged.insert(staged.end(), event.staged.begin(), event.staged.end());
      event.staged.clear();
    }
    if (staged.empty()) return;
    p_.wait_stream(point, fetch_, gather_);
    for (const StorageId id : staged) edit_.free(point, id);
  }

  // Once after each update.
  void cut_secondary(InsertionPoint point, const ModuleCall& call) {
    bool any = false;
    for (const StorageId id : call.parameters) {
      const auto found = secondary_.find(id);
      if (found == secondary_.end()) continue;
      const auto [made, is_new] = secondary_made_.try_emplace(id, point.op);
      if (!is_new && !analysis_.updates_between(made->second, point.op)) continue;
      made->second = point.op;
      p_.kernel(point, compute_, "cut_secondary", 2 * edit_.tables().storages[found->second].bytes, {current_.at(id)},
                {found->second});
      any = true;
    }
    if (any) p_.synchronize_stream(point, compute_);
  }

  // ---- releases ----

  void repoint(OpId id) {
    std::set<StorageId> used;
    for (const Use& use : t_.uses_of(t_.ops[id]))
      if (current_.contains(use.storage)) used.insert(use.storage);
    for (const StorageId parameter : used) edit_.repoint(id, parameter, current_.at(parameter));
  }

  void release(InsertionPoint point, const ModuleCall& call) {
    if (call.released.empty()) return;
    for (const StorageId id : call.released) {
      // Fetched ahead and never needed: it is complete before it goes.
      InFlight& flight = flights_[flight_of_.at(id)];
      if (!flight.complete) materialize(point, flight);
      if (!flight.staged.empty()) events_.push_back({edit_.record(point, gather_), std::move(flight.staged)});
      flight.staged.clear();
      if (flight.views.empty())
        p_.free_behind(point, current_.at(id), compute_);
      else if (--flight.left == 0)
        for (const StorageId view : flight.views) p_.free_behind(point, view, compute_);
      current_.erase(id);
      if (const auto buffer = buffers_.find(id); buffer != buffers_.end()) {
        free_buffers_.push_back(buffer->second);
        if (settings_.reads_into_gpu()) gathered_from_[buffer->second] = edit_.record(point, gather_);
        buffers_.erase(buffer);
      }
    }
  }

  DeepSpeedProgram& p_;
  TraceEdit& edit_;
  const Trace& t_;
  const ZeroAnalysis& analysis_;
  const FetchPlan& plan_;
  const DeepSpeedSettings& settings_;
  std::uint16_t compute_ = 0, gather_ = 0, fetch_ = 0;
  bool has_compute_ = false, gathered_once_ = false;
  OpId last_gather_ = 0;
  std::map<StorageId, StorageId> current_;    // parameter to where it stands whole
  std::map<StorageId, StorageId> secondary_;  // parameter to the part that a rank of the node keeps
  std::map<StorageId, OpId> secondary_made_;  // when it was cut last
  Storages free_buffers_;                     // for partitions from NVMe: pinned, or on the device
  std::map<StorageId, StorageId> buffers_;    // partition to the buffer that it is in
  std::map<StorageId, std::uint32_t> reads_;  // partition to the event behind its read, until the host has waited
  std::map<StorageId, std::uint32_t> gathered_from_;  // buffer on the device to the event behind its last gather
  std::vector<InFlight> flights_;
  std::map<StorageId, std::size_t> flight_of_;
  std::deque<FetchEvent> events_;  // of parameters that were waited for
  DeepSpeedFetches result_;
};

}  // namespace

DeepSpeedFetches fetch_as_deepspeed(DeepSpeedProgram& program, const ZeroAnalysis& analysis, const FetchPlan& plan,
                                    const DeepSpeedSettings& settings) {
  return ParameterFetches(program, analysis, plan, settings).run();
}

}  // namespace memwall
