// Whatever a recording contains, also one that contradicts itself: is the report what a slow and simple reading of its
// definitions gives?
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "models/workload/memory/memory_report.h"
#include "models/workload/memory/source_lines.h"
#include "tests/support/training_scene.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

using Action = MemoryEvent::Action;

// Steps of random passes with allocations of random sizes, each freed at a random later moment or never.
TrainingScene random_training() {
  TrainingScene s;
  const std::vector<StackId> stacks = {s.forward,   s.forward_at(30), s.loss,        s.backward, s.accumulate,
                                       s.optimizer, s.zero_grad,      s.script_line, s.batch,    s.construction};
  std::vector<Address> alive;
  const int calls = *rc::gen::inRange(0, 120);
  for (int i = 0; i < calls; ++i) {
    const StackId stack = stacks[*rc::gen::inRange<std::size_t>(0, stacks.size())];
    if (!alive.empty() && *rc::gen::inRange(0, 2) == 0) {
      const std::size_t which = *rc::gen::inRange<std::size_t>(0, alive.size());
      s.b.free(alive[which], stack);
      alive.erase(alive.begin() + static_cast<std::ptrdiff_t>(which));
    } else {
      alive.push_back(s.b.alloc(*rc::gen::inRange(1, 4) * 1000, stack));
    }
  }
  return s;
}

// Events that no allocator would have made.
RecordingBuilder random_nonsense() {
  TrainingScene s;
  const int events = *rc::gen::inRange(0, 60);
  for (int i = 0; i < events; ++i) {
    const auto action = static_cast<Action>(*rc::gen::inRange(0, 10));
    const Bytes size = *rc::gen::element<Bytes>(0, -1, 1, 1000, Bytes{1} << 60, std::numeric_limits<Bytes>::max(),
                                                std::numeric_limits<Bytes>::min());
    const auto stack = static_cast<StackId>(*rc::gen::inRange<std::size_t>(0, s.b.recording().stacks.size()));
    s.b.event(action, *rc::gen::element<Address>(0, 512, 1024, 7, ~Address{0}), size, stack);
    s.b.device().events.back().time_us = *rc::gen::inRange(-5, 5);
    if (*rc::gen::inRange(0, 5) == 0)
      s.b.annotate(*rc::gen::element<std::string>("START", "END", "?"),
                   *rc::gen::element<std::string>("ProfilerStep#1", "Optimizer.step#A", "Optimizer.zero_grad#A", ""));
  }
  return s.b;
}

Bytes alive_at(const AllocationTable& table, std::uint32_t event) {
  Bytes bytes = 0;
  for (const Allocation& a : table.allocations)
    if (a.lives_at(event)) bytes += a.requested;
  return bytes;
}

RC_GTEST_PROP(MemoryReport, NonsenseIsReadWithoutHarm, ()) {
  RecordingBuilder b = random_nonsense();
  StartState start;
  start.segments.push_back({0, 4096, 0, false, false, 0, {{512, 512, 300, BlockState::Use::in_use}}});
  const AllocationTable table = tabulate_allocations(b.recording(), b.device(), start);
  RC_ASSERT(table.phases.size() == b.device().events.size());
  for (std::size_t i = 0; i < table.allocations.size(); ++i) {
    const Allocation& a = table.allocations[i];
    RC_ASSERT(a.begin == Allocation::kBefore || a.end > a.begin);
    RC_ASSERT(i == 0 || a.begin != Allocation::kBefore);
    RC_ASSERT(a.requested >= 0);
  }
  for (std::size_t i = 0; i < table.steps.size(); ++i) {
    RC_ASSERT(table.steps[i].begin < table.steps[i].end);
    if (i > 0) RC_ASSERT(table.steps[i - 1].end <= table.steps[i].begin);  // RC_ASSERT evaluates both sides of ||
  }
  const std::uint32_t event = b.now() == 0 ? Allocation::kBefore : b.now() - 1;
  RC_ASSERT(live_set_at(b.recording(), table, event).requested == alive_at(table, event));
  find_leaks(b.recording(), table);
  for (const LateFree& held : find_late_frees(table, event)) RC_ASSERT(held.at_peak <= held.most);
}

RC_GTEST_PROP(MemoryReport, ALiveSetAddsUpHoweverItIsGrouped, ()) {
  TrainingScene s = random_training();
  const AllocationTable table = tabulate_allocations(s.b.recording(), s.b.device(), {});
  const std::uint32_t event = s.b.now() == 0 ? 0 : *rc::gen::inRange<std::uint32_t>(0, s.b.now());
  const LiveSet set = live_set_at(s.b.recording(), table, event, *rc::gen::inRange<std::size_t>(0, 5));
  RC_ASSERT(set.requested == alive_at(table, event));
  for (const auto* groups : {&set.by_kind, &set.by_phase, &set.by_line}) {
    Bytes bytes = 0;
    std::uint64_t blocks = 0;
    for (const LiveGroup& group : *groups) bytes += group.requested, blocks += group.blocks;
    RC_ASSERT(bytes == set.requested);
    RC_ASSERT(blocks ==
              static_cast<std::uint64_t>(std::count_if(table.allocations.begin(), table.allocations.end(),
                                                       [&](const Allocation& a) { return a.lives_at(event); })));
  }
}

