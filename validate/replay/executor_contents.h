// What every storage of a schedule holds at every op, concluded from the schedule alone, so that the checked
// pass knows what to look for.
//
// A kernel, memset, collective or host work makes new content in what it writes; a copy brings its source's content to
// its destination. Preexisting storages begin with content of their own, others with none. A copy of fewer bytes
// than its destination holds makes only those known: the rest is not looked at until something is written again.
// Where contents have numbers (step_contents.h), what an op has to find follows from these and not from what the copies
// before it brought, so that a copy of the wrong storage, or of the right one too early, is found by who reads it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/trace/trace.h"
#include "validate/replay/step_contents.h"

namespace memwall {

// One operand of an op, its memory not yet known.
struct PlannedOperand {
  StorageId storage = kNoStorage;
  Bytes bytes = 0;                       // from its start; less than the storage's where only those are known
  std::uint64_t expected = 0, made = 0;  // tags, as in Operand
};

class ContentPlan {
 public:
  // Another `salt` gives other contents, so that what an earlier execution left in memory cannot look right.
  // REQUIRES: check(schedule) and not_executable(schedule) are empty; `numbers` is of this schedule, or empty.
  explicit ContentPlan(const Trace& schedule, std::uint64_t salt = 0, const StepContents& numbers = {});

  // Of a kernel, memset, collective or host work: what it reads, then what it only writes. Of a copy or storage I/O:
  // source, then destination, `bytes` as many as are moved. Storages of 0 bytes are left out.
  std::span<const PlannedOperand> operands(OpId op) const {
    return {operands_.data() + first_[op], first_[op + 1] - first_[op]};
  }
  // With which content a storage begins: 0 unless it is preexisting.
  std::uint64_t initial(StorageId storage) const { return initial_[storage]; }

 private:
  struct Content {
    std::uint64_t tag = 0;
    Bytes known = 0;  // bytes from the start
  };

  void compute(const Op& op);
  void transfer(const Op& op);
  std::uint64_t fresh();
  // Of a numbered content, or of one that nobody has numbered.
  std::uint64_t tag_of(std::uint32_t number) { return number == 0 ? fresh() : numbered(number); }
  std::uint64_t numbered(std::uint32_t number) const;

  const Trace& trace_;
  const std::uint64_t salt_;
  const StepContents numbers_;
  std::vector<Content> contents_;
  std::vector<PlannedOperand> operands_;
  std::vector<std::size_t> first_;
  std::vector<std::uint64_t> initial_;
  std::uint64_t made_ = 0;
};

}  // namespace memwall
