#include "policies/sharding/fsdp_gathers.h"

#include <algorithm>

namespace memwall {

FsdpGathers::FsdpGathers(FsdpProgram& program, const FsdpUnits& units, const FsdpLayout& layout,
                         const FsdpPrecision& precision, const FsdpSettings& settings, const ShardingGroup& group,
                         std::uint16_t compute)
    : FsdpParameters(program, units, layout, precision, settings, group, compute),
      forward_group_(group),
      root_forward_group_(group),
      copy_in_(program.stream("fsdp.all_gather_copy_in")),
      all_gather_(program.stream("fsdp.all_gather")),
      state_(units.all().size()),
      kept_(units.named(settings.kept, "keep")) {
  const auto smaller = [&](std::uint32_t shards) {
    return shards > 1 && shards < settings.shards() ? program.group("fsdp.forward_shards", shards, 1) : group;
  };
  forward_group_ = smaller(settings.forward_shards);
  root_forward_group_ =
      settings.root_forward_shards == settings.forward_shards ? forward_group_ : smaller(settings.root_forward_shards);
}

Bytes FsdpGathers::gathered_element(StorageId parameter) const {
  return precision_.gathered_element(layout_.element(parameter));
}

Bytes FsdpGathers::message(std::size_t unit) const {
  Bytes bytes = 0;
  for (const StorageId p : units_.all()[unit].parameters) bytes += layout_.padded_elements(p) * gathered_element(p);
  return bytes;
}

void FsdpGathers::gather_streams_wait(InsertionPoint point, std::uint32_t event) {
  program_.wait(point, event, copy_in_);
  program_.wait(point, event, all_gather_);
}

void FsdpGathers::begin_forward(InsertionPoint point) {
  program_.wait_stream(point, copy_in_, compute_);
  program_.wait_stream(point, all_gather_, compute_);
}

void FsdpGathers::unshard(std::size_t unit, InsertionPoint point) {
  State& state = state_[unit];
  const std::vector<StorageId>& parameters = units_.all()[unit].parameters;
  if (parameters.empty() || state.unsharded || state.gathered) return;
  if (state.resharded) gather_streams_wait(point, *state.resharded);
  state.resharded.reset();
  const bool again = !state.forward_shards.empty();
  const ShardingGroup& group = !again ? group_ : unit == 0 ? root_forward_group_ : forward_group_;
  const Bytes bytes = message(unit), part = bytes / group.ranks;
  std::vector<StorageId> shards = state.forward_shards;
  if (!again)
    for (const StorageId p : parameters) shards.push_back(precision_.at_rest(p));
  std::vector<StorageId> uploaded;
  if (!again && settings_.offloads) shards = uploaded = program_.upload(point, copy_in_, shards, settings_.pins_memory);
  std::vector<StorageId> source = shards;
  StorageId cast = kNoStorage;
  Bytes kept = 0;
  for (const StorageId p : parameters) kept += layout_.shard_elements(p) * layout_.element(precision_.at_rest(p));
  if (!again && kept != part) {  // in another type
    cast = program_.alloc(point, part, StorageKind::communication_buffer, parameters.front(), "fsdp.cast", copy_in_);
    program_.kernel(point, copy_in_, "fsdp.foreach_copy", kept + part, shards, {cast});
    source = {cast};
  }
  const StorageId buffer = program_.alloc(point, bytes, StorageKind::communication_buffer, parameters.front(),
                                          "fsdp.all_gather_output", copy_in_);
  program_.kernel(point, copy_in_, "fsdp.all_gather_copy_in", 2 * part, source, {buffer});
  if (cast != kNoStorage) program_.free(point, cast);
  for (const StorageId copy : uploaded) program_.free(point, copy);
  program_.wait_stream(point, all_gather_, copy_in_);
  program_.collective(point, all_gather_, "fsdp.all_gather", CollectiveKind::all_gather, bytes, group, {buffer},
                      {buffer});
  state.gathered = Buffer{buffer, program_.record(point, all_gather_)};
  largest_buffer_ = std::max(largest_buffer_, bytes);
}

void FsdpGathers::end_forward(InsertionPoint point) {
  if (!held_) return;
  gather_streams_wait(point, held_->event);
  program_.free(point, held_->storage);
  held_.reset();
}

void FsdpGathers::wait_for_unshard(std::size_t unit, InsertionPoint point, bool forward,
                                   const std::set<std::uint16_t>& streams) {
  State& state = state_[unit];
  if (!state.gathered) return;
  if (forward) end_forward(point);
  const Buffer gathered = *state.gathered;
  state.gathered.reset();
  program_.wait(point, gathered.event, compute_);
  const Trace& t = program_.base();
  const std::vector<StorageId>& parameters = units_.all()[unit].parameters;
  // What the copy reads is named by its shards too: rewriters that come later tell by them which storages hold the
  // same.
  std::vector<StorageId> source, filled;
  for (const StorageId p : parameters) {
    whole_[p] = program_.alloc(point, layout_.padded_elements(p) * gathered_element(p), StorageKind::parameter, p,
                               t.strings[t.storages[p].label], compute_);
    filled.push_back(whole_[p]);
    source.push_back(precision_.at_rest(p));
  }
  source.push_back(gathered.storage);
  program_.kernel(point, compute_, "fsdp.split_with_sizes_copy", 2 * message(unit), source, filled);
  const std::uint32_t copied = program_.record(point, compute_);
  for (const std::uint16_t stream : streams)
    if (stream != compute_) program_.wait(point, copied, stream);
  state.unsharded = true;
  for (const StorageId shard : state.forward_shards) program_.free(point, shard);
  state.forward_shards.clear();
  if (forward) {
    held_ = Buffer{gathered.storage, copied};
    return;
  }
  gather_streams_wait(point, copied);
  program_.free(point, gathered.storage);
}

void FsdpGathers::reshard(std::size_t unit, InsertionPoint point, const std::set<std::uint16_t>& streams) {
  if (!state_[unit].unsharded) return;
  for (const std::uint16_t stream : streams) program_.wait_stream(point, compute_, stream);
  for (const StorageId p : units_.all()[unit].parameters) {
    program_.free(point, whole_.at(p));
    whole_.erase(p);
  }
  state_[unit].unsharded = false;
}

void FsdpGathers::reshard_after_forward(std::size_t unit, InsertionPoint point,
                                        const std::set<std::uint16_t>& streams) {
  const std::uint32_t shards = unit == 0 ? settings_.root_forward_shards : settings_.forward_shards;
  if (shards == 0 || kept_[unit] || !state_[unit].unsharded) return;
  if (shards == settings_.shards()) return reshard(unit, point, streams);
  std::vector<StorageId>& cut = state_[unit].forward_shards;
  const Trace& t = program_.base();
  for (const StorageId p : units_.all()[unit].parameters) {
    const Bytes bytes = layout_.padded_elements(p) * gathered_element(p) / shards;
    const StorageId shard =
        program_.alloc(point, bytes, StorageKind::parameter, p, t.strings[t.storages[p].label], compute_);
    program_.kernel(point, compute_, "fsdp.clone", 2 * bytes, {whole_.at(p)}, {shard});
    cut.push_back(shard);
  }
  reshard(unit, point, streams);
  state_[unit].resharded = program_.record(point, compute_);
}

}  // namespace memwall
