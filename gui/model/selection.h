// What the person looks at: chosen op, storage, range and instant. Shared by all views.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gui/model/time_range.h"
#include "sim/trace/op.h"

namespace memwall::gui {

// An op of one of the runs that are open, as its call on a host thread or as its work.
struct OpRef {
  std::uint8_t run = 0;  // 0, or 1 for the second of a comparison
  OpId op = kNoOp;
  bool call = false;
  bool operator==(const OpRef&) const = default;
};

struct StorageRef {
  std::uint8_t run = 0;
  StorageId storage = kNoStorage;
  bool operator==(const StorageRef&) const = default;
};

struct Selection {
  std::optional<OpRef> op;
  std::optional<StorageRef> storage;
  std::optional<TimeRange> range;  // dragged
  std::optional<Time> cursor;      // clicked, or jumped to: live sets are of this instant
  bool operator==(const Selection&) const = default;
};

// A mark of the person's own, at an instant or over a range (begin < end).
struct Bookmark {
  TimeRange range;
  std::string label;
  bool operator==(const Bookmark&) const = default;
};

}  // namespace memwall::gui
