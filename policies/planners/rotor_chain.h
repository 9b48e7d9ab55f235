// The fastest persistent schedule of a chain of stages that keeps to a memory limit.
//
// Beaumont, Eyraud-Dubois, Herrmann, Joly, Shilova 2019, "Optimal checkpointing for heterogeneous chains: how to train
// deep neural networks with limited memory" (Inria RR-9302, arXiv 1911.13214; the program is called rotor):
// a dynamic programme over parts s..t of the chain and memory m, whose input is there and whose gradient has come.
// Persistent: what is kept is kept until backward has used it. Either the first stage keeps all for its backward and
// the rest follows with what memory is left; or forward runs to a stage whose input alone is kept, the part from there
// on is done with, and then the part before it begins anew. Memory is counted in slots, sizes rounded up: O(L^3 slots)
// time and O(L^2 slots) memory for L stages.
//
// Deviations, each of which is theirs again where the numbers are (tests/unit/policies/planners/rotor_chain_test.cpp):
// the program's own forward, which is over before the first backward, may take other memory than a re-run: what it
// starts from goes as soon as the program gives it back, and no gradient is there yet;
// what a stage passes on may in part be needed by the next forward alone, and is then given up as soon as that keeps
// all; forward right before its own backward may be shorter, since nobody wants its output any more; the bytes while
// forward runs are given for either kind of forward, instead of one overhead; gradients have sizes of their own. Where
// these grow towards the chain's begin it could pay to save a stage before backward of a later one has run: such
// schedules are not looked at.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/units.h"

namespace memwall {

struct RotorStage {
  static constexpr Bytes kNever = Bytes{1} << 60;

  Duration forward{};       // of all of it
  Duration forward_last{};  // where its backward is next
  Duration backward{};
  Bytes output_saved = 0;   // of its output: what backward reads too, a part of `saved`
  Bytes output_passed = 0;  // of its output: what only the next forward reads
  Bytes saved = 0;          // that it keeps for backward
  Bytes gradient = 0;       // that lives beside the chain once backward behind the stage has run, until its own does
  Bytes while_passing =
      0;  // beside its input, at most, while forward keeps the output alone; kNever: it is not run again
  Bytes while_saving = 0;    // likewise, while it keeps all
  Bytes while_backward = 0;  // at most, what it has saved and gradients among it

  static constexpr Bytes kAsAgain = -kNever;
  Bytes while_last = kAsAgain;  // as while_saving, where its backward is next; kAsAgain: the same

  // While the program's own forward runs, before any backward: at most, with what lives beside the chain then and with
  // what is left of the input's passed part, which the program may give back on the way. kAsAgain: the numbers above
  // hold for it, too.
  Bytes first_saving = kAsAgain;         // while it keeps all
  Bytes first_passing = kAsAgain;        // while it keeps the output alone
  Bytes first_passing_alone = kAsAgain;  // the same without the input, which is kept for later
};

struct RotorChain {
  std::vector<RotorStage> stages;
  Bytes input_passed = 0;  // of what the chain starts from: what only the first stage's forward reads
};

struct RotorStep {
  enum class Kind : std::uint8_t {
    forward,         // keeps the output; of the input what later steps start from
    forward_saving,  // keeps what backward needs
    backward
  };
  Kind kind = Kind::forward;
  std::uint32_t stage = 0;

  bool operator==(const RotorStep&) const = default;
};

struct RotorSchedule {
  Duration time{};
  std::vector<RotorStep> steps;
};

class RotorTable {
 public:
  // REQUIRES: stages >= 1, slots >= 1; times are below 2^53 ps together.
  RotorTable(RotorChain chain, Bytes limit, std::uint32_t slots);

  // Within the limit; nothing where no schedule is.
  std::optional<RotorSchedule> schedule() const;
  // The least memory of any schedule that keeps to the limit.
  std::optional<Bytes> least_memory() const;

 private:
  bool is_first(std::size_t t) const { return t + 1 == chain_.stages.size(); }
  // Of memory, in slots: the least that does, and what is enough for the part's fastest schedule.
  struct Range {
    std::uint32_t first = 0, enough = 0;
  };
  std::size_t part(std::size_t s, std::size_t t) const;
  std::size_t row(std::size_t s, std::size_t t) const { return part(s, t) * (slots_ + 1); }
  void note_range(std::size_t s, std::size_t t);
  Bytes input_passed(std::size_t s) const { return s == 0 ? chain_.input_passed : chain_.stages[s - 1].output_passed; }
  std::uint32_t in_slots(Bytes bytes) const;
  std::uint32_t least_for_saving(std::size_t s, std::size_t t) const;
  std::uint32_t least_for_passing(std::size_t s, std::size_t t, std::size_t k) const;
  std::uint32_t held_from(std::size_t s, std::size_t cut) const;
  void fill(std::size_t s, std::size_t t);
  void append(std::size_t s, std::size_t t, std::uint32_t m, std::vector<RotorStep>& steps) const;

  const RotorChain chain_;
  const Bytes slot_;           // bytes, rounded up
  const std::uint32_t slots_;  // within the limit
  std::vector<Range> ranges_;  // by part
  std::vector<double> cost_;   // by part s..t and slots of memory: ps, infinite where it does not fit
};

}  // namespace memwall
