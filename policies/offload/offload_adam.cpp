#include "policies/offload/offload_adam.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include <fmt/format.h>

#include "policies/plan/staging_copies.h"
#include "policies/trace/optimizer_step.h"
#include "policies/trace/trace_edit.h"
#include "sim/error.h"
#include "sim/human_text.h"
#include "sim/number_text.h"

namespace memwall {
namespace {

// AdamW per parameter: decay 2, first moment 3, second moment 4, root, two corrections, sum, quotient and step 7
// (Kingma and Ba 2015, algorithm 1; Loshchilov and Hutter 2019). Bounds only what computes near its memory.
constexpr double kAdamFlopsPerParameter = 16;

// Gradients and parameters travel between the device and the memory in which the step runs; the states may be
// elsewhere.
OffloadSettings work_tier_settings(OffloadSettings settings) {
  const std::string tier = settings.work_tier();
  if (tier == settings.to) return settings;
  settings.to = tier;
  settings.through.clear();
  settings.tier_class = TierClass::host;
  return settings;
}

// The share of a step that is computed at once.
struct SubGroup {
  std::vector<StorageId> states, gradients, parameters;
  Bytes state_bytes = 0;
  double count = 0;  // parameters
};

class CpuOptimizer {
 public:
  CpuOptimizer(const Trace& trace, const Machine& machine, const Pricer& pricer, const OffloadSettings& settings)
      : t_(trace),
        pricer_(pricer),
        settings_(settings),
        work_settings_(work_tier_settings(settings)),
        flow_(trace),
        optimizer_(find_optimizer(trace, flow_)),
        edit_(trace, machine.host),
        staging_copies_(edit_, pricer, work_settings_.style(), largest_transfer(trace)) {}

  Trace run() {
    refuse_unsuitable();
    whole_ = all_together(optimizer_.steps);
    count_ = count_parameters(t_, flow_, whole_);
    make_homes();
    remove_device_step();
    send_gradients();
    for (std::size_t i = 0; i < optimizer_.steps.size(); ++i) rewrite(optimizer_.steps[i], on_host_[i]);
    add_note();
    return std::move(edit_).apply();
  }

 private:
  // Of what may be staged on its way.
  static Bytes largest_transfer(const Trace& trace) {
    Bytes bytes = 0;
    for (const Storage& s : trace.storages)
      if (s.kind == StorageKind::gradient || s.kind == StorageKind::parameter) bytes = std::max(bytes, s.bytes);
    return bytes;
  }

  void refuse_unsuitable() const {
    const std::string head = "Policy 'offload': what=optimizer: trace '" + t_.name + "' has no ";
    if (optimizer_.steps.empty())
      throw UsageError(
          head + "optimizer states. Expected kernels of phase optimizer that use storages of kind optimizer_state.");
    for (const OptimizerStep& step : optimizer_.steps) {
      if (step.gradients.empty()) throw UsageError(head + "gradients that the optimizer step reads.");
      if (step.parameters.empty()) throw UsageError(head + "parameters that the optimizer step writes.");
      for (const StorageId id : step.parameters)
        if (flow_.alloc(id) != kNoOp && t_.ops[flow_.alloc(id)].added)
          throw UsageError(
              "Policy 'offload': the parameters that the optimizer updates are offloaded already; expected "
              "what=optimizer+parameters in one policy.");
      if (const StorageId late = late_gradient(t_, flow_, step); late != kNoStorage)
        throw UsageError(fmt::format(
            "Policy 'offload': what=optimizer: trace '{}': gradient {} ('{}') is made only after op {} ('{}') has "
            "begun the update that uses it; expected all gradients of an update before it. cpu_adam=0 leaves the "
            "update on the GPU.",
            t_.name, late, t_.strings[t_.storages[late].label], step.ops.front(),
            t_.strings[t_.ops[step.ops.front()].name]));
    }
  }

  bool masters_are_states() const { return count_.master; }
  // The states come to where the step runs in sub-groups.
  bool swaps_states() const { return work_settings_.to != settings_.to; }

