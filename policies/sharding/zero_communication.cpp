#include "policies/sharding/zero_communication.h"

#include <string>

namespace memwall {
namespace {

std::vector<Use> uses_of(const std::vector<StorageId>& reads, const std::vector<StorageId>& writes) {
  std::vector<Use> uses;
  for (const StorageId id : reads) uses.push_back({id, TraceBuilder::kLatest, Access::read});
  for (const StorageId id : writes) uses.push_back({id, 0, Access::write});
  return uses;
}

}  // namespace

CommunicationStream::CommunicationStream(TraceEdit& edit, const Pricer& pricer, std::uint32_t ranks, std::string_view stream_name)
    : edit_(edit), pricer_(pricer), ranks_(ranks), stream_(edit.stream(stream_name, StreamRole::communication)) {}

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
