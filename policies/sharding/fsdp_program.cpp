#include "policies/sharding/fsdp_program.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "sim/error.h"

namespace memwall {

// The first number that no group of the step has. That of all ranks may stand in no table.
std::size_t FsdpProgram::next_group() {
  std::size_t next = std::max({base().groups.size(), edit_.tables().groups.size(), groups_});
  for (const Op& op : base().ops)
    if (op.kind == OpKind::collective) next = std::max<std::size_t>(next, op.group + std::size_t{1});
  if (next > std::numeric_limits<std::uint16_t>::max())
    throw UsageError("Trace '" + base().name + "' has too many process groups for one more; expected at most 65535.");
  groups_ = next + 1;
  return next;
}

ShardingGroup FsdpProgram::all_ranks(std::string_view name, std::uint32_t ranks) {
  const std::size_t next = next_group();
  const ProcessGroup group{std::string(name), ranks, {}};
  if (next > 0) {
    edit_.tables().groups.resize(next);
    edit_.tables().groups.push_back(group);
  }
  return {static_cast<std::uint16_t>(next), ranks, group};
}

ShardingGroup FsdpProgram::group(std::string_view name, std::uint32_t ranks, std::uint32_t stride) {
  ProcessGroup group{std::string(name), ranks, {}};
  for (std::uint32_t i = 0; i < ranks; ++i) group.members.push_back(i * stride);
  const std::size_t next = next_group();
  edit_.tables().groups.resize(next);
  edit_.tables().groups.push_back(group);
  return {static_cast<std::uint16_t>(next), ranks, std::move(group)};
}

void FsdpProgram::synchronize(InsertionPoint point, std::uint32_t event) {
  Op op;
  op.kind = OpKind::synchronize;
  op.wait_for = WaitFor::event;
  op.target = event;
  op.host_cost = edit_.costs().event_call;
  put(point, op, {}, {});
}

void FsdpProgram::kernel(InsertionPoint point, std::uint16_t stream, std::string_view name, Bytes bytes,
                         const std::vector<StorageId>& reads, const std::vector<StorageId>& writes,
                         std::size_t kernels) {
  Op op;
  op.kind = OpKind::kernel;
  op.stream = stream;
  op.name = edit_.tables().strings.intern(name);
  op.operator_class = OperatorClass::memory;
  op.bytes = bytes;
  op.kernels = static_cast<std::uint16_t>(std::clamp<std::size_t>(kernels, 1, 0xffff));
  op.host_cost = edit_.costs().launch * static_cast<std::int64_t>(op.kernels);
  op.duration = pricer_.kernel(op);
  put(point, op, reads, writes);
}

void FsdpProgram::copy(InsertionPoint point, std::uint16_t stream, std::string_view name, Way way, Bytes bytes,
                       bool pinned, StorageId from, StorageId to) {
  const bool up = way == Way::to_device;
  Op op;
  op.kind = OpKind::copy;
  op.stream = stream;
  op.name = edit_.tables().strings.intern(name);
  op.from = edit_.tables().place(up ? "host" : "hbm");
  op.to = edit_.tables().place(up ? "hbm" : "host");
  op.bytes = bytes;
  op.pageable = !pinned;
  op.wait_for = pinned ? WaitFor::nothing : WaitFor::own_op;
  op.host_cost = edit_.costs().copy_call;
  op.duration = pricer_.copy(up ? "host" : "hbm", up ? "hbm" : "host", bytes, !pinned);
  put(point, op, {from}, {to});
}

std::vector<StorageId> FsdpProgram::upload(InsertionPoint point, std::uint16_t stream,
                                           const std::vector<StorageId>& storages, bool pinned) {
  std::vector<StorageId> copies;
  for (const StorageId id : storages) {
    const Bytes bytes = edit_.tables().storages[id].bytes;
    copies.push_back(alloc(point, bytes, StorageKind::communication_buffer, id, "fsdp.shard", stream));
    copy(point, stream, "fsdp.upload", Way::to_device, bytes, pinned, id, copies.back());
  }
  return copies;
}

void FsdpProgram::host_add(InsertionPoint point, Bytes bytes, StorageId from, StorageId to) {
  Op op;
  op.kind = OpKind::host_work;
  op.name = edit_.tables().strings.intern("fsdp.add_");
  op.bytes = 3 * bytes;
  op.duration = pricer_.host_memory_work(op.bytes);
  put(point, op, {from, to}, {to});
}

void FsdpProgram::collective(InsertionPoint point, std::uint16_t stream, std::string_view name, CollectiveKind kind,
                             Bytes message, const ShardingGroup& group, const std::vector<StorageId>& reads,
                             const std::vector<StorageId>& writes) {
  Op op;
  op.kind = OpKind::collective;
  op.stream = stream;
  op.name = edit_.tables().strings.intern(name);
  op.host_cost = edit_.costs().launch;
  op.collective = kind;
  op.group = group.index;
  op.bytes = pricer_.wire_bytes(kind, message, group.ranks);
  op.duration = group.process_group.members.empty() ? pricer_.collective(kind, message, group.ranks)
                                                    : pricer_.collective(kind, message, group.process_group);
  sent_[static_cast<std::size_t>(kind)] += op.bytes;
  ++count_[static_cast<std::size_t>(kind)];
  put(point, op, reads, writes);
}

void FsdpProgram::put(InsertionPoint point, Op op, const std::vector<StorageId>& reads,
                      const std::vector<StorageId>& writes) {
  std::vector<Use> uses;
  for (const StorageId id : reads) uses.push_back({id, TraceBuilder::kLatest, Access::read});
  for (const StorageId id : writes) uses.push_back({id, 0, Access::write});
  op.host_gap = std::exchange(host_gap_, Duration{});
  edit_.insert(point, op, uses);
}

StorageId FsdpProgram::alloc_on_host(InsertionPoint point, Bytes bytes, StorageKind kind, std::string_view label,
                                     bool pinned) {
  const StorageId id = edit_.builder().add_storage(bytes, kind, "host", label);
  edit_.tables().storages[id].pinned = pinned;
  edit_.alloc(point, id);
  return id;
}

StorageId FsdpProgram::alloc(InsertionPoint point, Bytes bytes, StorageKind kind, StorageId like,
                             std::string_view label, std::uint16_t stream) {
  const std::string place = base().places[base().storages[like].place];
  const StorageId id = edit_.builder().add_storage(bytes, kind, place, label);
  edit_.tables().storages[id].stream = stream;
  edit_.alloc(point, id);
  return id;
}

}  // namespace memwall