  // Where the states live from now on, and what the host keeps of each parameter.
  void make_homes() {
    StagingCopies far(edit_, pricer_, settings_.style(), 0);
    for (StorageId id = 0; id < t_.storages.size(); ++id)
      if (t_.storages[id].kind == StorageKind::optimizer_state && t_.places[t_.storages[id].place] == "hbm")
        far.move_to_far_tier(id);
    give_back_reserved(edit_);
    for (const OptimizerStep& step : optimizer_.steps)
      for (const StorageId id : step.parameters)
        if (!sent_from_.contains(id)) add_host_copy(id, far);
    if (swaps_states()) make_stages();
  }

  // What this rank updates of a parameter.
  Bytes sent_bytes(StorageId id) const {
    return static_cast<Bytes>(std::llround(count_.share * static_cast<double>(t_.storages[id].bytes)));
  }

  void add_host_copy(StorageId id, StagingCopies& far) {
    const std::string label = t_.strings[t_.storages[id].label];
    const bool is_master = !masters_are_states() && !swaps_states();
    sent_from_[id] = staging_copies_.buffer(work_settings_.to, sent_bytes(id),
                                            is_master ? StorageKind::optimizer_state : StorageKind::workspace,
                                            label + " on " + work_settings_.to);
    if (!masters_are_states() && swaps_states()) {
      const StorageId master = far.new_far_storage(id, true);
      edit_.tables().storages[master].kind = StorageKind::optimizer_state;
      edit_.tables().storages[master].bytes = sent_bytes(id);
      masters_[id] = master;
    }
  }

  void remove_device_step() {
    for (const OptimizerStep& step : optimizer_.steps)
      for (const OpId id : step.ops) edit_.remove(id);
    for (const StorageId id : optimizer_.temporaries)
      for (const OpId end : {flow_.alloc(id), flow_.free(id)})
        if (end != kNoOp) edit_.remove(end);
  }

  // When a gradient can leave: behind its last write before the step, on these streams.
  struct Departure {
    std::size_t step = 0;
    StorageId gradient = kNoStorage;
    InsertionPoint point;
    std::set<std::uint16_t> streams;
  };

  // All in the order in which they leave: a staging buffer is waited for by who takes it next.
  void send_gradients() {
    std::vector<Departure> departures;
    for (std::size_t i = 0; i < optimizer_.steps.size(); ++i)
      for (const StorageId id : optimizer_.steps[i].gradients) departures.push_back(departure(i, id));
    std::stable_sort(departures.begin(), departures.end(), [](const Departure& a, const Departure& b) {
      return std::tuple(a.point.op, a.point.after) < std::tuple(b.point.op, b.point.after);
    });
    std::vector<std::map<Bytes, std::vector<StorageId>>> taken(optimizer_.steps.size());
    on_host_.resize(optimizer_.steps.size());
    for (const Departure& d : departures) {
      const StorageId buffer = host_buffer(d.gradient, taken[d.step]);
      on_host_[d.step][d.gradient] = buffer;
      staging_copies_.send(d.point, d.gradient, buffer, {d.streams.begin(), d.streams.end()});
    }
  }

  Departure departure(std::size_t step, StorageId gradient) const {
    Departure d{step, gradient, {optimizer_.steps[step].ops.front(), false}, {}};
    const OpId step_begin = d.point.op;
    for (const Touch& touch : flow_.touches(gradient)) {
      if (touch.op >= step_begin) break;
      if (!touch.writes || !runs_on_device(t_.ops[touch.op].kind)) continue;
      d.point = {touch.op, true};
      d.streams.insert(t_.ops[touch.op].stream);
    }
    return d;
  }

