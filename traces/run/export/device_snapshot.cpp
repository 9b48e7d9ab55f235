#include "traces/run/export/device_snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "sim/human_text.h"

namespace memwall {
namespace {

constexpr std::int64_t kPicosecondsPerMicrosecond = 1'000'000;

std::int64_t microseconds_of(Time time) { return time.count() / kPicosecondsPerMicrosecond; }

// "parameter layers.0.weight".
std::string remark_of(const Trace& trace, StorageId id) {
  const Storage& storage = trace.storages[id];
  const std::string& label = trace.strings[storage.label];
  return label.empty() ? std::string(to_string(storage.kind)) : fmt::format("{} {}", to_string(storage.kind), label);
}

}  // namespace

DeviceSnapshot::DeviceSnapshot(const Run& run, std::uint16_t tier, int device, Address first_address,
                               const AllocatorSettings& settings, SnapshotText& text)
    : run_(run),
      tier_(tier),
      device_(device),
      first_address_(first_address),
      end_of_addresses_(first_address),
      untracked_(untracked_by_tier(run.machine, run.trace)[tier]),
      capacity_(std::max<Bytes>(0, run.machine.tiers[tier].holds() - untracked_)),
      allocator_(capacity_, nullptr, settings),
      copies_(run.machine, run.trace),
      text_(text),
      changes_(memory_changes(run, tier)) {
  // As the simulation made it (sim/engine/tier_memory.h).
  const Tier& memory = run.machine.tiers[tier];
  allocator_.set_device_total(static_cast<Bytes>(static_cast<double>(memory.capacity) * memory.compression_ratio));
  if (untracked_ > memory.holds()) {
    is_unlimited_ = true;
    allocator_.lift_limits();
  }
  allocator_.observe(this);
  number_streams();
  for (std::size_t i = 0; i < changes_.size(); ++i)
    if (!changes_[i].comes && changes_[i].asked < changes_[i].time) late_.push_back(i);
  std::ranges::stable_sort(late_, {}, [&](std::size_t i) { return std::pair(changes_[i].asked, changes_[i].op); });
}

// The first stream of the device is the default stream, 0; the others keep their order.
void DeviceSnapshot::number_streams() {
  std::set<std::uint16_t> streams;
  for (const MemoryChange& change : changes_) streams.insert(run_.trace->storages[change.storage].stream);
  stream_numbers_.assign(run_.trace->streams.size(), 0);
  std::uint32_t number = 0;
  for (const std::uint16_t stream : streams) stream_numbers_[stream] = number++;
}

void DeviceSnapshot::write_entries(const std::function<void()>& flush) {
  for (std::size_t i = 0; i < changes_.size(); ++i) {
    tell_requested_frees(changes_[i]);
    current_ = changes_[i];
    apply(current_);
    if (i + 1 == changes_.size() || changes_[i + 1].time != current_.time) compare(current_.time);
    flush();
  }
}

void DeviceSnapshot::apply(const MemoryChange& change) {
  const Storage& storage = run_.trace->storages[change.storage];
  if (!change.comes) return release(change);
  for (std::uint32_t copy = 0; copy < copies_.of(change.storage, tier_); ++copy)
    allocate(change, storage.bytes, storage.stream);
}

void DeviceSnapshot::allocate(const MemoryChange& change, Bytes bytes, std::uint16_t stream) {
  std::optional<Address> address = allocator_.allocate(bytes, stream);
  if (!address) {
    is_unlimited_ = true;
    allocator_.lift_limits();
    address = allocator_.allocate(bytes, stream);
  }
  addresses_[change.storage].push_back(address.value());
  if (bytes == 0) return;  // PyTorch hands out a null pointer, and records nothing
  made_by_[*address] = change;
  add("alloc", *address, bytes, stream, remark_of(run_.trace, change.storage));
}

void DeviceSnapshot::release(const MemoryChange& change) {
  const auto found = addresses_.find(change.storage);
  if (found == addresses_.end()) return;
  const Storage& storage = run_.trace->storages[change.storage];
  for (const Address address : found->second) {
    if (storage.bytes > 0) {
      if (change.asked == change.time) add("free_requested", address, storage.bytes, storage.stream);
      add("free_completed", address, storage.bytes, storage.stream);
    }
    allocator_.free(address);
    made_by_.erase(address);
  }
  addresses_.erase(found);
}

// Of storages that another stream still uses: their bytes come back later.
void DeviceSnapshot::tell_requested_frees(const MemoryChange& before) {
  for (; next_late_ < late_.size(); ++next_late_) {
    const MemoryChange& change = changes_[late_[next_late_]];
    if (change.asked > before.time) return;
    if (change.asked == before.time && (before.op == kNoOp || change.op > before.op)) return;
    current_ = change;
    current_.time = change.asked;
    const Storage& storage = run_.trace->storages[change.storage];
    const auto found = addresses_.find(change.storage);
    if (found == addresses_.end() || storage.bytes == 0) continue;
    for (const Address address : found->second) add("free_requested", address, storage.bytes, storage.stream);
  }
}

void DeviceSnapshot::compare(Time time) {
  const std::vector<MemoryPoint>& points = run_.memory[tier_];
  while (next_point_ + 1 < points.size() && points[next_point_ + 1].time <= time) ++next_point_;
  if (!difference_.empty() || points.empty()) return;
  const MemoryPoint& point = points[next_point_];
  const Usage& usage = allocator_.usage();
  if (usage.allocated + untracked_ == point.allocated && usage.reserved + untracked_ == point.reserved) return;
  difference_ = fmt::format(
      "At {} the run has {} of {} in use and {} reserved; its allocations, asked for again, {} and {}. Sizes and times "
      "are the run's, addresses may be others.",
      human_time(time), human_bytes(point.allocated), run_.machine.tiers[tier_].name, human_bytes(point.reserved),
      human_bytes(usage.allocated + untracked_), human_bytes(usage.reserved + untracked_));
}

void DeviceSnapshot::on_segment_alloc(Address address, Bytes bytes, std::uint16_t stream) {
  add("segment_alloc", address, bytes, stream);
}
void DeviceSnapshot::on_segment_free(Address address, Bytes bytes, std::uint16_t stream) {
  add("segment_free", address, bytes, stream);
}
void DeviceSnapshot::on_segment_map(Address address, Bytes bytes, std::uint16_t stream) {
  add("segment_map", address, bytes, stream);
}
void DeviceSnapshot::on_segment_unmap(Address address, Bytes bytes, std::uint16_t stream) {
  add("segment_unmap", address, bytes, stream);
}

void DeviceSnapshot::on_retry_step(RetryStep step, Bytes bytes) {
  if (step != RetryStep::out_of_memory) return;
  begin_entry("oom", run_.trace->storages[current_.storage].stream);
  text_.pickle.field("device_free", std::max<Bytes>(0, capacity_ - allocator_.usage().reserved));
  text_.pickle.field("size", bytes);
  end_entry("");
}

void DeviceSnapshot::begin_entry(const char* action, std::uint16_t stream) {
  PickleText& pickle = text_.pickle;
  pickle.next_item();
  pickle.begin_dict();
  pickle.field("action", action);
  pickle.field("stream", stream_numbers_[stream]);
  pickle.field("time_us", microseconds_of(current_.time));
}

void DeviceSnapshot::end_entry(const std::string& remark) {
  PickleText& pickle = text_.pickle;
  pickle.field("compile_context", "N/A");
  pickle.field("user_metadata", remark);
  pickle.text("pool_id");
  pickle.pair(0, 0);
  pickle.text("frames");
  text_.frames.write(current_);
  pickle.end_dict();
}

void DeviceSnapshot::add(const char* action, Address address, Bytes bytes, std::uint16_t stream,
                         const std::string& remark) {
  const Address shown = first_address_ + address;
  end_of_addresses_ = std::max(end_of_addresses_, shown + static_cast<Address>(bytes));
  begin_entry(action, stream);
  text_.pickle.field("addr", static_cast<std::int64_t>(shown));
  text_.pickle.field("size", bytes);
  end_entry(remark);
}

// PyTorch shows each mapped range of an expandable segment as a segment of its own.
void DeviceSnapshot::write_segments() {
  for (const SegmentState& segment : allocator_.segments()) {
    const auto is_unmapped = [](const BlockState& block) { return block.use == BlockState::Use::unmapped; };
    for (std::size_t first = 0; first < segment.blocks.size();) {
      std::size_t last = first;
      while (last < segment.blocks.size() && !is_unmapped(segment.blocks[last])) ++last;
      if (last > first) write_segment(segment, first, last);
      first = std::max(last, first + 1);
    }
  }
}

void DeviceSnapshot::write_segment(const SegmentState& segment, std::size_t first, std::size_t last) {
  PickleText& pickle = text_.pickle;
  Bytes size = 0, used = 0, requested = 0;
  for (std::size_t i = first; i < last; ++i) {
    const BlockState& block = segment.blocks[i];
    size += block.size;
    if (block.use != BlockState::Use::in_use) continue;
    used += block.size;
    requested += block.requested;
  }
  pickle.next_item();
  pickle.begin_dict();
  pickle.field("device", device_);
  pickle.field("address", static_cast<std::int64_t>(first_address_ + segment.blocks[first].address));
  pickle.field("total_size", size);
  pickle.field("allocated_size", used);
  pickle.field("active_size", used);
  pickle.field("requested_size", requested);
  pickle.field("stream", stream_numbers_[segment.stream]);
  pickle.field("segment_type", segment.small_pool ? "small" : "large");
  pickle.text("segment_pool_id");
  pickle.pair(0, 0);
  pickle.text("is_expandable");
  pickle.boolean(segment.expandable);
  pickle.text("frames");
  text_.frames.write_none();
  pickle.text("blocks");
  pickle.begin_list();
  for (std::size_t i = first; i < last; ++i) write_block(segment.blocks[i]);
  pickle.end_list();
  pickle.end_dict();
}

void DeviceSnapshot::write_block(const BlockState& block) {
  PickleText& pickle = text_.pickle;
  const bool is_used = block.use == BlockState::Use::in_use;
  pickle.next_item();
  pickle.begin_dict();
  pickle.field("address", static_cast<std::int64_t>(first_address_ + block.address));
  pickle.field("size", block.size);
  pickle.field("requested_size", is_used ? block.requested : 0);
  pickle.field("state", is_used ? "active_allocated" : "inactive");
  pickle.text("frames");
  const auto maker = made_by_.find(block.address);
  maker != made_by_.end() ? text_.frames.write(maker->second) : text_.frames.write_none();
  pickle.end_dict();
}

}  // namespace memwall
