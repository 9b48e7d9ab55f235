#include "models/workload/import/ranks/rank_join.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <map>
#include <set>

#include "models/workload/import/ranks/batched_exchanges.h"
#include "models/workload/import/ranks/collective_rendezvous.h"
#include "models/workload/import/ranks/rank_join_notes.h"
#include "sim/error.h"
#include "sim/human_text.h"
#include "sim/trace/ranks.h"
#include "sim/trace/trace_check.h"

namespace memwall {
namespace {

std::string name_of(const ImportedStep& step) {
  return step.files.empty() ? step.trace.name : step.files.front().string();
}

void require_ranks(const std::vector<ImportedStep>& steps) {
  for (const ImportedStep& step : steps) {
    if (!step.rank)
      throw UsageError(
          fmt::format("{}: several ranks of one job are joined by the captured times of their collectives, "
                      "which this file has not; expected Kineto captures or captured CUDA programs.",
                      name_of(step)));
    if (step.rank->devices > 1)
      throw InputError(
          fmt::format("{}: its process uses {} devices; several captures are joined where each is of a "
                      "process with one device, as torchrun starts them.",
                      name_of(step), step.rank->devices));
  }
}

// The size of the job, -1 where no file says it.
std::int64_t world_size(const std::vector<ImportedStep>& steps) {
  const ImportedStep* told = nullptr;
  for (const ImportedStep& step : steps) {
    if (step.rank->world_size < 0) continue;
    if (told != nullptr && told->rank->world_size != step.rank->world_size)
      throw UsageError(fmt::format("{} is of a job of {} ranks, {} of one of {}; expected captures of one job.",
                                   name_of(*told), told->rank->world_size, name_of(step), step.rank->world_size));
    told = &step;
  }
  return told == nullptr ? -1 : told->rank->world_size;
}

// Ranks as the files say; files that do not say it take the smallest numbers that are free, as they were given.
std::vector<std::uint32_t> rank_numbers(const std::vector<ImportedStep>& steps, std::int64_t world) {
  std::map<std::int64_t, const ImportedStep*> told;
  for (const ImportedStep& step : steps) {
    const std::int64_t rank = step.rank->rank;
    if (rank < 0) continue;
    if (rank > 0x7fffffff || (world >= 0 && rank >= world))
      throw InputError(fmt::format("{}: says that it is rank {} of {}; expected a rank from 0 to {}.", name_of(step),
                                   rank, world, world > 0 ? world - 1 : 0x7fffffff));
    const auto [other, is_new] = told.try_emplace(rank, &step);
    if (!is_new)
      throw UsageError(fmt::format("{} and {} are both of rank {}; expected one capture of each rank.",
                                   name_of(*other->second), name_of(step), rank));
  }
  if (world >= 0 && steps.size() > static_cast<std::size_t>(world))
    throw UsageError(
        fmt::format("{} captures of a job of {} ranks; expected at most one of each.", steps.size(), world));
  std::vector<std::uint32_t> numbers;
  std::int64_t next = 0;
  for (const ImportedStep& step : steps) {
    if (step.rank->rank < 0) {
      while (told.contains(next)) ++next;
      told.emplace(next, &step);
    }
    numbers.push_back(static_cast<std::uint32_t>(step.rank->rank < 0 ? next : step.rank->rank));
  }
  return numbers;
}

// Steps by the number of their rank, so that the order of the command line makes no difference.
void sort_by_rank(std::vector<ImportedStep>& steps, std::vector<std::uint32_t>& numbers) {
  std::vector<std::size_t> order(steps.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return numbers[a] < numbers[b]; });
  std::vector<ImportedStep> sorted;
  for (const std::size_t i : order) sorted.push_back(std::move(steps[i]));
  steps = std::move(sorted);
  std::sort(numbers.begin(), numbers.end());
}

// A group of which the files tell neither name nor ranks is the whole job's if there is no other.
std::vector<ProcessGroup> trace_groups(const CollectiveMatches& found, std::int64_t world) {
  std::vector<ProcessGroup> groups;
  for (std::size_t g = 0; g < found.groups.size(); ++g) {
    const CapturedGroup& captured = found.groups[g];
    ProcessGroup group{.name = captured.name, .ranks = captured.ranks, .members = captured.members};
    if (captured.name.empty()) {
      group.name = fmt::format("communicator {}", g);
      if (found.groups.size() == 1 && group.ranks == 0 && world > 0) group.ranks = static_cast<std::uint32_t>(world);
    }
    if (world > 0 && group.members.empty() && group.ranks == world && world <= (1 << 20))
      for (std::uint32_t rank = 0; rank < world; ++rank) group.members.push_back(rank);
    groups.push_back(std::move(group));
  }
  return groups;
}

// Gives the ops of a rank their groups, as numbers of its own list.
void set_groups(Trace& trace, const RankCapture& capture, const std::vector<std::uint32_t>& group_of,
                const std::vector<ProcessGroup>& groups) {
  trace.groups.clear();
  for (const std::uint32_t group : group_of) trace.groups.push_back(groups[group]);
  for (const CapturedCollective& c : capture.collectives) trace.ops[c.op].group = c.group;
}

// The rank's program begins so much after that of the first: see rank_join.h.
void delay_start(Trace& trace, Duration delay) {
  std::vector<bool> begun(trace.threads.size(), false);
  for (Op& op : trace.ops) {
    if (op.placed) {
      op.host_gap += delay;
      continue;
    }
    if (begun[op.thread] || op.graph_member) continue;
    begun[op.thread] = true;
    if (op.kind != OpKind::hand_over) op.host_gap += delay;  // which waits for another thread
  }
}

// When each program begins, on the first one's clock, less the earliest.
std::vector<Duration> program_starts(const CollectiveMatches& found) {
  std::vector<Duration> starts;
  for (const MatchedRank& rank : found.ranks) starts.push_back(rank.fit.clock.on_reference(Time{}));
  const Duration earliest = *std::min_element(starts.begin(), starts.end());
  for (Duration& start : starts) start -= earliest;
  return starts;
}

std::uint32_t size_of_job(std::int64_t world, const std::vector<ProcessGroup>& groups) {
  if (world > 0) return static_cast<std::uint32_t>(std::min<std::int64_t>(world, 0x7fffffff));
  std::uint32_t most = 0;
  for (const ProcessGroup& group : groups)
    if (!group.members.empty()) most = std::max(most, group.members.back() + 1);
  return most;
}

// What the files say of their GPU, if they agree.
void join_files(std::vector<ImportedStep>& steps, ImportedStep& joined) {
  joined.gpu = steps.front().gpu;
  joined.gpu_memory = steps.front().gpu_memory;
  for (ImportedStep& step : steps) {
    joined.note_kinds.merge(step.note_kinds);
    if (step.gpu != joined.gpu || step.gpu_memory != joined.gpu_memory) {
      joined.gpu.clear();
      joined.gpu_memory = 0;
    }
    for (const std::string& line : step.report)
      joined.report.push_back(
          fmt::format("{}: {}", step.files.empty() ? "" : step.files.front().filename().string(), line));
    joined.files.insert(joined.files.end(), step.files.begin(), step.files.end());
  }
}

// A job is as complete as the capture of its rank with most missing.
std::pair<Completeness, std::string> least_complete(const std::vector<ImportedStep>& steps,
                                                    const std::vector<std::uint32_t>& numbers) {
  std::pair<Completeness, std::string> least;
  for (std::size_t i = 0; i < steps.size(); ++i)
    if (const Trace& trace = steps[i].trace; is_worse(trace.completeness, least.first))
      least = {trace.completeness, fmt::format("Rank {}: {}", numbers[i], trace.completeness_reason)};
  return least;
}

}  // namespace