  // Steps share buffers: a step's gradients have been used when the next step's arrive. `taken`: by the step so far.
  StorageId host_buffer(StorageId gradient, std::map<Bytes, std::vector<StorageId>>& taken) {
    const Storage& s = t_.storages[gradient];
    std::vector<StorageId>& all = buffers_[s.bytes];
    std::vector<StorageId>& mine = taken[s.bytes];
    if (mine.size() == all.size())
      all.push_back(staging_copies_.buffer(work_settings_.to, s.bytes, StorageKind::gradient,
                                           t_.strings[s.label] + " on " + work_settings_.to));
    mine.push_back(all[mine.size()]);
    return mine.back();
  }

  void rewrite(const OptimizerStep& step, const std::map<StorageId, StorageId>& on_host) {
    const InsertionPoint at{step.ops.front(), false};
    Op sync;
    sync.kind = OpKind::synchronize;
    sync.wait_for = WaitFor::stream;
    sync.stream = staging_copies_.arrival_stream(step.gradients.front());
    sync.host_cost = edit_.costs().event_call;
    sync.return_delay = edit_.costs().synchronize_return;
    edit_.insert(at, sync);
    begin_updates(step, at);
    const std::vector<SubGroup> groups = divide(step);
    if (swaps_states()) {
      compute_from_nvme(groups, at, on_host);
    } else {
      for (const SubGroup& group : groups) compute(group, at, on_host, group.states);
    }
    end_updates(step, at);
  }

  // Streams on which the parameters are used.
  std::set<std::uint16_t> users(const OptimizerStep& step) const {
    std::set<std::uint16_t> streams;
    for (const StorageId id : step.parameters)
      for (const Touch& touch : flow_.touches(id))
        if (runs_on_device(t_.ops[touch.op].kind)) streams.insert(t_.ops[touch.op].stream);
    return streams;
  }

  void begin_updates(const OptimizerStep& step, InsertionPoint at) {
    const std::uint16_t in = staging_copies_.in_stream(step.parameters.front());
    for (const std::uint16_t user : users(step)) edit_.wait(at, edit_.record(at, user), in);
  }

  void end_updates(const OptimizerStep& step, InsertionPoint at) {
    const std::uint32_t updated = edit_.record(at, staging_copies_.in_stream(step.parameters.front()));
    for (const std::uint16_t user : users(step)) edit_.wait(at, updated, user);
  }

  // Cuts the step into sub-groups of at most settings.group parameters. What belongs together is
  // told by its share of the sum of sizes: states, gradients and parameters stand in one order.
  std::vector<SubGroup> divide(const OptimizerStep& step) {
    const double all = total_bytes(t_, whole_.states), part = all > 0 ? total_bytes(t_, step.states) / all : 1;
    const double number =
        swaps_states() ? std::ceil(count_.parameters * part / static_cast<double>(settings_.group)) : 1;
    constexpr double kMostGroups = 100'000;  // each is several ops
    if (number > kMostGroups)
      throw UsageError("Policy 'offload': group=" + std::to_string(settings_.group) + " divides " +
                       std::to_string(static_cast<std::int64_t>(count_.parameters)) + " parameters into more than " +
                       std::to_string(static_cast<std::int64_t>(kMostGroups)) +
                       " sub-groups; expected a larger one (DeepSpeed: 1000000000).");
    std::vector<SubGroup> groups(static_cast<std::size_t>(std::max(number, 1.0)));
    distribute(step.states, groups, &SubGroup::states);
    distribute(step.gradients, groups, &SubGroup::gradients);
    distribute(step.parameters, groups, &SubGroup::parameters);
    for (SubGroup& group : groups) {
      for (const StorageId id : group.parameters)
        if (const auto found = masters_.find(id); found != masters_.end()) group.states.push_back(found->second);
      for (const StorageId id : group.states) group.state_bytes += edit_.tables().storages[id].bytes;
    }
    std::erase_if(groups, [](const SubGroup& g) { return g.states.empty() && g.parameters.empty(); });
    for (SubGroup& group : groups) {
      double bytes = 0;
      for (const StorageId id : group.states)
        if (id < t_.storages.size()) bytes += static_cast<double>(t_.storages[id].bytes);
      group.count = all > 0 ? count_.parameters * bytes / all : 0;
    }
    return groups;
  }

