// A step as a policy makes it beside the same step as PyTorch executed it: what differs, kernel by kernel and storage
// by storage.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/step_memory.h"

namespace memwall {

enum class DifferenceKind : std::uint8_t {
  kernel_left_out,       // simulated, not executed
  kernel_added,          // executed, not simulated
  kernel_of_other,       // the same operator, of another module, or repeating another one
  storage_lives_longer,  // executed, than simulated: it ends before a later kernel
  storage_ends_earlier,
  storage_begins_earlier,
  storage_begins_later,
  storage_of_other_kind,
  storage_left_out,  // simulated, not executed
  storage_added,     // executed, not simulated
  copies_out,        // their bytes in order
  copies_back,
  copy_issued_elsewhere,  // before another kernel
  peak                    // of a part, though all storages live equally long
};
std::string_view to_string(DifferenceKind kind);

// Numbers of kernels count those that both steps have. Of kernels and storages that one of the steps lacks the other
// one's stand on both sides.
struct Difference {
  DifferenceKind kind = DifferenceKind::peak;
  StepPart part = StepPart::forward;  // where it is seen
  std::string what;                   // a kernel's text, or the one that made the storage
  std::size_t at = 0;                 // the number of the kernel
  StorageSpan simulated{}, executed{};
  StepKernel kernel{};                            // the one that differs, or that made the storage
  bool ends_in_forward = false;                   // of storages: before the first kernel of backward, in both steps
  bool ends_with_rerun = false;                   // one of the two ends right behind the last kernel of a re-run
  std::size_t backward = 0;                       // the number of the first kernel of backward
  bool same_total = false;                        // of copies: the same ones before each kernel, in another order
  Bytes simulated_bytes = 0, executed_bytes = 0;  // of peaks and copies
};

// Sorted by kind and place. Empty: the steps are the same.
std::vector<Difference> differences(const StepMemory& simulated, const StepMemory& executed);

// "backward: storage of aten::gelu, 1024 bytes, lives longer: until kernel 7, simulated 5".
std::string text_of(const Difference& difference);

}  // namespace memwall
