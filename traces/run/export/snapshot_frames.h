// Where an allocation comes from, as the frames of a memory snapshot: the operator, its module, and the part of the
// step in the form in which PyTorch's own frames show it, so that what reads snapshots tells forward from backward.
//
// A step knows no lines of source text: files are "<module layers.3.mlp>", "<optimizer>" and the like, lines are 0.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <tuple>

#include "traces/run/export/memory_changes.h"
#include "traces/run/export/pickle_text.h"
#include "traces/run/run.h"

namespace memwall {

class SnapshotFrames {
 public:
  // Both outlive it.
  SnapshotFrames(const Run& run, PickleText& pickle) : run_(run), pickle_(pickle) {}

  // Writes the list, innermost first: of equal ones a reference to the first.
  void write(const MemoryChange& change);
  void write_none();

 private:
  enum class Source : std::uint8_t { program, parameters, states, before, pager };
  // What a list depends on: source, phase, of a gradient?, operator, module.
  using Key = std::tuple<Source, Phase, bool, StringId, StringId>;

  Source source_of(const MemoryChange& change) const;
  void write_list(const Key& key);
  void write_program(const Key& key);
  void frame(std::string_view name, std::string_view file);

  const Run& run_;
  PickleText& pickle_;
  std::map<Key, std::uint32_t> known_;  // as the pickle remembers them
};

}  // namespace memwall
