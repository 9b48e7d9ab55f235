// The dicts of a memory snapshot, each made a record.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "models/workload/import/bytes/quote_for_message.h"
#include "models/workload/import/snapshot/snapshot_builder.h"
#include "sim/error.h"

namespace memwall {
namespace {

using Action = MemoryEvent::Action;

// So that sums and rounded sums of what the file says stay within 64 bits.
constexpr Bytes kLargestSize = Bytes{1} << 50, kLargestSum = Bytes{1} << 61;
constexpr std::int64_t kLargestAddress = std::int64_t{1} << 54;
constexpr int kMostDevices = 1'024;
// Of a block of a file that has none: to be summed from the segment's.
constexpr Address kNoAddress = ~Address{0};

}  // namespace

Bytes SnapshotBuilder::counted(Bytes size) {
  counted_bytes_ += size;
  if (counted_bytes_ > kLargestSum)
    throw PickleError{"sizes that add up to more than 2^61 bytes", "sizes of real memory"};
  return size;
}

void SnapshotBuilder::note_unknown_keys() {
  for (const std::uint32_t key : fields_.unknown_keys()) {
    std::set<std::uint32_t>& known = unknown_keys_[fields_.record()];
    if (known.size() < 20) known.insert(key);
  }
}

StackId SnapshotBuilder::stack_of(Name name) const {
  const PickleValue value = fields_[name];
  if (!fields_.has(name) || value.is(Kind::shared, kEmptyList)) return 0;
  if (!value.is(Kind::shared, kStack)) fields_.fail(name, "a list of frames");
  return value.index();
}

std::uint16_t SnapshotBuilder::stream_of() {
  const std::int64_t stream =
      fields_.integer_or(Name::stream, 0, -PickleValue::kLargest - 1, PickleValue::kLargest);  // a pointer as a number
  if (stream == last_stream_.first) return last_stream_.second;
  const auto [place, is_new] = streams_.try_emplace(stream, static_cast<std::uint16_t>(streams_.size()));
  if (is_new && streams_.size() > 0xffff) throw PickleError{"more than 65535 streams", "fewer"};
  last_stream_ = *place;
  return place->second;
}

PickleValue SnapshotBuilder::make_frame() {
  fields_.set_record("a frame");
  SourceFrame frame;
  frame.function = fields_.text_or_empty(Name::name);
  frame.file = fields_.text_or_empty(Name::filename);
  frame.line = static_cast<std::int32_t>(fields_.integer_or(Name::line, 0, -0x80000000LL, 0x7fffffffLL));
  note_unknown_keys();
  discard(fields_.pairs());
  return {Kind::shared, kFrame, frames_.add(frame)};
}

// Sizes and addresses. A marker or an unknown action may lack them; a failed request has the device's free bytes.
void SnapshotBuilder::set_event_range(MemoryEvent& event) {
  const bool loose = event.action == Action::snapshot || event.action == Action::other;
  if (loose) {
    const PickleValue size = fields_[Name::size], address = fields_[Name::addr];
    const auto number = [](PickleValue value, std::int64_t most) {
      return value.kind() == Kind::integer ? std::clamp<std::int64_t>(value.number(), 0, most) : 0;
    };
    event.size = number(size, kLargestSize);
    event.address = static_cast<Address>(number(address, kLargestAddress));
    return;
  }
  event.size = counted(fields_.integer(Name::size, 1, kLargestSize));
  const bool has_free = event.action == Action::oom && fields_.has(Name::device_free);
  event.address = static_cast<Address>(fields_.integer(has_free ? Name::device_free : Name::addr, 0, kLargestAddress));
}

PickleValue SnapshotBuilder::make_event() {
  fields_.set_record("a trace entry");
  MemoryEvent event;
  const std::uint32_t action = fields_.text(Name::action), first = static_cast<std::uint32_t>(Name::alloc);
  if (action - first < static_cast<std::uint32_t>(Action::other))
    event.action = static_cast<Action>(action - first);
  else if (unknown_actions_.size() < 20 || unknown_actions_.contains(action))
    ++unknown_actions_[action];
  set_event_range(event);
  event.time_us = fields_.integer_or(Name::time_us, kNoTime, 0, PickleValue::kLargest);
  event.stack = stack_of(Name::frames);
  event.stream = stream_of();
  pooled_entries_ += fields_[Name::pool_id].is(Kind::shared, kPool) && fields_[Name::pool_id].index() != 0;
  note_unknown_keys();
  return hold(events_, kEvent, std::move(event));
}

PickleValue SnapshotBuilder::make_history() {
  fields_.set_record("a block's history");
  return hold(histories_, kHistory, History{fields_.integer(Name::real_size, 0, kLargestSize), stack_of(Name::frames)});
}

PickleValue SnapshotBuilder::make_block() {
  fields_.set_record("a block");
  RecordedBlock block;
  block.size = counted(fields_.integer(Name::size, 1, kLargestSize));
  block.address = static_cast<Address>(fields_.integer_or(Name::address, -1, 0, kLargestAddress));
  const auto state = static_cast<Name>(fields_.text(Name::state));
  if (state == Name::active_allocated)
    block.state = RecordedBlock::State::allocated;
  else if (state == Name::active_awaiting_free || state == Name::active_pending_free)
    block.state = RecordedBlock::State::pending;
  else if (state != Name::inactive)
    throw PickleError{quote_for_message(texts_[static_cast<std::uint32_t>(state)]) + " as the state of a block",
                      "active_allocated, active_awaiting_free, active_pending_free or inactive"};
  const bool has_history = fields_.has(Name::history) && !fields_[Name::history].is(Kind::shared, kEmptyList);
  const History history = take_list<History>(Name::history, "a list of earlier allocations");
  // 2.0 has the demand in the history; 1.x has none, and the block's size is all that is known.
  const Bytes demand = has_history ? history.requested : block.state == RecordedBlock::State::inactive ? 0 : block.size;
  block.requested = fields_.integer_or(Name::requested_size, demand, 0, kLargestSize);
  block.stack = fields_.has(Name::frames) ? stack_of(Name::frames) : history.stack;
  note_unknown_keys();
  return hold(blocks_, kBlock, std::move(block));
}

PickleValue SnapshotBuilder::make_segment() {
  fields_.set_record("a segment");
  DeviceSegment made;
  RecordedSegment& segment = made.segment;
  made.device = static_cast<int>(fields_.integer_or(Name::device, 0, 0, kMostDevices - 1));
  segment.address = static_cast<Address>(fields_.integer(Name::address, 0, kLargestAddress));
  segment.size = counted(fields_.integer(Name::total_size, 1, kLargestSize));
  segment.stream = stream_of();
  segment.expandable = fields_.boolean_or(Name::is_expandable, false);
  segment.stack = stack_of(Name::frames);
  const auto type = static_cast<Name>(fields_.text_or_empty(Name::segment_type));
  if (type != Name::small && type != Name::large && fields_.has(Name::segment_type))
    fields_.fail(Name::segment_type, "'small' or 'large'");
  untyped_segments_ += !fields_.has(Name::segment_type);
  segment.small_pool = fields_.has(Name::segment_type) ? type == Name::small : segment.size <= MiB(2);
  if (fields_.has(Name::segment_pool_id)) {
    if (!fields_[Name::segment_pool_id].is(Kind::shared, kPool))
      fields_.fail(Name::segment_pool_id, "a pair of integers");
    segment.pool = pools_[fields_[Name::segment_pool_id].index()];
  }
  segment.blocks = take_list<std::vector<RecordedBlock>>(Name::blocks, "a list of blocks");
  Address end = segment.address;
  for (RecordedBlock& block : segment.blocks) {
    if (block.address == kNoAddress) block.address = end;
    end = block.address + static_cast<Address>(block.size);
  }
  std::array<Bytes, 3> sums;
  static constexpr Name kSums[] = {Name::allocated_size, Name::active_size, Name::requested_size};
  for (int i = 0; i < 3; ++i) sums[i] = fields_.integer_or(kSums[i], -1, 0, kLargestSize);
  check_.compare_sums(segment, sums);
  note_unknown_keys();
  return hold(segments_, kSegment, std::move(made));
}

PickleValue SnapshotBuilder::make_annotation() {
  fields_.set_record("an annotation");
  MemoryAnnotation annotation;
  annotation.stage = texts_[fields_.text_or_empty(Name::stage)];
  annotation.name = texts_[fields_.text_or_empty(Name::name)];
  annotation.device = static_cast<int>(fields_.integer_or(Name::device, 0, -1, kMostDevices - 1));
  annotation.time_us = fields_.integer_or(Name::time_us, 0, 0, PickleValue::kLargest);
  return hold(annotations_, kAnnotation, std::move(annotation));
}

// {'1': 0, '2': 0, '4': 8, ...}
std::optional<PickleValue> SnapshotBuilder::make_divisions(std::span<const PickleValue> pairs) {
  if (pairs.empty() || pairs.size() > 128) return std::nullopt;
  Divisions divisions;
  for (std::size_t i = 0; i < pairs.size(); i += 2) {
    if (pairs[i].kind() != Kind::text || pairs[i + 1].kind() != Kind::integer) return std::nullopt;
    const std::string_view text = texts_[static_cast<std::uint32_t>(pairs[i].number())];
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    divisions.emplace_back(number, pairs[i + 1].number());
  }
  return hold(divisions_, kDivisions, std::move(divisions));
}

PickleValue SnapshotBuilder::make_settings() {
  fields_.set_record("allocator_settings");
  SnapshotSettings settings;
  for (const Name name : {Name::cuda_conf, Name::conf})
    if (fields_.has(name)) settings.text = texts_[fields_.text(name)];
  if (fields_.has(Name::max_split_size)) {
    // A size without limit is also seen as the largest number of 64 bits.
    const bool wide = fields_[Name::max_split_size].kind() == Kind::wide;
    settings.max_split_size = wide ? -1 : fields_.integer(Name::max_split_size, -1, PickleValue::kLargest);
  }
  if (const PickleValue share = fields_[Name::garbage_collection_threshold]; share.is(Kind::shared, kReal))
    settings.garbage_collection_threshold = reals_[share.index()];
  else if (fields_.has(Name::garbage_collection_threshold))
    settings.garbage_collection_threshold =
        static_cast<double>(fields_.integer(Name::garbage_collection_threshold, 0, 1));
  if (fields_.has(Name::expandable_segments))
    settings.expandable_segments = fields_.boolean_or(Name::expandable_segments, false);
  if (const PickleValue divisions = fields_[Name::roundup_power2_divisions]; divisions.is(Kind::unique, kDivisions)) {
    settings.divisions = std::move(divisions_[divisions.index()]);
  } else if (fields_.has(Name::roundup_power2_divisions) && !divisions.is(Kind::shared, kEmptyDict)) {
    fields_.fail(Name::roundup_power2_divisions, "a dict of numbers");
  }
  note_unknown_keys();
  return hold(settings_, kSettings, std::move(settings));
}

PickleValue SnapshotBuilder::make_snapshot() {
  fields_.set_record("a snapshot");
  if (has_snapshot_) throw PickleError{"a second snapshot", "one per file"};
  has_snapshot_ = true;
  all_segments_ = take_list<std::vector<DeviceSegment>>(Name::segments, "a list of segments");
  traces_ = take_list<std::vector<Events>>(Name::device_traces, "a list of lists of trace entries");
  all_annotations_ = take_list<std::vector<MemoryAnnotation>>(Name::external_annotations, "a list of annotations");
  const PickleValue settings = fields_[Name::allocator_settings];
  if (settings.is(Kind::unique, kSettings))
    all_settings_ = std::move(settings_[settings.index()]);
  else if (settings.is(Kind::shared, kEmptyDict))
    all_settings_.emplace();
  else if (fields_.has(Name::allocator_settings) && settings.kind() != Kind::other)
    fields_.fail(Name::allocator_settings, "a dict of settings");
  if (traces_.size() > static_cast<std::size_t>(kMostDevices))
    throw PickleError{fmt::format("traces of {} devices", traces_.size()), fmt::format("at most {}", kMostDevices)};
  for (const auto& [name, what] :
       {std::pair(Name::segments, "segments"), std::pair(Name::device_traces, "device_traces")})
    if (!fields_.has(name)) notes_.push_back(fmt::format("The file has no {}.", what));
  note_unknown_keys();
  discard(fields_.pairs());
  return {Kind::unique, kSnapshot, 0};
}

}  // namespace memwall
