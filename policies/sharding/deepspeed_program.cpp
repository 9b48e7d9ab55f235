#include "policies/sharding/deepspeed_program.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/error.h"

namespace memwall {
namespace {

std::vector<Use> read_and_written(const Storages& reads, const Storages& writes) {
  std::vector<Use> uses;
  uses.reserve(reads.size() + writes.size());
  for (const StorageId id : reads) uses.push_back({id, TraceBuilder::kLatest, Access::read});
  for (const StorageId id : writes) uses.push_back({id, 0, Access::write});
  return uses;
}

// The first number that no collective of the base has.
std::size_t first_free_group(const Trace& base) {
  std::size_t next = base.groups.size();
  for (const Op& op : base.ops)
    if (op.kind == OpKind::collective) next = std::max<std::size_t>(next, op.group + std::size_t{1});
  return next;
}

}  // namespace

DeepSpeedProgram::DeepSpeedProgram(TraceEdit& edit, const Machine& machine, const Pricer& pricer, std::uint32_t ranks,
                                   Duration hook, std::string_view prefix, std::uint32_t parts)
    : edit_(edit),
      machine_(machine),
      pricer_(pricer),
      ranks_(ranks),
      parts_(parts > 0 ? parts : ranks),
      hook_(hook),
      prefix_(std::string(prefix) + ".") {}

const DeepSpeedProgram::Group& DeepSpeedProgram::group(RankSet among) {
  if (among.members == 0) among = {ranks_, 1};
  if (const auto found = groups_.find(among); found != groups_.end()) return found->second;
  Trace& tables = edit_.tables();
  const std::size_t next = std::max(first_free_group(base()), tables.groups.size());
  if (next > std::numeric_limits<std::uint16_t>::max())
    throw UsageError("Trace '" + base().name + "' has too many process groups for one more; expected at most 65535.");
  Group group;
  group.number = static_cast<std::uint16_t>(next);
  const bool is_part = among.members < ranks_;
  const std::string what = is_part ? among.name() : "";
  group.ranks.name = prefix_.substr(0, prefix_.size() - 1) + what;
  group.ranks.ranks = among.members;
  if (is_part)
    for (std::uint32_t i = 0; i < among.members; ++i) group.ranks.members.push_back(i * among.stride);
  tables.groups.resize(next);
  tables.groups.push_back(group.ranks);
  group.stream = edit_.stream(prefix_ + "nccl" + what, StreamRole::communication);
  return groups_.emplace(among, std::move(group)).first->second;
}

Op DeepSpeedProgram::launch(OpKind kind, std::uint16_t stream, std::string_view name) const {
  Op op;
  op.kind = kind;
  op.stream = stream;
  op.name = named(name);
  op.host_cost = edit_.costs().launch;
  return op;
}

void DeepSpeedProgram::kernel(InsertionPoint point, std::uint16_t stream, std::string_view name, Bytes bytes,
                              const Storages& reads, const Storages& writes) {
  Op op = launch(OpKind::kernel, stream, name);
  op.operator_class = OperatorClass::memory;
  op.bytes = bytes;
  op.duration = pricer_.kernel(op);
  edit_.insert(point, op, read_and_written(reads, writes));
}

void DeepSpeedProgram::collective(InsertionPoint point, std::uint16_t stream, CollectiveKind kind, Bytes message,
                                  const Storages& reads, const Storages& writes, RankSet among) {
  edit_.wait(point, start_collective(point, stream, kind, message, reads, writes, among), stream);
}

std::uint32_t DeepSpeedProgram::start_collective(InsertionPoint point, std::uint16_t stream, CollectiveKind kind,
                                                 Bytes message, const Storages& reads, const Storages& writes,
                                                 RankSet among) {
  const Group& members = group(among);
  wait_stream(point, members.stream, stream);
  Op op = launch(OpKind::collective, members.stream, to_string(kind));
  op.collective = kind;
  op.group = members.number;
  op.bytes = pricer_.wire_bytes(kind, message, members.ranks.ranks);
  op.duration = pricer_.collective(kind, message, members.ranks);
  bytes_sent_[kind] += op.bytes;
  ++collectives_[kind];
  edit_.insert(point, op, read_and_written(reads, writes));
  return edit_.record(point, members.stream);
}

void DeepSpeedProgram::copy(InsertionPoint point, std::uint16_t stream, Bytes bytes, StorageId from, const Storages& to,
                            bool blocks) {
  const Trace& tables = edit_.tables();
  const Storage &source = tables.storages[from], &target = tables.storages[to.front()];
  const bool leaves = tables.places[target.place] == "host", arrives = tables.places[source.place] == "host";
  Op op = launch(OpKind::copy, stream, leaves ? "copy_to_host" : "copy_to_device");
  op.from = source.place;
  op.to = target.place;
  op.bytes = bytes;
  op.host_cost = edit_.costs().copy_call;
  op.pageable = (leaves && !target.pinned) || (arrives && !source.pinned);
  op.duration = pricer_.copy(tables.places[op.from], tables.places[op.to], bytes, op.pageable);
  if (blocks) {
    op.wait_for = WaitFor::own_op;
    op.return_delay = edit_.costs().synchronize_return;
  }
  if (leaves) copied_out_ += bytes;
  if (arrives) copied_in_ += bytes;
  edit_.insert(point, op, read_and_written({from}, to));
}

void DeepSpeedProgram::host_work(InsertionPoint point, std::string_view name, Bytes dram_bytes, const Storages& reads,
                                 const Storages& writes, std::optional<std::uint16_t> thread) {
  Op op;
  op.kind = OpKind::host_work;
  op.name = named(name);
  op.operator_class = OperatorClass::optimizer;
  op.bytes = dram_bytes;
  op.duration = pricer_.host_memory_work(dram_bytes);
  insert_on(point, op, thread, read_and_written(reads, writes));
}

void DeepSpeedProgram::hand_over(InsertionPoint point, OpId awaited, std::optional<std::uint16_t> thread) {
  Op op;
  op.kind = OpKind::hand_over;
  op.target = awaited;
  insert_on(point, op, thread, {});
}

// What another thread does beside belongs to no phase.
void DeepSpeedProgram::insert_on(InsertionPoint point, Op op, std::optional<std::uint16_t> thread,
                                 const std::vector<Use>& uses) {
  if (!thread) return edit_.insert(point, op, uses);
  op.thread = *thread;
  op.added = true;
  op.origin = Origin::modelled;
  edit_.insert_complete(point, op, uses);
}

std::uint32_t DeepSpeedProgram::storage_io(InsertionPoint point, bool reads, Bytes bytes, const Storages& buffers,
                                           const Storages& far, const AsynchronousIo& aio,
                                           std::optional<std::uint32_t> behind) {
  Trace& tables = edit_.tables();
  const std::uint16_t queue = edit_.stream(prefix_ + (reads ? "read" : "write"), StreamRole::storage);
  Op op = launch(OpKind::storage_io, queue, reads ? "read" : "write");
  const std::uint8_t near = tables.storages[buffers.front()].place, nvme = tables.place("nvme");
  op.from = reads ? nvme : near;
  op.to = reads ? near : nvme;
  op.bytes = bytes;
  op.host_cost = edit_.costs().copy_call;
  op.duration = pricer_.copy(tables.places[op.from], tables.places[op.to], bytes, false);
  // So many bytes are asked for at once; what is under way takes one request's latency (Little's law), and is waited
  // for whole where the queue is not kept full.
  const auto batch = static_cast<double>(aio.block_size * aio.queue_depth * aio.intra_op_parallelism);
  const double batches = std::ceil(static_cast<double>(bytes) / batch);
  const Route* route =
      machine_.route(machine_.tier(tables.places[op.from]), machine_.tier(tables.places[op.to]), false);
  const Duration latency = route == nullptr ? Duration{} : std::max(route->latency, route->requests.latency);
  if (aio.overlap_events)
    op.duration = std::max(op.duration, scaled_time(latency, batches));
  else
    op.duration += scaled_time(latency, batches);
  if (behind) edit_.wait(point, *behind, queue);
  edit_.insert(point, op, reads ? read_and_written(far, buffers) : read_and_written(buffers, far));
  return edit_.record(point, queue);
}

void DeepSpeedProgram::hook(InsertionPoint point, double hooks) {
  if (hook_ <= Duration{}) return;
  Op op;
  op.kind = OpKind::host_work;
  op.name = named("hook");
  op.host_cost = scaled_time(hook_, hooks);
  edit_.insert(point, op);
}

void DeepSpeedProgram::free_behind(InsertionPoint point, StorageId storage, std::uint16_t user) {
  if (edit_.tables().storages[storage].stream == user)
    edit_.free(point, storage);
  else
    edit_.free_behind(point, storage, user);
}

void DeepSpeedProgram::synchronize(InsertionPoint point, WaitFor wait_for, std::uint16_t stream, std::uint32_t event) {
  Op op;
  op.kind = OpKind::synchronize;
  op.wait_for = wait_for;
  op.stream = stream;
  op.target = event;
  op.host_cost = edit_.costs().event_call;
  op.return_delay = edit_.costs().synchronize_return;
  edit_.insert(point, op);
}

void DeepSpeedProgram::synchronize_device(InsertionPoint point) { synchronize(point, WaitFor::device, 0, 0xffffffff); }

void DeepSpeedProgram::synchronize_stream(InsertionPoint point, std::uint16_t stream) {
  synchronize(point, WaitFor::stream, stream, 0xffffffff);
}

void DeepSpeedProgram::synchronize_event(InsertionPoint point, std::uint32_t event) {
  synchronize(point, WaitFor::event, 0, event);
}

StorageId DeepSpeedProgram::device_storage(Bytes bytes, StorageKind kind, std::uint16_t stream,
                                           std::string_view label) {
  const StorageId id = edit_.builder().add_storage(bytes, kind, "hbm", prefix_ + std::string(label));
  edit_.tables().storages[id].stream = stream;
  return id;
}

StorageId DeepSpeedProgram::pageable_storage(Bytes bytes, StorageKind kind, std::string_view label) {
  return edit_.builder().add_storage(bytes, kind, "host", prefix_ + std::string(label), true);
}

StorageId DeepSpeedProgram::host_storage(Bytes bytes, StorageKind kind, std::string_view label, std::string_view tier) {
  const StorageId id = edit_.builder().add_storage(bytes, kind, tier, prefix_ + std::string(label), true);
  edit_.tables().storages[id].pinned = tier == "host";
  return id;
}

Bytes DeepSpeedProgram::bytes_sent(CollectiveKind kind) const {
  const auto found = bytes_sent_.find(kind);
  return found == bytes_sent_.end() ? 0 : found->second;
}

std::uint64_t DeepSpeedProgram::collectives(CollectiveKind kind) const {
  const auto found = collectives_.find(kind);
  return found == collectives_.end() ? 0 : found->second;
}

}  // namespace memwall
