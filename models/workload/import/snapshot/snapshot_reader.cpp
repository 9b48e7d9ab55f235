#include "models/workload/import/snapshot/snapshot_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/workload/import/bytes/byte_source.h"
#include "models/workload/import/bytes/quote_for_message.h"
#include "models/workload/import/snapshot/snapshot_builder.h"
#include "sim/error.h"

namespace memwall {

MemoryRecording SnapshotBuilder::finish(PickleValue top) {
  if (top.is(Kind::unique, kList) && std::holds_alternative<std::vector<DeviceSegment>>(lists_[top.index()])) {
    all_segments_ = take_list<std::vector<DeviceSegment>>(top);
    notes_.push_back("The file is a list of segments, as torch.cuda.memory_snapshot() returns; it has no trace.");
  } else if (!top.is(Kind::unique, kSnapshot)) {
    throw PickleError{name(top),
                      "a dict with 'segments' and 'device_traces', as torch.cuda.memory._dump_snapshot writes"};
  }
  MemoryRecording recording;
  if (all_settings_) {
    recording.settings_text = all_settings_->text.value_or("");
    recording.settings = settings_of(*all_settings_, notes_);
  } else {
    notes_.push_back("The file has no allocator settings; the default settings are taken.");
  }
  recording.annotations = std::move(all_annotations_);
  finish_tables(recording);
  finish_devices(recording);
  finish_streams(recording);
  finish_times(recording);
  finish_notes(recording);
  check_.finish(recording);
  return recording;
}

void SnapshotBuilder::finish_devices(MemoryRecording& recording) {
  std::map<int, DeviceRecording> devices;
  for (std::size_t i = 0; i < traces_.size(); ++i)
    if (!traces_[i].empty()) devices[static_cast<int>(i)].events = std::move(traces_[i]);
  for (DeviceSegment& made : all_segments_) devices[made.device].segments.push_back(std::move(made.segment));
  for (auto& [number, device] : devices) {
    device.device = number;
    recording.devices.push_back(std::move(device));
  }
  if (recording.devices.empty()) notes_.push_back("The file has neither segments nor trace entries.");
}

// A release goes from stream to stream by pointer; until here they are numbered as the file names them.
void SnapshotBuilder::finish_streams(MemoryRecording& recording) const {
  std::vector<std::pair<std::uint64_t, std::uint16_t>> by_pointer;
  for (const auto& [pointer, number] : streams_) by_pointer.emplace_back(static_cast<std::uint64_t>(pointer), number);
  std::sort(by_pointer.begin(), by_pointer.end());
  std::vector<std::uint16_t> ordered(by_pointer.size());
  for (std::size_t i = 0; i < by_pointer.size(); ++i) ordered[by_pointer[i].second] = static_cast<std::uint16_t>(i);
  for (DeviceRecording& device : recording.devices) {
    for (MemoryEvent& event : device.events) event.stream = ordered[event.stream];
    for (RecordedSegment& segment : device.segments) segment.stream = ordered[segment.stream];
  }
}

void SnapshotBuilder::finish_times(MemoryRecording& recording) {
  std::uint64_t entries = 0, timeless = 0;
  for (DeviceRecording& device : recording.devices)
    for (MemoryEvent& event : device.events) {
      ++entries;
      if (event.time_us != kNoTime) continue;
      ++timeless;
      event.time_us = 0;
    }
  recording.has_times = timeless == 0;
  if (timeless == 0) return;
  notes_.push_back(timeless == entries
                       ? "The trace entries have no times (PyTorch before 2.2); only their order is known."
                       : fmt::format("{} of {} trace entries have no time; times are not used.", timeless, entries));
}

// Keeps the texts of frames only; the reader's table has every text of the file.
void SnapshotBuilder::finish_tables(MemoryRecording& recording) {
  recording.frames = std::move(frames_.frames());
  recording.stacks = std::move(stacks_.stacks());
  recording.strings.emplace_back();
  std::unordered_map<std::uint32_t, StringId> kept{{0, 0}};
  const auto keep = [&](StringId& text) {
    const auto [place, is_new] = kept.try_emplace(text, static_cast<StringId>(recording.strings.size()));
    if (is_new) recording.strings.emplace_back(texts_[text]);
    text = place->second;
  };
  for (SourceFrame& frame : recording.frames) {
    keep(frame.function);
    keep(frame.file);
  }
}

void SnapshotBuilder::finish_notes(MemoryRecording& recording) {
  for (const auto& [action, times] : unknown_actions_)
    notes_.push_back(fmt::format("Trace entries of action {} are not understood and ignored: {}.",
                                 quote_for_message(texts_[action]), times));
  for (const auto& [record, keys] : unknown_keys_) {
    std::set<std::string> names;
    for (const std::uint32_t key : keys) names.insert(quote_for_message(texts_[key]));
    notes_.push_back(
        fmt::format("Fields of {} that are not known here are ignored: {}.", record, fmt::join(names, ", ")));
  }
  if (pooled_entries_ > 0)
    notes_.push_back(
        fmt::format("{} trace entries name a private pool; pools are taken from the segments alone.", pooled_entries_));
  if (untyped_segments_ > 0)
    notes_.push_back(fmt::format("{} segments have no segment_type; those of at most 2 MiB are taken for small ones.",
                                 untyped_segments_));
  recording.notes = std::move(notes_);
}

bool is_pickle(const std::filesystem::path& path) {
  char first[2];
  return ByteSource(path).read(first, 2) == 2 && static_cast<unsigned char>(first[0]) == 0x80 && first[1] >= 2 &&
         first[1] <= 5;
}

MemoryRecording read_snapshot(const std::filesystem::path& path) {
  SnapshotBuilder builder;
  const PickleValue top = read_pickle(path, builder);
  try {
    return builder.finish(top);
  } catch (const PickleError& fault) {
    throw InputError(fmt::format("{}: found {}; expected {}.", path.string(), fault.found, fault.expected));
  }
}

}  // namespace memwall
