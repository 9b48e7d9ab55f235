// The fastest persistent schedule of a chain of stages that keeps to a memory limit.
//
// Beaumont, Eyraud-Dubois, Herrmann, Joly, Shilova 2019, "Optimal checkpointing for heterogeneous chains: how to train
// deep neural networks with limited memory" (Inria RR-9302, arXiv 1911.13214; the program is called rotor):
// a dynamic programme. Its problem (s, t, m): do forward and backward of the stages s to t in memory m, in the least
// time; the input of s is there, and backward of all stages behind t has run. It has two kinds of solutions. Either
// stage s keeps all that its backward needs, the problem (s+1, t) is solved in the memory that is left, and backward of
// s follows. Or forward runs from s to a stage k without keeping more than the input of k, the problem (k, t) is
// solved, and then (s, k-1), which begins with forward of s once more. Schedules of this kind are called persistent:
// what is kept stays until backward has used it. Memory is counted in slots, sizes rounded up: O(L^3 slots) time and
// O(L^2 slots) memory for L stages.
//
// Deviations. With their numbers each of them makes no difference
// (tests/unit/policies/planners/rotor_chain_test.cpp):
// - The program's own forward, which is over before the first backward, may take other memory than a re-run: what it
//   starts from goes as soon as the program gives it back, and no gradient is there yet (first_saving, ...).
// - A part of what a stage passes on may be read by the next forward alone (output_passed). It is given up as soon as
//   the next stage keeps all for its backward.
// - Forward right before its own backward may be shorter and take less, since nobody wants its output any more.
// - The bytes while forward runs are given for either kind of forward, instead of one overhead for both.
// - Gradients have sizes of their own. Where these grow towards the chain's begin it could pay to keep a stage's
//   results before backward of a later one has run: such schedules are not looked at.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/units.h"

namespace memwall {

struct RotorStage {
  static constexpr Bytes kNever = Bytes{1} << 60;

  Duration forward{};       // of all of it
  Duration forward_last{};  // of what runs again where its backward is next
  Duration backward{};

  Bytes output_saved = 0;   // of its output: what backward reads too, a part of `saved`
  Bytes output_passed = 0;  // of its output: what only the next forward reads
  Bytes saved = 0;          // that it keeps for backward
  Bytes gradient = 0;       // that lives beside the chain once backward behind the stage has run, until its own does

  // While forward runs again, at most, besides what the stage starts from:
  Bytes while_passing = 0;  // while it keeps its output alone; kNever: it is not run again
  Bytes while_saving = 0;   // while it keeps all
  static constexpr Bytes kAsAgain = -kNever;
  Bytes while_last = kAsAgain;  // where its backward is next; kAsAgain: as while_saving
  // While backward runs, at most: what the stage has saved, and gradients, among it. Less what the program gives back
  // by then of output_saved of the stage before, which counts as there all the time.
  Bytes while_backward = 0;

  // While the program's own forward runs, before any backward: at most, with what lives beside the chain then and with
  // what is left of the input's passed part, which the program may give back on the way. kAsAgain: the numbers above
  // hold for it, too.
  Bytes first_saving = kAsAgain;         // while it keeps all
  Bytes first_passing = kAsAgain;        // while it keeps its output alone
  Bytes first_passing_alone = kAsAgain;  // the same without the input, which is kept for later

  bool operator==(const RotorStage&) const = default;
};

struct RotorChain {
  std::vector<RotorStage> stages;
  Bytes input_passed = 0;  // of what the chain starts from: what only the first stage's forward reads
  bool operator==(const RotorChain&) const = default;
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