  void distribute(const std::vector<StorageId>& storages, std::vector<SubGroup>& groups,
                  std::vector<StorageId> SubGroup::*member) const {
    const double total = total_bytes(t_, storages);
    double sum = 0;
    for (const StorageId id : storages) {
      const double middle = sum + static_cast<double>(t_.storages[id].bytes) / 2;
      const auto index = total > 0 ? static_cast<std::size_t>(middle / total * static_cast<double>(groups.size())) : 0;
      (groups[std::min(index, groups.size() - 1)].*member).push_back(id);
      sum += static_cast<double>(t_.storages[id].bytes);
    }
  }

  // Adam over one sub-group on the calling thread; `states` is where the host finds them.
  void compute(const SubGroup& group, InsertionPoint at, const std::map<StorageId, StorageId>& on_host,
               const std::vector<StorageId>& states) {
    std::vector<Use> uses;
    for (const StorageId id : group.gradients) uses.push_back({on_host.at(id), 0, Access::read});
    for (const StorageId id : states) uses.push_back({id, 0, Access::read});
    for (const StorageId id : states) uses.push_back({id, 0, Access::write});
    double sent = 0;  // written besides the master copy
    for (const StorageId id : group.parameters) {
      if (masters_are_states() || swaps_states())
        sent += static_cast<double>(sent_bytes(id));
      else
        uses.push_back({sent_from_.at(id), 0, Access::read});
      uses.push_back({sent_from_.at(id), 0, Access::write});
    }
    Op op;
    op.kind = OpKind::host_work;
    op.name = edit_.tables().strings.intern(settings_.near_memory ? "near-memory Adam" : "CPU Adam");
    op.operator_class = OperatorClass::optimizer;
    op.bytes = static_cast<Bytes>(std::llround(count_.update_bytes() * group.count + sent));
    if (settings_.near_memory) op.flops = kAdamFlopsPerParameter * group.count;
    if (work_settings_.to != "host") op.from = edit_.tables().place(work_settings_.to);
    op.duration = pricer_.memory_work(work_settings_.to, op.bytes, op.flops);
    dram_bytes_ += op.bytes;
    host_time_ += op.duration;
    edit_.insert(at, op, std::move(uses));
    for (const StorageId id : group.parameters) {
      bring_back(id, at);
      bytes_up_ += sent_bytes(id);
    }
  }

  void bring_back(StorageId parameter, InsertionPoint at) {
    if (work_settings_.through.empty())
      staging_copies_.add_copy(at, sent_from_.at(parameter), parameter, staging_copies_.in_stream(parameter));
    else
      staging_copies_.fetch(at, sent_from_.at(parameter), parameter);
  }

  // A ring of buffers, each as large as the largest sub-group's states.
  void make_stages() {
    Bytes largest = 0;
    for (const OptimizerStep& step : optimizer_.steps)
      for (const SubGroup& group : divide(step)) largest = std::max(largest, group.state_bytes);
    for (std::uint32_t i = 0; i < settings_.staging; ++i)
      stages_.push_back(
          staging_copies_.buffer(work_settings_.to, largest, StorageKind::workspace, "optimizer swap buffer"));
  }

  void compute_from_nvme(const std::vector<SubGroup>& groups, InsertionPoint at,
                         const std::map<StorageId, StorageId>& on_host) {
    std::vector<std::uint32_t> read(groups.size()), written(groups.size());
    const auto stage = [&](std::size_t k) { return stages_[k % stages_.size()]; };
    if (settings_.pipeline) read[0] = swap(groups[0], at, stage(0), true);
    for (std::size_t k = 0; k < groups.size(); ++k) {
      if (!settings_.pipeline) read[k] = swap(groups[k], at, stage(k), true);
      synchronize(at, read[k]);
      if (settings_.pipeline && k + 1 < groups.size()) read[k + 1] = swap(groups[k + 1], at, stage(k + 1), true);
      compute(groups[k], at, on_host, {stage(k)});
      if (settings_.pipeline && k > 0) synchronize(at, written[k - 1]);
      written[k] = swap(groups[k], at, stage(k), false);
      if (!settings_.pipeline) synchronize(at, written[k]);
    }
    if (settings_.pipeline) synchronize(at, written.back());
  }

