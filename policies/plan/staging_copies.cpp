#include "policies/plan/staging_copies.h"

#include <algorithm>

namespace memwall {

StagingCopies::StagingCopies(TraceEdit& edit, const Pricer& pricer, const TransferStyle& style, Bytes largest)
    : edit_(edit), pricer_(pricer), style_(style), largest_(largest) {
  if (style.through.empty()) return;
  write_ring_.resize(style.staging);
  read_ring_.resize(style.staging);
}

StorageId StagingCopies::new_far_storage(StorageId model, bool preexisting) {
  const Storage like = edit_.tables().storages[model];
  const StorageId replica = edit_.builder().add_storage(like.bytes, like.kind, style_.tier, "", preexisting);
  Storage& s = edit_.tables().storages[replica];
  s.label = like.label;
  s.pinned = style_.pins_memory();
  s.stream = like.stream;
  return replica;
}

void StagingCopies::move_to_far_tier(StorageId storage) {
  const std::uint8_t place = edit_.tables().place(style_.tier);
  Storage& s = edit_.tables().storages[storage];
  s.place = place;
  s.pinned = style_.pins_memory();
}

std::uint16_t StagingCopies::device_of(StorageId storage) {
  const Trace& t = edit_.tables();
  const std::uint16_t pool = t.storages[storage].stream;
  return pool < t.streams.size() ? t.streams[pool].device : std::uint16_t{0};
}

std::uint16_t StagingCopies::out_stream(StorageId device) {
  if (!style_.side_streams) return edit_.tables().storages[device].stream;
  return edit_.stream("offload out", StreamRole::copy, device_of(device));
}

std::uint16_t StagingCopies::arrival_stream(StorageId device) {
  if (write_ring_.empty()) return out_stream(device);
  return edit_.stream("offload write", StreamRole::storage, device_of(device));
}

std::uint16_t StagingCopies::in_stream(StorageId device) {
  if (!style_.side_streams) return edit_.tables().storages[device].stream;
  return edit_.stream("offload in", StreamRole::copy, device_of(device));
}

StagingCopies::Slot& StagingCopies::next_slot(std::vector<Slot>& ring, std::size_t& turn, const char* label) {
  Slot& slot = ring[turn];
  turn = (turn + 1) % ring.size();
  if (slot.storage == kNoStorage) slot.storage = buffer(style_.through, largest_, StorageKind::workspace, label);
  return slot;
}

StorageId StagingCopies::buffer(const std::string& tier, Bytes bytes, StorageKind kind, std::string_view label) {
  const StorageId id = edit_.builder().add_storage(bytes, kind, tier, label, true);
  edit_.tables().storages[id].pinned = tier != style_.tier || style_.pins_memory();
  return id;
}

void StagingCopies::add_copy(InsertionPoint point, StorageId from, StorageId to, std::uint16_t stream) {
  Trace& t = edit_.tables();
  const Storage &a = t.storages[from], &b = t.storages[to];
  const std::string &from_place = t.places[a.place], &to_place = t.places[b.place];
  Op op;
  const bool at_far_end = from_place == style_.tier || to_place == style_.tier;
  op.kind = at_far_end && style_.tier_class == TierClass::storage ? OpKind::storage_io : OpKind::copy;
  op.stream = stream;
  op.name = t.strings.intern("offload " + from_place + " to " + to_place);
  op.from = a.place;
  op.to = b.place;
  op.bytes = std::min(a.bytes, b.bytes);  // a staging buffer is larger than what it carries
  op.pageable = !style_.pinned;
  // In the compute stream, a copy that leaves is waited for; one that comes back only if its source is pageable.
  const bool blocks = !style_.pinned || (!style_.side_streams && to_place == style_.tier);
  op.wait_for = blocks ? WaitFor::own_op : WaitFor::nothing;
  op.return_delay = blocks ? edit_.costs().synchronize_return : Duration{};
  op.host_cost = edit_.costs().copy_call;
  op.operator_class = OperatorClass::memory;
  op.duration = pricer_.copy(from_place, to_place, op.bytes, op.pageable);
  const Use uses[] = {{from, 0, Access::read}, {to, 0, Access::write}};
  edit_.insert(point, op, uses);
}

std::uint32_t StagingCopies::send(InsertionPoint point, StorageId device, StorageId far,
                                  const std::vector<std::uint16_t>& streams) {
  const std::uint16_t out = out_stream(device);
  bytes_out_ += edit_.tables().storages[device].bytes;
  for (const std::uint16_t user : streams)
    if (user != out) edit_.wait(point, edit_.record(point, user), out);
  if (write_ring_.empty()) {
    add_copy(point, device, far, out);
    return arrived_[far] = edit_.record(point, out);
  }
  const std::uint16_t writer = arrival_stream(device);
  Slot& slot = next_slot(write_ring_, write_turn_, "offload write buffer");
  if (slot.consumed != kNone) edit_.wait(point, slot.consumed, out);
  add_copy(point, device, slot.storage, out);
  const std::uint32_t left = edit_.record(point, out);
  edit_.wait(point, left, writer);
  add_copy(point, slot.storage, far, writer);
  slot.consumed = arrived_[far] = edit_.record(point, writer);
  return left;
}

std::uint32_t StagingCopies::fetch(InsertionPoint point, StorageId far, StorageId device) {
  const std::uint16_t in = in_stream(device), pool = edit_.tables().storages[device].stream;
  bytes_in_ += edit_.tables().storages[device].bytes;
  StorageId source = far;
  Slot* slot = nullptr;
  const auto arrived = arrived_.find(far);
  if (!read_ring_.empty()) {
    const std::uint16_t reader = edit_.stream("offload read", StreamRole::storage, device_of(device));
    slot = &next_slot(read_ring_, read_turn_, "offload read buffer");
    if (slot->consumed != kNone) edit_.wait(point, slot->consumed, reader);
    if (arrived != arrived_.end()) edit_.wait(point, arrived->second, reader);
    add_copy(point, far, slot->storage, reader);
    edit_.wait(point, edit_.record(point, reader), in);
    source = slot->storage;
  } else if (arrived != arrived_.end() && out_stream(device) != in) {
    edit_.wait(point, arrived->second, in);
  }
  if (pool != in) edit_.wait(point, edit_.record(point, pool), in);
  add_copy(point, source, device, in);
  const std::uint32_t fetch_done = edit_.record(point, in);
  if (slot) slot->consumed = fetch_done;
  return fetch_done;
}

void StagingCopies::write_from_staging(InsertionPoint point, StorageId stage, StorageId far) {
  if (write_ring_.empty()) return;
  const std::uint16_t writer = edit_.stream("offload write", StreamRole::storage, device_of(far));
  add_copy(point, stage, far, writer);
  arrived_[far] = edit_.record(point, writer);
}

void give_back_reserved(TraceEdit& edit) {
  const Trace& base = edit.base();
  Trace& t = edit.tables();
  if (t.reserved_at_start == 0) return;
  for (std::size_t i = 0; i < base.storages.size(); ++i) {
    const bool was = base.storages[i].preexisting && base.places[base.storages[i].place] == "hbm";
    const bool is = t.storages[i].preexisting && t.places[t.storages[i].place] == "hbm";
    if (was && !is) t.reserved_at_start = std::max<Bytes>(0, t.reserved_at_start - base.storages[i].bytes);
  }
}

}  // namespace memwall
