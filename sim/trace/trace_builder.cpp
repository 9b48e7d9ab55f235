#include "sim/trace/trace_builder.h"

#include <cassert>

namespace memwall {

TraceBuilder TraceBuilder::like(const Trace& base) {
  TraceBuilder builder;
  Trace& t = builder.trace_;
  t.name = base.name;
  t.machine = base.machine;
  t.strings = base.strings;
  t.shapes = base.shapes;
  t.threads = base.threads;
  t.streams = base.streams;
  t.places = base.places;
  t.storages = base.storages;
  for (Storage& storage : t.storages) storage.last_referenced = kNoOp;  // an op of the base
  t.constants = base.constants;
  t.knowledge = base.knowledge;
  t.completeness = base.completeness;
  t.completeness_reason = base.completeness_reason;
  t.event_count = base.event_count;
  t.ranks = base.ranks;
  t.rank_table = base.rank_table;
  t.job_ranks = base.job_ranks;
  t.groups = base.groups;
  t.samples_per_step = base.samples_per_step;
  t.tokens_per_step = base.tokens_per_step;
  t.untracked_bytes = base.untracked_bytes;
  t.reserved_at_start = base.reserved_at_start;
  t.reuse_distance = base.reuse_distance;
  t.held_copies = base.held_copies;
  t.budgets = base.budgets;
  t.notes = base.notes;
  t.recipe = base.recipe;
  builder.versions_.assign(t.storages.size(), 0);
  return builder;
}

std::uint16_t TraceBuilder::add_thread(std::string_view name) {
  trace_.threads.push_back({std::string(name)});
  return static_cast<std::uint16_t>(trace_.threads.size() - 1);
}

std::uint16_t TraceBuilder::add_stream(std::string_view name, StreamRole role, std::uint16_t device) {
  trace_.streams.push_back({std::string(name), device, role});
  return static_cast<std::uint16_t>(trace_.streams.size() - 1);
}

StorageId TraceBuilder::add_storage(Bytes bytes, StorageKind kind, std::string_view place, std::string_view label,
                                    bool preexisting) {
  Storage storage;
  storage.bytes = bytes;
  storage.kind = kind;
  storage.place = trace_.place(place);
  storage.label = trace_.strings.intern(label);
  storage.preexisting = preexisting;
  trace_.storages.push_back(storage);
  versions_.push_back(0);
  return static_cast<StorageId>(trace_.storages.size() - 1);
}

OpId TraceBuilder::append(Op op, std::span<const Use> uses) {
  op.first_use = static_cast<std::uint32_t>(trace_.uses.size());
  op.use_count = static_cast<std::uint32_t>(uses.size());
  versions_.resize(trace_.storages.size(), 0);  // storages may have been added through trace()
  for (Use use : uses) {
    assert(use.storage < versions_.size());
    std::uint32_t& newest = versions_[use.storage];
    if (use.access == Access::read) {
      if (use.version == kLatest) use.version = newest;
    } else {
      if (use.version == 0) use.version = newest + 1;
      newest = use.version;
    }
    trace_.uses.push_back(use);
  }
  trace_.ops.push_back(op);
  return static_cast<OpId>(trace_.ops.size() - 1);
}

OpId TraceBuilder::append_renewed(const Op& op, std::span<const Use> uses) {
  const auto id = static_cast<OpId>(trace_.ops.size());
  Op& added = trace_.ops.emplace_back(op);
  added.first_use = static_cast<std::uint32_t>(trace_.uses.size());
  added.use_count = static_cast<std::uint32_t>(uses.size());
  if (versions_.size() < trace_.storages.size()) versions_.resize(trace_.storages.size(), 0);
  for (const Use& use : uses) {
    assert(use.storage < versions_.size());
    std::uint32_t& newest = versions_[use.storage];
    if (use.access == Access::write) ++newest;
    trace_.uses.push_back({use.storage, newest, use.access, use.saved});
  }
  return id;
}

OpId TraceBuilder::alloc(StorageId storage, std::uint16_t thread) {
  Op op;
  op.kind = OpKind::alloc;
  op.thread = thread;
  op.target = storage;
  op.stream = trace_.storages[storage].stream;
  return append(op);
}

OpId TraceBuilder::free(StorageId storage, std::uint16_t thread) {
  Op op;
  op.kind = OpKind::free;
  op.thread = thread;
  op.target = storage;
  op.stream = trace_.storages[storage].stream;
  return append(op);
}

OpId TraceBuilder::record(std::uint32_t event, std::uint16_t stream, std::uint16_t thread) {
  Op op;
  op.kind = OpKind::event_record;
  op.thread = thread;
  op.stream = stream;
  op.target = event;
  return append(op);
}

OpId TraceBuilder::wait(std::uint32_t event, std::uint16_t stream, std::uint16_t thread) {
  Op op;
  op.kind = OpKind::event_wait;
  op.thread = thread;
  op.stream = stream;
  op.target = event;
  return append(op);
}

std::uint32_t TraceBuilder::version(StorageId storage) const {
  return storage < versions_.size() ? versions_[storage] : 0;
}

}  // namespace memwall
