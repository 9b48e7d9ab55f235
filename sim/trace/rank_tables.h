// What joining ranks and taking one out again share: how the tables of one trace are told in those of another.
// Internal to sim/: sim/trace/ranks.h is what others use.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/trace/trace.h"

namespace memwall {

// How a note begins that only the rank of this number has.
std::string rank_note_prefix(std::uint32_t number);

// Is Op::target an event number?
bool targets_event(const Op& op);

bool is_same(const ProcessGroup& a, const ProcessGroup& b);
// The groups of a trace by number, with those of which only an op's number tells.
std::vector<ProcessGroup> all_groups(const Trace& trace);
// Drops unknown ones at the end: those go without saying.
void trim_unknown(std::vector<ProcessGroup>& groups);

// A rank's devices by number, ascending: a capture may call its only one 3.
std::vector<std::uint16_t> devices_of(const Trace& trace, std::uint16_t rank);
// REQUIRES: `devices` holds `device`.
std::uint16_t device_position(const std::vector<std::uint16_t>& devices, std::uint16_t device);

// Names, shapes and places of one trace in the tables of another, which grow by what is new.
class RankDictionary {
 public:
  // Neither trace is owned.
  RankDictionary(const Trace& from, Trace& to);

  void translate(Op& op);
  void translate(Storage& storage);

 private:
  StringId string(StringId id);
  ShapeId shape(ShapeId id);
  std::uint8_t place(std::uint8_t id);

  static constexpr std::uint32_t kUnknown = 0xffffffff;
  const Trace& from_;
  Trace& to_;
  std::vector<std::uint32_t> strings_, shapes_, places_;
};

}  // namespace memwall