// The definition, word by word: alive at the end of the step after the one that made it, in every step but the first,
// and growing.
std::set<std::string> slow_leaks(const MemoryRecording& recording, const AllocationTable& table) {
  const auto& steps = table.steps;
  std::set<std::string> leaks;
  if (steps.size() < 3) return leaks;
  SourceLines lines(recording);
  std::set<std::string> names;
  for (const Allocation& a : table.allocations)
    if (a.begin != Allocation::kBefore) names.insert(lines.of(a.stack));
  for (const std::string& name : names) {
    const auto made_in = [&](const Allocation& a, std::size_t k) {
      return a.begin != Allocation::kBefore && lines.of(a.stack) == name && a.begin >= steps[k].begin &&
             a.begin < steps[k].end && k + 1 < steps.size() && a.lives_at(steps[k + 1].end - 1);
    };
    std::vector<Bytes> stays(steps.size()), alive(steps.size());
    for (const Allocation& a : table.allocations)
      for (std::size_t k = 0; k < steps.size(); ++k) {
        if (!made_in(a, k)) continue;
        stays[k] += a.requested;
        for (std::size_t j = k; j < steps.size(); ++j)
          if (a.lives_at(steps[j].end - 1)) alive[j] += a.requested;
      }
    bool leak = steps.size() > 3 || stays[0] > 0;
    for (std::size_t k = 1; k + 1 < steps.size(); ++k) leak = leak && stays[k] > 0 && alive[k] > alive[k - 1];
    if (leak && alive.back() >= alive[steps.size() - 2]) leaks.insert(name);
  }
  return leaks;
}

RC_GTEST_PROP(MemoryReport, LeaksAreWhatTheirDefinitionSays, ()) {
  // Steps by annotation, so that there are some; what is made in them is random.
  TrainingScene s;
  const std::vector<StackId> stacks = {s.forward, s.forward_at(30)};
  std::vector<Address> alive;
  const int steps = *rc::gen::inRange(2, 7), one_of = *rc::gen::inRange(2, 20);
  for (int step = 0; step < steps; ++step) {
    s.b.annotate("START", "ProfilerStep#" + std::to_string(step));
    const int calls = *rc::gen::inRange(0, 16);
    for (int i = 0; i < calls; ++i) {
      if (!alive.empty() && *rc::gen::inRange(0, one_of) == 0) {
        s.b.free(alive.front(), s.backward);
        alive.erase(alive.begin());
      } else {
        alive.push_back(s.b.alloc(1000, stacks[*rc::gen::inRange<std::size_t>(0, stacks.size())]));
      }
    }
    s.b.annotate("END", "ProfilerStep#" + std::to_string(step));
  }
  const AllocationTable table = tabulate_allocations(s.b.recording(), s.b.device(), {});
  const LeakReport report = find_leaks(s.b.recording(), table);
  std::set<std::string> found;
  for (const Leak& leak : report.leaks) found.insert(leak.line);
  RC_ASSERT(found == slow_leaks(s.b.recording(), table));
  RC_CLASSIFY(!found.empty());
  for (std::size_t k = 0; k < table.steps.size(); ++k)
    RC_ASSERT(report.at_step_end[k] == alive_at(table, table.steps[k].end - 1));
}

RC_GTEST_PROP(MemoryReport, HeldInVainIsNeverMoreThanWhatLives, ()) {
  TrainingScene s = random_training();
  const AllocationTable table = tabulate_allocations(s.b.recording(), s.b.device(), {});
  for (std::uint32_t event = 0; event < s.b.now(); ++event) {
    Bytes held = 0;
    for (const LateFree& rule : find_late_frees(table, event)) {
      RC_ASSERT(rule.at_peak >= 0);
      RC_ASSERT(rule.at_peak <= rule.most);
      RC_ASSERT(rule.blocks > 0);
      held += rule.at_peak;
    }
    RC_ASSERT(held <= alive_at(table, event));  // no block is counted by two rules
  }
}

RC_GTEST_PROP(MemoryReport, ExternalFragmentationIsTheSumOfTheHoles, ()) {
  std::vector<SegmentState> segments;
  Bytes free = 0, slack = 0, reserved = 0, active = 0;
  const int count = *rc::gen::inRange(0, 6);
  for (int i = 0; i < count; ++i) {
    SegmentState segment;
    segment.address = static_cast<Address>(GiB(i + 1));
    segment.expandable = *rc::gen::arbitrary<bool>();
    segment.small_pool = *rc::gen::arbitrary<bool>();
    segment.private_pool = *rc::gen::inRange<std::uint32_t>(0, 2);
    const int blocks = *rc::gen::inRange(1, 6);
    for (int k = 0; k < blocks; ++k) {
      BlockState block;
      block.address = segment.address + static_cast<Address>(segment.size);
      block.size = MiB(*rc::gen::inRange(1, 60));
      block.requested = block.size - *rc::gen::inRange(0, 1000);
      block.use = static_cast<BlockState::Use>(*rc::gen::inRange(0, 4));
      segment.size += block.size;
      reserved += block.use == BlockState::Use::unmapped ? 0 : block.size;
      active += block.use == BlockState::Use::in_use || block.use == BlockState::Use::pending ? block.size : 0;
      free += block.use == BlockState::Use::free ? block.size : 0;
      slack += block.use == BlockState::Use::in_use ? block.size - block.requested : 0;
      segment.blocks.push_back(block);
    }
    segments.push_back(segment);
  }
  const Fragmentation f = fragmentation_of(segments, 1000);
  RC_ASSERT(f.external == reserved - active);
  RC_ASSERT(f.external == free);
  RC_ASSERT(f.internal == slack);
  RC_ASSERT(f.whole_segments + f.in_split == f.external);
  RC_ASSERT(f.whole_segments >= 0);
  RC_ASSERT(f.in_split >= 0);
  Bytes holes = 0;
  for (const auto& hole : f.largest_holes) holes += hole.size;
  RC_ASSERT(holes == free);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