ImportedStep joined_steps(std::vector<ImportedStep> steps) {
  assert(steps.size() > 1);
  require_ranks(steps);
  const std::int64_t world = world_size(steps);
  std::vector<std::uint32_t> numbers = rank_numbers(steps, world);
  sort_by_rank(steps, numbers);

  std::vector<RankCapture> captures;
  std::vector<std::string> names;
  for (ImportedStep& step : steps) {
    captures.push_back(std::move(*step.rank));
    names.push_back(name_of(step));
  }
  const CollectiveMatches found = match_collectives(captures, names);
  const std::vector<ProcessGroup> groups = trace_groups(found, world);
  const std::vector<Duration> starts = program_starts(found);
  for (std::size_t i = 0; i < steps.size(); ++i) set_groups(steps[i].trace, captures[i], found.group_of[i], groups);
  for (std::uint32_t i = 0; i < steps.size(); ++i)
    steps[i].trace = with_rendezvous(std::move(steps[i].trace), met_kernels(captures[i], found, i));

  ImportedStep joined;
  joined.decisions = join_decisions({captures, names, numbers, groups, found, starts, size_of_job(world, groups)});
  join_files(steps, joined);
  std::vector<std::string> notes;
  for (const Decision& decision : joined.decisions) notes.push_back(decision.sentence);
  std::vector<RankProgram> programs;
  const auto [completeness, reason] = least_complete(steps, numbers);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    delay_start(steps[i].trace, starts[i]);
    for (Decision& decision : steps[i].decisions) {
      if (decision.kind != NoteKind::counted) joined.note_kinds.insert_or_assign(decision.sentence, decision.kind);
      decision.subject = fmt::format("rank {}: {}", numbers[i], decision.subject);
      joined.decisions.push_back(std::move(decision));
    }
    programs.push_back({numbers[i], std::move(steps[i].trace)});
  }
  joined.trace = joined_ranks(std::move(programs));
  joined.trace.completeness = completeness;
  joined.trace.completeness_reason = reason;
  if (numbers.size() > 1) joined.trace.name += " and " + counted_text(numbers.size() - 1, "more rank");
  joined.trace.job_ranks = size_of_job(world, groups);
  joined.trace.notes.insert(joined.trace.notes.begin(), notes.begin(), notes.end());
  require_sound(joined.trace, names.front() + " joined with other ranks");
  return joined;
}

void describe_rank(ImportedStep& step) {
  if (!step.rank) return;
  const RankCapture& capture = *step.rank;
  Trace& trace = step.trace;
  trace.groups.clear();
  for (const CapturedGroup& group : capture.groups) trace.groups.push_back({group.name, group.ranks, group.members});
  for (const CapturedCollective& c : capture.collectives) trace.ops[c.op].group = c.group;
  trace.job_ranks = size_of_job(capture.world_size, trace.groups);
  if (capture.collectives.empty() || trace.job_ranks < 2) return;
  std::size_t kernels = 1;
  for (std::size_t i = 1; i < capture.collectives.size(); ++i)
    kernels += capture.collectives[i].op != capture.collectives[i - 1].op;
  const std::string who = capture.rank < 0 ? "One rank" : fmt::format("Rank {}", capture.rank);
  Decision d{
      .subject = "ranks of the job", .sentence = "", .covered = 1, .of = trace.job_ranks, .kind = NoteKind::missing};
  d.sentence = fmt::format(
      "{} of {} is present. The captured durations of its {} collectives contain waiting for the "
      "absent ranks and stay as they are: right as long as it arrives as it did.",
      who, trace.job_ranks, kernels);
  trace.notes.push_back(d.sentence);
  step.decisions.push_back(std::move(d));
}

}  // namespace memwall
