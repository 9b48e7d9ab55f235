#include "models/workload/import/snapshot/snapshot_builder.h"

#include <fmt/format.h>

#include <cassert>
#include <iterator>

namespace memwall {
namespace {

constexpr std::size_t kMostPools = 65'536;

}  // namespace

SnapshotBuilder::SnapshotBuilder() {
  for (const std::string_view name : snapshot_names()) texts_.add(name);
  pools_.push_back({0, 0});
  pool_numbers_[{0, 0}] = 0;
  streams_[0] = 0;
}

PickleValue SnapshotBuilder::text(std::string_view text) { return {Kind::text, texts_.add(text)}; }

PickleValue SnapshotBuilder::real(double value) {
  reals_.push_back(value);
  return {Kind::shared, kReal, static_cast<std::uint32_t>(reals_.size() - 1)};
}

// Only pairs of integers mean something: they name a memory pool.
PickleValue SnapshotBuilder::tuple(std::span<const PickleValue> items) {
  if (items.size() != 2 || items[0].kind() != Kind::integer || items[1].kind() != Kind::integer) {
    discard(items);
    return {Kind::other, 0};
  }
  const std::array<std::int64_t, 2> pool{items[0].number(), items[1].number()};
  const auto next = static_cast<std::uint32_t>(pools_.size());
  const auto [place, is_new] = pool_numbers_.try_emplace(pool, next);
  if (is_new && next >= kMostPools) throw PickleError{"more than 65536 different pairs of integers", "fewer pools"};
  if (is_new) pools_.push_back(pool);
  return {Kind::shared, kPool, place->second};
}

PickleValue SnapshotBuilder::dict(std::span<const PickleValue> pairs) {
  fields_.set_record("a dict");
  fields_.load(pairs);
  if (fields_.has(Name::action)) return make_event();
  if (fields_.has(Name::total_size)) return make_segment();
  if (fields_.has(Name::state)) return make_block();
  if (fields_.has(Name::filename) || (fields_.has(Name::name) && fields_.has(Name::line))) return make_frame();
  if (fields_.has_any(Name::segments, Name::device_traces)) return make_snapshot();
  if (fields_.has_any(Name::cuda_conf, Name::conf, Name::max_split_size, Name::garbage_collection_threshold,
                      Name::expandable_segments, Name::roundup_power2_divisions))
    return make_settings();
  if (fields_.has(Name::real_size)) return make_history();
  if (fields_.has_any(Name::stage, Name::time_us)) return make_annotation();
  if (const auto divisions = make_divisions(pairs)) return *divisions;
  discard(pairs);
  return {Kind::other, 0};
}

PickleValue SnapshotBuilder::more_of_dict(PickleValue before, std::span<const PickleValue> pairs) {
  if (before.kind() != Kind::other) throw PickleError{fmt::format("a change to {}", name(before)), "it to be whole"};
  discard(pairs);
  return before;
}

PickleValue SnapshotBuilder::empty_list() { return {Kind::shared, kEmptyList, 0}; }
PickleValue SnapshotBuilder::empty_dict() { return {Kind::shared, kEmptyDict, 0}; }

PickleValue SnapshotBuilder::begin_list() {
  if (free_lists_.empty()) {
    lists_.emplace_back();
    return {Kind::unique, kList, static_cast<std::uint32_t>(lists_.size() - 1)};
  }
  const std::uint32_t index = free_lists_.back();
  free_lists_.pop_back();
  return {Kind::unique, kList, index};
}

PickleValue SnapshotBuilder::finish_list(PickleValue value) {
  List& list = lists_[value.index()];
  if (const Frames* frames = std::get_if<Frames>(&list)) {
    const StackId stack = stacks_.add(frames->numbers);
    list = {};
    free_lists_.push_back(value.index());
    return {Kind::shared, kStack, stack};
  }
  if (std::holds_alternative<Mixed>(list) || std::holds_alternative<std::monostate>(list)) {
    const bool empty = std::holds_alternative<std::monostate>(list);
    list = {};
    free_lists_.push_back(value.index());
    return empty ? empty_list() : PickleValue(Kind::other, 0);
  }
  return value;
}

void SnapshotBuilder::append(PickleValue value, std::span<const PickleValue> items) {
  if (items.empty()) return;
  List& list = lists_[value.index()];
  const PickleValue first = items[0];
  if (first.is(Kind::shared, kFrame)) return append_frames(list, items);
  if (first.is(Kind::shared, kEmptyList) || first.is(Kind::unique, kList)) return append_lists(list, items);
  if (first.is(Kind::unique, kEvent)) return append_records(list, kEvent, events_, items);
  if (first.is(Kind::unique, kBlock)) return append_records(list, kBlock, blocks_, items);
  if (first.is(Kind::unique, kSegment)) return append_records(list, kSegment, segments_, items);
  if (first.is(Kind::unique, kAnnotation)) return append_records(list, kAnnotation, annotations_, items);
  // Of a block's history the first entry is the block's own, the others are older.
  if (first.is(Kind::unique, kHistory) && std::holds_alternative<std::monostate>(list))
    list = histories_[first.index()];
  else if (!std::holds_alternative<History>(list))
    list = Mixed{};
  discard(items);
}

void SnapshotBuilder::append_frames(List& list, std::span<const PickleValue> items) {
  if (std::holds_alternative<std::monostate>(list)) list = Frames{};
  Frames* frames = std::get_if<Frames>(&list);
  if (frames == nullptr) {
    list = Mixed{};
    return discard(items);
  }
  const std::size_t before = frames->numbers.size();
  if (before == 0) frames->numbers.reserve(items.size());
  for (const PickleValue item : items) {
    if (!item.is(Kind::shared, kFrame)) {
      list = Mixed{};
      return discard(items);
    }
    frames->numbers.push_back(item.index());
  }
}

// device_traces: a list of lists of trace entries, some of them empty.
void SnapshotBuilder::append_lists(List& list, std::span<const PickleValue> items) {
  if (std::holds_alternative<std::monostate>(list)) list = std::vector<Events>{};
  auto* traces = std::get_if<std::vector<Events>>(&list);
  bool fits = traces != nullptr;
  for (const PickleValue item : items)
    fits = fits && (item.is(Kind::shared, kEmptyList) ||
                    (item.is(Kind::unique, kList) && std::holds_alternative<Events>(lists_[item.index()])));
  if (!fits) {
    list = Mixed{};
    return discard(items);
  }
  for (const PickleValue item : items)
    traces->push_back(item.kind() == Kind::unique ? take_list<Events>(item) : Events());
  discard(items);
}

template <class Record>
void SnapshotBuilder::append_records(List& list, Tag tag, std::vector<Record>& waiting,
                                     std::span<const PickleValue> items) {
  if (std::holds_alternative<std::monostate>(list)) list = std::vector<Record>{};
  auto* records = std::get_if<std::vector<Record>>(&list);
  bool fits = records != nullptr;
  for (const PickleValue item : items) fits = fits && item.is(Kind::unique, tag);
  if (!fits) {
    list = Mixed{};
    return discard(items);
  }
  // Records wait in the order of their dicts, and all after the first of these are these.
  const auto begin = waiting.begin() + items[0].index();
  assert(waiting.end() - begin == static_cast<std::ptrdiff_t>(items.size()));
  records->insert(records->end(), std::make_move_iterator(begin), std::make_move_iterator(waiting.end()));
  discard(items);
}

template <class Content>
Content SnapshotBuilder::take_list(PickleValue value) {
  return std::move(std::get<Content>(lists_[value.index()]));
}

template <class Content>
Content SnapshotBuilder::take_list(Name name, const char* expected) {
  const PickleValue value = fields_[name];
  if (!fields_.has(name) || value.is(Kind::shared, kEmptyList)) return {};
  if (!value.is(Kind::unique, kList) || !std::holds_alternative<Content>(lists_[value.index()]))
    fields_.fail(name, expected);
  return take_list<Content>(value);
}
template SnapshotBuilder::History SnapshotBuilder::take_list(Name, const char*);
template std::vector<RecordedBlock> SnapshotBuilder::take_list(Name, const char*);
template std::vector<SnapshotBuilder::Events> SnapshotBuilder::take_list(Name, const char*);
template std::vector<SnapshotBuilder::DeviceSegment> SnapshotBuilder::take_list(Name, const char*);
template std::vector<MemoryAnnotation> SnapshotBuilder::take_list(Name, const char*);
template std::vector<SnapshotBuilder::DeviceSegment> SnapshotBuilder::take_list(PickleValue);

void SnapshotBuilder::discard(std::span<const PickleValue> items) {
  for (std::size_t i = items.size(); i-- > 0;) {
    const PickleValue item = items[i];
    if (item.kind() != Kind::unique) continue;
    const std::uint32_t index = item.index();
    switch (item.tag()) {
      case kEvent:
        events_.resize(index);
        break;
      case kBlock:
        blocks_.resize(index);
        break;
      case kSegment:
        segments_.resize(index);
        break;
      case kAnnotation:
        annotations_.resize(index);
        break;
      case kHistory:
        histories_.resize(index);
        break;
      case kDivisions:
        divisions_.resize(index);
        break;
      case kSettings:
        settings_.resize(index);
        break;
      case kList:
        lists_[index] = {};
        free_lists_.push_back(index);
        break;
      case kSnapshot:
        throw PickleError{"a snapshot within another value", "one snapshot, by itself"};
    }
  }
}

std::string SnapshotBuilder::name(PickleValue value) const {
  static constexpr const char* kNames[] = {"a frame",       "a list of frames",  "a pair of integers",
                                           "a float",       "an empty list",     "an empty dict",
                                           "a trace entry", "a block",           "a segment",
                                           "an annotation", "a block's history", "a dict of numbers",
                                           "settings",      "a snapshot",        "a list of records"};
  static_assert(std::size(kNames) == kList + 1);
  if (value.kind() == Kind::shared || value.kind() == Kind::unique) return kNames[value.tag()];
  if (value.kind() == Kind::other) return "a list, dict or tuple of other things";
  return std::string(to_string(value.kind()));
}

}  // namespace memwall