  // Reads a sub-group's states into the buffer, or writes them back; returns the event of its end.
  std::uint32_t swap(const SubGroup& group, InsertionPoint at, StorageId stage, bool reads) {
    Trace& tables = edit_.tables();
    Op op;
    op.kind = OpKind::storage_io;
    op.name = tables.strings.intern(reads ? "read optimizer states" : "write optimizer states");
    op.stream = edit_.stream(reads ? "offload read" : "offload write", StreamRole::storage, 0);
    op.from = tables.place(reads ? settings_.to : work_settings_.to);
    op.to = tables.place(reads ? work_settings_.to : settings_.to);
    op.bytes = group.state_bytes;
    op.host_cost = edit_.costs().copy_call;
    op.duration = pricer_.copy(tables.places[op.from], tables.places[op.to], op.bytes, false);
    std::vector<Use> uses;
    if (!reads) uses.push_back({stage, 0, Access::read});
    for (const StorageId id : group.states) uses.push_back({id, 0, reads ? Access::read : Access::write});
    if (reads) uses.push_back({stage, 0, Access::write});
    edit_.insert(at, op, std::move(uses));
    return edit_.record(at, op.stream);
  }

  void synchronize(InsertionPoint at, std::uint32_t event) {
    Op op;
    op.kind = OpKind::synchronize;
    op.wait_for = WaitFor::event;
    op.target = event;
    op.host_cost = edit_.costs().event_call;
    op.return_delay = edit_.costs().synchronize_return;
    edit_.insert(at, op);
  }

  void add_note() {
    std::size_t removed = 0;
    for (const OptimizerStep& step : optimizer_.steps) removed += step.ops.size();
    edit_.tables().notes.push_back(fmt::format(
        "offload: the optimizer step runs {}{}: {} parameters of {} bytes, {} bytes of states each, {} removed, {} of "
        "gradients down, {} of parameters up, {} {} in {}{}{}.",
        settings_.near_memory ? "in the memory of " : "on the CPU, states on ", settings_.to,
        grouped_text(static_cast<std::uint64_t>(std::llround(count_.parameters))), count_.bytes_per_parameter,
        plain_number(std::round(10 * (count_.moment_bytes + (count_.master ? 4 : 0))) / 10),
        counted_text(removed, "device op"), human_bytes(staging_copies_.bytes_out()), human_bytes(bytes_up_),
        human_bytes(dram_bytes_), settings_.near_memory ? "moved there" : "of DRAM", human_time(host_time_),
        settings_.near_memory ? "" : " of host work",
        t_.steps.size() > 1 ? fmt::format("; all of {} steps together", t_.steps.size()) : ""));
  }

  const Trace& t_;
  const Pricer& pricer_;
  const OffloadSettings& settings_;
  const OffloadSettings work_settings_;
  Dataflow flow_;
  Optimizer optimizer_;
  TraceEdit edit_;
  StagingCopies staging_copies_;  // between device and host
  OptimizerStep whole_;
  ParameterCount count_;                                 // of the whole
  std::map<StorageId, StorageId> sent_from_, masters_;   // parameter -> its host copy; -> its fp32 master on nvme
  std::map<Bytes, std::vector<StorageId>> buffers_;      // of gradients on the host, by size
  std::vector<std::map<StorageId, StorageId>> on_host_;  // by step: gradient -> its buffer
  std::vector<StorageId> stages_;
  Bytes bytes_up_ = 0, dram_bytes_ = 0;
  Duration host_time_{};
};

}  // namespace

Trace offload_optimizer_to_cpu(const Trace& trace, const Machine& machine, const Pricer& pricer,
                               const OffloadSettings& settings) {
  return CpuOptimizer(trace, machine, pricer, settings).run();
}

}  // namespace memwall
