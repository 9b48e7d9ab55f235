// Turns the values of a memory snapshot's pickle into a MemoryRecording while they are read.
//
// A dict is told by its keys: `action` makes it a trace entry, `total_size` a segment, `state` a block, `filename` a
// frame, and so on. It becomes a record at once; lists gather records of one kind. Anything else is dropped.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "models/workload/import/snapshot/pickle_reader.h"
#include "models/workload/import/snapshot/snapshot_check.h"
#include "models/workload/import/snapshot/snapshot_fields.h"
#include "models/workload/import/snapshot/snapshot_settings.h"
#include "models/workload/import/snapshot/snapshot_tables.h"

namespace memwall {

class SnapshotBuilder final : public PickleContent {
 public:
  SnapshotBuilder();

  PickleValue text(std::string_view text) override;
  PickleValue real(double value) override;
  PickleValue tuple(std::span<const PickleValue> items) override;
  PickleValue dict(std::span<const PickleValue> pairs) override;
  PickleValue more_of_dict(PickleValue before, std::span<const PickleValue> pairs) override;
  PickleValue begin_list() override;
  void append(PickleValue list, std::span<const PickleValue> items) override;
  PickleValue finish_list(PickleValue list) override;
  PickleValue empty_list() override;
  PickleValue empty_dict() override;
  std::string name(PickleValue value) const override;

  // `top`: the pickle's one value. Throws PickleError where it is no snapshot. Call once.
  MemoryRecording finish(PickleValue top);

 private:
  using Kind = PickleValue::Kind;
  using Name = SnapshotName;
  // What the numbers of shared and unique values count.
  enum Tag : std::uint8_t {
    kFrame,
    kStack,
    kPool,
    kReal,
    kEmptyList,
    kEmptyDict,  // shared
    kEvent,
    kBlock,
    kSegment,
    kAnnotation,
    kHistory,
    kDivisions,
    kSettings,
    kSnapshot,
    kList  // unique
  };
  static constexpr std::int64_t kNoTime = -1;  // until the recording is finished
  struct DeviceSegment {
    int device = 0;
    RecordedSegment segment;
  };
  struct History {  // of a block, as PyTorch 2.0 writes it
    Bytes requested = 0;
    StackId stack = 0;
  };
  using Divisions = std::vector<std::pair<std::int64_t, std::int64_t>>;
  struct Frames {
    std::vector<std::uint32_t> numbers;
  };
  struct Mixed {};
  using Events = std::vector<MemoryEvent>;
  using List = std::variant<std::monostate, Mixed, Frames, Events, std::vector<Events>, std::vector<RecordedBlock>,
                            std::vector<DeviceSegment>, std::vector<MemoryAnnotation>, History>;

  // Conversions of fields_.
  PickleValue make_frame();
  PickleValue make_event();
  PickleValue make_block();
  PickleValue make_segment();
  PickleValue make_annotation();
  PickleValue make_history();
  PickleValue make_settings();
  PickleValue make_snapshot();
  std::optional<PickleValue> make_divisions(std::span<const PickleValue> pairs);
  void set_event_range(MemoryEvent& event);

  StackId stack_of(Name name) const;
  std::uint16_t stream_of();
  Bytes counted(Bytes size);
  void note_unknown_keys();
  // Puts a record on its stack, after all that its dict held is used up.
  template <class Record>
  PickleValue hold(std::vector<Record>& waiting, Tag tag, Record record) {
    discard(fields_.pairs());
    waiting.push_back(std::move(record));
    return {Kind::unique, tag, static_cast<std::uint32_t>(waiting.size() - 1)};
  }
  // Moves out what the list of field `name` holds; nothing where the field is absent or holds []. The list itself, now
  // empty, is discarded with its dict.
  template <class Content>
  Content take_list(Name name, const char* expected);
  template <class Content>
  Content take_list(PickleValue value);

  void append_frames(List& list, std::span<const PickleValue> items);
  void append_lists(List& list, std::span<const PickleValue> items);
  template <class Record>
  void append_records(List& list, Tag tag, std::vector<Record>& waiting, std::span<const PickleValue> items);
  // Uses up all of these.
  void discard(std::span<const PickleValue> items);

  void finish_streams(MemoryRecording& recording) const;
  void finish_times(MemoryRecording& recording);
  void finish_devices(MemoryRecording& recording);
  void finish_tables(MemoryRecording& recording);
  void finish_notes(MemoryRecording& recording);

  TextTable texts_;
  FrameTable frames_;
  StackTable stacks_;
  SnapshotFields fields_{texts_, *this};
  SnapshotCheck check_;

  // Records whose dict waits on the reader's stack; each is used up by what comes after it, so these are stacks too.
  std::vector<MemoryEvent> events_;
  std::vector<RecordedBlock> blocks_;
  std::vector<DeviceSegment> segments_;
  std::vector<MemoryAnnotation> annotations_;
  std::vector<History> histories_;
  std::vector<Divisions> divisions_;
  std::vector<SnapshotSettings> settings_;
  std::vector<List> lists_;
  std::vector<std::uint32_t> free_lists_;

  std::vector<double> reals_;
  std::vector<std::array<std::int64_t, 2>> pools_;
  std::map<std::array<std::int64_t, 2>, std::uint32_t> pool_numbers_;
  std::unordered_map<std::int64_t, std::uint16_t> streams_;
  std::pair<std::int64_t, std::uint16_t> last_stream_{0, 0};

  // Of the snapshot.
  bool has_snapshot_ = false;
  std::vector<Events> traces_;
  std::vector<DeviceSegment> all_segments_;
  std::vector<MemoryAnnotation> all_annotations_;
  std::optional<SnapshotSettings> all_settings_;
  // For notes.
  Bytes counted_bytes_ = 0;
  std::uint64_t pooled_entries_ = 0, untyped_segments_ = 0;
  std::map<std::uint32_t, std::uint64_t> unknown_actions_;       // text -> how often
  std::map<std::string, std::set<std::uint32_t>> unknown_keys_;  // record -> texts
  std::vector<std::string> notes_;
};

}  // namespace memwall
