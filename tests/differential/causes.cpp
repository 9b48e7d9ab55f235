#include "tests/differential/causes.h"

#include <algorithm>

namespace memwall {
namespace {

// Nothing reads or writes it any more when it ends in the one step, until it ends in the other.
bool rests_at_its_end(const Difference& d) {
  const std::size_t first = std::min(d.simulated.to, d.executed.to);
  return d.simulated.used_until <= first && d.executed.used_until <= first;
}

bool is_handed_on_within_a_unit(const Difference& d) {
  return d.kind == DifferenceKind::storage_ends_earlier && d.part == StepPart::forward && d.ends_in_forward &&
         rests_at_its_end(d) && d.kernel.phase == Phase::forward;
}

bool is_result_made_twice(const Difference& d) {
  return d.kind == DifferenceKind::storage_ends_earlier && d.part == StepPart::forward && !d.ends_in_forward &&
         rests_at_its_end(d) && d.kernel.phase == Phase::forward && (d.simulated.saved || d.executed.saved);
}

bool is_let_go_a_kernel_earlier(const Difference& d) {
  return d.kind == DifferenceKind::storage_ends_earlier && d.part == StepPart::backward && rests_at_its_end(d) &&
         d.kernel.phase != Phase::backward && d.simulated.to == d.executed.to + 1;
}

bool is_saved_and_never_read(const Difference& d) {
  return d.kind == DifferenceKind::storage_lives_longer && d.part == StepPart::backward && d.ends_with_rerun &&
         rests_at_its_end(d) && d.kernel.phase == Phase::recompute && (d.executed.saved || d.simulated.saved);
}

bool is_order_within_operator(const Difference& d) {
  return (d.kind == DifferenceKind::copies_out || d.kind == DifferenceKind::copies_back) && d.same_total;
}

}  // namespace

const std::vector<DifferenceCause>& difference_causes() {
  static const std::vector<DifferenceCause> causes = {
      {"handed on",
       "What one module of a unit hands to the next no variable of the program names; memwall gives it back where the "
       "program did without the plan.",
       is_handed_on_within_a_unit, "unet-every_two"},
      {"made twice",
       "A unit's last result, which autograd saves, is made again by the re-run, so that nobody holds the first one; "
       "planners count on it until the re-run.",
       is_result_made_twice, "resnet-chen"},
      {"a kernel earlier",
       "A node of backward, or a re-run, lets go of what it was handed before its last kernel is launched; memwall "
       "behind that.",
       is_let_go_a_kernel_earlier, "llama-rotor_tight"},
      {"never read",
       "Autograd saves what its node does not read (of some operators a shape alone); made again, it lives until that "
       "node has run, while memwall gives it back at the end of the re-run.",
       is_saved_and_never_read, "moe-full"},
      {"order", "What one operator saves leaves and comes back in another order, all before the same kernels.",
       is_order_within_operator, "llama-capuchin_middle"},
  };
  return causes;
}

const DifferenceCause* cause_of(const Difference& difference) {
  for (const DifferenceCause& cause : difference_causes())
    if (cause.admits(difference)) return &cause;
  return nullptr;
}

}  // namespace memwall
