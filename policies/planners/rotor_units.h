// How a forward pass divides into units for rotor (rotor_stages.h), and what each storage of it is then.
#pragma once

#include <cstdint>
#include <vector>

#include "policies/planners/rotor_stages.h"

namespace memwall {

// Of a storage, for the unit that makes it.
enum class RotorPart : std::uint8_t {
  beside,        // not of the chain
  saved,         // backward reads it, no other unit's forward
  idle,          // it lives until backward, and nobody reads it behind the unit
  output_saved,  // the next unit reads it, and backward
  output_passed  // the next unit alone reads it
};

// Divides a pass into units until none has to be joined with a neighbour.
class RotorUnitSearch {
 public:
  // At most `most` units. `profile` must outlive it.
  RotorUnitSearch(const StepProfile& profile, const ForwardChain& chain, std::size_t most);

  // Without RotorUnit::ops and is_repeatable. Once.
  std::vector<RotorUnit> run();

  RotorPart part(StorageId s) const { return part_[s]; }

 private:
  static constexpr int kNoUnit = -1;

  int unit_at(OpId id) const;
  void join_units(int first, int last);
  bool join();
  void classify();
  bool changes_in_backward(StorageId s) const;
  void find_backwards();

  const StepProfile& p_;
  const Trace& t_;
  const Dataflow& flow_;
  const Pass pass_;
  std::vector<OpId> begins_;     // by unit
  OpId end_ = 0;                 // of the last
  std::vector<bool> joined_;     // by unit: with the one before it
  std::vector<int> unit_of_;     // by storage
  std::vector<RotorPart> part_;  // likewise
  std::vector<RotorUnit> units_;
};

}  // namespace memwall
