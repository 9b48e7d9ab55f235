// A profile of which lines were renamed, lost or added: does grafting list what is wrong, and leave all else as it was?
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "models/workload/graft/graft.h"
#include "sim/trace/trace_check.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/profile_of.h"
#include "tests/support/random_step.h"
#include "tests/support/same_program.h"
#include "tests/support/test_machine.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

GptShape random_gpt() {
  GptShape gpt;
  gpt.layers = *rc::gen::inRange(1, 5);
  gpt.hidden = 8 << *rc::gen::inRange(0, 4);
  gpt.sequence = 4 << *rc::gen::inRange(0, 3);
  gpt.flash_attention = *rc::gen::arbitrary<bool>();
  gpt.preexisting_gradients = *rc::gen::arbitrary<bool>();
  gpt.steps = *rc::gen::inRange(1, 3);
  gpt.host_gap = nanoseconds(*rc::gen::inRange(0, 5000));
  gpt.launch_cost = nanoseconds(*rc::gen::inRange(0, 5000));
  gpt.allocator_cost = nanoseconds(*rc::gen::inRange(0, 1000));
  return gpt;
}

RC_GTEST_PROP(GraftProperty, AProfileOfAStepOntoTheStepIsTheStep, ()) {
  const Machine machine = test_machine();
  const Trace step = with_end_marks(gpt_step(random_gpt()));
  const GraftedTrace result = graft(profile_of(step), step);
  RC_ASSERT(program_difference(result.trace, step) == "");
  RC_ASSERT(result.report.unpaired_share() == 0);
}

// One device line in twenty, at least one, is renamed, lost, or has a stranger before it.
struct Damaged {
  Trace profile;
  std::size_t renamed = 0, lost = 0, added = 0;
};

Damaged damaged(const Trace& clean) {
  std::mt19937 random(*rc::gen::arbitrary<std::uint32_t>());
  Damaged result{clean};
  std::vector<OpId> lines;
  for (OpId id = 0; id < clean.ops.size(); ++id)
    if (is_device_line(clean.ops[id].kind)) lines.push_back(id);
  std::shuffle(lines.begin(), lines.end(), random);
  lines.resize(std::max<std::size_t>(1, lines.size() / 20));
  std::vector<bool> gone(clean.ops.size(), false);
  Trace& profile = result.profile;
  for (const OpId id : lines) {
    Op& op = profile.ops[id];
    switch (random() % 3) {
      case 0:
        op.operator_name = profile.strings.intern("renamed::" + std::to_string(id));
        op.operator_class = OperatorClass::other;
        ++result.renamed;
        break;
      case 1:
        gone[id] = true;
        ++result.lost;
        break;
      default:
        ++result.added;
        break;
    }
  }
  // Strangers replace nothing: they are lines of their own, put in last, from the back.
  std::sort(lines.begin(), lines.end());
  std::vector<OpId> strangers;
  for (const OpId id : lines)
    if (!gone[id] && profile.strings[profile.ops[id].operator_name].rfind("renamed::", 0) != 0) strangers.push_back(id);
  profile = without_lines(profile, gone);
  std::vector<OpId> places;  // in the profile without what is gone
  for (const OpId id : strangers)
    places.push_back(id - static_cast<OpId>(std::count(gone.begin(), gone.begin() + id, true)));
  for (std::size_t i = places.size(); i-- > 0;) {
    Op op = profile.ops[places[i]];
    op.operator_name = profile.strings.intern("stranger::" + std::to_string(places[i]));
    op.operator_class = OperatorClass::other;
    op.duration = nanoseconds(1234);
    profile.ops.insert(profile.ops.begin() + places[i], op);
    for (Op& other : profile.ops)
      if (other.kind == OpKind::hand_over && other.target >= places[i]) ++other.target;
    for (Step& s : profile.steps) {
      if (s.first > places[i]) ++s.first;
      if (s.last > places[i]) ++s.last;
    }
  }
  return result;
}

std::size_t lines_of(const std::vector<GraftedOperator>& operators, const std::string& prefix) {
  std::size_t lines = 0;
  for (const GraftedOperator& one : operators)
    if (one.what.rfind(prefix, 0) == 0) lines += one.work.lines;
  return lines;
}

// Sizes of work, as record_shapes has them: here a line that is larger takes longer.
Trace with_sizes(Trace step) {
  for (Op& op : step.ops)
    if (is_device_line(op.kind)) op.shape = step.shapes.intern({op.duration.count() + 1});
  return step;
}

// Lines alike in name and size are one another's equals. Without sizes some patterns that repeat are told by times
// alone, and a few lines more may be taken for their neighbours.
RC_GTEST_PROP(GraftProperty, WhatIsWrongIsListedAndNothingElseMoves, ()) {
  const Machine machine = test_machine();
  const bool sized = *rc::gen::arbitrary<bool>();
  const Trace plain = with_end_marks(gpt_step(random_gpt()));
  const Trace step = sized ? with_sizes(plain) : plain;
  Trace clean = profile_of(step);
  if (sized) clean = with_sizes(std::move(clean));
  const Damaged bad = damaged(clean);
  RC_ASSERT(check(bad.profile) == std::vector<std::string>{});
  const GraftedTrace result = graft(bad.profile, step);
  RC_ASSERT(check(result.trace) == std::vector<std::string>{});
  const GraftReport& r = result.report;
  // A renamed line has a place, or no partner; a stranger beside a lost or renamed one may be taken for it.
  RC_ASSERT(lines_of(r.taken_for, "renamed::") + lines_of(r.left_alone, "renamed::") == bad.renamed);
  RC_ASSERT(lines_of(r.taken_for, "stranger::") + lines_of(r.left_alone, "stranger::") == bad.added);
  RC_ASSERT(r.by_name.lines + bad.renamed + bad.added == r.measured.lines);
  RC_ASSERT(r.priced.lines <= bad.lost + bad.renamed);
  // The step's own lines stand there in their order, with their storages, and those that were seen with their times.
  std::vector<const Op*> own;
  for (const Op& op : result.trace.ops)
    if (is_device_line(op.kind) && op.use_count > 0) own.push_back(&op);
  const auto name = [](const Trace& trace, const Op& op) { return trace.strings[operator_or_name(op)]; };
  std::size_t at = 0, other_times = 0, further = 0;
  for (const Op& op : step.ops) {
    if (!is_device_line(op.kind) || op.use_count == 0) continue;
    // A renamed line and a stranger beside it may both be taken for one of the step's.
    while (at < own.size() && (name(result.trace, *own[at]) != name(step, op) || own[at]->use_count < op.use_count))
      ++at, ++further;
    RC_ASSERT(at < own.size());
    other_times += own[at]->duration != op.duration ? 1 : 0;
    ++at;
  }
  RC_ASSERT(own.size() - at + further <= bad.renamed + bad.added);
  RC_ASSERT(other_times <= (sized ? 1 : 3) * (bad.renamed + bad.lost + bad.added));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
