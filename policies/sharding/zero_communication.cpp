#include "policies/sharding/zero_communication.h"

#include <algorithm>
#include <limits>
#include <string>

#include "sim/error.h"

namespace memwall {
namespace {

std::vector<Use> uses_of(const std::vector<StorageId>& reads, const std::vector<StorageId>& writes) {
  std::vector<Use> uses;
  for (const StorageId id : reads) uses.push_back({id, TraceBuilder::kLatest, Access::read});
  for (const StorageId id : writes) uses.push_back({id, 0, Access::write});
  return uses;
}

constexpr const char* kGroupName = "zero";

// The group of the collectives that sharding adds. A step without any of its own has one group, that of all ranks.
std::uint16_t group_among(Trace& tables, const Trace& base, std::uint32_t ranks) {
  std::size_t next = base.groups.size();
  bool has_any = !base.groups.empty();
  for (const Op& op : base.ops)
    if (op.kind == OpKind::collective) {
      has_any = true;
      next = std::max<std::size_t>(next, op.group + std::size_t{1});
    }
  if (!has_any) return 0;
  if (next > std::numeric_limits<std::uint16_t>::max())
    throw UsageError("Trace '" + base.name + "' has too many process groups for one more; expected at most 65535.");
  for (std::size_t g = next; g < tables.groups.size(); ++g)
    if (tables.groups[g].name == kGroupName) return static_cast<std::uint16_t>(g);
  tables.groups.resize(next);
  tables.groups.push_back({kGroupName, ranks, {}});
  return static_cast<std::uint16_t>(next);
}

}  // namespace

CommunicationStream::CommunicationStream(TraceEdit& edit, const Pricer& pricer, std::uint32_t ranks, std::string_view stream_name)
    : edit_(edit), pricer_(pricer), ranks_(ranks), stream_(edit.stream(stream_name, StreamRole::communication)),
      group_(group_among(edit.tables(), edit.base(), ranks)) {}

void CommunicationStream::after(InsertionPoint point, const std::set<std::uint16_t>& streams) {
  for (const std::uint16_t other : streams) edit_.wait(point, edit_.record(point, other), stream_);
}

void CommunicationStream::hold(InsertionPoint point, std::uint32_t event, const std::set<std::uint16_t>& streams) {
  for (const std::uint16_t other : streams) edit_.wait(point, event, other);
}

Op CommunicationStream::launch(OpKind kind, std::string_view name) const {
  Op op;
  op.kind = kind;
  op.stream = stream_;
  op.name = edit_.tables().strings.intern(name);
  op.host_cost = edit_.costs().launch;
  return op;
}

void CommunicationStream::collective(InsertionPoint point, CollectiveKind kind, Bytes message, const std::vector<StorageId>& reads,
                      const std::vector<StorageId>& writes) {
  Op op = launch(OpKind::collective, "zero." + std::string(to_string(kind)));
  op.collective = kind;
  op.group = group_;
  op.bytes = pricer_.wire_bytes(kind, message, ranks_);
  op.duration = pricer_.collective(kind, message, ranks_);
  bytes_sent_ += op.bytes;
  ++collectives_;
  edit_.insert(point, op, uses_of(reads, writes));
}

void CommunicationStream::copy(InsertionPoint point, std::string_view name, Bytes bytes, const std::vector<StorageId>& reads,
                const std::vector<StorageId>& writes) {
  Op op = launch(OpKind::kernel, name);
  op.operator_class = OperatorClass::memory;
  op.bytes = 2 * bytes;
  op.duration = pricer_.kernel(op);
  edit_.insert(point, op, uses_of(reads, writes));
}

StorageId CommunicationStream::storage(Bytes bytes, StorageKind kind, std::uint8_t place, std::string_view label) {
  const std::string name = edit_.tables().places[place];
  const StorageId id = edit_.builder().add_storage(bytes, kind, name, label);
  edit_.tables().storages[id].stream = stream_;
  return id;
}

}  // namespace memwall
